"""Send policy: rules, facts, the auto-reply path, the command, the ping-pong limit."""

from __future__ import annotations

import itertools
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.entry import DeliveryContext, SendAction, SessionEntry
from openclaw.domain.policy import (
    ReplyPlan,
    SendDecision,
    SendFacts,
    SendMatch,
    SendPolicy,
    SendRule,
    clamp_ping_pong_turns,
    decide_send,
    matches,
    parse_send_command,
    plan_auto_reply,
    require_send,
    send_facts,
)
from openclaw.errors import SendDenied

MAIN = SendFacts(key="agent:main:main", channel="telegram", chat_type="direct")


def policy(*rules: SendRule, default: SendAction | None = None) -> SendPolicy:
    return SendPolicy(rules=rules, default=default)


# -- evaluation --------------------------------------------------------------------------------


@pytest.mark.spec("SEND-1", "SEND-2", "SEND-3")
def test_the_founding_example_is_read_and_works() -> None:
    raw = b"""{"rules": [
        {"action": "deny", "match": {"channel": "discord", "chatType": "group"}},
        {"action": "deny", "match": {"keyPrefix": "cron:"}}
    ], "default": "allow"}"""
    rules = msgspec.json.decode(raw, type=SendPolicy)
    group = SendFacts(key="agent:main:discord:group:1", channel="discord", chat_type="group")
    assert decide_send(rules, group) == SendDecision("deny", "rule", 0)
    job = SendFacts(key="agent:main:cron:job-1", channel="internal")
    assert decide_send(rules, job) == SendDecision("deny", "rule", 1)
    person = SendFacts(key="agent:main:discord:dm:1", channel="discord", chat_type="direct")
    assert decide_send(rules, person) == SendDecision("allow", "default")
    elsewhere = SendFacts(key="agent:main:slack:group:1", channel="slack", chat_type="group")
    assert decide_send(rules, elsewhere).action == "allow"
    assert msgspec.json.decode(msgspec.json.encode(rules)) == msgspec.json.decode(raw)


