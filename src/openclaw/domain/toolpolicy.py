"""Which tools a session has, and whom it may spawn (SPEC §12 TOOL-3..5, §16 SPAWN-6..12).

Rules in, names and reasons out. The registry of tools, their code and the
counting of children live elsewhere; this room only decides. A filter can
remove, never add; the one exception is named in SPAWN-11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal

from msgspec import Struct

from openclaw.domain.entry import ControlScope, SubagentRole

Profile = Literal["minimal", "coding", "messaging", "full"]
Stage = Literal["profile", "global", "provider", "agent", "group", "sandbox", "subagent"]

# The session tools of TOOL-2, then search.
SESSION_TOOLS = (
    "sessions_list",
    "sessions_history",
    "sessions_send",
    "sessions_spawn",
    "sessions_yield",
    "subagents",
    "session_status",
    "agents_list",
    "sessions_search",
)

TOOL_GROUPS: dict[str, tuple[str, ...]] = {
    "group:fs": ("read", "write", "edit", "list", "grep", "apply_patch"),
    "group:runtime": ("exec", "process"),
    "group:web": ("web_search", "web_fetch"),
    "group:sessions": SESSION_TOOLS,
    "group:memory": ("memory", "memory_search", "memory_get"),
    "group:media": ("image", "image_generate"),
    "group:messaging": ("message",),
    "group:automation": ("cron", "gateway"),
}

# `full` is absent on purpose: it restricts nothing.
PROFILES: dict[Profile, tuple[str, ...]] = {
    "minimal": ("session_status",),
    "coding": (
        "group:fs",
        "group:runtime",
        "group:web",
        "group:sessions",
        "group:memory",
        "cron",
        "group:media",
    ),
    "messaging": (
        "group:messaging",
        "sessions_list",
        "sessions_history",
        "sessions_send",
        "session_status",
    ),
}

# AMB-35; apply_patch writes files just as edit does.
OWNER_TOOLS = ("exec", "process", "write", "edit", "apply_patch")
NO_BACKEND = "no sandbox backend is installed. Install bubblewrap (apt install bubblewrap)"
_SANDBOX_BACKED_TOOLS = TOOL_GROUPS["group:fs"] + TOOL_GROUPS["group:runtime"]

_SUBAGENT_DENIED = ("gateway", "cron", "agents_list", "session_status", "sessions_send", "sessions_search")
_LEAF_DENIED = ("subagents", "sessions_list", "sessions_history", "sessions_spawn", "sessions_yield")


# -- names and patterns --------------------------------------------------------------------------


def matches_glob(pattern: str, name: str) -> bool:
    """Match a name against a pattern in which `*` stands for any run of characters.

    Letter case and surrounding blanks do not matter; a blank pattern matches
    nothing. Each piece between stars is searched once, so the time is linear.
    """
    pattern = pattern.strip().lower()
    name = name.strip().lower()
    head, *rest = pattern.split("*")
    if not rest:
        return bool(pattern) and pattern == name
    *middle, tail = rest
    if len(name) < len(head) + len(tail) or not (name.startswith(head) and name.endswith(tail)):
        return False
    position, end = len(head), len(name) - len(tail)
    for piece in middle:
        found = name.find(piece, position, end)
        if found < 0:
            return False
        position = found + len(piece)
    return True


def matches_any(patterns: Iterable[str], name: str) -> bool:
    """Whether at least one pattern matches the name; `group:` names have no meaning here."""
    return any(matches_glob(pattern, name) for pattern in patterns)


def covering_pattern(patterns: Iterable[str], tool: str) -> str | None:
    """The first pattern or `group:` name, as it was written, that covers the tool."""
    for pattern in patterns:
        members = TOOL_GROUPS.get(pattern.strip().lower(), (pattern,))
        if matches_any(members, tool):
            return pattern
    return None


def covers(patterns: Iterable[str], tool: str) -> bool:
    return covering_pattern(patterns, tool) is not None


# -- rules and stages ------------------------------------------------------------------------------


class ToolRules(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One `tools` section. An empty `allow` restricts nothing; `deny` wins over everything beside it."""

    profile: Profile | None = None
    allow: tuple[str, ...] = ()
    also_allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    by_provider: dict[str, ToolRules] = {}


NO_RULES = ToolRules()


class SubagentFacts(Struct, frozen=True, kw_only=True):
    """What the stored entry of a sub-agent says about it, and `tools.subagents.tools` (SPAWN-11)."""

    role: SubagentRole
    depth: int
    max_depth: int = 1
    rules: ToolRules = NO_RULES
    # The parent's tools at the time of the spawn: a child never has more than its parent.
    parent_tools: tuple[str, ...] | None = None


