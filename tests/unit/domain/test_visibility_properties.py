"""The visibility decision under arbitrary policies, callers and rows (VIS-2, VIS-6, VIS-7)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.visibility import (
    Caller,
    Denied,
    OperatorCaller,
    SessionCaller,
    TargetFacts,
    VisibilityPolicy,
    Visible,
    decide_visibility,
    in_tree_of,
    scope_admits,
    visibility_scope,
)

AGENTS = st.sampled_from(["main", "work", "home", "workshop"])
KEYS = st.sampled_from(["agent:main:main", "agent:main:a", "agent:work:main", "agent:home:b", "global"])
OWNERS = st.none() | KEYS
PATTERNS = st.sampled_from(["*", "main", "WORK", "wo*", "*o*", "h*e", "", "nobody"])

POLICIES = st.builds(
    VisibilityPolicy,
    level=st.sampled_from(["self", "tree", "agent", "all"]),
    agent_to_agent_enabled=st.booleans(),
    agent_to_agent_allow=st.lists(PATTERNS, max_size=3).map(tuple),
    sandbox_session_tools=st.sampled_from(["spawned", "all"]),
)
SESSIONS = st.builds(SessionCaller, session_key=KEYS, agent_id=AGENTS, sandboxed=st.booleans())
CALLERS: st.SearchStrategy[Caller] = SESSIONS | st.just(OperatorCaller("token"))
TARGETS = st.builds(
    TargetFacts,
    session_key=KEYS,
    agent_id=AGENTS,
    spawned_by=OWNERS,
    parent_session_key=OWNERS,
    registry_owner=OWNERS,
    archived=st.booleans(),
)


@pytest.mark.spec("VIS-6")
@settings(max_examples=300, deadline=None)
@given(POLICIES, CALLERS, TARGETS)
def test_the_scope_admits_exactly_what_the_decision_shows(
    policy: VisibilityPolicy, caller: Caller, target: TargetFacts
) -> None:
    shown = isinstance(decide_visibility(policy, caller, target), Visible)
    admitted = scope_admits(visibility_scope(policy, caller), target)
    # A row that may be seen is never filtered away before limits ...
    assert admitted or not shown
    # ... and the filter lets nothing through that the decision would have to remove again.
    assert shown or not admitted


@pytest.mark.spec("VIS-2")
@settings(max_examples=200, deadline=None)
@given(POLICIES, SESSIONS, TARGETS)
def test_a_sandboxed_caller_sees_only_itself_and_its_tree(
    policy: VisibilityPolicy, caller: SessionCaller, target: TargetFacts
) -> None:
    sandboxed = SessionCaller(session_key=caller.session_key, agent_id=caller.agent_id, sandboxed=True)
    if isinstance(decide_visibility(policy, sandboxed, target), Visible):
        assert target.session_key == caller.session_key or in_tree_of(caller.session_key, target)


@pytest.mark.spec("VIS-7")
@settings(max_examples=200, deadline=None)
@given(POLICIES, SESSIONS, TARGETS)
def test_a_sandboxed_denial_says_nothing_about_the_target(
    policy: VisibilityPolicy, caller: SessionCaller, target: TargetFacts
) -> None:
    sandboxed = SessionCaller(session_key=caller.session_key, agent_id=caller.agent_id, sandboxed=True)
    decision = decide_visibility(policy, sandboxed, target)
    if isinstance(decision, Denied):
        assert decision == decide_visibility(policy, sandboxed, None)


@pytest.mark.spec("VIS-1", "VIS-4")
@settings(max_examples=200, deadline=None)
@given(POLICIES, SESSIONS, TARGETS)
def test_denials_always_name_a_setting_and_levels_only_widen(
    policy: VisibilityPolicy, caller: SessionCaller, target: TargetFacts
) -> None:
    decision = decide_visibility(policy, caller, target)
    if isinstance(decision, Denied):
        assert decision.setting in decision.message
        assert decision.setting
    widest = VisibilityPolicy(level="all", agent_to_agent_enabled=True)
    if not caller.sandboxed:
        assert isinstance(decide_visibility(widest, caller, target), Visible)