@pytest.mark.spec("SEND-2")
@pytest.mark.parametrize(
    "raw",
    [
        {"rules": [{"action": "block"}]},
        {"rules": [{}]},
        {"rules": [{"action": "deny", "match": {"chatType": "party"}}]},
        {"rules": [{"action": "deny", "match": {"peer": "x"}}]},
        {"rules": [{"action": "deny", "when": {}}]},
        {"default": "maybe"},
        {"defaults": "allow"},
    ],
)
def test_a_policy_of_another_shape_is_refused(raw: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(raw, SendPolicy)


@pytest.mark.spec("SEND-4", "SEND-6")
def test_the_override_decides_alone() -> None:
    for action in ("allow", "deny"):
        facts = msgspec.structs.replace(MAIN, override=action)
        for rules in (None, policy(), policy(SendRule("allow")), policy(SendRule("deny"))):
            assert decide_send(rules, facts) == SendDecision(action, "override")


@pytest.mark.spec("SEND-6")
def test_deny_beats_allow_beats_default_beats_allow() -> None:
    assert decide_send(None, MAIN) == SendDecision("allow", "none")
    assert decide_send(policy(), MAIN) == SendDecision("allow", "none")
    assert decide_send(policy(default="deny"), MAIN) == SendDecision("deny", "default")
    assert decide_send(policy(default="allow"), MAIN) == SendDecision("allow", "default")
    allow, deny, other = SendRule("allow"), SendRule("deny"), SendRule("deny", SendMatch(channel="nowhere"))
    assert decide_send(policy(allow, default="deny"), MAIN) == SendDecision("allow", "rule", 0)
    assert decide_send(policy(allow, deny), MAIN) == SendDecision("deny", "rule", 1)
    assert decide_send(policy(deny, allow), MAIN) == SendDecision("deny", "rule", 0)
    assert decide_send(policy(other, deny, deny), MAIN) == SendDecision("deny", "rule", 1)
    assert decide_send(policy(other, allow, allow), MAIN) == SendDecision("allow", "rule", 1)
    assert decide_send(policy(other, default="allow"), MAIN) == SendDecision("allow", "default")
    assert decide_send(policy(other), MAIN) == SendDecision("allow", "none")


@pytest.mark.spec("SEND-6")
def test_all_given_fields_must_hold() -> None:
    good = {"channel": "telegram", "chatType": "direct", "keyPrefix": "ma", "rawKeyPrefix": "agent:"}
    bad = {"channel": "slack", "chatType": "group", "keyPrefix": "x", "rawKeyPrefix": "main"}
    for picks in itertools.product((None, good, bad), repeat=4):
        fields = {name: pick[name] for name, pick in zip(good, picks, strict=True) if pick}
        assert matches(msgspec.convert(fields, SendMatch), MAIN) == (bad not in picks)


@pytest.mark.spec("SEND-6")
def test_an_empty_match_and_blank_fields_match_everything() -> None:
    unknown = SendFacts(key="agent:main:x")
    assert matches(SendMatch(), unknown)
    assert matches(SendMatch(channel=" ", key_prefix="", raw_key_prefix="  "), unknown)
    assert not matches(SendMatch(channel="telegram"), unknown)
    assert not matches(SendMatch(chat_type="direct"), unknown)
    assert msgspec.convert({"action": "deny"}, SendRule).match == SendMatch()


# -- match values ------------------------------------------------------------------------------


@pytest.mark.spec("SEND-7")
def test_channels_are_compared_folded() -> None:
    assert matches(SendMatch(channel=" Telegram "), MAIN)
    assert not matches(SendMatch(channel="tele"), MAIN)


@pytest.mark.spec("SEND-7")
@pytest.mark.parametrize(
    ("written", "stored"),
    [("direct", "direct"), ("dm", "direct"), ("group", "group"), ("channel", "channel"), ("room", "channel")],
)
def test_chat_types_have_aliases(written: str, stored: str) -> None:
    match = msgspec.convert({"chatType": written}, SendMatch)
    for kind in ("direct", "group", "channel"):
        facts = msgspec.convert({"key": "agent:main:x", "chat_type": kind}, SendFacts)
        assert matches(match, facts) == (kind == stored)


@pytest.mark.spec("SEND-7")
@pytest.mark.parametrize(
    ("prefix", "by_key", "by_raw_key"),
    [
        ("cron:", True, False),
        ("CRON:Job", True, False),
        ("agent:main:cron:", True, True),
        ("Agent:MAIN:", True, True),
        ("agent:", True, True),
        (" cron:job-1 ", True, False),
        ("cron:job-12", False, False),
        ("job", False, False),
        ("main:cron", False, False),
        ("ron:", False, False),
    ],
)
def test_key_prefixes(prefix: str, by_key: bool, by_raw_key: bool) -> None:
    facts = SendFacts(key="agent:main:Cron:JOB-1")
    assert matches(SendMatch(key_prefix=prefix), facts) is by_key
    assert matches(SendMatch(raw_key_prefix=prefix), facts) is by_raw_key


@pytest.mark.spec("SEND-7")
def test_key_prefixes_of_keys_without_an_agent() -> None:
    for key in ("global", "cron:x"):
        facts = SendFacts(key=key)
        assert matches(SendMatch(key_prefix=key), facts)
        assert matches(SendMatch(raw_key_prefix=key), facts)
        assert not matches(SendMatch(key_prefix="agent:"), facts)


@pytest.mark.spec("SEND-7")
def test_prefixes_know_both_spellings_of_chat_words() -> None:
    old = SendFacts(key="agent:main:telegram:dm:1")
    new = SendFacts(key="agent:main:telegram:direct:1")
    for facts in (old, new):
        assert matches(SendMatch(key_prefix="telegram:direct:"), facts)
        assert matches(SendMatch(key_prefix="telegram:dm:"), facts)
        assert matches(SendMatch(key_prefix="telegram:dm:1"), facts)
        assert matches(SendMatch(key_prefix="telegram:direct"), facts)
        assert not matches(SendMatch(key_prefix="telegram:direct:2"), facts)
        assert matches(SendMatch(raw_key_prefix="agent:main:telegram:direct:1"), facts)
    room = SendFacts(key="agent:main:slack:channel:c1")
    assert matches(SendMatch(key_prefix="slack:room:"), room)
    assert not matches(SendMatch(key_prefix="slack:roommate:"), room)
    # A word that only begins like a chat word is itself.
    assert matches(SendMatch(key_prefix="direct"), SendFacts(key="agent:main:directory"))


def entry(**fields: object) -> SessionEntry:
    return msgspec.structs.replace(SessionEntry(session_id="s", updated_at=1), **fields)


@pytest.mark.spec("SEND-7")
def test_each_fact_comes_from_the_first_place_that_knows_it() -> None:
    key = "agent:main:discord:group:1"
    known = entry(
        channel="slack",
        chat_type="channel",
        send_policy="deny",
        delivery_context=DeliveryContext(channel="telegram", to="1"),
    )
    assert send_facts(known, key, request_channel=" WebChat ") == SendFacts(
        key=key, override="deny", channel="webchat", chat_type="channel"
    )
    assert send_facts(known, key).channel == "slack"
    assert send_facts(known, key, request_channel="  ").channel == "slack"
    routed = msgspec.structs.replace(known, channel=None)
    assert send_facts(routed, key).channel == "telegram"
    bare = entry()
    assert send_facts(bare, key) == SendFacts(key=key, channel="discord", chat_type="group")
    assert send_facts(None, key) == SendFacts(key=key, channel="discord", chat_type="group")
    assert send_facts(None, key, request_channel="irc").channel == "irc"
    assert send_facts(entry(delivery_context=DeliveryContext()), key).channel == "discord"


@pytest.mark.spec("SEND-7")
@pytest.mark.parametrize(
    ("key", "channel", "chat_type"),
    [
        ("agent:main:telegram:dm:1", "telegram", "direct"),
        ("agent:main:telegram:direct:1", "telegram", "direct"),
        ("agent:main:slack:channel:c1", "slack", "channel"),
        ("agent:main:slack:room:c1:thread:9", "slack", "channel"),
        ("agent:main:telegram:group:1:topic:2", "telegram", "group"),
        ("agent:main:cron:x", None, None),
    ],
)
def test_facts_of_a_key_alone(key: str, channel: str | None, chat_type: str | None) -> None:
    facts = send_facts(None, key)
    assert (facts.channel, facts.chat_type, facts.override) == (channel, chat_type, None)


# -- enforcement -------------------------------------------------------------------------------


@pytest.mark.spec("SEND-8")
def test_a_denied_request_is_refused_with_its_reason() -> None:
    require_send(SendDecision("allow", "rule", 0))
    with pytest.raises(SendDenied) as refused:
        require_send(SendDecision("deny", "rule", 2))
    assert refused.value.code == "INVALID_REQUEST"
    assert "policy" in refused.value.message
    assert refused.value.fields == {"source": "rule", "rule_index": 2}


@pytest.mark.spec("SEND-9")
def test_a_denied_reply_does_not_run_unless_asked_to() -> None:
    allowed, denied = SendDecision("allow", "none"), SendDecision("deny", "default")
    assert plan_auto_reply(allowed) == ReplyPlan(run=True, deliver=True)
    assert plan_auto_reply(allowed, process_when_denied=True) == ReplyPlan(run=True, deliver=True)
    assert plan_auto_reply(denied) == ReplyPlan(run=False, deliver=False)
    assert plan_auto_reply(denied, process_when_denied=True) == ReplyPlan(run=True, deliver=False)


@pytest.mark.spec("SEND-10", "CMD-8", "CMD-15")
@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("/send on", "allow"),
        ("/send allow", "allow"),
        ("/send off", "deny"),
        ("/send deny", "deny"),
        ("/send inherit", "inherit"),
        ("/send default", "inherit"),
        ("/send reset", "inherit"),
        ("  /SEND \n OFF ", "deny"),
        ("/send: off", "deny"),
        ("/send:off", "deny"),
        ("/send@claw off", "deny"),
        ("/send@CLAW: off", "deny"),
        ("/send", "usage"),
        ("/send:", "usage"),
        ("/send maybe", "usage"),
        ("/send on please", None),
        ("/send off now or later", None),
        ("/send:on please", None),
        ("please /send off", None),
        ("send off", None),
        ("/sender off", None),
        ("/send@other off", None),
        ("/ send off", None),
        ("", None),
    ],
)
def test_the_send_command_is_a_message_of_its_own(text: str, outcome: str | None) -> None:
    assert parse_send_command(text, mention_names=(" @Claw ",)) == outcome


