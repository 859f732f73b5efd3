"""Who may see which session (SPEC §12, VIS-1..7).

One decision for every door: RPC, session tools, chat commands and search all
ask `decide_visibility` about a row that is already resolved. The store may
narrow its query with `visibility_scope` so that filtering comes before limits
(VIS-6); the decision stays the final judge. No lookup, no I/O, no formatting of
results happens here.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from openclaw.domain.toolpolicy import matches_any

VisibilityLevel = Literal["self", "tree", "agent", "all"]
SandboxSetting = Literal["spawned", "all"]
VisibleReason = Literal["operator", "own", "spawned", "same-agent", "cross-agent"]
DeniedReason = Literal["not-found", "level", "agent-to-agent-off", "agent-to-agent-allow", "sandbox"]

LEVEL_SETTING = "tools.sessions.visibility"
ENABLED_SETTING = "tools.agentToAgent.enabled"
ALLOW_SETTING = "tools.agentToAgent.allow"
SANDBOX_SETTING = "agents.defaults.sandbox.mode"


class VisibilityPolicy(Struct, frozen=True, kw_only=True):
    """The settings that decide what sessions may see of one another."""

    level: VisibilityLevel = "tree"
    agent_to_agent_enabled: bool = False
    # Empty means every agent; a pattern that is blank matches none.
    agent_to_agent_allow: tuple[str, ...] = ()
    # Accepted for old configurations; it cannot lift the clamp (VIS-3, AMB-2).
    sandbox_session_tools: SandboxSetting = "spawned"


class OperatorCaller(Struct, frozen=True, tag="operator"):
    """A person or program behind the Gateway's own authentication: sees everything."""

    principal: str


class SessionCaller(Struct, frozen=True, tag="session", kw_only=True):
    """A session that uses a tool or a chat command. Keys are canonical."""

    session_key: str
    agent_id: str
    sandboxed: bool = False


Caller = OperatorCaller | SessionCaller


class TargetFacts(Struct, frozen=True, kw_only=True):
    """What the decision reads of a stored session row."""

    session_key: str
    agent_id: str
    spawned_by: str | None = None
    parent_session_key: str | None = None
    # The session that owns the row's entry in the run registry.
    registry_owner: str | None = None
    archived: bool = False


class Visible(Struct, frozen=True, tag="visible"):
    reason: VisibleReason


class Denied(Struct, frozen=True, tag="denied"):
    """A refusal that can be shown to the caller: `setting` is the one to change."""

    reason: DeniedReason
    setting: str
    message: str


class EveryRow(Struct, frozen=True, tag="every-row"):
    """No narrowing: every row may be read."""


class SomeRows(Struct, frozen=True, tag="some-rows", kw_only=True):
    """Rows that meet at least one of the conditions below."""

    # the row with this key
    own_key: str
    # rows whose spawned_by, parent_session_key or registry owner is this key
    tree_of: str | None = None
    # every row of this agent
    agent_id: str | None = None
    # rows of any agent whose id matches one of these patterns; ("*",) is every agent
    agent_patterns: tuple[str, ...] = ()


VisibilityScope = EveryRow | SomeRows


def effective_level(policy: VisibilityPolicy, caller: Caller) -> VisibilityLevel:
    """The level that holds for this caller: a sandboxed session never gets past `tree` (VIS-2)."""
    if isinstance(caller, OperatorCaller):
        return "all"
    if caller.sandboxed and policy.level != "self":
        return "tree"
    return policy.level


def decide_visibility(
    policy: VisibilityPolicy, caller: Caller, target: TargetFacts | None
) -> Visible | Denied:
    """Decide whether `caller` may see `target`; `None` is a session that does not exist.

    Works on the resolved row, never on the spelling that the caller used. For a
    sandboxed caller a missing and a hidden session give the same value (VIS-7).
    """
    decision = _decide(policy, caller, target)
    if isinstance(decision, Denied) and isinstance(caller, SessionCaller) and caller.sandboxed:
        return _deny_sandboxed(effective_level(policy, caller))
    return decision


