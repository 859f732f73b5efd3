"""Origin metadata: labels, merging, and what an entry learns from a turn."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.entry import DeliveryContext, Origin, SessionEntry, entry_to_wire
from openclaw.domain.lifecycle import TurnSource, counts_as_interaction
from openclaw.domain.origin import (
    InboundContext,
    apply_inbound,
    merge_origin,
    record_session_meta_from_inbound,
    resolve_label,
    update_last_route,
)

DIRECT = InboundContext(
    provider="Telegram",
    surface="telegram",
    chat_type="dm",
    from_="telegram:42",
    to="telegram:42",
    account_id="bot1",
    sender_name="Alice",
    native_direct_user_id="42",
)
GROUP = InboundContext(
    provider="telegram",
    chat_type="group",
    from_="telegram:group:-100:topic:7",
    to="telegram:-100",
    thread_id="7",
    sender_name="Alice",
    group_subject="Dev  Team",
    native_channel_id="-100",
)
ROOM = InboundContext(
    provider="slack",
    chat_type="room",
    from_="slack:channel:C1",
    to="C1",
    group_channel="#dev",
    group_space="Acme",
)
SYSTEM = [source for source in get_args(TurnSource) if not counts_as_interaction(source)]
NEW = SessionEntry(session_id="s", updated_at=1)


def but(context: InboundContext, **changes: object) -> InboundContext:
    return msgspec.structs.replace(context, **changes)


# -- label -------------------------------------------------------------------------------------


@pytest.mark.spec("ORG-1", "ORG-5")
def test_the_label_comes_from_the_best_fact() -> None:
    full = but(GROUP, conversation_label="Ops", thread_label="Bug 7", group_channel="#dev", group_space="X")
    assert resolve_label(full) == "Ops"
    assert resolve_label(but(full, conversation_label=" ")) == "Bug 7"
    bare = but(full, conversation_label=None, thread_label=None)
    assert resolve_label(bare) == "#dev id:-100"
    assert resolve_label(but(bare, group_channel=None)) == "Dev Team id:-100"
    assert resolve_label(but(bare, group_channel=None, group_subject="")) == "X id:-100"
    assert resolve_label(but(GROUP, group_subject=None)) == "telegram:group:-100:topic:7"
    assert resolve_label(DIRECT) == "Alice"
    assert resolve_label(but(DIRECT, sender_name=None)) == "telegram:42"
    assert resolve_label(but(DIRECT, group_subject="Not this")) == "Alice"
    assert resolve_label(InboundContext(chat_type="group")) is None
    assert resolve_label(InboundContext()) is None


@pytest.mark.spec("ORG-5")
@pytest.mark.parametrize(
    ("group_id", "subject", "label"),
    [
        ("123", "Dev", "Dev id:123"),
        ("-100", "Dev", "Dev id:-100"),
        ("123", "Dev 123", "Dev 123"),
        ("4915-1@g.us", "Family", "Family id:4915-1@g.us"),
        ("4915-1@G.US", "Family", "Family id:4915-1@G.US"),
        ("C0FFEE", "Dev", "Dev"),
        ("12a", "Dev", "Dev"),
        ("٣", "Dev", "Dev"),
        ("", "Dev", "Dev"),
    ],
)
def test_only_telling_ids_are_added(group_id: str, subject: str, label: str) -> None:
    context = InboundContext(provider="x", chat_type="group", group_id=group_id, group_subject=subject)
    assert resolve_label(context) == label


@pytest.mark.spec("ORG-5")
def test_a_group_is_known_by_any_of_its_signs() -> None:
    whatsapp = InboundContext(provider="whatsapp", from_="49-1@g.us", sender_name="Bob")
    assert resolve_label(whatsapp) == "49-1@g.us"
    assert resolve_label(but(whatsapp, group_subject="Family")) == "Family id:49-1@g.us"
    named = InboundContext(provider="x", from_="u1", sender_name="Bob", group_space="Acme")
    assert resolve_label(named) == "Acme"
    assert resolve_label(but(named, group_space=None)) == "Bob"
    prefixed = InboundContext(from_="discord:channel:77", sender_name="Bob", group_subject="General")
    assert resolve_label(prefixed) == "General id:77"


@pytest.mark.spec("ORG-5")
def test_labels_are_one_clean_line_of_bounded_length() -> None:
    assert resolve_label(but(DIRECT, sender_name=" A\n\tl\x00i\u2028ce ")) == "A li ce"
    assert resolve_label(but(DIRECT, sender_name="x" * 9000)) == "x" * 512
    assert resolve_label(but(DIRECT, sender_name="\x00\x01", from_="\x02")) is None
    lone = resolve_label(but(DIRECT, sender_name="Al\ud800ice"))
    assert lone == "Al\ufffdice"


# -- origin ------------------------------------------------------------------------------------


@pytest.mark.spec("ORG-1", "ORG-2", "ORG-6")
def test_origin_is_filled_for_every_kind_of_chat() -> None:
    assert merge_origin(None, DIRECT) == Origin(
        label="Alice",
        provider="telegram",
        surface="telegram",
        chat_type="direct",
        from_="telegram:42",
        to="telegram:42",
        account_id="bot1",
        native_direct_user_id="42",
    )
    assert merge_origin(None, GROUP) == Origin(
        label="Dev Team id:-100",
        provider="telegram",
        chat_type="group",
        from_="telegram:group:-100:topic:7",
        to="telegram:-100",
        thread_id="7",
        native_channel_id="-100",
    )
    room = merge_origin(None, ROOM)
    assert room is not None and (room.label, room.chat_type, room.provider) == ("#dev", "channel", "slack")
    extension = merge_origin(None, InboundContext(provider=" My-Channel.v2 "))
    assert extension == Origin(provider="my-channel.v2")


@pytest.mark.spec("ORG-6")
def test_new_facts_overwrite_and_missing_ones_never_erase() -> None:
    old = merge_origin(None, GROUP)
    later = merge_origin(old, InboundContext(provider="telegram", from_="telegram:group:-100", to=" "))
    assert later is not None and old is not None
    assert later == msgspec.structs.replace(old, label="telegram:group:-100", from_="telegram:group:-100")
    assert merge_origin(old, InboundContext()) == old
    assert merge_origin(None, InboundContext()) is None
    assert merge_origin(old, InboundContext(account_id="x" * 1025, thread_id="a\x00b")) == old
    longest = merge_origin(old, InboundContext(account_id="x" * 1024))
    assert longest is not None and longest.account_id == "x" * 1024


@pytest.mark.spec("ORG-3", "ORG-6")
def test_a_bare_id_does_not_replace_the_label_of_the_same_sender() -> None:
    named = merge_origin(None, DIRECT)
    same = merge_origin(named, but(DIRECT, sender_name=None))
    assert same == named and same is not None and same.label == "Alice"
    other = merge_origin(named, but(DIRECT, sender_name=None, from_="telegram:43"))
    assert other is not None and (other.label, other.from_) == ("telegram:43", "telegram:43")
    unnamed = merge_origin(Origin(from_="telegram:42"), but(DIRECT, sender_name=None))
    assert unnamed is not None and unnamed.label == "telegram:42"
    renamed = merge_origin(named, but(DIRECT, sender_name="Alicia"))
    assert renamed is not None and renamed.label == "Alicia"


@pytest.mark.spec("ORG-6")
@pytest.mark.parametrize("source", SYSTEM)
def test_system_turns_do_not_touch_origin(source: TurnSource) -> None:
    old = Origin(label="Alice", provider="telegram")
    assert merge_origin(old, but(DIRECT, source=source)) == old
    assert merge_origin(None, but(DIRECT, source=source)) is None


@pytest.mark.spec("ORG-6")
def test_a_turn_from_inside_leaves_an_origin_outside() -> None:
    outside = Origin(label="Alice", provider="telegram")
    for source in ("webchat", "cli", "api", "hook", "node"):
        context = msgspec.convert({"source": source, "sender_name": "Op", "provider": None}, InboundContext)
        assert merge_origin(outside, context) == outside
        channel = "webchat" if source == "webchat" else "internal"
        assert merge_origin(None, context) == Origin(label="Op", provider=channel)
        assert merge_origin(Origin(provider="internal"), context) == Origin(label="Op", provider=channel)
        assert merge_origin(Origin(label="x"), context) == Origin(label="Op", provider=channel)


# -- entries -----------------------------------------------------------------------------------


@pytest.mark.spec("ORG-2", "ORG-4", "LIFE-12")
def test_an_accepted_turn_teaches_description_route_and_activity() -> None:
    entry = apply_inbound(NEW, ROOM, now_ms=9)
    assert entry == SessionEntry(
        session_id="s",
        updated_at=9,
        last_interaction_at=9,
        chat_type="channel",
        channel="slack",
        group_id="C1",
        group_channel="#dev",
        space="Acme",
        display_name="slack:acme#dev",
        origin=merge_origin(None, ROOM),
        delivery_context=DeliveryContext(channel="slack", to="C1"),
    )
    wire = entry_to_wire(entry)
    assert (wire["lastChannel"], wire["lastTo"], wire["room"]) == ("slack", "C1", "#dev")
    direct = apply_inbound(entry, DIRECT, now_ms=12, sole_owner="43")
    assert direct.delivery_context == entry.delivery_context
    assert (direct.updated_at, direct.last_interaction_at, direct.chat_type) == (12, 12, "direct")
    scoped = apply_inbound(entry, DIRECT, now_ms=12, dm_scope="per-peer", sole_owner="43")
    assert scoped.delivery_context == DeliveryContext("telegram", "telegram:42", "bot1")


@pytest.mark.spec("LIFE-12", "ORG-6", "ORG-8")
@pytest.mark.parametrize("source", SYSTEM)
def test_a_system_turn_bumps_only_updated_at(source: TurnSource) -> None:
    entry = apply_inbound(NEW, DIRECT, now_ms=9)
    later = apply_inbound(entry, but(GROUP, source=source), now_ms=20)
    assert later == msgspec.structs.replace(entry, updated_at=20)


@pytest.mark.spec("LIFE-12")
def test_people_at_a_terminal_or_a_page_are_activity_too() -> None:
    for source in ("webchat", "cli"):
        context = msgspec.convert({"source": source}, InboundContext)
        entry = apply_inbound(NEW, context, now_ms=9)
        assert entry.last_interaction_at == 9
        assert entry.channel == ("webchat" if source == "webchat" else "internal")


def test_the_channel_of_a_session_reached_from_inside() -> None:
    inside = apply_inbound(NEW, InboundContext(source="cron"), now_ms=2)
    assert (inside.channel, inside.delivery_context, inside.origin) == ("internal", None, None)
    web = apply_inbound(inside, InboundContext(source="webchat", chat_type="direct"), now_ms=3)
    assert (web.channel, web.chat_type) == ("webchat", "direct")
    again = apply_inbound(web, InboundContext(source="cli", chat_type="group"), now_ms=4)
    assert (again.channel, again.chat_type) == ("webchat", "direct")
    outside = apply_inbound(again, ROOM, now_ms=5)
    assert (outside.channel, outside.chat_type) == ("slack", "channel")
    kept = apply_inbound(outside, InboundContext(source="webchat", chat_type="direct"), now_ms=6)
    assert (kept.channel, kept.chat_type, kept.space) == ("slack", "channel", "Acme")


def test_display_names_of_groups_and_threads() -> None:
    group = apply_inbound(NEW, but(GROUP, thread_id=None), now_ms=2)
    assert (group.group_id, group.display_name) == ("-100", "telegram:g-dev-team")
    renamed = apply_inbound(group, but(GROUP, thread_id=None, group_subject="Ops"), now_ms=3)
    assert renamed.display_name == "telegram:g-ops"
    thread = apply_inbound(NEW, but(GROUP, thread_label="Bug 7"), now_ms=2)
    assert thread.display_name == "Bug 7"
    assert apply_inbound(thread, GROUP, now_ms=3).display_name == "Bug 7"
    assert apply_inbound(NEW, GROUP, now_ms=3).display_name == "telegram:g-dev-team"
    direct = apply_inbound(NEW, but(DIRECT, group_id="5"), now_ms=2)
    assert (direct.group_id, direct.display_name) == (None, None)
    nameless = apply_inbound(NEW, but(GROUP, provider=None, from_=None, group_id="5"), now_ms=2)
    assert (nameless.group_id, nameless.channel, nameless.display_name) == ("5", None, None)


@pytest.mark.spec("ORG-4")
def test_recording_a_description_leaves_route_and_activity() -> None:
    known = msgspec.structs.replace(NEW, delivery_context=DeliveryContext("slack", "C9"))
    entry = record_session_meta_from_inbound(known, GROUP, now_ms=50)
    assert entry is not None
    assert (entry.subject, entry.origin) == ("Dev Team", merge_origin(None, GROUP))
    assert (entry.updated_at, entry.last_interaction_at) == (1, None)
    assert entry.delivery_context == DeliveryContext("slack", "C9")


@pytest.mark.spec("ORG-3", "ORG-4")
def test_refreshing_the_route_keeps_and_extends_the_description() -> None:
    known = record_session_meta_from_inbound(NEW, DIRECT, now_ms=2)
    routed = update_last_route(known, but(DIRECT, sender_name=None, to="telegram:43"), now_ms=3)
    assert routed is not None and routed.origin is not None
    assert routed.delivery_context == DeliveryContext("telegram", "telegram:43", "bot1")
    assert (routed.origin.to, routed.origin.native_direct_user_id) == ("telegram:43", "42")
    assert (routed.updated_at, routed.last_interaction_at) == (1, None)
    guarded = update_last_route(known, DIRECT, now_ms=3, sole_owner="43")
    assert guarded is not None and guarded.delivery_context is None
    scoped = update_last_route(known, DIRECT, now_ms=3, sole_owner="43", dm_scope="per-peer")
    assert scoped is not None and scoped.delivery_context is not None


@pytest.mark.spec("ORG-9")
def test_observing_a_message_creates_nothing_unless_asked() -> None:
    assert record_session_meta_from_inbound(None, DIRECT, now_ms=7) is None
    assert update_last_route(None, DIRECT, now_ms=7) is None
    described = record_session_meta_from_inbound(None, DIRECT, now_ms=7, create_as="new")
    assert described is not None and described.delivery_context is None
    routed = update_last_route(None, DIRECT, now_ms=7, create_as="new")
    assert routed is not None and routed.delivery_context is not None
    for entry in (described, routed):
        assert (entry.session_id, entry.updated_at, entry.created_at) == ("new", 7, 7)
        assert (entry.session_started_at, entry.last_interaction_at) == (7, None)
        assert entry.origin == merge_origin(None, DIRECT)
    existing = update_last_route(NEW, DIRECT, now_ms=7, create_as="new")
    assert existing is not None and existing.session_id == "s"


texts = st.one_of(
    st.none(), st.text(max_size=8), st.sampled_from(["group:1", "a:group:", ":channel:9", "@g.us"])
)


@pytest.mark.spec("ORG-6")
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_context_can_be_applied_and_stored(data: st.DataObject) -> None:
    names = [field.name for field in msgspec.structs.fields(InboundContext) if field.name != "source"]
    context = InboundContext(
        source=data.draw(st.sampled_from(get_args(TurnSource))),
        **data.draw(st.fixed_dictionaries(dict.fromkeys(names, texts))),
    )
    entry = apply_inbound(apply_inbound(NEW, ROOM, now_ms=2), context, now_ms=3)
    assert msgspec.json.decode(msgspec.json.encode(entry), type=SessionEntry) == entry
    assert entry.origin is not None and entry.delivery_context is not None
    assert entry.channel and entry.chat_type
    assert entry.origin.provider and entry.delivery_context.channel