class ToolStages(Struct, frozen=True, kw_only=True):
    """The rules of every stage, in no particular order; `effective_tools` knows the order."""

    global_rules: ToolRules = NO_RULES
    agent: ToolRules = NO_RULES
    # The model in use, for `byProvider` keys such as "openai" and "openai/gpt-5".
    provider: str | None = None
    model: str | None = None
    group: ToolRules = NO_RULES
    # None outside the sandbox.
    sandbox: ToolRules | None = None
    # None for a session that is not a sub-agent.
    subagent: SubagentFacts | None = None


class Removed(Struct, frozen=True):
    """A tool that a stage took away, and the rule that did it."""

    tool: str
    stage: Stage
    rule: str


class ToolDecision(Struct, frozen=True):
    tools: tuple[str, ...]
    removed: tuple[Removed, ...]


def effective_tools(available: Sequence[str], stages: ToolStages) -> ToolDecision:
    """Run every tool through all stages in order; the first that objects removes it (TOOL-4, TOOL-5)."""
    filters = _filters(stages)
    kept: list[str] = []
    removed: list[Removed] = []
    for tool in dict.fromkeys(available):
        for stage, objection in filters:
            rule = objection(tool)
            if rule is not None:
                removed.append(Removed(tool, stage, rule))
                break
        else:
            kept.append(tool)
    return ToolDecision(tuple(kept), tuple(removed))


Objection = Callable[[str], str | None]


def _filters(stages: ToolStages) -> list[tuple[Stage, Objection]]:
    globally, agent = stages.global_rules, stages.agent
    filters: list[tuple[Stage, Objection]] = [
        ("profile", partial(_profile_objection, globally, agent)),
        ("global", partial(_rules_objection, globally)),
        ("provider", partial(_provider_objection, _provider_rules(globally, stages))),
        ("provider", partial(_provider_objection, _provider_rules(agent, stages))),
        ("agent", partial(_rules_objection, agent)),
        ("group", partial(_rules_objection, stages.group)),
    ]
    if stages.sandbox is not None:
        filters.append(("sandbox", partial(_rules_objection, stages.sandbox)))
    if stages.subagent is not None:
        filters.append(("subagent", partial(_subagent_objection, stages.subagent)))
    return filters


def _profile_objection(globally: ToolRules, agent: ToolRules, tool: str) -> str | None:
    """`alsoAllow` widens the profile it stands beside; an agent that inherits the profile adds its own."""
    if agent.profile is not None:
        return _outside_profile(agent.profile, agent.also_allow, tool)
    return _outside_profile(globally.profile, globally.also_allow + agent.also_allow, tool)


def _outside_profile(profile: Profile | None, also_allow: tuple[str, ...], tool: str) -> str | None:
    if profile is None or profile == "full" or covers(PROFILES[profile] + also_allow, tool):
        return None
    return f"profile {profile}"


def _provider_rules(rules: ToolRules, stages: ToolStages) -> ToolRules:
    """The section for exactly this model, else for its provider, else none."""
    provider, model = (stages.provider or "").lower(), (stages.model or "").lower()
    sections = {key.strip().lower(): section for key, section in rules.by_provider.items()}
    return sections.get(f"{provider}/{model}") or sections.get(provider) or NO_RULES


def _provider_objection(rules: ToolRules, tool: str) -> str | None:
    return _outside_profile(rules.profile, rules.also_allow, tool) or _rules_objection(rules, tool)


def _rules_objection(rules: ToolRules, tool: str) -> str | None:
    denied_by = covering_pattern(rules.deny, tool)
    if denied_by is not None:
        return f"deny {denied_by}"
    if rules.allow and not covers(rules.allow + rules.also_allow, tool):
        return "not in allow"
    return None


def _subagent_objection(facts: SubagentFacts, tool: str) -> str | None:
    """SPAWN-9..11: what `alsoAllow` gives back is a session tool, and spawning only above the depth limit."""
    name = tool.strip().lower()
    objection = _rules_objection(facts.rules, name)
    if objection is not None:
        return objection
    if facts.parent_tools is not None and not matches_any(facts.parent_tools, name):
        return "not a tool of the parent"
    if name == "sessions_spawn" and facts.depth >= facts.max_depth:
        return f"depth {facts.depth} of {facts.max_depth}"
    if name in SESSION_TOOLS and covers(facts.rules.also_allow, name):
        return None
    if name in _SUBAGENT_DENIED:
        return "denied to sub-agents"
    if facts.role == "leaf" and name in _LEAF_DENIED:
        return "denied to leaf sub-agents"
    return None


