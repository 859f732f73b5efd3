"""The address of a message, group gating, repeated and rapid messages (ROUTE-2..5)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.addressing import AddressSettings, Conversation
from openclaw.domain.entry import DeliveryContext, GroupActivation
from openclaw.domain.keys import KeySettings, format_key
from openclaw.domain.routing import (
    Accept,
    AgentRef,
    Binding,
    BindingMatch,
    Coalesce,
    DebounceSettings,
    DeliveryIdentity,
    Drop,
    Envelope,
    FlushNow,
    GroupPolicy,
    GroupRules,
    Pending,
    conversation_of,
    debounce_lane,
    decide_debounce,
    delivery_identity,
    gate_group,
    reply_route,
    route_inbound,
    webchat_key,
)
from openclaw.errors import InvalidSessionKey

KEYS = KeySettings()


def group_message(**fields: Any) -> Envelope:
    values: dict[str, Any] = {
        "channel": "telegram",
        "peer_kind": "group",
        "peer_id": "-1A",
        "sender_id": "U1",
    }
    return Envelope(**{**values, **fields})


# -- address --------------------------------------------------------------------------------------


@pytest.mark.spec("ROUTE-1", "ROUTE-2")
def test_a_message_is_addressed_once() -> None:
    message = group_message(
        channel="Telegram", account_id="Biz", thread_id="5", thread_kind="topic", text="/model x", to="bot"
    )
    bindings = [Binding(agent_id="ops", match=BindingMatch(channel="telegram"))]
    route = route_inbound(message, bindings=bindings, agents=[AgentRef("main")], settings=AddressSettings())
    assert (route.agent.agent_id, route.agent.tier) == ("ops", "channel")
    assert format_key(route.key) == "agent:ops:telegram:group:-1a:topic:5"
    assert route.conversation == Conversation("telegram", "group", "-1A", "biz", "topic", "5")
    assert route.reply == DeliveryContext("telegram", "-1A", "biz", "5")


@pytest.mark.spec("ROUTE-2")
def test_the_reply_goes_back_to_where_the_message_came_from() -> None:
    direct = Envelope(channel=" WhatsApp ", peer_kind="direct", peer_id="+49AbC", from_="+1", to="+2")
    assert reply_route(direct) == DeliveryContext("whatsapp", "+49AbC", "default", None)
    slack = Envelope(channel="slack", peer_kind="direct", peer_id="U1", reply_to="D9", thread_id="1.5")
    assert reply_route(slack) == DeliveryContext("slack", "D9", "default", "1.5")
    assert reply_route(msgspec.structs.replace(slack, reply_to="", thread_id="")).to == "U1"
    assert reply_route(msgspec.structs.replace(slack, thread_id="")).thread_id is None


@pytest.mark.spec("ROUTE-2")
def test_what_a_message_says_cannot_change_where_its_reply_goes() -> None:
    quiet = group_message()
    loud = group_message(
        text="reply to discord:1",
        conversation_label="x",
        provider="discord",
        chat_type="direct",
        sender_name="y",
    )
    assert reply_route(quiet) == reply_route(loud)
    assert conversation_of(quiet) == conversation_of(loud)


@pytest.mark.spec("KEY-25")
def test_an_unusable_address_is_refused() -> None:
    for message in (group_message(peer_id=" "), group_message(channel="a b")):
        with pytest.raises(InvalidSessionKey):
            route_inbound(message, bindings=[], agents=[], settings=AddressSettings())


@pytest.mark.spec("ORG-4")
def test_an_envelope_survives_storage_with_the_contract_names() -> None:
    message = group_message(
        from_="a",
        conversation_label="l",
        group_subject="s",
        group_channel="c",
        group_space="p",
        sender_name="n",
    )
    stored = msgspec.to_builtins(message)
    expected = {"from", "conversationLabel", "groupSubject", "groupChannel", "groupSpace", "senderName"}
    assert expected <= stored.keys()
    assert msgspec.convert(stored, Envelope) == message


@pytest.mark.spec("ROUTE-5")
def test_webchat_attaches_to_the_main_session_of_the_selected_agent() -> None:
    assert format_key(webchat_key("Ops", KEYS)) == "agent:ops:main"
    assert format_key(webchat_key("ops", KeySettings(main_key="desk"))) == "agent:ops:desk"
    assert format_key(webchat_key("ops", KeySettings(scope="global"))) == "global"


# -- gating ---------------------------------------------------------------------------------------


def gate(
    message: Envelope,
    rules: GroupRules,
    activation: GroupActivation | None = None,
    is_authorised_command: bool = False,
) -> Accept | Pending | Drop:
    return gate_group(
        message, rules, settings=KEYS, activation=activation, is_authorised_command=is_authorised_command
    )


OPEN = GroupRules(policy="open")


@pytest.mark.spec("ROUTE-3")
def test_direct_chats_are_not_gated() -> None:
    direct = group_message(peer_kind="direct")
    assert gate(direct, GroupRules(policy="disabled")) == Accept("direct")


@pytest.mark.spec("ROUTE-3")
def test_disabled_groups_are_dropped_whatever_is_said() -> None:
    called = group_message(was_mentioned=True, replied_to_us=True)
    rules = GroupRules(policy="disabled", groups=["*"], senders=["*"], require_mention=False)
    assert gate(called, rules, "always", True) == Drop("groups_disabled")
    assert gate(group_message(peer_kind="channel"), rules) == Drop("groups_disabled")


@pytest.mark.spec("ROUTE-3")
@pytest.mark.parametrize(
    ("groups", "senders", "decision"),
    [
        (None, None, Drop("nothing_listed")),
        ([], None, Drop("group_not_listed")),
        (None, [], Drop("sender_not_listed")),
        (["-2"], ["u1"], Drop("group_not_listed")),
        (["-1a"], ["u2"], Drop("sender_not_listed")),
        (["discord:-1a"], None, Drop("group_not_listed")),
        (["-1a"], None, Accept("mentioned")),
        (None, ["u1"], Accept("mentioned")),
        (["-2", " Telegram:-1A "], ["telegram:U1"], Accept("mentioned")),
        (["*"], ["*"], Accept("mentioned")),
        (["telegram:*"], None, Accept("mentioned")),
    ],
)
def test_an_allowlist_lets_in_what_every_configured_list_names(
    groups: list[str] | None, senders: list[str] | None, decision: Accept | Drop
) -> None:
    rules = GroupRules(policy="allowlist", groups=groups, senders=senders)
    assert gate(group_message(was_mentioned=True), rules) == decision


@pytest.mark.spec("ROUTE-3")
def test_a_thread_is_listed_by_its_parent_and_a_nameless_sender_is_not() -> None:
    listed = GroupRules(policy="allowlist", groups=["c1"])
    assert gate(group_message(peer_id="t9", parent_peer_id="C1"), listed) == Pending("not_mentioned")
    assert gate(group_message(peer_id="t9"), listed) == Drop("group_not_listed")
    nameless = group_message(sender_id=None)
    assert gate(nameless, GroupRules(policy="allowlist", senders=["u1", ""])) == Drop("sender_not_listed")
    impostor = group_message(channel="irc", sender_id="telegram:u1")
    assert gate(impostor, GroupRules(policy="allowlist", senders=["telegram:u1"])) == Drop(
        "sender_not_listed"
    )
    exact = GroupRules(policy="allowlist", senders=["@Bo:hs"])
    assert gate(group_message(channel="matrix", sender_id="@bo:hs"), exact) == Drop("sender_not_listed")
    assert gate(group_message(channel="matrix", sender_id="@Bo:hs"), exact) == Pending()


@pytest.mark.spec("ROUTE-3")
@pytest.mark.parametrize("policy", ["open", "allowlist"])
def test_without_a_mention_a_message_is_context_only(policy: GroupPolicy) -> None:
    rules = GroupRules(policy=policy, groups=["*"])
    assert rules.require_mention
    assert gate(group_message(), rules) == Pending("not_mentioned")
    assert gate(group_message(was_mentioned=True), rules) == Accept("mentioned")
    assert gate(group_message(replied_to_us=True), rules) == Accept("reply")
    assert gate(group_message(), rules, is_authorised_command=True) == Accept("command")
    assert gate(group_message(mentions_detectable=False), rules) == Accept("mention_unknowable")


@pytest.mark.spec("ROUTE-3")
def test_activation_beats_the_configuration() -> None:
    free = GroupRules(policy="open", require_mention=False)
    assert gate(group_message(), free) == Accept("mention_not_required")
    assert gate(group_message(), free, "mention") == Pending()
    assert gate(group_message(), OPEN, "always") == Accept("mention_not_required")
    assert gate(group_message(), OPEN, "mention") == Pending()
    assert gate(group_message(was_mentioned=True), free, "always") == Accept("mentioned")


# -- repeated messages ----------------------------------------------------------------------------


@pytest.mark.spec("ROUTE-4")
def test_the_identity_of_a_delivery() -> None:
    message = group_message(channel="Telegram", account_id="Biz", message_id="77")
    assert delivery_identity(message) == DeliveryIdentity("telegram", "biz", "-1A", "77")
    again = msgspec.structs.replace(message, text="edited", sender_name="x", thread_id="5")
    assert delivery_identity(again) == delivery_identity(message)
    for fields in ({"message_id": "78"}, {"peer_id": "-1a"}, {"account_id": "b"}, {"channel": "slack"}):
        assert delivery_identity(msgspec.structs.replace(message, **fields)) != delivery_identity(message)
    assert delivery_identity(group_message()) is None
    assert delivery_identity(group_message(message_id="")) is None


# -- rapid messages -------------------------------------------------------------------------------


HALF_SECOND = DebounceSettings(debounce_ms=500)


def debounce(
    now_ms: int = 10_000,
    last_ms: int | None = None,
    configured: DebounceSettings = HALF_SECOND,
    channel: str = "telegram",
    is_command: bool = False,
    has_media: bool = False,
) -> FlushNow | Coalesce:
    return decide_debounce(
        now_ms=now_ms,
        last_ms=last_ms,
        channel=channel,
        settings=configured,
        is_command=is_command,
        has_media=has_media,
    )


@pytest.mark.spec("ROUTE-4")
def test_commands_and_media_flush_at_once() -> None:
    assert debounce(is_command=True) == FlushNow("command")
    assert debounce(has_media=True, last_ms=9_999) == FlushNow("media")
    assert debounce(is_command=True, has_media=True) == FlushNow("command")


@pytest.mark.spec("ROUTE-4")
def test_debounce_is_off_by_default_and_per_channel() -> None:
    assert debounce(configured=DebounceSettings()) == FlushNow("off")
    assert debounce(configured=DebounceSettings(debounce_ms=-1)) == FlushNow("off")
    assert debounce(configured=DebounceSettings(debounce_ms=1)) == Coalesce(10_001, False)
    mixed = DebounceSettings(debounce_ms=500, by_channel={"slack": 0, "whatsapp": 5_000})
    assert debounce(configured=mixed, channel="Slack") == FlushNow("off")
    assert debounce(configured=mixed, channel=" WhatsApp ") == Coalesce(15_000, False)
    assert debounce(configured=mixed) == Coalesce(10_500, False)


@pytest.mark.spec("ROUTE-4")
@pytest.mark.parametrize(
    ("last_ms", "joins"), [(None, False), (9_500, False), (9_501, True), (10_000, True), (10_900, True)]
)
def test_rapid_text_joins_what_waits(last_ms: int | None, joins: bool) -> None:
    assert debounce(last_ms=last_ms) == Coalesce(10_500, joins)


@pytest.mark.spec("ROUTE-4")
def test_only_one_sender_in_one_place_is_coalesced() -> None:
    message = group_message(account_id="Biz", thread_id="5")
    same = msgspec.structs.replace(message, text="more", message_id="2", channel="TELEGRAM", account_id="biz")
    assert debounce_lane(message) == debounce_lane(same)
    for fields in (
        {"sender_id": "u2"},
        {"peer_id": "-2"},
        {"thread_id": None},
        {"account_id": "b"},
        {"channel": "slack"},
    ):
        assert debounce_lane(msgspec.structs.replace(message, **fields)) != debounce_lane(message)
    assert debounce_lane(group_message(thread_id="")) == debounce_lane(group_message())


@pytest.mark.spec("ROUTE-2", "ROUTE-4")
@settings(max_examples=100, deadline=None)
@given(channel=st.text(max_size=8), peer_id=st.text(max_size=8), account_id=st.text(max_size=8))
def test_reply_route_and_identity_never_fail(channel: str, peer_id: str, account_id: str) -> None:
    message = group_message(channel=channel, peer_id=peer_id, account_id=account_id, message_id="1")
    assert reply_route(message).to == peer_id
    identity = delivery_identity(message)
    assert identity is not None and identity.peer_id == peer_id