def _decide(policy: VisibilityPolicy, caller: Caller, target: TargetFacts | None) -> Visible | Denied:
    if target is None:
        return Denied("not-found", "", "No such session.")
    if isinstance(caller, OperatorCaller):
        return Visible("operator")
    if target.session_key == caller.session_key:
        return Visible("own")
    level = effective_level(policy, caller)
    if level in ("tree", "all") and in_tree_of(caller.session_key, target):
        return Visible("spawned")
    if target.agent_id != caller.agent_id:
        return _decide_cross_agent(policy, level, caller, target)
    if level in ("self", "tree"):
        return _deny_level(level, '"agent" or "all"')
    return Visible("same-agent")


def _decide_cross_agent(
    policy: VisibilityPolicy, level: VisibilityLevel, caller: SessionCaller, target: TargetFacts
) -> Visible | Denied:
    if level != "all":
        return _deny_level(level, '"all"')
    if not policy.agent_to_agent_enabled:
        return Denied(
            "agent-to-agent-off",
            ENABLED_SETTING,
            f"This session belongs to another agent. Set {ENABLED_SETTING} to true to allow it.",
        )
    allow = policy.agent_to_agent_allow
    if allow and not (matches_any(allow, caller.agent_id) and matches_any(allow, target.agent_id)):
        return Denied(
            "agent-to-agent-allow",
            ALLOW_SETTING,
            f"This session belongs to another agent. {ALLOW_SETTING} must match both agents.",
        )
    return Visible("cross-agent")


_LEVEL_MEANS: dict[VisibilityLevel, str] = {
    "self": "this session sees only itself",
    "tree": "this session sees itself and the sessions it spawned",
    "agent": "this session sees the sessions of its own agent",
}


def _deny_level(level: VisibilityLevel, wider: str) -> Denied:
    message = (
        f'Session visibility is "{level}": {_LEVEL_MEANS[level]}. Set {LEVEL_SETTING} to {wider} to see more.'
    )
    return Denied("level", LEVEL_SETTING, message)


def _deny_sandboxed(level: VisibilityLevel) -> Denied:
    """The one answer of a sandboxed caller: it depends on nothing but the settings (VIS-7)."""
    message = f"Sandboxed: {_LEVEL_MEANS[level]}. {SANDBOX_SETTING} decides which sessions are sandboxed."
    return Denied("sandbox", SANDBOX_SETTING, message)


def in_tree_of(requester_key: str, target: TargetFacts) -> bool:
    """Whether the requester itself spawned or owns the target; grandchildren are not in its tree (VIS-5)."""
    return requester_key in (target.spawned_by, target.parent_session_key, target.registry_owner)


def visibility_scope(policy: VisibilityPolicy, caller: Caller) -> VisibilityScope:
    """The rows that a query for this caller has to read at all (VIS-6).

    Never narrower than `decide_visibility`. `scope_admits` says what each
    condition means; a store that cannot express one may read more rows.
    """
    if isinstance(caller, OperatorCaller):
        return EveryRow()
    level = effective_level(policy, caller)
    patterns: tuple[str, ...] = ()
    if level == "all" and policy.agent_to_agent_enabled:
        allow = policy.agent_to_agent_allow or ("*",)
        patterns = allow if matches_any(allow, caller.agent_id) else ()
    return SomeRows(
        own_key=caller.session_key,
        tree_of=caller.session_key if level in ("tree", "all") else None,
        agent_id=caller.agent_id if level in ("agent", "all") else None,
        agent_patterns=patterns,
    )


def scope_admits(scope: VisibilityScope, target: TargetFacts) -> bool:
    """Whether a row passes the narrowing: the meaning that a store's predicate must have."""
    if isinstance(scope, EveryRow):
        return True
    return (
        target.session_key == scope.own_key
        or (scope.tree_of is not None and in_tree_of(scope.tree_of, target))
        or target.agent_id == scope.agent_id
        or matches_any(scope.agent_patterns, target.agent_id)
    )


def is_listed(target: TargetFacts) -> bool:
    """Whether lists show a visible row. An archived one stays readable by key or id (AMB-28)."""
    return not target.archived


def policy_warnings(policy: VisibilityPolicy) -> tuple[str, ...]:
    """What to tell the owner about settings that have no effect (AMB-2)."""
    if policy.sandbox_session_tools == "spawned":
        return ()
    return (
        'agents.defaults.sandbox.sessionToolsVisibility: "all" has no effect: '
        "a sandboxed session sees itself and the sessions it spawned.",
    )
