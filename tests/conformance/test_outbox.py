"""The outbox: a reply is written once, sent at most once, and never lost silently."""

from __future__ import annotations

import asyncio

import pytest

from openclaw.domain.entry import DeliveryContext
from openclaw.store import outbox
from openclaw.store.records import DeliveryDraft
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import DONE, MAIN, NOON, begin, select

KEY = MAIN.session_key
EXPIRES = NOON + 900_000
ROUTE = DeliveryContext(channel="telegram", to="42")


async def prepare(
    database: SqliteDatabase,
    key: str,
    *,
    body: bytes = b"{}",
    channel: str = "telegram",
    expires_at: int = EXPIRES,
    at: int = NOON,
) -> None:
    draft = DeliveryDraft(key, DeliveryContext(channel=channel, to="42"), body, expires_at)
    await database.write(lambda tx: outbox.prepare(tx, draft, KEY, "run-1", at))


async def due(store: Store, channel: str = "telegram", at: int = NOON) -> list[str]:
    return [item.idempotency_key for item in await store.deliveries_due(channel, now_ms=at)]


async def number_of(database: SqliteDatabase, key: str) -> int:
    (found,) = await select(database, "SELECT delivery_no FROM outbox WHERE idempotency_key = ?", key)
    return int(found[0])


async def row_of(database: SqliteDatabase, key: str) -> tuple[object, ...]:
    columns = "state, attempts, error, created_at, updated_at, expires_at"
    (found,) = await select(database, f"SELECT {columns} FROM outbox WHERE idempotency_key = ?", key)
    return found


@pytest.mark.spec("REST-7")
async def test_a_reply_is_prepared_with_its_run_and_only_once(store: Store, database: SqliteDatabase) -> None:
    active = await begin(store, "run-1")
    first = DeliveryDraft("run-1:reply", ROUTE, b'{"text":"hello"}', EXPIRES)
    again = DeliveryDraft("run-1:reply", ROUTE, b'{"text":"other"}', EXPIRES + 1)
    await store.finish(active.run, (), DONE, (), (first, again), now_ms=NOON + 1)
    (delivery,) = await store.deliveries_due("telegram", now_ms=NOON)
    assert delivery == outbox.Delivery(
        delivery.delivery_no, "run-1:reply", KEY, "run-1", "telegram", "42", None, None, b'{"text":"hello"}',
        "prepared", 0, NOON + 1, EXPIRES,
    )  # fmt: skip
    assert await row_of(database, "run-1:reply") == ("prepared", 0, None, NOON + 1, NOON + 1, EXPIRES)


async def test_deliveries_leave_in_order_and_by_channel(store: Store, database: SqliteDatabase) -> None:
    for key in ("a", "b", "c"):
        await prepare(database, key)
    await prepare(database, "d", channel="signal")
    assert await due(store) == ["a", "b", "c"]
    assert await due(store, "signal") == ["d"]
    assert await due(store, "discord") == []
    assert await store.delivery_states() == {"prepared": 4}
    few = await database.read(lambda tx: outbox.due(tx, "telegram", NOON, 2))
    assert [item.idempotency_key for item in few] == ["a", "b"]


async def test_what_has_expired_is_not_due(store: Store, database: SqliteDatabase) -> None:
    """A reply that comes too late is worse than none: it waits to be told as failed."""
    await prepare(database, "old", expires_at=NOON + 5)
    await prepare(database, "new", expires_at=NOON + 6)
    assert await due(store, at=NOON + 4) == ["old", "new"]
    assert await due(store, at=NOON + 5) == ["new"]
    assert await due(store, at=NOON + 6) == []
    few = await database.read(lambda tx: outbox.due(tx, "telegram", NOON + 5, 1))
    assert [item.idempotency_key for item in few] == ["new"]
    assert await store.delivery_states() == {"prepared": 2}
    assert await store.recover_deliveries(now_ms=NOON + 5) == (0, 1)
    assert await store.delivery_states() == {"failed": 1, "prepared": 1}


