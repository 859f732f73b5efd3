"""A real store, a scripted model and a compactor, for tests of compaction."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from openclaw.domain.compaction import CompactionSettings, Trigger
from openclaw.domain.context import rebuild_context
from openclaw.domain.transcript import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    encode,
    text_of,
)
from openclaw.engine.compaction import CompactionEvent, CompactionJob, Compactor, Summarise
from openclaw.engine.compaction_context import records_of
from openclaw.engine.ports import Model, ModelDone, ModelRequest, ModelTarget
from openclaw.store.compactions import Compactions
from openclaw.store.database import Database
from openclaw.store.records import EntryDraft, SessionRow
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, create, present

KEY = MAIN.session_key
TARGET = ModelTarget("p", "m", "scripted", context_window=20_000, max_tokens=2000)
WINDOW = 10_000
SETTINGS = CompactionSettings(keep_recent_tokens=1500, timeout_seconds=60)


class Clock:
    def now_ms(self) -> int:
        return NOON

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def draft(message: Message) -> EntryDraft:
    roles = {UserMessage: "user", AssistantMessage: "assistant", ToolResultMessage: "toolResult"}
    return EntryDraft("message", encode(message), roles[type(message)], text=text_of(message))


def turn(number: int, size: int = 1200) -> list[Message]:
    """A question, a tool call, its result and an answer: a bit over `size` characters."""
    call = ToolCallBlock(f"c{number}", "read", {"path": f"/srv/file{number}.py"})
    return [
        UserMessage(f"question {number} about ticket TCK-{number:05d}", NOON),
        AssistantMessage((call,), NOON, stop_reason="toolUse"),
        ToolResultMessage(f"c{number}", "read", (TextBlock(f"result {number} " + "r" * size),), NOON),
        AssistantMessage((TextBlock(f"answer {number}"),), NOON, stop_reason="stop"),
    ]


def talk(turns: int, size: int = 1200) -> list[Message]:
    return [message for number in range(1, turns + 1) for message in turn(number, size)]


def asking(model: Model) -> Summarise:
    """One plain call of a model."""

    async def summarise(request: ModelRequest) -> ModelDone:
        async with aclosing(model.stream(request)) as stream:
            async for event in stream:
                if isinstance(event, ModelDone):
                    return event
        raise AssertionError("the stream ended without its last event")

    return summarise


class Workshop:
    """A session with a conversation in it, and a compactor that tells what happens."""

    def __init__(self, database: Database) -> None:
        self.store = Store(database)
        self.compactions = Compactions(database)
        self.events: list[CompactionEvent] = []
        self.compactor = Compactor(self.compactions, Clock(), self.events.append)

    async def fill(self, messages: Sequence[Message]) -> SessionRow:
        await create(self.store, MAIN)
        await self.store.append(KEY, tuple(draft(message) for message in messages), now_ms=NOON)
        return await present(self.store)

    async def say(self, *messages: Message) -> None:
        await self.store.append(KEY, tuple(draft(message) for message in messages), now_ms=NOON)

    async def job(self, model: Model | None, trigger: Trigger = "manual", **fields: Any) -> CompactionJob:
        made = CompactionJob(
            session=await present(self.store),
            trigger=trigger,
            window=fields.pop("window", WINDOW),
            settings=fields.pop("settings", SETTINGS),
            target=None if model is None else TARGET,
            summarise=None if model is None else asking(model),
        )
        return msgspec.structs.replace(made, **fields)

    async def context(self) -> tuple[Message, ...]:
        row = await present(self.store)
        records = records_of(await self.store.context(row.window_no))
        return rebuild_context(records, records[-1].id)

    async def texts(self) -> list[str]:
        return [text_of(message) for message in await self.context()]
