"""A gateway without channels: every turn wakes the postman, and it writes only now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from openclaw.channels.postman import SWEEP_S, Postman
from openclaw.domain.entry import DeliveryContext
from openclaw.store import outbox
from openclaw.store.database import Transaction
from openclaw.store.records import DeliveryDraft
from openclaw.store.sqlite import SqliteDatabase
from tests.fakes.clock import MovableClock


async def no_drafts(run_id: str | None) -> str | None:
    return None


def never(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    raise AssertionError("nobody is there who could carry")


async def test_what_waits_too_long_expires_by_the_clock_and_not_by_every_turn(tmp_path: Path) -> None:
    database, clock = await SqliteDatabase.open(tmp_path / "state.sqlite"), MovableClock()

    def prepare(tx: Transaction) -> None:
        draft = DeliveryDraft("one", DeliveryContext("slate", "42"), b"{}", clock.now_ms() + 1000)
        outbox.prepare(tx, draft, "", None, clock.now_ms())

    async def state() -> str:
        return await database.read(lambda tx: str(tx.rows("SELECT state FROM outbox")[0][0]))

    await database.write(prepare)
    postman = Postman(database, clock, never, no_drafts)
    await postman._round()
    commits = database.commits
    clock.move(SWEEP_S - 0.1)
    for _ in range(3):
        await postman._round()
    assert (await state(), database.commits) == ("prepared", commits)
    clock.move(0.2)
    await postman._round()
    assert (await state(), database.commits) == ("failed", commits + 1)
    await database.close()
