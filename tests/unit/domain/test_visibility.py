"""The one visibility decision, by example: levels, order, tree membership, denials (VIS-1..7)."""

from __future__ import annotations

import msgspec
import pytest

from openclaw.domain.visibility import (
    Caller,
    Denied,
    EveryRow,
    OperatorCaller,
    SessionCaller,
    SomeRows,
    TargetFacts,
    VisibilityLevel,
    VisibilityPolicy,
    Visible,
    decide_visibility,
    effective_level,
    in_tree_of,
    is_listed,
    policy_warnings,
    scope_admits,
    visibility_scope,
)

ME = "agent:main:main"
CALLER = SessionCaller(session_key=ME, agent_id="main")
SANDBOXED = SessionCaller(session_key=ME, agent_id="main", sandboxed=True)
OPERATOR = OperatorCaller("token")

OWN = TargetFacts(session_key=ME, agent_id="main")
CHILD = TargetFacts(session_key="agent:main:subagent:1", agent_id="main", spawned_by=ME)
FOREIGN_CHILD = TargetFacts(session_key="agent:work:subagent:2", agent_id="work", spawned_by=ME)
GRANDCHILD = TargetFacts(
    session_key="agent:main:subagent:3", agent_id="main", spawned_by="agent:main:subagent:1"
)
SIBLING = TargetFacts(session_key="agent:main:telegram:group:7", agent_id="main")
FOREIGN = TargetFacts(session_key="agent:work:main", agent_id="work")

LEVELS: tuple[VisibilityLevel, ...] = ("self", "tree", "agent", "all")


def policy(level: VisibilityLevel = "tree", *allow: str, enabled: bool = False) -> VisibilityPolicy:
    return VisibilityPolicy(level=level, agent_to_agent_enabled=enabled, agent_to_agent_allow=allow)


def outcome(rules: VisibilityPolicy, caller: Caller, target: TargetFacts | None) -> str:
    return decide_visibility(rules, caller, target).reason


@pytest.mark.spec("VIS-1")
def test_default_is_tree_with_agent_to_agent_off() -> None:
    rules = VisibilityPolicy()
    assert rules.level == "tree"
    assert not rules.agent_to_agent_enabled
    assert outcome(rules, CALLER, CHILD) == "spawned"
    assert outcome(rules, CALLER, SIBLING) == "level"


@pytest.mark.spec("VIS-1", "VIS-4")
@pytest.mark.parametrize(
    ("level", "own", "child", "foreign_child", "sibling", "foreign"),
    [
        ("self", "own", "level", "level", "level", "level"),
        ("tree", "own", "spawned", "spawned", "level", "level"),
        ("agent", "own", "same-agent", "level", "same-agent", "level"),
        ("all", "own", "spawned", "spawned", "same-agent", "agent-to-agent-off"),
    ],
)
def test_levels(
    level: VisibilityLevel, own: str, child: str, foreign_child: str, sibling: str, foreign: str
) -> None:
    rules = policy(level)
    assert outcome(rules, CALLER, OWN) == own
    assert outcome(rules, CALLER, CHILD) == child
    assert outcome(rules, CALLER, FOREIGN_CHILD) == foreign_child
    assert outcome(rules, CALLER, SIBLING) == sibling
    assert outcome(rules, CALLER, FOREIGN) == foreign


@pytest.mark.spec("VIS-4")
@pytest.mark.parametrize("level", LEVELS)
def test_own_session_is_visible_whatever_the_agent_column_says(level: VisibilityLevel) -> None:
    odd = TargetFacts(session_key=ME, agent_id="work")
    assert decide_visibility(policy(level), CALLER, odd) == Visible("own")
    assert decide_visibility(policy(level), SANDBOXED, odd) == Visible("own")


