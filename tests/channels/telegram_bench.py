"""A connector on the bench: real HTTP, a door that writes down, and a clock that hurries."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from openclaw.channels.base import Answer, Message
from openclaw.channels.registry import Ground
from openclaw.channels.telegram.connector import TelegramConnector, build
from openclaw.channels.webhooks import Webhooks
from openclaw.domain.routing import Envelope
from openclaw.errors import StoreError
from openclaw.store.connectors import ConnectorNotes
from openclaw.store.sqlite import SqliteDatabase
from tests.fakes.telegram_server import TOKEN, FakeTelegram

CHAT = "101"


class QuickClock:
    """Sleeping takes no time here, but the clock goes on as if it did."""

    def __init__(self) -> None:
        self._ahead_s = 0.0
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + int(self._ahead_s * 1000)

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._ahead_s += seconds
        await asyncio.sleep(0.001)


class NotingDoor:
    """Writes down what is handed in; refuses as often as it is told to."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.refusals = 0
        self.wants = True
        self.delay_s = 0.0
        self.busy: set[str] = set()
        self.most_busy = 0

    async def wants_files(self, envelope: Envelope) -> bool:
        return self.wants

    async def accept(self, message: Message) -> Answer:
        chat = message.envelope.peer_id
        assert chat not in self.busy, "two messages of one chat at once"
        if self.refusals:
            self.refusals -= 1
            raise StoreError("the disk is full")
        self.busy.add(chat)
        self.most_busy = max(self.most_busy, len(self.busy))
        await asyncio.sleep(self.delay_s)
        self.busy.discard(chat)
        self.messages.append(message)
        return Answer("taken")

    @property
    def texts(self) -> list[str]:
        return [message.envelope.text for message in self.messages]


class Bench:
    def __init__(self, server: FakeTelegram, database: SqliteDatabase, http: aiohttp.ClientSession) -> None:
        self.server, self.clock, self.door, self.webhooks = server, QuickClock(), NotingDoor(), Webhooks()
        self._database, self._http = database, http
        self.commands: tuple[tuple[str, str], ...] = (("status", "How it goes."),)
        server.chats.add(CHAT)
        server.longest_poll_s = 5.0

    def ground(self, **options: Any) -> Ground:
        notes = ConnectorNotes(self._database, "telegram", "default")
        given = {"botToken": TOKEN, "apiRoot": self.server.root} | options
        return Ground(
            "telegram", "default", given, self._http, self.clock, notes, self.commands, self.webhooks
        )

    async def connector(self, **options: Any) -> TelegramConnector:
        return await build(self.ground(**options))

    @asynccontextmanager
    async def running(self, **options: Any) -> AsyncIterator[tuple[TelegramConnector, asyncio.Task[None]]]:
        connector = await self.connector(**options)
        task = asyncio.create_task(connector.run(self.door))
        try:
            yield connector, task
        finally:
            task.cancel()
            await asyncio.wait({task})


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    database = await SqliteDatabase.open_memory(uuid.uuid4().hex)
    try:
        async with FakeTelegram() as server, aiohttp.ClientSession() as http:
            yield Bench(server, database, http)
    finally:
        await database.close()
