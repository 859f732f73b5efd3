"""What became of the reply of a run that should also leave through a channel."""

from __future__ import annotations

from functools import partial

import pytest

from openclaw.domain.deliverystatus import DeliveryPart
from openclaw.domain.entry import DeliveryContext
from openclaw.store import outbox
from openclaw.store.database import Database
from openclaw.store.outboxdesk import OutboxDesk
from openclaw.store.records import DeliveryDraft
from openclaw.store.store import Store

NOW_MS = 1_800_000_000_000


@pytest.mark.spec("CLI-6")
async def test_the_reply_of_a_run_is_found_with_its_fate(store: Store, database: Database) -> None:
    desk = OutboxDesk(database)
    assert await desk.reply_of("run-1") == ()
    route = DeliveryContext(channel="telegram", to="42")
    for name in ("run-1:reply", "run-2:reply"):
        draft = DeliveryDraft(name, route, b"{}", NOW_MS + 1000)
        await database.write(partial(outbox.prepare, draft=draft, session_key="k", run_id="r", now_ms=NOW_MS))
    assert await desk.reply_of("run-1") == (DeliveryPart("prepared", 0),)
    (due, _) = await database.read(lambda tx: outbox.due(tx, "telegram", NOW_MS))
    assert await store.start_delivery(due.delivery_no, now_ms=NOW_MS)
    assert await desk.reply_of("run-1") == (DeliveryPart("sending", 1),)
    await store.settle_delivery(due.delivery_no, "failed", now_ms=NOW_MS, error="no route")
    assert await desk.reply_of("run-1") == (DeliveryPart("failed", 1, "no route"),)
    assert await desk.reply_of("run-2") == (DeliveryPart("prepared", 0),)
