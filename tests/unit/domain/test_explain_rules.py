"""Why a session resets, why sending is denied, why a session is hidden: told by the rule that decides."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.explain_rules import (
    ResetFacts,
    explain_reset,
    explain_send,
    explain_visibility,
    local_time,
)
from openclaw.domain.explanation import Explanation, Step
from openclaw.domain.lifecycle import Expired, ResetRule, ResetRules, judge_freshness, resolve_reset
from openclaw.domain.policy import SendFacts, SendMatch, SendPolicy, SendRule, decide_send
from openclaw.domain.visibility import (
    SessionCaller,
    TargetFacts,
    VisibilityPolicy,
    Visible,
    decide_visibility,
)

BERLIN = ZoneInfo("Europe/Berlin")
HOUR = 3_600_000
# 2026-11-16 12:00 in Berlin.
NOON = 1_794_826_800_000
KEY = "agent:main:main"


def step(told: Explanation, question: str) -> Step:
    (found,) = [one for one in told.steps if one.question == question]
    return found


# -- reset ----------------------------------------------------------------------------------------


def reset(rules: ResetRules, *, now_ms: int = NOON, **facts: Any) -> Explanation:
    given_facts: dict[str, Any] = {"session_key": KEY, "session_type": "direct", "channel": "telegram"}
    return explain_reset(rules, ResetFacts(**(given_facts | facts)), now_ms=now_ms, zone=BERLIN)


@pytest.mark.spec("LIFE-2", "LIFE-5", "LIFE-11")
def test_the_next_daily_reset_in_local_time() -> None:
    told = reset(ResetRules(), last_interaction_ms=NOON - HOUR)
    assert told.answer == (
        "The next message goes on with this session, until 2026-11-17 04:00:00 CET, by the daily reset."
    )
    assert told.decided_by is None
    assert step(told, "policy") == Step("policy", "daily at 04:00", "the built-in default", True)
    assert step(told, "type").outcome == "direct, on telegram"
    assert step(told, "last message of a person").outcome == "2026-11-16 11:00:00 CET"
    assert step(told, "busy").outcome == "no"
    assert told.facts["nextResetAt"] == NOON + 16 * HOUR and told.facts["nextResetReason"] == "daily"
    assert told.facts["expired"] is False and told.facts["zone"] == "Europe/Berlin"
    assert (told.facts["mode"], told.facts["atHour"], told.facts["idleMinutes"]) == ("daily", 4, None)


@pytest.mark.spec("LIFE-3", "LIFE-4", "LIFE-6")
def test_an_expired_session_says_since_when_and_why() -> None:
    rules = ResetRules(reset=ResetRule(mode="idle", idle_minutes=30))
    told = reset(rules, last_interaction_ms=NOON - HOUR, channel=None)
    assert told.answer == (
        "The next message starts a new session: it expired 2026-11-16 11:30:00 CET, by 30 idle minutes."
    )
    assert told.decided_by == "session.reset" and told.facts["expired"] is True
    assert step(told, "policy").outcome == "after 30 minutes without a message"
    assert step(told, "type").outcome == "direct, on no channel"
    both = reset(ResetRules(reset=ResetRule(mode="daily", at_hour=5, idle_minutes=30)))
    assert step(both, "policy").outcome == "daily at 05:00, or after 30 minutes without a message"


@pytest.mark.spec("LIFE-5", "LIFE-6", "LIFE-7", "LIFE-8")
def test_each_source_of_a_policy_has_its_setting() -> None:
    idle = ResetRule(mode="idle", idle_minutes=5)
    told = [
        reset(ResetRules(by_channel={"telegram": idle}, by_type={"direct": idle}, reset=idle)),
        reset(ResetRules(by_type={"group": idle}, reset=idle), session_type="group"),
        reset(ResetRules(reset=idle)),
        reset(ResetRules(idle_minutes=5)),
        reset(ResetRules()),
    ]
    assert [one.decided_by for one in told] == [
        "session.resetByChannel.telegram", "session.resetByType.group", "session.reset",
        "session.idleMinutes", None,
    ]  # fmt: skip
    assert [one.facts["origin"] for one in told] == ["channel", "type", "reset", "legacy", "default"]


@pytest.mark.spec("LIFE-1", "LIFE-11")
def test_busy_unknown_and_missing_sessions() -> None:
    old = NOON - 48 * HOUR
    running = reset(ResetRules(), last_interaction_ms=old, run_active=True)
    assert running.answer == "The session is busy, and a busy session is never reset by itself."
    assert step(running, "busy").outcome == "a turn runs; a busy session is never reset by itself"
    waiting = reset(ResetRules(), last_interaction_ms=old, inputs_waiting=True)
    assert waiting.answer == running.answer and waiting.facts["expired"] is False
    assert step(waiting, "busy").outcome == "messages wait; a busy session is never reset by itself"
    unknown = reset(ResetRules())
    assert unknown.answer == (
        "The next message goes on with this session: nothing is known that would make it old."
    )
    assert step(unknown, "last message of a person").outcome == "not known"
    assert step(unknown, "next reset").outcome.startswith("none: ")
    assert unknown.facts["nextResetAt"] is None and unknown.facts["nextResetReason"] is None
    missing = reset(ResetRules(), exists=False)
    assert missing.answer == f"There is no session {KEY} yet. Once it exists it resets daily at 04:00."
    assert [one.question for one in missing.steps] == ["type", "policy"] and not missing.facts["exists"]


@pytest.mark.spec("LIFE-1")
@settings(max_examples=150, deadline=None)
@given(
    mode=st.sampled_from(["daily", "idle"]),
    hour=st.integers(0, 23),
    idle=st.none() | st.integers(1, 3000),
    ago=st.integers(-HOUR, 96 * HOUR),
    busy=st.booleans(),
)
def test_the_verdict_is_that_of_an_arriving_message(
    mode: Any, hour: int, idle: int | None, ago: int, busy: bool
) -> None:
    rules = ResetRules(reset=ResetRule(mode=mode, at_hour=hour, idle_minutes=idle))
    told = reset(rules, last_interaction_ms=NOON - ago, run_active=busy)
    verdict = judge_freshness(
        resolve_reset(rules, session_type="direct", channel="telegram"),
        last_interaction_ms=NOON - ago,
        now_ms=NOON,
        zone=BERLIN,
        run_active=busy,
        inputs_waiting=False,
        source="channel",
    )
    assert told.facts["expired"] == isinstance(verdict, Expired)
    assert told.answer.startswith("The next message starts a new session") == isinstance(verdict, Expired)


def test_local_time_knows_summer() -> None:
    assert local_time(NOON - 150 * 24 * HOUR, BERLIN).endswith(" CEST")


# -- send -----------------------------------------------------------------------------------------


def facts_of(**given_facts: Any) -> SendFacts:
    known: dict[str, Any] = {
        "key": "agent:main:discord:group:1",
        "channel": "discord",
        "chat_type": "group",
    }
    return SendFacts(**(known | given_facts))


POLICY = SendPolicy(
    rules=(
        SendRule("allow", SendMatch(channel="discord")),
        SendRule("deny", SendMatch(channel="telegram", chat_type="direct")),
        SendRule("deny", SendMatch(chat_type="group", key_prefix="discord:")),
        SendRule("deny", SendMatch(raw_key_prefix="agent:")),
    ),
    default="deny",
)


@pytest.mark.spec("SEND-6", "SEND-7")
def test_a_denied_session_names_the_rule_and_every_one_before_it() -> None:
    told = explain_send(POLICY, facts_of())
    assert told.answer == (
        "Sending to agent:main:discord:group:1 is denied: session.sendPolicy.rules[2] says so."
    )
    assert told.decided_by == "session.sendPolicy.rules[2]"
    assert told.fix == "change session.sendPolicy.rules[2] in the config, or send /send on in that session"
    assert step(told, "session").outcome == "channel discord, chat type group"
    assert step(told, "override of this session") == Step("override of this session", "none", "/send")
    assert step(told, "rules[0]: allow").outcome == "matches, but a deny wins"
    assert step(told, "rules[1]: deny").outcome == "does not match: channel, chatType"
    decided = [one for one in told.steps if one.decided]
    assert decided == [Step("rules[2]: deny", "matches", "session.sendPolicy.rules[2]", True)]
    assert step(told, "rules[3]: deny").outcome == "not asked: the first matching deny ends the search"
    assert (told.facts["action"], told.facts["source"], told.facts["ruleIndex"]) == ("deny", "rule", 2)


@pytest.mark.spec("SEND-6", "SEND-7")
def test_allowed_by_the_first_rule_by_the_default_and_by_nothing() -> None:
    twice = SendPolicy(
        rules=(
            *POLICY.rules[:1],
            SendRule("allow"),
            SendRule("deny", SendMatch(key_prefix="x:", raw_key_prefix="y:")),
        )
    )
    told = explain_send(twice, facts_of())
    assert told.decided_by == "session.sendPolicy.rules[0]" and told.fix is None
    assert step(told, "rules[1]: allow").outcome == "matches, but an earlier allow stands"
    assert step(told, "rules[2]: deny").outcome == "does not match: keyPrefix, rawKeyPrefix"
    assert step(told, "default") == Step("default", "not set, which allows", "session.sendPolicy.default")
    by_default = explain_send(SendPolicy(default="deny"), facts_of(channel=None, chat_type=None))
    assert by_default.decided_by == "session.sendPolicy.default" and by_default.facts["action"] == "deny"
    assert step(by_default, "default").decided and step(by_default, "default").outcome == "deny"
    assert step(by_default, "session").outcome == "channel none, chat type none"
    nothing = explain_send(None, facts_of())
    assert nothing.answer.endswith("is allowed: nothing forbids it.") and nothing.decided_by is None
    assert step(nothing, "default").decided


@pytest.mark.spec("SEND-6", "SEND-10")
def test_an_override_decides_alone() -> None:
    told = explain_send(POLICY, facts_of(override="deny"))
    assert told.decided_by == "the override of this session"
    assert told.fix == "send /send inherit in that session, or patch its sendPolicy to null"
    assert [one.question for one in told.steps] == ["session", "override of this session"]
    assert step(told, "override of this session") == Step("override of this session", "deny", "/send", True)
    assert explain_send(POLICY, facts_of(override="allow")).facts["action"] == "allow"


@pytest.mark.spec("SEND-6")
@settings(max_examples=200, deadline=None)
@given(
    rules=st.lists(
        st.builds(
            SendRule,
            st.sampled_from(["allow", "deny"]),
            st.builds(
                SendMatch,
                channel=st.sampled_from([None, "discord", "irc"]),
                chat_type=st.sampled_from([None, "group", "dm"]),
                key_prefix=st.sampled_from([None, "discord:", "agent:x"]),
            ),
        ),
        max_size=5,
    ),
    default=st.sampled_from([None, "allow", "deny"]),
    override=st.sampled_from([None, "allow", "deny"]),
)
def test_the_rule_that_is_named_is_the_one_that_decides(
    rules: list[SendRule], default: Any, override: Any
) -> None:
    policy, facts = SendPolicy(tuple(rules), default), facts_of(override=override)
    told, decision = explain_send(policy, facts), decide_send(policy, facts)
    assert (told.facts["action"], told.facts["ruleIndex"]) == (decision.action, decision.rule_index)
    assert len([one for one in told.steps if one.decided]) == 1
    assert ("denied" in told.answer) == (decision.action == "deny") == (told.fix is not None)


# -- visibility -----------------------------------------------------------------------------------


OTHER = "agent:bob:main"


def see(
    target: TargetFacts | None, *, sandboxed: bool = False, key: str = OTHER, **policy: Any
) -> Explanation:
    caller = SessionCaller(session_key=KEY, agent_id="main", sandboxed=sandboxed)
    return explain_visibility(VisibilityPolicy(**policy), caller, target, key)


def target_of(**facts: Any) -> TargetFacts:
    return TargetFacts(**({"session_key": OTHER, "agent_id": "bob"} | facts))


@pytest.mark.spec("VIS-1", "VIS-4")
def test_each_refusal_names_its_step_and_setting() -> None:
    level = see(target_of())
    assert level.facts["reason"] == "level" and level.decided_by == "tools.sessions.visibility"
    assert level.fix == "change tools.sessions.visibility in the config"
    assert level.answer.startswith(f'{KEY} cannot see {OTHER}: Session visibility is "tree"')
    assert step(level, "level") == Step("level", '"tree"', "tools.sessions.visibility", True)
    off = see(target_of(), level="all")
    assert step(off, "agent to agent") == Step("agent to agent", "off", "tools.agentToAgent.enabled", True)
    assert off.decided_by == "tools.agentToAgent.enabled" and not step(off, "allowed agents").decided
    allow = see(target_of(), level="all", agent_to_agent_enabled=True, agent_to_agent_allow=("main",))
    assert step(allow, "allowed agents") == Step("allowed agents", "main", "tools.agentToAgent.allow", True)
    assert step(allow, "agent to agent").outcome == "on"
    assert allow.facts["allow"] == ["main"] and allow.facts["agentToAgent"] is True
    missing = see(None)
    assert missing.answer == f"{KEY} cannot see {OTHER}: No such session."
    assert step(missing, "the session exists") == Step("the session exists", "no", None, True)
    assert missing.decided_by is None and missing.fix is None and missing.facts["visible"] is False
    assert [one.question for one in missing.steps] == ["the session exists", "level"]


@pytest.mark.spec("VIS-1", "VIS-5")
def test_each_permission_names_its_step() -> None:
    own = see(TargetFacts(session_key=KEY, agent_id="main"), key=KEY)
    assert own.answer == f"{KEY} can see {KEY}: it is the session itself."
    assert step(own, "its own session") == Step("its own session", "yes", None, True)
    assert step(own, "the caller spawned it").outcome == "no" and own.facts["toldToCaller"] is None
    spawned = see(target_of(spawned_by=KEY))
    assert spawned.answer.endswith(": it spawned that session.") and spawned.fix is None
    assert step(spawned, "the caller spawned it") == Step("the caller spawned it", "yes", None, True)
    same = see(target_of(session_key="agent:main:x", agent_id="main"), level="agent")
    assert same.answer.endswith(": both belong to one agent, and the level allows it.")
    assert step(same, "same agent") == Step("same agent", "yes (main, main)", None, True)
    assert not [one for one in same.steps if one.question == "agent to agent"]
    across = see(target_of(), level="all", agent_to_agent_enabled=True)
    assert across.answer.endswith(": agents may see one another, and both are allowed.")
    assert step(across, "allowed agents").outcome == "every agent" and step(across, "allowed agents").decided
    assert step(across, "same agent").outcome == "no (main, bob)" and across.decided_by is None


@pytest.mark.spec("VIS-2", "VIS-7")
def test_the_sandbox_clamp_is_told_to_the_operator_and_not_to_the_caller() -> None:
    told = see(target_of(), sandboxed=True, level="all", agent_to_agent_enabled=True)
    assert (told.facts["level"], told.facts["effectiveLevel"]) == ("all", "tree")
    assert step(told, "level").outcome == '"all", clamped to "tree" because the caller is sandboxed'
    assert told.decided_by == "agents.defaults.sandbox.mode" and told.facts["reason"] == "level"
    assert told.fix is not None and told.fix.startswith("the agent is sandboxed; ")
    assert told.facts["toldToCaller"].startswith("Sandboxed: ")
    unclamped = see(target_of(), sandboxed=True, level="tree")
    assert step(unclamped, "level").outcome == '"tree"; the sandbox changes nothing here'
    assert unclamped.decided_by == "tools.sessions.visibility"
    missing = see(None, sandboxed=True, level="all")
    assert missing.facts["reason"] == "not-found" and missing.decided_by is None
    assert missing.facts["toldToCaller"].startswith("Sandboxed: ")


@pytest.mark.spec("VIS-1", "VIS-2")
@settings(max_examples=200, deadline=None)
@given(
    level=st.sampled_from(["self", "tree", "agent", "all"]),
    enabled=st.booleans(),
    allow=st.sampled_from([(), ("main",), ("*",), ("main", "bob")]),
    sandboxed=st.booleans(),
    target=st.none()
    | st.builds(
        TargetFacts,
        session_key=st.sampled_from([KEY, OTHER, "agent:main:x"]),
        agent_id=st.sampled_from(["main", "bob"]),
        spawned_by=st.sampled_from([None, KEY]),
    ),
)
def test_the_outcome_is_that_of_the_decision(
    level: Any, enabled: bool, allow: tuple[str, ...], sandboxed: bool, target: TargetFacts | None
) -> None:
    policy = VisibilityPolicy(level=level, agent_to_agent_enabled=enabled, agent_to_agent_allow=allow)
    caller = SessionCaller(session_key=KEY, agent_id="main", sandboxed=sandboxed)
    told = explain_visibility(policy, caller, target, OTHER)
    visible = isinstance(decide_visibility(policy, caller, target), Visible)
    assert told.facts["visible"] == visible == (" can see " in told.answer)
    assert sum(one.decided for one in told.steps) == 1
