"""Why a message lands in its session: every binding is told, and the story is the one that holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.addressing import AddressSettings, DmScope
from openclaw.domain.admission import Admit, AskToPair, DirectDecision, Refuse
from openclaw.domain.explain_routing import RoutingGround, SessionFound, explain_route, find_route
from openclaw.domain.explanation import Explanation, Step
from openclaw.domain.keys import KeySettings, format_key
from openclaw.domain.routing import (
    AgentRef,
    Binding,
    BindingMatch,
    Envelope,
    GroupRules,
    PeerMatch,
    choose_agent,
    route_inbound,
)

AGENTS = (AgentRef("main", default=True), AgentRef("bob"))
OPEN = GroupRules(policy="open", require_mention=False)


def bound(agent_id: str, **match: Any) -> Binding:
    return Binding(agent_id=agent_id, match=BindingMatch(**({"channel": "telegram"} | match)))


def ground(
    *bindings: Binding,
    agents: tuple[AgentRef, ...] = AGENTS,
    dm_scope: DmScope = "main",
    dm_scope_is_set: bool = False,
    scope: Any = "per-sender",
    links: Mapping[str, tuple[str, ...]] | None = None,
    rules: GroupRules = OPEN,
) -> RoutingGround:
    return RoutingGround(
        bindings=bindings,
        agents=agents,
        settings=AddressSettings(KeySettings(scope=scope), dm_scope, links or {}),
        dm_scope_is_set=dm_scope_is_set,
        group_rules=rules,
    )


def direct(**fields: Any) -> Envelope:
    return Envelope(**({"channel": "telegram", "peer_kind": "direct", "peer_id": "42"} | fields))


def tell(
    envelope: Envelope,
    on: RoutingGround,
    found: SessionFound | None = None,
    agent_id: str | None = None,
    admission: DirectDecision | None = None,
) -> Explanation:
    route = find_route(envelope, on, agent_id)
    named = agent_id is not None
    return explain_route(envelope, on, route, found, admission=admission, agent_was_named=named)


def step(told: Explanation, question: str) -> Step:
    (found,) = [one for one in told.steps if one.question == question]
    return found


@pytest.mark.spec("ROUTE-1")
def test_every_binding_is_told_and_the_most_specific_one_decides() -> None:
    on = ground(
        bound("main"),
        bound("bob", peer=PeerMatch("dm", "42")),
        bound("carol", channel="discord"),
        bound("dave", account_id="work"),
    )
    told = tell(direct(), on)
    assert told.facts["agentId"] == "bob" and told.facts["bindingIndex"] == 1 and told.facts["tier"] == "peer"
    assert told.decided_by == "bindings[1]"
    assert step(told, "bindings[0] for main") == Step(
        "bindings[0] for main",
        "matches by the whole channel, but a more specific or earlier one wins",
        "bindings[0]",
    )
    assert step(told, "bindings[1] for bob") == Step(
        "bindings[1] for bob", "matches by the chat itself", "bindings[1]", True
    )
    assert step(told, "bindings[2] for carol").outcome == "does not match: channel"
    assert step(told, "bindings[3] for dave").outcome == "does not match: accountId"
    assert told.answer == (
        "The message goes to agent bob, session agent:bob:main, which the message would create."
    )


@pytest.mark.spec("ROUTE-1")
def test_each_field_that_differs_is_named() -> None:
    on = ground(
        bound("bob", channel="discord", guild_id="g", team_id="t", roles=("r",), peer=PeerMatch("group", "1"))
    )
    told = tell(direct(), on)
    assert step(told, "bindings[0] for bob").outcome == (
        "does not match: channel, guildId, teamId, roles, peer"
    )
    envelope = direct(guild_id="g", team_id="t", roles=("r", "x"))
    only_peer = ground(bound("bob", guild_id="g", team_id="t", roles=("r",), peer=PeerMatch("group", "1")))
    assert step(tell(envelope, only_peer), "bindings[0] for bob").outcome == "does not match: peer"


@pytest.mark.spec("ROUTE-1")
@pytest.mark.parametrize(
    ("match", "fields", "words"),
    [
        ({"peer": PeerMatch("direct", "7")}, {"parent_peer_id": "7"}, "the room above the thread"),
        ({"guild_id": "g", "roles": ("r",)}, {"guild_id": "g", "roles": ("r",)},
         "the guild and a role of the sender"),
        ({"guild_id": "g"}, {"guild_id": "g"}, "the guild"),
        ({"team_id": "t"}, {"team_id": "t"}, "the team"),
        ({"account_id": "work"}, {"account_id": "work"}, "the account"),
    ],
)  # fmt: skip
def test_each_tier_has_its_words(match: dict[str, Any], fields: dict[str, Any], words: str) -> None:
    told = tell(direct(**fields), ground(bound("bob", **match)))
    assert step(told, "bindings[0] for bob").outcome == f"matches by {words}"


@pytest.mark.spec("ROUTE-1")
def test_the_default_agent_is_explained() -> None:
    marked = step(tell(direct(), ground()), "agent")
    assert marked == Step(
        "agent", "main: there are no bindings, and it is marked as the default agent", "agents.list", True
    )
    unmarked = ground(bound("x", channel="irc"), agents=(AgentRef("bob"), AgentRef("main")))
    first = tell(direct(), unmarked)
    assert step(first, "agent").outcome == "bob: no binding matches, and it is the first agent that is listed"
    assert first.decided_by == "agents.list" and first.facts["tier"] == "default"
    assert step(tell(direct(), ground(agents=())), "agent").outcome == (
        "main: there are no bindings, and no agent is listed"
    )


@pytest.mark.spec("ROUTE-1", "ROUTE-2")
def test_an_agent_that_was_named_passes_the_bindings_by() -> None:
    on = ground(bound("main", peer=PeerMatch("direct", "42")), dm_scope="per-peer")
    told = tell(direct(reply_to="chat-9"), on, agent_id="Bob")
    assert (told.facts["agentId"], told.facts["tier"]) == ("bob", "named")
    assert step(told, "agent").outcome == "bob: it was named, so no binding was asked"
    assert not [one for one in told.steps if one.question.startswith("bindings")]
    assert told.facts["sessionKey"] == "agent:bob:dm:42"
    assert told.facts["reply"] == {"channel": "telegram", "to": "chat-9"}
    assert told.decided_by == "session.dmScope"


@pytest.mark.spec("KEY-3", "KEY-4", "KEY-5", "KEY-6")
@pytest.mark.parametrize(
    ("dm_scope", "words", "key"),
    [
        ("main", "direct messages share the agent's main session", "agent:main:main"),
        ("per-peer", "each person has one session, whatever the channel", "agent:main:dm:42"),
        ("per-channel-peer", "each person has one session per channel", "agent:main:telegram:dm:42"),
        ("per-account-channel-peer", "each person has one session per account and channel",
         "agent:main:telegram:default:dm:42"),
    ],
)  # fmt: skip
def test_the_dm_scope_gives_the_key(dm_scope: DmScope, words: str, key: str) -> None:
    chosen = tell(direct(), ground(dm_scope=dm_scope, dm_scope_is_set=True))
    assert step(chosen, "key") == Step("key", f'dmScope is "{dm_scope}": {words}', "session.dmScope", True)
    assert (chosen.facts["sessionKey"], chosen.facts["dmScope"]) == (key, dm_scope)
    unset = tell(direct(), ground(dm_scope=dm_scope))
    assert step(unset, "key").outcome == f'dmScope is "{dm_scope}", the default: {words}'


@pytest.mark.spec("KEY-7", "KEY-16")
def test_links_and_the_global_scope_are_told() -> None:
    links = {"Alice": ("telegram:42",)}
    linked = tell(direct(), ground(dm_scope="per-peer", links=links))
    assert step(linked, "key").setting == "session.identityLinks.alice"
    assert step(linked, "key").outcome.endswith("; this id is linked to alice")
    assert linked.facts["identity"] == "alice" and linked.facts["sessionKey"] == "agent:main:dm:alice"
    assert tell(direct(), ground(links=links)).facts["identity"] is None
    group = direct(peer_kind="group")
    assert tell(group, ground(dm_scope="per-peer", links=links)).facts["identity"] is None
    everything = tell(direct(), ground(scope="global", dm_scope="per-peer", links=links))
    assert step(everything, "key") == Step("key", "every chat is one session", "session.scope", True)
    assert everything.facts["sessionKey"] == "global" and everything.facts["identity"] is None


@pytest.mark.spec("KEY-25", "KEY-11", "ROUTE-3")
def test_groups_threads_and_the_gate() -> None:
    envelope = direct(peer_kind="group", peer_id="-100", thread_id="7", thread_kind="topic")
    told = tell(envelope, ground(), SessionFound("s-1", 1))
    assert step(told, "key") == Step("key", "a group always has a session of its own")
    assert step(told, "thread").outcome == "topic 7 is a session of its own"
    assert step(told, "group") == Step(
        "group", "taken: no mention is needed in this group", "channels.telegram.requireMention"
    )
    assert step(told, "session").outcome == "s-1, 1 message"
    assert told.facts["taken"] is True and told.facts["exists"] is True and told.facts["sessionId"] == "s-1"
    assert told.answer.endswith(", which exists.")
    assert told.decided_by == "agents.list"
    plain = tell(direct(), ground(), SessionFound("s-2", 2))
    assert step(plain, "session").outcome == "s-2, 2 messages"
    assert not [one for one in plain.steps if one.question in ("group", "thread")]
    assert plain.facts["gate"] == "direct"


@pytest.mark.spec("ROUTE-3")
@pytest.mark.parametrize(
    ("rules", "fields", "words", "setting", "taken"),
    [
        (GroupRules(policy="disabled"), {},
         "dropped: groups are disabled on this channel", "groupPolicy", False),
        (GroupRules(policy="allowlist"), {},
         "dropped: neither groups nor senders are listed, and only listed ones are heard", "groupPolicy",
         False),
        (GroupRules(policy="allowlist", groups=("1",)), {},
         "dropped: this group is not listed", "groups", False),
        (GroupRules(policy="allowlist", senders=("9",)), {"sender_id": "8"},
         "dropped: this sender is not listed", "groupAllowFrom", False),
        (GroupRules(policy="open"), {}, "kept as context only: the agent was not called by name",
         "requireMention", False),
        (GroupRules(policy="open"), {"was_mentioned": True},
         "taken: the agent was called by name", None, True),
        (GroupRules(policy="open"), {"replied_to_us": True},
         "taken: it answers one of the agent's messages", None, True),
        (GroupRules(policy="open"), {"mentions_detectable": False},
         "taken: this platform cannot tell who was called", None, True),
    ],
)  # fmt: skip
def test_the_gate_names_its_reason(
    rules: GroupRules, fields: dict[str, Any], words: str, setting: str | None, taken: bool
) -> None:
    told = tell(direct(peer_kind="group", peer_id="-100", **fields), ground(rules=rules))
    gate = step(told, "group")
    where = None if setting is None else f"channels.telegram.{setting}"
    assert (gate.outcome, gate.setting, gate.decided) == (words, where, not taken)
    assert told.facts["taken"] is taken
    key = "agent:main:telegram:group:-100"
    if taken:
        assert told.answer.startswith(f"The message goes to agent main, session {key}")
        assert told.decided_by == "agents.list"
    else:
        assert told.answer == f"The message would start no turn: {words}. Its session would be {key}."
        assert told.decided_by == where


@pytest.mark.parametrize(
    ("admission", "reason", "words", "setting", "taken"),
    [
        (Admit("listed"), "listed", "taken: allowFrom names the sender", "allowFrom", True),
        (Admit("paired"), "paired", "taken: a person let the sender in", "dmPolicy", True),
        (Admit("open"), "open", "taken: the door is open to everybody", "dmPolicy", True),
        (AskToPair(), "asked_to_pair", "not taken: a stranger is given a pairing code first", "dmPolicy",
         False),
        (Refuse("disabled"), "disabled", "dropped: direct messages are disabled on this channel", "dmPolicy",
         False),
        (Refuse("not_listed"), "not_listed", "dropped: allowFrom does not name the sender", "allowFrom",
         False),
        (Refuse("no_sender"), "no_sender", "dropped: the platform names no sender", "dmPolicy", False),
    ],
)  # fmt: skip
def test_a_direct_message_is_let_in_or_not(
    admission: DirectDecision, reason: str, words: str, setting: str, taken: bool
) -> None:
    told = tell(direct(channel="Telegram"), ground(), admission=admission)
    where = f"channels.telegram.{setting}"
    assert step(told, "direct message") == Step("direct message", words, where, not taken)
    assert (told.facts["taken"], told.facts["gate"]) == (taken, reason)
    if taken:
        assert told.answer.startswith("The message goes to agent main") and told.decided_by == "agents.list"
    else:
        assert told.answer == (
            f"The message would start no turn: {words}. Its session would be agent:main:main."
        )
        assert told.decided_by == where


PEERS = st.sampled_from(["1", "2", "3"])
MATCHES = st.builds(
    BindingMatch,
    channel=st.sampled_from(["telegram", "discord"]),
    account_id=st.sampled_from([None, "*", "work", "default"]),
    peer=st.none() | st.builds(PeerMatch, st.sampled_from(["dm", "group"]), PEERS),
    guild_id=st.sampled_from([None, "g", "h"]),
    team_id=st.sampled_from([None, "t"]),
    roles=st.sampled_from([(), ("r",), ("q", "r")]),
)
ENVELOPES = st.builds(
    Envelope,
    channel=st.sampled_from(["telegram", "discord"]),
    peer_kind=st.sampled_from(["direct", "group"]),
    peer_id=PEERS,
    parent_peer_id=st.none() | PEERS,
    account_id=st.sampled_from(["default", "work"]),
    guild_id=st.sampled_from([None, "g"]),
    team_id=st.sampled_from([None, "t"]),
    roles=st.sampled_from([(), ("r",)]),
)


@pytest.mark.spec("ROUTE-1")
@settings(max_examples=200, deadline=None)
@given(
    envelope=ENVELOPES,
    bindings=st.lists(st.builds(Binding, agent_id=st.sampled_from(["a", "b"]), match=MATCHES), max_size=5),
)
def test_the_story_is_the_one_that_holds(envelope: Envelope, bindings: list[Binding]) -> None:
    """Agent and key are those of `route_inbound`, and a binding that differs names a field."""
    on = ground(*bindings, dm_scope="per-channel-peer")
    told = tell(envelope, on)
    routed = route_inbound(envelope, bindings=bindings, agents=AGENTS, settings=on.settings)
    assert told.facts["agentId"] == routed.agent.agent_id
    assert told.facts["sessionKey"] == format_key(routed.key)
    steps = [one for one in told.steps if one.question.startswith("bindings")]
    for index, (one, binding) in enumerate(zip(steps, bindings, strict=True)):
        alone = choose_agent(envelope, (binding,), AGENTS, on.settings.keys)
        assert one.outcome.startswith("matches by ") == (alone.tier != "default")
        assert one.decided == (index == routed.agent.binding_index)
        assert one.outcome.removeprefix("does not match: ") != ""