def unknown_groups(rules: ToolRules) -> tuple[str, ...]:
    """Names of the form `group:…` that stand for nothing: a spelling mistake worth a warning."""
    sections = (rules, *rules.by_provider.values())
    names = [name for part in sections for name in (*part.allow, *part.also_allow, *part.deny)]
    return tuple(
        name
        for name in dict.fromkeys(names)
        if name.strip().lower().startswith("group:") and name.strip().lower() not in TOOL_GROUPS
    )


# -- use of a tool -----------------------------------------------------------------------------------


class MayUse(Struct, frozen=True, tag="may-use"):
    pass


class Refused(Struct, frozen=True, tag="refused"):
    """Why not, in words that can be given to the model or shown to a person."""

    reason: str
    message: str


def decide_tool_use(
    tool: str, *, caller_is_owner: bool, sandboxed: bool, sandbox_backend: bool, problem: str = NO_BACKEND
) -> MayUse | Refused:
    """Whether this turn may really run the tool (AMB-34, AMB-35).

    `problem` says what is wrong with the sandbox and what would help, where there is no backend.
    """
    name = tool.strip().lower()
    if sandboxed:
        if name in _SANDBOX_BACKED_TOOLS and not sandbox_backend:
            return Refused(
                "no-sandbox-backend",
                f"{name} needs a sandbox, and {problem}, or set agents.defaults.sandbox.mode to off.",
            )
        return MayUse()
    if name in OWNER_TOOLS and not caller_is_owner:
        return Refused(
            "owner-only",
            f"{name} runs for owners only, or inside the sandbox. Add the sender to "
            "commands.ownerAllowFrom, or set agents.defaults.sandbox.mode.",
        )
    return MayUse()


# -- spawning ------------------------------------------------------------------------------------------


class SpawnAgents(Struct, frozen=True):
    """The agents that a session may spawn, its own first, the rest in alphabetical order (AGL-2)."""

    allow_any: bool
    agent_ids: tuple[str, ...]


class SpawnInto(Struct, frozen=True, tag="spawn-into"):
    agent_id: str


class SpawnForbidden(Struct, frozen=True, tag="spawn-forbidden"):
    reason: str
    message: str


class MaySpawn(Struct, frozen=True, tag="may-spawn"):
    """What the child will be."""

    depth: int
    role: SubagentRole
    control_scope: ControlScope


def spawnable_agents(
    own_agent: str, allow_agents: tuple[str, ...] | None, configured: Sequence[str]
) -> SpawnAgents:
    """`allow_agents` is the agent's own list, else the defaults' list, else None (SPAWN-6, SPAWN-7)."""
    patterns = allow_agents or ()
    named = {pattern.strip().lower() for pattern in patterns if pattern.strip() and "*" not in pattern}
    matched = {agent for agent in configured if matches_any(patterns, agent)}
    others = sorted((named | matched) - {own_agent})
    return SpawnAgents("*" in (pattern.strip() for pattern in patterns), (own_agent, *others))


def decide_spawn_agent(
    own_agent: str,
    requested: str | None,
    allow_agents: tuple[str, ...] | None,
    configured: Sequence[str],
    *,
    require_agent_id: bool = False,
) -> SpawnInto | SpawnForbidden:
    """Which agent a spawn goes to. Not naming one means the own agent and is always allowed (SPAWN-7)."""
    allowed = spawnable_agents(own_agent, allow_agents, configured).agent_ids
    choices = ", ".join(allowed)
    if requested is None:
        if require_agent_id:
            return SpawnForbidden("agent-required", f"Name an agentId. Allowed: {choices}.")
        return SpawnInto(own_agent)
    wanted = requested.strip().lower()
    patterns = (own_agent,) if allow_agents is None else allow_agents
    if not matches_any(patterns, wanted):
        if wanted == own_agent:
            choices = ", ".join(allowed[1:]) or "none by name; leave agentId out for the own agent"
        return SpawnForbidden("agent-not-allowed", f"This agent may not be spawned here. Allowed: {choices}.")
    if wanted not in configured:
        return SpawnForbidden("agent-unknown", f"No such agent is configured. Allowed: {choices}.")
    return SpawnInto(wanted)


def decide_spawn_limits(
    *, depth: int, max_depth: int, active_children: int, max_children: int
) -> MaySpawn | SpawnForbidden:
    """SPAWN-12. Settings out of range count as the nearest allowed value (depth 1–5, children 1–200)."""
    deepest = min(max(max_depth, 1), 5)
    most = min(max(max_children, 1), 200)
    if depth >= deepest:
        return SpawnForbidden("depth", f"Sub-agents may not spawn deeper: depth {depth} of {deepest}.")
    if active_children >= most:
        return SpawnForbidden("children", f"Too many active sub-agents: {active_children} of {most}.")
    child_depth = depth + 1
    if child_depth < deepest:
        return MaySpawn(child_depth, "orchestrator", "children")
    return MaySpawn(child_depth, "leaf", "none")
