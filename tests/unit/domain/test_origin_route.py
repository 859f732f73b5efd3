"""The delivery route: which turns set it, which leave it alone."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.entry import DeliveryContext
from openclaw.domain.lifecycle import TurnSource
from openclaw.domain.origin import (
    DmScope,
    InboundContext,
    internal_channel,
    is_internal,
    sole_concrete_owner,
    update_route,
)

TELEGRAM = InboundContext(
    provider="Telegram", chat_type="direct", from_="telegram:42", to="telegram:42", account_id="bot1"
)
ROUTE = DeliveryContext(channel="telegram", to="telegram:42", account_id="bot1")
OTHER = DeliveryContext(channel="slack", to="C1", account_id="work", thread_id="17.2")
INSIDE = [source for source in get_args(TurnSource) if source != "channel"]


def but(context: InboundContext, **changes: object) -> InboundContext:
    return msgspec.structs.replace(context, **changes)


@pytest.mark.spec("ORG-7", "ORG-8")
def test_a_real_turn_sets_the_whole_route() -> None:
    assert update_route(None, TELEGRAM) == ROUTE
    assert update_route(OTHER, TELEGRAM) == ROUTE
    threaded = but(TELEGRAM, thread_id=" 9 ", account_id=None)
    assert update_route(OTHER, threaded) == DeliveryContext("telegram", "telegram:42", None, "9")
    # Ids keep their case; only the channel is folded.
    matrix = InboundContext(provider="MATRIX", to="!AbC:Example.org")
    assert update_route(None, matrix) == DeliveryContext("matrix", "!AbC:Example.org")


@pytest.mark.spec("ORG-8")
def test_a_thread_ends_with_the_next_turn_outside_it() -> None:
    inside = update_route(None, but(TELEGRAM, thread_id="9"))
    assert inside is not None and inside.thread_id == "9"
    assert update_route(inside, TELEGRAM) == ROUTE
    assert update_route(inside, but(TELEGRAM, thread_id="  ")) == ROUTE


@pytest.mark.spec("ORG-7")
def test_replies_go_where_the_connector_says() -> None:
    whatsapp = InboundContext(provider="whatsapp", from_="+49111", to="+49999", reply_to="+49111")
    assert update_route(None, whatsapp) == DeliveryContext("whatsapp", "+49111")
    assert update_route(None, but(whatsapp, reply_to=" ")) == DeliveryContext("whatsapp", "+49999")


@pytest.mark.spec("ORG-8")
def test_half_a_route_never_replaces_a_whole_one() -> None:
    assert update_route(OTHER, but(TELEGRAM, to=None)) == OTHER
    assert update_route(OTHER, but(TELEGRAM, to="bad\x00id")) == OTHER
    assert update_route(OTHER, but(TELEGRAM, provider=None)) == OTHER
    assert update_route(OTHER, but(TELEGRAM, provider="not a channel")) == OTHER
    assert update_route(None, but(TELEGRAM, provider=None)) is None
    assert update_route(None, but(TELEGRAM, to=None)) == DeliveryContext("telegram", None, "bot1")


@pytest.mark.spec("ORG-8")
@pytest.mark.parametrize("source", INSIDE)
def test_turns_from_inside_keep_a_route_outside(source: TurnSource) -> None:
    context = InboundContext(source=source, provider="webchat", to="operator")
    assert is_internal(context)
    assert update_route(ROUTE, context) == ROUTE
    # Even when they carry the ids of a platform.
    assert update_route(OTHER, but(TELEGRAM, source=source)) == OTHER
    expected = DeliveryContext(channel="webchat") if source == "webchat" else None
    assert update_route(None, context) == expected
    internal = DeliveryContext(channel="internal")
    assert update_route(internal, context) == (expected or internal)
    assert update_route(DeliveryContext(), context) == (expected or DeliveryContext())
    assert internal_channel(source) == ("webchat" if source == "webchat" else "internal")


@pytest.mark.spec("ORG-8")
def test_an_internal_provider_is_inside_whatever_the_source_says() -> None:
    for provider in ("webchat", " Internal "):
        assert is_internal(InboundContext(provider=provider))
        assert update_route(ROUTE, InboundContext(provider=provider, to="x")) == ROUTE
    assert not is_internal(TELEGRAM)
    assert not is_internal(InboundContext())
    webchat = DeliveryContext(channel="webchat")
    assert update_route(webchat, InboundContext(source="cli")) == webchat
    assert update_route(webchat, TELEGRAM) == ROUTE


@pytest.mark.spec("ORG-8")
def test_strangers_do_not_take_the_route_of_a_sole_owner() -> None:
    stranger = but(TELEGRAM, from_="telegram:666", to="telegram:666")
    for owner in ("42", "telegram:42", " Telegram:42 "):
        assert update_route(OTHER, stranger, sole_owner=owner) == OTHER
        assert update_route(None, stranger, sole_owner=owner) is None
        assert update_route(OTHER, TELEGRAM, sole_owner=owner) == ROUTE
    taken = DeliveryContext("telegram", "telegram:666", "bot1")
    assert update_route(OTHER, stranger, sole_owner=None) == taken
    isolating: tuple[DmScope, ...] = ("per-peer", "per-channel-peer", "per-account-channel-peer")
    for scope in isolating:
        assert update_route(OTHER, stranger, dm_scope=scope, sole_owner="42") == taken
    # Groups have sessions of their own; the guard is for direct messages.
    group = but(stranger, chat_type="group")
    assert update_route(OTHER, group, sole_owner="42") == taken
    # The sender id, where given, goes before `from`; a turn without either is nobody's.
    assert update_route(OTHER, but(stranger, sender_id="42"), sole_owner="42") == taken
    assert update_route(OTHER, but(TELEGRAM, sender_id="666"), sole_owner="42") == OTHER
    assert update_route(OTHER, but(TELEGRAM, from_=None), sole_owner="42") == OTHER
    assert update_route(OTHER, but(TELEGRAM, from_=None), sole_owner="") == OTHER
    # The id of another platform is another person.
    assert update_route(OTHER, TELEGRAM, sole_owner="whatsapp:42") == OTHER


@pytest.mark.spec("ORG-8")
@pytest.mark.parametrize(
    ("allow_from", "owner"),
    [
        (["42"], "42"),
        ([42], "42"),
        ([" 42 ", "42", "*", ""], "42"),
        (["42", "43"], None),
        (["*"], None),
        ([], None),
    ],
)
def test_a_sole_owner_is_one_concrete_person(allow_from: list[str | int], owner: str | None) -> None:
    assert sole_concrete_owner(allow_from) == owner


ids = st.sampled_from([None, "", " ", "telegram:42", "C1", "\ud800", "a\nb"])
contexts = st.builds(
    InboundContext,
    source=st.sampled_from(get_args(TurnSource)),
    provider=st.sampled_from([None, "", "telegram", "Slack", "webchat", "\x00"]),
    chat_type=st.sampled_from([None, "dm", "group", "room", "?"]),
    from_=ids,
    to=ids,
    reply_to=ids,
    account_id=ids,
    thread_id=ids,
)
routes = st.sampled_from([None, ROUTE, OTHER, DeliveryContext(channel="webchat")])


@pytest.mark.spec("ORG-7", "ORG-8")
@settings(max_examples=300, deadline=None)
@given(old=routes, context=contexts, owner=st.sampled_from([None, "42"]))
def test_a_route_is_the_old_one_or_wholly_new(
    old: DeliveryContext | None, context: InboundContext, owner: str | None
) -> None:
    route = update_route(old, context, sole_owner=owner)
    if route != old and route is not None:
        assert route.channel in ("telegram", "slack", "webchat")
        told = {text.strip() for text in (context.to, context.reply_to) if text}
        assert route.to is None or route.to in told
        assert route.account_id in (None, (context.account_id or "").strip())
        assert route.thread_id in (None, (context.thread_id or "").strip())
    if is_internal(context) and old is not None:
        assert route == old
    msgspec.json.encode(route)