@pytest.mark.spec("VIS-4")
@pytest.mark.parametrize(
    ("allow", "reason"),
    [
        ((), "cross-agent"),
        (("*",), "cross-agent"),
        (("main", "work"), "cross-agent"),
        (("MAIN", "Work"), "cross-agent"),
        (("ma*", "*rk"), "cross-agent"),
        ((" main ", "w*k"), "cross-agent"),
        (("main",), "agent-to-agent-allow"),
        (("work",), "agent-to-agent-allow"),
        (("main", "wor"), "agent-to-agent-allow"),
        (("",), "agent-to-agent-allow"),
        (("group:fs",), "agent-to-agent-allow"),
    ],
)
def test_cross_agent_needs_both_ids_in_the_allow_list(allow: tuple[str, ...], reason: str) -> None:
    assert outcome(policy("all", *allow, enabled=True), CALLER, FOREIGN) == reason
    # The switch comes before the list, the level before both.
    assert outcome(policy("all", *allow), CALLER, FOREIGN) == "agent-to-agent-off"
    assert outcome(policy("agent", *allow, enabled=True), CALLER, FOREIGN) == "level"


@pytest.mark.spec("VIS-4")
def test_same_agent_does_not_need_agent_to_agent() -> None:
    rules = policy("all", "nobody", enabled=True)
    assert outcome(rules, CALLER, SIBLING) == "same-agent"
    assert outcome(rules, CALLER, FOREIGN_CHILD) == "spawned"


@pytest.mark.spec("VIS-4")
@pytest.mark.parametrize(
    ("rules", "target", "setting", "message"),
    [
        (
            policy("self"),
            SIBLING,
            "tools.sessions.visibility",
            'Session visibility is "self": this session sees only itself. '
            'Set tools.sessions.visibility to "agent" or "all" to see more.',
        ),
        (
            policy("tree"),
            SIBLING,
            "tools.sessions.visibility",
            'Session visibility is "tree": this session sees itself and the sessions it spawned. '
            'Set tools.sessions.visibility to "agent" or "all" to see more.',
        ),
        (
            policy("agent"),
            FOREIGN,
            "tools.sessions.visibility",
            'Session visibility is "agent": this session sees the sessions of its own agent. '
            'Set tools.sessions.visibility to "all" to see more.',
        ),
        (
            policy("all"),
            FOREIGN,
            "tools.agentToAgent.enabled",
            "This session belongs to another agent. Set tools.agentToAgent.enabled to true to allow it.",
        ),
        (
            policy("all", "main", enabled=True),
            FOREIGN,
            "tools.agentToAgent.allow",
            "This session belongs to another agent. tools.agentToAgent.allow must match both agents.",
        ),
    ],
)
def test_a_denial_names_the_setting_to_change(
    rules: VisibilityPolicy, target: TargetFacts, setting: str, message: str
) -> None:
    denial = decide_visibility(rules, CALLER, target)
    assert isinstance(denial, Denied)
    assert denial.setting == setting
    assert denial.message == message


@pytest.mark.spec("VIS-5")
@pytest.mark.parametrize("column", ["spawned_by", "parent_session_key", "registry_owner"])
def test_each_lineage_column_makes_a_tree_member(column: str) -> None:
    row = TargetFacts(session_key="agent:main:x", agent_id="main")
    mine = msgspec.structs.replace(row, **{column: ME})
    other = msgspec.structs.replace(row, **{column: "agent:main:other"})
    assert in_tree_of(ME, mine)
    assert not in_tree_of(ME, other)
    assert outcome(policy("tree"), CALLER, mine) == "spawned"
    assert outcome(policy("tree"), CALLER, other) == "level"


@pytest.mark.spec("VIS-5")
def test_a_row_without_lineage_is_in_nobodys_tree() -> None:
    assert (SIBLING.spawned_by, SIBLING.parent_session_key, SIBLING.registry_owner) == (None, None, None)
    assert not in_tree_of("", SIBLING)
    assert not in_tree_of(SIBLING.session_key, SIBLING)


@pytest.mark.spec("VIS-5")
def test_grandchildren_belong_to_their_own_parent() -> None:
    child_caller = SessionCaller(session_key=CHILD.session_key, agent_id="main")
    assert outcome(policy("tree"), CALLER, GRANDCHILD) == "level"
    assert outcome(policy("tree"), child_caller, GRANDCHILD) == "spawned"
    # The other way round there is no sight either: a child does not see its parent.
    assert outcome(policy("tree"), child_caller, OWN) == "level"