@pytest.mark.spec("CFG-12")
@pytest.mark.parametrize(
    ("given_turns", "turns"),
    [(0, 0), (1, 1), (5, 5), (20, 20), (21, 20), (-1, 0), (3.9, 3), (-0.5, 0), (10**30, 20)]
    + [(None, 5), ("7", 5), (True, 5), (math.nan, 5), (math.inf, 5)],
)
def test_ping_pong_turns_are_floored_and_clamped(given_turns: object, turns: int) -> None:
    assert clamp_ping_pong_turns(given_turns) == turns


# -- properties --------------------------------------------------------------------------------

texts = st.sampled_from([None, "", "cron:", "agent:main:", "telegram", "dm", "direct:"])
match_values = st.builds(
    SendMatch,
    channel=st.sampled_from([None, "telegram", "Discord"]),
    chat_type=st.sampled_from([None, "dm", "group", "room"]),
    key_prefix=texts,
    raw_key_prefix=texts,
)
policies = st.builds(
    SendPolicy,
    rules=st.lists(st.builds(SendRule, st.sampled_from(["allow", "deny"]), match_values), max_size=6).map(
        tuple
    ),
    default=st.sampled_from([None, "allow", "deny"]),
)
keys = st.sampled_from(["agent:main:main", "agent:main:cron:x", "agent:b:telegram:dm:1", "global"])
fact_values = st.builds(
    SendFacts,
    key=keys,
    channel=st.sampled_from([None, "telegram", "discord"]),
    chat_type=st.sampled_from([None, "direct", "group", "channel"]),
)


