"""What a crash cut off, on a platform that shows one key once: it goes out again, and nothing else does."""

from __future__ import annotations

import pytest

from openclaw.domain.entry import DeliveryContext
from openclaw.store import outbox
from openclaw.store.database import Transaction
from openclaw.store.records import DeliveryDraft
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, select

LATER = NOON + 900_000


@pytest.mark.spec("REST-7")
async def test_only_what_was_cut_off_on_that_account_is_prepared_again(
    store: Store, database: SqliteDatabase
) -> None:
    places = {"cut": None, "named": "default", "other": "work", "late": None, "asked": None, "done": None}

    def write(tx: Transaction) -> None:
        for name, account in places.items():
            route = DeliveryContext("matrix", "!room", account)
            expires_at = NOON + 5 if name == "late" else LATER
            outbox.prepare(tx, DeliveryDraft(name, route, b"{}", expires_at), MAIN.session_key, "run-1", NOON)
        for delivery in outbox.due(tx, "matrix", NOON, 10):
            outbox.start(tx, delivery.delivery_no, NOON)
            if delivery.idempotency_key == "asked":
                outbox.settle(tx, delivery.delivery_no, "unknown", "no answer within 120 s", NOON)
            if delivery.idempotency_key == "done":
                outbox.settle(tx, delivery.delivery_no, "sent", None, NOON)

    await database.write(write)
    assert await database.write(lambda tx: outbox.forget_sending(tx, NOON + 1)) == 4
    assert await database.write(lambda tx: outbox.resume_sending(tx, "telegram", "default", NOON + 5)) == 0
    assert await database.write(lambda tx: outbox.resume_sending(tx, "matrix", "default", NOON + 5)) == 2
    rows = await select(
        database, "SELECT idempotency_key, state, error, updated_at FROM outbox ORDER BY delivery_no"
    )
    stopped = "the gateway stopped while sending"
    assert rows == [
        ("cut", "prepared", None, NOON + 5),
        ("named", "prepared", None, NOON + 5),
        ("other", "unknown", stopped, NOON + 1),
        ("late", "unknown", stopped, NOON + 1),
        ("asked", "unknown", "no answer within 120 s", NOON),
        ("done", "sent", None, NOON),
    ]
    due = await store.deliveries_due("matrix", now_ms=NOON + 6)
    assert [one.idempotency_key for one in due] == ["cut", "named"]
