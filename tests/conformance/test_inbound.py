"""Where messages come from: conversations apart from sessions, origin, and the route of replies."""

from __future__ import annotations

import msgspec
import pytest

from openclaw.domain.entry import DeliveryContext
from openclaw.domain.origin import InboundContext
from openclaw.store.conversations import ConversationRef
from openclaw.store.inbox import Inbound
from openclaw.store.store import Accepted, Store
from tests.conformance.making import MAIN, NOON, RESETS, say, seed

ALICE = InboundContext(
    provider="telegram", chat_type="direct", from_="telegram:Alice_1", to="bot", reply_to="Alice_1",
    account_id="acc", sender_id="Alice_1", sender_name="Alice",
)  # fmt: skip
BOB = InboundContext(
    provider="signal", chat_type="direct", from_="signal:+49 BOB", reply_to="+49 BOB", sender_name="Bob"
)
AT_ALICE = ConversationRef("telegram", "acc", "direct", "Alice_1", label="Alice", delivery_to="Alice_1")
AT_BOB = ConversationRef("signal", "", "direct", "+49 BOB")


async def receive(store: Store, run_id: str, inbound: Inbound, at: int = NOON) -> Accepted:
    new = msgspec.structs.replace(say(run_id, source=inbound.context.source), inbound=inbound)
    taken = await store.accept(new, RESETS, session_id=f"{run_id}-window", now_ms=at)
    assert isinstance(taken, Accepted)
    return taken


@pytest.mark.spec("DB-8", "DB-9", "KEY-3", "KEY-20")
async def test_one_session_has_several_conversations_byte_exact(store: Store) -> None:
    await receive(store, "run-1", Inbound(ALICE, AT_ALICE), NOON)
    await receive(store, "run-2", Inbound(BOB, AT_BOB), NOON + 1)
    await receive(store, "run-3", Inbound(ALICE, AT_ALICE), NOON + 2)
    assert await store.conversations_of(MAIN.session_key) == (AT_ALICE, AT_BOB)
    other_case = msgspec.structs.replace(AT_ALICE, peer_id="alice_1")
    await receive(store, "run-4", Inbound(ALICE, other_case), NOON + 3)
    assert len(await store.conversations_of(MAIN.session_key)) == 3


async def test_what_is_not_told_does_not_erase_what_is_known(store: Store) -> None:
    await receive(store, "run-1", Inbound(ALICE, AT_ALICE))
    nameless = msgspec.structs.replace(AT_ALICE, label=None, delivery_to=None)
    await receive(store, "run-2", Inbound(ALICE, nameless), NOON + 1)
    assert await store.conversations_of(MAIN.session_key) == (AT_ALICE,)


@pytest.mark.spec("ORG-1", "ORG-2", "ORG-7", "ORG-8", "ORG-10", "ENT-3")
async def test_the_route_follows_the_last_outside_message(store: Store) -> None:
    await receive(store, "run-1", Inbound(ALICE, AT_ALICE))
    row = await store.session(MAIN.session_key)
    assert row is not None
    assert row.entry.delivery_context == DeliveryContext("telegram", "Alice_1", "acc")
    assert row.entry.origin is not None
    assert (row.entry.origin.label, row.entry.origin.provider) == ("Alice", "telegram")
    await receive(store, "run-2", Inbound(InboundContext(source="webchat", provider="webchat")), NOON + 1)
    inside = await store.session(MAIN.session_key)
    assert inside is not None
    assert inside.entry.delivery_context == row.entry.delivery_context
    assert inside.entry.origin == row.entry.origin
    await receive(store, "run-3", Inbound(BOB, AT_BOB), NOON + 2)
    moved = await store.session(MAIN.session_key)
    assert moved is not None
    assert moved.entry.delivery_context == DeliveryContext("signal", "+49 BOB")
    assert moved.entry.last_interaction_at == NOON + 2


@pytest.mark.spec("ORG-8")
async def test_a_stranger_does_not_take_the_owners_route(store: Store) -> None:
    guarded = {"dm_scope": "main", "sole_owner": "Alice_1"}
    await receive(store, "run-1", msgspec.structs.replace(Inbound(ALICE, AT_ALICE), **guarded))
    await receive(store, "run-2", msgspec.structs.replace(Inbound(BOB, AT_BOB), **guarded), NOON + 1)
    row = await store.session(MAIN.session_key)
    assert row is not None
    assert row.entry.delivery_context == DeliveryContext("telegram", "Alice_1", "acc")


@pytest.mark.spec("ORG-3", "ORG-4", "ORG-9")
async def test_observing_a_message_creates_nothing_when_asked_not_to(store: Store) -> None:
    group = seed("telegram:group:-100", session_type="group", channel="telegram", chat_type="group")
    context = InboundContext(
        provider="telegram", chat_type="group", from_="telegram:group:-100", to="-100", group_subject="Trip"
    )
    place = ConversationRef("telegram", "", "group", "-100")
    missing = await store.record_inbound(
        group, Inbound(context, place), session_id="a", now_ms=NOON, update_only=True
    )
    assert missing is None
    assert await store.session(group.session_key) is None
    assert await store.conversations_of(group.session_key) == ()
    made = await store.record_inbound(group, Inbound(context, place), session_id="a", now_ms=NOON)
    assert made is not None
    assert (made.entry.subject, made.entry.delivery_context) == ("Trip", DeliveryContext("telegram", "-100"))
    route_only = msgspec.structs.replace(context, group_subject=None, to="-100:7", thread_id="7")
    moved = await store.record_inbound(
        group, Inbound(route_only), session_id="b", now_ms=NOON + 1, update_only=True
    )
    assert moved is not None
    assert moved.entry.subject == "Trip"
    assert moved.entry.delivery_context == DeliveryContext("telegram", "-100:7", None, "7")
    assert moved.entry.session_id == "a"
    assert moved.entry.last_interaction_at is None


async def test_the_same_again_writes_nothing(store: Store) -> None:
    await store.record_inbound(MAIN, Inbound(ALICE), session_id="a", now_ms=NOON)
    before = await store.session(MAIN.session_key)
    await store.record_inbound(MAIN, Inbound(ALICE), session_id="b", now_ms=NOON + 5)
    assert await store.session(MAIN.session_key) == before