@pytest.mark.spec("SEND-6")
@settings(max_examples=300, deadline=None)
@given(rules=policies, facts=fact_values)
def test_a_decision_follows_from_the_rules_that_match(rules: SendPolicy, facts: SendFacts) -> None:
    decision = decide_send(rules, facts)
    actions = [rule.action for rule in rules.rules if matches(rule.match, facts)]
    expected = "deny" if "deny" in actions else "allow" if actions else rules.default or "allow"
    assert decision.action == expected
    assert (decision.rule_index is not None) == bool(actions) == (decision.source == "rule")
    if decision.rule_index is not None:
        deciding = rules.rules[decision.rule_index]
        assert deciding.action == decision.action and matches(deciding.match, facts)
        earlier = rules.rules[: decision.rule_index]
        assert not any(rule.action == decision.action and matches(rule.match, facts) for rule in earlier)


@settings(max_examples=150, deadline=None)
@given(key=st.text(), prefix=st.text(), text=st.text())
def test_any_text_is_answered(key: str, prefix: str, text: str) -> None:
    facts = send_facts(None, key, request_channel=prefix)
    assert matches(SendMatch(key_prefix=prefix, raw_key_prefix=prefix), facts) in (True, False)
    assert parse_send_command(text) in (None, "usage", "allow", "deny", "inherit")