@pytest.mark.parametrize("state", ["sent", "unknown", "failed"])
async def test_a_delivery_is_sent_by_one_sender(store: Store, database: SqliteDatabase, state: str) -> None:
    await prepare(database, "a")
    number = await number_of(database, "a")
    started = await asyncio.gather(*(store.start_delivery(number, now_ms=NOON + 5) for _ in range(10)))
    assert sorted(started) == [False] * 9 + [True]
    assert await row_of(database, "a") == ("sending", 1, None, NOON, NOON + 5, EXPIRES)
    assert await due(store) == []
    settled = await store.settle_delivery(number, state, error="told by the platform", now_ms=NOON + 6)
    assert settled
    assert await row_of(database, "a") == (state, 1, "told by the platform", NOON, NOON + 6, EXPIRES)
    assert not await store.settle_delivery(number, "sent", now_ms=NOON + 7)
    assert not await store.start_delivery(number, now_ms=NOON + 7)
    assert await due(store) == []
    assert await store.delivery_states() == {state: 1}


async def test_what_was_not_started_cannot_be_settled(store: Store, database: SqliteDatabase) -> None:
    await prepare(database, "a")
    number = await number_of(database, "a")
    assert not await store.settle_delivery(number, "sent", now_ms=NOON)
    assert not await store.start_delivery(number + 1, now_ms=NOON)
    assert not await store.retry_delivery(number + 1, now_ms=NOON, expires_at=EXPIRES)
    assert await due(store) == ["a"]


@pytest.mark.parametrize("state", ["prepared", "sending", "sent", "unknown", "failed"])
async def test_only_unknown_and_failed_can_be_retried(
    store: Store, database: SqliteDatabase, state: str
) -> None:
    await prepare(database, "a")
    number = await number_of(database, "a")
    if state != "prepared":
        await store.start_delivery(number, now_ms=NOON + 1)
    if state in ("sent", "unknown", "failed"):
        await store.settle_delivery(number, state, error="why", now_ms=NOON + 2)
    before = await row_of(database, "a")
    retried = await store.retry_delivery(number, now_ms=NOON + 3, expires_at=EXPIRES + 3)
    assert retried is (state in ("unknown", "failed"))
    if retried:
        assert await row_of(database, "a") == ("prepared", 1, None, NOON, NOON + 3, EXPIRES + 3)
        assert await due(store) == ["a"]
        assert await store.start_delivery(number, now_ms=NOON + 4)
        assert (await row_of(database, "a"))[1] == 2
    else:
        assert await row_of(database, "a") == before


@pytest.mark.spec("REST-1", "REST-7")
async def test_at_start_up_cut_off_sendings_are_unknown_and_old_ones_failed(
    store: Store, database: SqliteDatabase
) -> None:
    await prepare(database, "cut off", expires_at=NOON)
    await store.start_delivery(await number_of(database, "cut off"), now_ms=NOON)
    await prepare(database, "past", expires_at=NOON + 9)
    await prepare(database, "at the edge", expires_at=NOON + 10)
    await prepare(database, "in time", expires_at=NOON + 11)
    assert await store.recover_deliveries(now_ms=NOON + 10) == (1, 2)
    assert await due(store) == ["in time"]
    unknown = await row_of(database, "cut off")
    assert (unknown[0], unknown[2], unknown[4]) == ("unknown", "the gateway stopped while sending", NOON + 10)
    failed = await row_of(database, "at the edge")
    assert (failed[0], failed[2], failed[4]) == ("failed", "expired before it could be sent", NOON + 10)
    assert await store.delivery_states() == {"unknown": 1, "failed": 2, "prepared": 1}
    assert await store.recover_deliveries(now_ms=NOON + 10) == (0, 0)


async def test_nothing_to_deliver_is_no_state(store: Store) -> None:
    assert await store.delivery_states() == {}
    assert await store.recover_deliveries(now_ms=NOON) == (0, 0)
