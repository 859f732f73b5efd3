"""Profiles, groups, patterns and the order of the filter stages (TOOL-2..5)."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.toolpolicy import (
    PROFILES,
    SESSION_TOOLS,
    TOOL_GROUPS,
    Profile,
    Removed,
    Stage,
    SubagentFacts,
    ToolRules,
    ToolStages,
    covering_pattern,
    covers,
    effective_tools,
    matches_any,
    matches_glob,
    unknown_groups,
)

ALL_TOOLS = tuple(dict.fromkeys(tool for group in TOOL_GROUPS.values() for tool in group))


def tools_of(stages: ToolStages, available: tuple[str, ...] = ALL_TOOLS) -> set[str]:
    return set(effective_tools(available, stages).tools)


def with_profile(profile: Profile | None, **rules: tuple[str, ...]) -> ToolStages:
    return ToolStages(
        global_rules=ToolRules(
            profile=profile, also_allow=rules.get("also_allow", ()), deny=rules.get("deny", ())
        )
    )


# -- patterns ------------------------------------------------------------------------------------------


@pytest.mark.spec("TOOL-5")
@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("exec", "exec", True),
        ("EXEC", "exec", True),
        ("exec", "EXEC", True),
        (" exec ", "exec", True),
        ("exec", "execute", False),
        ("execute", "exec", False),
        ("*", "anything", True),
        ("*", "", True),
        ("", "", False),
        ("  ", "", False),
        ("", "exec", False),
        ("sessions_*", "sessions_list", True),
        ("sessions_*", "sessions_", True),
        ("sessions_*", "session_status", False),
        ("*_list", "agents_list", True),
        ("*_list", "agents_lists", False),
        ("s*s_*t", "sessions_list", True),
        ("s*z*t", "sessions_list", False),
        ("a*b*a", "aba", True),
        ("ab*ba", "aba", False),
        ("aa*aa", "aaa", False),
        ("aa*aa", "aaaa", True),
        ("a**b", "ab", True),
        ("*a*b*", "xbxa", False),
        ("*ab*ab*", "abab", True),
        ("*ab*ab*", "aab", False),
        ("a*bc*c", "abc", False),
        ("a*bc*c", "abcc", True),
    ],
)
def test_globs(pattern: str, name: str, expected: bool) -> None:
    assert matches_glob(pattern, name) is expected
    assert matches_any(("nothing", pattern), name) is expected
    assert not matches_any((), name)


def _matches_slowly(pattern: str, name: str) -> bool:
    """The textbook table, as a second opinion."""
    row = [True] + [False] * len(name)
    for char in pattern:
        new = [row[0] and char == "*"]
        for at, letter in enumerate(name):
            new.append((new[at] or row[at + 1]) if char == "*" else (row[at] and char == letter))
        row = new
    return row[-1]


@pytest.mark.spec("TOOL-5")
@settings(max_examples=300, deadline=None)
@given(st.text("ab*", min_size=1, max_size=8), st.text("ab", max_size=10))
def test_globs_agree_with_the_textbook(pattern: str, name: str) -> None:
    assert matches_glob(pattern, name) is _matches_slowly(pattern, name)


@pytest.mark.spec("TOOL-5")
def test_globs_stay_fast_on_hostile_patterns() -> None:
    started = time.process_time()
    assert not matches_glob("a*" * 5000 + "b", "a" * 20_000)
    assert not matches_glob("*" * 20_000 + "b", "a" * 20_000)
    assert time.process_time() - started < 1.0


@pytest.mark.spec("TOOL-5")
def test_groups_cover_their_members_only_as_tools() -> None:
    assert covering_pattern(("read", "Group:Runtime "), "EXEC") == "Group:Runtime "
    assert covering_pattern(("group:runtime", "exec"), "exec") == "group:runtime"
    assert covering_pattern(("group:fs",), "exec") is None
    assert not covers(("group:nope",), "exec")
    assert not covers((), "exec")
    assert not matches_any(("group:runtime",), "exec")


# -- the named sets --------------------------------------------------------------------------------------


@pytest.mark.spec("TOOL-2", "TOOL-5")
def test_the_session_tools() -> None:
    assert set(SESSION_TOOLS) == {
        "sessions_list",
        "sessions_history",
        "sessions_send",
        "sessions_spawn",
        "sessions_yield",
        "subagents",
        "session_status",
        "agents_list",
        "sessions_search",
    }
    assert TOOL_GROUPS["group:sessions"] == SESSION_TOOLS


@pytest.mark.spec("TOOL-5")
def test_the_groups() -> None:
    assert TOOL_GROUPS == {
        "group:fs": ("read", "write", "edit", "list", "grep", "apply_patch"),
        "group:runtime": ("exec", "process"),
        "group:web": ("web_search", "web_fetch"),
        "group:sessions": SESSION_TOOLS,
        "group:memory": ("memory", "memory_search", "memory_get"),
        "group:media": ("image", "image_generate"),
        "group:messaging": ("message",),
        "group:automation": ("cron", "gateway"),
    }


@pytest.mark.spec("TOOL-3", "TOOL-5")
def test_the_profiles() -> None:
    assert tools_of(with_profile("minimal")) == {"session_status"}
    assert tools_of(with_profile("coding")) == set(ALL_TOOLS) - {"message", "gateway"}
    assert tools_of(with_profile("messaging")) == {
        "message",
        "sessions_list",
        "sessions_history",
        "sessions_send",
        "session_status",
    }
    assert tools_of(with_profile("full")) == set(ALL_TOOLS)
    assert tools_of(with_profile(None)) == set(ALL_TOOLS)
    assert tools_of(ToolStages(), ("Plugin_Tool", "exec")) == {"Plugin_Tool", "exec"}
    assert set(PROFILES) == {"minimal", "coding", "messaging"}


@pytest.mark.spec("TOOL-3")
def test_also_allow_adds_delegation_to_messaging() -> None:
    """Spawning is not part of the profile itself (AMB-30)."""
    delegation = ("sessions_spawn", "sessions_yield", "subagents")
    assert not tools_of(with_profile("messaging")) & set(delegation)
    widened = tools_of(with_profile("messaging", also_allow=delegation))
    assert widened == tools_of(with_profile("messaging")) | set(delegation)
    assert "exec" not in widened


@pytest.mark.spec("TOOL-3", "TOOL-5")
def test_deny_wins_over_profile_allow_and_also_allow() -> None:
    rules = ToolRules(profile="coding", allow=("exec", "read"), also_allow=("exec",), deny=("EX*",))
    decision = effective_tools(("exec", "read"), ToolStages(global_rules=rules))
    assert decision.tools == ("read",)
    assert decision.removed == (Removed("exec", "global", "deny EX*"),)


@pytest.mark.spec("TOOL-5")
def test_an_empty_allow_list_restricts_nothing_and_a_blank_pattern_allows_nothing() -> None:
    assert tools_of(ToolStages(global_rules=ToolRules(allow=()))) == set(ALL_TOOLS)
    assert tools_of(ToolStages(global_rules=ToolRules(allow=("",)))) == set()
    assert tools_of(ToolStages(global_rules=ToolRules(allow=("group:web",), also_allow=("exec",)))) == {
        "web_search",
        "web_fetch",
        "exec",
    }


@pytest.mark.spec("TOOL-3")
def test_an_agent_profile_replaces_the_global_one_together_with_its_also_allow() -> None:
    globally = ToolRules(profile="messaging", also_allow=("exec",))
    inherits = ToolStages(global_rules=globally, agent=ToolRules(also_allow=("cron",)))
    assert tools_of(inherits) == tools_of(with_profile("messaging")) | {"exec", "cron"}
    replaces = ToolStages(global_rules=globally, agent=ToolRules(profile="minimal", also_allow=("cron",)))
    assert tools_of(replaces) == {"session_status", "cron"}


# -- stages ------------------------------------------------------------------------------------------------


@pytest.mark.spec("TOOL-4", "TOOL-5")
def test_the_first_stage_in_order_is_the_one_that_is_named() -> None:
    deny = ToolRules(deny=("exec",))
    by_provider = {"openai": deny}
    stages = {
        "profile": ToolStages(global_rules=ToolRules(profile="minimal", deny=("exec",))),
        "global": ToolStages(
            global_rules=ToolRules(deny=("exec",), by_provider=by_provider), provider="openai"
        ),
        "provider": ToolStages(
            global_rules=ToolRules(by_provider=by_provider), provider="openai", agent=deny
        ),
        "agent": ToolStages(agent=deny, group=deny),
        "group": ToolStages(group=deny, sandbox=deny),
        "sandbox": ToolStages(sandbox=deny, subagent=SubagentFacts(role="leaf", depth=1, rules=deny)),
        "subagent": ToolStages(subagent=SubagentFacts(role="leaf", depth=1, rules=deny)),
    }
    for expected, given_stages in stages.items():
        removed = effective_tools(("exec", "session_status"), given_stages).removed
        assert removed[0].tool == "exec"
        assert removed[0].stage == expected


@pytest.mark.spec("TOOL-4")
@pytest.mark.parametrize("stage", ["agent", "group", "sandbox"])
def test_later_stages_can_only_remove(stage: Stage) -> None:
    rules = ToolRules(allow=("read",), also_allow=("exec", "sessions_list"), deny=("sessions_list",))
    stages = msgspec.structs.replace(with_profile("messaging", also_allow=("read",)), **{stage: rules})
    decision = effective_tools(("read", "exec", "sessions_list", "message"), stages)
    # The agent stage stands beside an inherited profile, so its alsoAllow widens that profile.
    assert decision.tools == (("read", "exec") if stage == "agent" else ("read",))
    assert Removed("sessions_list", stage, "deny sessions_list") in decision.removed
    assert Removed("message", stage, "not in allow") in decision.removed


@pytest.mark.spec("TOOL-4", "TOOL-5")
@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("openai", "gpt-5", {"exec"}),
        ("OpenAI", "GPT-5", {"exec"}),
        ("openai", "gpt-4", {"read"}),
        ("openai", None, {"read"}),
        ("anthropic", "gpt-5", {"exec", "read", "session_status"}),
        (None, None, {"exec", "read", "session_status"}),
    ],
)
@pytest.mark.parametrize("where", ["global_rules", "agent"])
def test_provider_rules_take_the_most_exact_section(
    provider: str | None, model: str | None, expected: set[str], where: str
) -> None:
    by_provider = {" openai ": ToolRules(allow=("read",)), "OPENAI/gpt-5": ToolRules(allow=("exec",))}
    stages = msgspec.structs.replace(
        ToolStages(provider=provider, model=model), **{where: ToolRules(by_provider=by_provider)}
    )
    decision = effective_tools(("exec", "read", "session_status"), stages)
    assert set(decision.tools) == expected
    assert {one.stage for one in decision.removed} <= {"provider"}


@pytest.mark.spec("TOOL-5")
def test_a_provider_section_may_name_a_profile() -> None:
    section = ToolRules(profile="minimal", also_allow=("read",), deny=("session_status",))
    stages = ToolStages(global_rules=ToolRules(by_provider={"ollama": section}), provider="ollama")
    decision = effective_tools(("exec", "read", "session_status"), stages)
    assert decision.tools == ("read",)
    assert decision.removed == (
        Removed("exec", "provider", "profile minimal"),
        Removed("session_status", "provider", "deny session_status"),
    )


@pytest.mark.spec("TOOL-4")
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_every_tool_is_kept_once_in_order_or_removed_once_with_a_reason(data: st.DataObject) -> None:
    names = st.sampled_from(ALL_TOOLS)
    patterns = st.lists(names | st.sampled_from(["*", "s*", "group:fs", "group:sessions", ""]), max_size=3)
    rules = st.builds(
        ToolRules,
        profile=st.sampled_from([None, "minimal", "coding", "messaging", "full"]),
        allow=patterns.map(tuple),
        also_allow=patterns.map(tuple),
        deny=patterns.map(tuple),
    )
    subagents = st.builds(
        SubagentFacts,
        role=st.sampled_from(["leaf", "orchestrator"]),
        depth=st.integers(0, 3),
        max_depth=st.integers(1, 3),
        rules=rules,
        parent_tools=st.none() | patterns.map(tuple),
    )
    stages = data.draw(
        st.builds(
            ToolStages,
            global_rules=rules,
            agent=rules,
            group=rules,
            sandbox=st.none() | rules,
            subagent=st.none() | subagents,
        )
    )
    available = data.draw(st.lists(names, max_size=12))
    decision = effective_tools(available, stages)
    unique = list(dict.fromkeys(available))
    removed = [one.tool for one in decision.removed]
    assert sorted(decision.tools + tuple(removed)) == sorted(unique)
    assert [tool for tool in unique if tool in decision.tools] == list(decision.tools)
    assert all(one.rule for one in decision.removed)
    for section in (stages.global_rules, stages.agent, stages.group):
        assert not any(covers(section.deny, tool) for tool in decision.tools)


@pytest.mark.spec("TOOL-5")
def test_rules_read_the_configuration_spelling() -> None:
    rules = msgspec.json.decode(
        b'{"profile":"messaging","alsoAllow":["exec"],"byProvider":{"openai":{"deny":["cron"]}}}',
        type=ToolRules,
    )
    assert rules == ToolRules(
        profile="messaging", also_allow=("exec",), by_provider={"openai": ToolRules(deny=("cron",))}
    )
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"profile":"everything"}', type=ToolRules)


@pytest.mark.spec("TOOL-5")
def test_misspelt_groups_are_found() -> None:
    rules = ToolRules(
        allow=("group:fs", "Group:Nope"),
        also_allow=("exec",),
        deny=("group:Nope2 ", "Group:Nope"),
        by_provider={"x": ToolRules(deny=("group:other",))},
    )
    assert unknown_groups(rules) == ("Group:Nope", "group:Nope2 ", "group:other")
    assert unknown_groups(ToolRules()) == ()
