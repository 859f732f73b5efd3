"""Which tools a session of an agent has: the stages of policy, with what is known of the session (TOOL-4).

Part of the composition root: it knows the configuration. The rules themselves are
`domain.toolpolicy`; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache

from msgspec import Struct

from openclaw.config import views
from openclaw.config.agent_view import ResolvedAgent
from openclaw.config.schema import Config
from openclaw.domain.entry import SessionEntry, SubagentRole
from openclaw.domain.keys import KeySettings, KeyShape, format_key, main_session_key, parse_key
from openclaw.domain.toolpolicy import NO_RULES, SubagentFacts, ToolRules, ToolStages, effective_tools
from openclaw.engine.ports import ModelTarget
from openclaw.errors import InvalidSessionKey

_KEPT = 500  # kinds of sessions; most sessions of an agent are of one or two
ToolsOf = Callable[[SessionEntry, str], tuple[str, ...]]


class Group(Struct, frozen=True):
    """A group or room, as its session key names it."""

    channel: str
    group_id: str


class _Facts(Struct, frozen=True):
    """All of a session that its tools depend on."""

    provider: str
    model: str
    group: Group | None
    sandboxed: bool
    role: SubagentRole | None
    depth: int


class Sandboxing(Struct, frozen=True):
    """Whether a session runs in the sandbox: all do, none does, or all but the main one (VIS-2)."""

    all: bool
    main_key: str | None

    def holds(self, session_key: str) -> bool:
        return self.all or (self.main_key is not None and session_key != self.main_key)


def sandboxing_of(agent: ResolvedAgent, keys: KeySettings) -> Sandboxing:
    mode = agent.sandbox.mode
    main_key = format_key(main_session_key(agent.agent_id, keys)) if mode == "non-main" else None
    return Sandboxing(mode == "all", main_key)


def tools_of_sessions(
    config: Config,
    agent: ResolvedAgent,
    available: Sequence[str],
    choose_model: Callable[[SessionEntry], ModelTarget],
) -> ToolsOf:
    """The tools of a session, by its entry and key.

    A sub-agent has less (SPAWN-9), and what its group may not have, it may not have either.
    """
    keys = views.key_settings(config)
    sandboxing = sandboxing_of(agent, keys)

    @lru_cache(_KEPT)
    def decide(facts: _Facts) -> tuple[str, ...]:
        return effective_tools(available, _stages(config, agent, facts)).tools

    def tools_of(entry: SessionEntry, session_key: str) -> tuple[str, ...]:
        target = choose_model(entry)
        helper = entry.spawned_by is not None
        return decide(
            _Facts(
                target.provider,
                target.model,
                group_of(entry.spawn_root or session_key, keys),
                sandboxing.holds(session_key),
                (entry.subagent_role or "leaf") if helper else None,
                (entry.spawn_depth or 1) if helper else 0,
            )
        )

    return tools_of


def group_of(session_key: str, keys: KeySettings) -> Group | None:
    """The group that a session belongs to; a topic or thread of it too."""
    with suppress(InvalidSessionKey):
        key = parse_key(session_key, keys)
        if key.shape in (KeyShape.group, KeyShape.channel) and key.channel and key.peer_id:
            return Group(key.channel, key.peer_id)
    return None


def _stages(config: Config, agent: ResolvedAgent, facts: _Facts) -> ToolStages:
    helper = None
    if facts.role is not None:
        helper = SubagentFacts(
            role=facts.role,
            depth=facts.depth,
            max_depth=agent.subagents.max_spawn_depth,
            rules=views.subagent_tool_rules(config),
        )
    return ToolStages(
        global_rules=views.tool_rules(config),
        agent=views.agent_tool_rules(config, agent.agent_id),
        provider=facts.provider,
        model=facts.model,
        group=_group_rules(config, facts.group),
        sandbox=views.sandbox_tool_rules(config) if facts.sandboxed else None,
        subagent=helper,
    )


def _group_rules(config: Config, group: Group | None) -> ToolRules:
    """A key is in lower case where the platform does not care; the file may spell a group otherwise."""
    if group is None:
        return NO_RULES
    named = views.channel(config, group.channel).groups
    spelled = (name for name in named if name.lower() == group.group_id.lower())
    return views.group_tool_rules(config, group.channel, next(spelled, group.group_id))
