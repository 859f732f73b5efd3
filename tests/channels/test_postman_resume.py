"""A gateway that stopped while it sent: what happens to the reply depends on what the platform can do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest

from openclaw.app.system import SystemClock
from openclaw.channels.base import Abilities, Door, Outgoing, Sent
from openclaw.channels.postman import Postman
from openclaw.domain.entry import DeliveryContext
from openclaw.store import outbox
from openclaw.store.database import Transaction
from openclaw.store.records import DeliveryDraft
from openclaw.store.sqlite import SqliteDatabase
from tests.channels.suite import until


class Carrier:
    channel = "slate"
    account_id = "default"
    credentials_refreshed_at: int | None = None

    def __init__(self, abilities: Abilities) -> None:
        self.abilities = abilities
        self.carried: list[str] = []

    async def run(self, door: Door) -> None: ...

    async def send(self, outgoing: Outgoing) -> Sent:
        self.carried.append(outgoing.key)
        return Sent(("1",))

    async def show_typing(self, to: str, thread_id: str | None) -> None: ...

    async def draft(self, outgoing: Outgoing) -> str | None:
        return None


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    opened = await SqliteDatabase.open(tmp_path / "state.sqlite")
    now_ms = SystemClock().now_ms()

    def cut_off(tx: Transaction) -> None:
        for key in ("first", "second"):
            draft = DeliveryDraft(key, DeliveryContext("slate", "42"), b'{"text":"hi"}', now_ms + 900_000)
            outbox.prepare(tx, draft, "", None, now_ms)
        outbox.start(tx, outbox.due(tx, "slate", now_ms, 1)[0].delivery_no, now_ms)

    await opened.write(cut_off)
    yield opened
    await opened.close()


@pytest.mark.spec("REST-7")
@pytest.mark.parametrize(
    ("abilities", "carried", "states"),
    [
        (Abilities(idempotent=True), ["first", "second"], {"sent": 2}),
        (Abilities(), ["second"], {"sent": 1, "unknown": 1}),
    ],
)
async def test_one_key_that_shows_one_message_may_be_sent_again(
    database: SqliteDatabase, abilities: Abilities, carried: list[str], states: dict[str, int]
) -> None:
    tasks: set[asyncio.Task[None]] = set()

    def spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        tasks.add(task)
        return task

    async def no_drafts(run_id: str | None) -> str | None:
        return None

    postman, carrier = Postman(database, SystemClock(), spawn, no_drafts), Carrier(abilities)
    spawn(postman.run_forever())
    await asyncio.sleep(0.05)
    postman.attach(carrier)
    await until(lambda: "second" in carrier.carried, "both")
    for _ in range(3000):
        found = await database.read(outbox.states)
        if found == states:
            break
        await asyncio.sleep(0.02)
    assert found == states and carrier.carried == carried
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