@pytest.mark.spec("VIS-2")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("setting", ["spawned", "all"])
def test_sandboxed_callers_never_get_past_tree(level: VisibilityLevel, setting: str) -> None:
    rules = VisibilityPolicy(
        level=level,
        agent_to_agent_enabled=True,
        sandbox_session_tools="all" if setting == "all" else "spawned",
    )
    assert effective_level(rules, SANDBOXED) == ("self" if level == "self" else "tree")
    assert effective_level(rules, CALLER) == level
    assert effective_level(rules, OPERATOR) == "all"
    assert outcome(rules, SANDBOXED, OWN) == "own"
    assert outcome(rules, SANDBOXED, CHILD) == ("sandbox" if level == "self" else "spawned")
    assert outcome(rules, SANDBOXED, SIBLING) == "sandbox"
    assert outcome(rules, SANDBOXED, FOREIGN) == "sandbox"


@pytest.mark.spec("VIS-7")
@pytest.mark.parametrize("level", LEVELS)
def test_sandboxed_callers_cannot_tell_hidden_from_missing(level: VisibilityLevel) -> None:
    rules = policy(level, "main", enabled=True)
    answers = {
        repr(decide_visibility(rules, SANDBOXED, target)) for target in (None, SIBLING, FOREIGN, GRANDCHILD)
    }
    assert len(answers) == 1
    denial = decide_visibility(rules, SANDBOXED, None)
    sight = "only itself" if level == "self" else "itself and the sessions it spawned"
    assert denial == Denied(
        "sandbox",
        "agents.defaults.sandbox.mode",
        f"Sandboxed: this session sees {sight}. "
        "agents.defaults.sandbox.mode decides which sessions are sandboxed.",
    )


@pytest.mark.spec("VIS-7")
def test_unsandboxed_callers_and_operators_learn_that_a_session_is_missing() -> None:
    for caller in (CALLER, OPERATOR):
        denial = decide_visibility(policy("all"), caller, None)
        assert denial == Denied("not-found", "", "No such session.")


@pytest.mark.spec("VIS-4")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("target", [OWN, CHILD, SIBLING, FOREIGN, GRANDCHILD])
def test_operators_see_everything(level: VisibilityLevel, target: TargetFacts) -> None:
    assert decide_visibility(policy(level), OPERATOR, target) == Visible("operator")
    assert visibility_scope(policy(level), OPERATOR) == EveryRow()
    assert scope_admits(EveryRow(), target)


@pytest.mark.spec("VIS-6")
def test_scopes_by_level() -> None:
    assert visibility_scope(policy("self"), CALLER) == SomeRows(own_key=ME)
    assert visibility_scope(policy("tree"), CALLER) == SomeRows(own_key=ME, tree_of=ME)
    assert visibility_scope(policy("agent"), CALLER) == SomeRows(own_key=ME, agent_id="main")
    assert visibility_scope(policy("all"), CALLER) == SomeRows(own_key=ME, tree_of=ME, agent_id="main")
    assert visibility_scope(policy("all", enabled=True), CALLER) == SomeRows(
        own_key=ME, tree_of=ME, agent_id="main", agent_patterns=("*",)
    )
    assert visibility_scope(policy("all", "ma*", "work", enabled=True), CALLER) == SomeRows(
        own_key=ME, tree_of=ME, agent_id="main", agent_patterns=("ma*", "work")
    )
    # A caller that the list does not match gets no other agent at all.
    assert visibility_scope(policy("all", "work", enabled=True), CALLER) == SomeRows(
        own_key=ME, tree_of=ME, agent_id="main"
    )
    assert visibility_scope(policy("agent", enabled=True), CALLER) == SomeRows(own_key=ME, agent_id="main")
    assert visibility_scope(policy("all", enabled=True), SANDBOXED) == SomeRows(own_key=ME, tree_of=ME)


@pytest.mark.spec("VIS-4")
def test_archived_rows_leave_lists_but_stay_readable() -> None:
    archived = TargetFacts(session_key="agent:main:subagent:9", agent_id="main", spawned_by=ME, archived=True)
    assert not is_listed(archived)
    assert is_listed(CHILD)
    assert decide_visibility(policy("tree"), CALLER, archived) == Visible("spawned")


@pytest.mark.spec("VIS-3")
def test_the_old_sandbox_key_only_warns() -> None:
    assert policy_warnings(VisibilityPolicy()) == ()
    assert policy_warnings(VisibilityPolicy(sandbox_session_tools="all")) == (
        'agents.defaults.sandbox.sessionToolsVisibility: "all" has no effect: '
        "a sandboxed session sees itself and the sessions it spawned.",
    )
