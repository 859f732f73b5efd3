"""What the bot remembers: across a restart, within bounds, and past notes that cannot be read."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from openclaw.channels.telegram import memory as memory_module
from openclaw.channels.telegram.memory import Memory
from openclaw.store.connectors import ConnectorNotes
from openclaw.store.sqlite import SqliteDatabase
from tests.channels.telegram_bench import QuickClock


@pytest.fixture
async def notes() -> AsyncIterator[ConnectorNotes]:
    database = await SqliteDatabase.open_memory(uuid.uuid4().hex)
    yield ConnectorNotes(database, "telegram", "default")
    await database.close()


async def recalled(notes: ConnectorNotes) -> Memory:
    memory = Memory(notes, QuickClock())
    await memory.recall()
    return memory


async def test_a_bot_begins_with_nothing_and_forgets_nothing(notes: ConnectorNotes) -> None:
    memory = await recalled(notes)
    assert memory.offset is None and memory.draft("run") is None and not memory.menu_is(b"[]")
    assert memory.now_called("-1") == "-1" and memory.once_called("-1") is None
    await memory.go_on_from(502)
    await memory.note_move("-1", "-2")
    await memory.note_move("-1", "-2")
    await memory.note_draft("run", "7")
    await memory.note_menu(b"[]")
    again = await recalled(notes)
    assert again.offset == 502 and again.draft("run") == "7" and again.menu_is(b"[]")
    assert not again.menu_is(b"[1]")
    assert again.now_called("-1") == "-2" and again.once_called("-2") == "-1"
    await again.drop_draft("run")
    assert (await recalled(notes)).draft("run") is None


async def test_notes_that_cannot_be_read_are_a_fresh_beginning(notes: ConnectorNotes) -> None:
    for name in ("offset", "moved", "drafts", "menu"):
        await notes.note(name, b"\xffnonsense", now_ms=1)
    memory = await recalled(notes)
    assert memory.offset is None and memory.draft("run") is None and memory.now_called("-1") == "-1"


async def test_memory_has_bounds(notes: ConnectorNotes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_module, "MOST_DRAFTS", 2)
    monkeypatch.setattr(memory_module, "MOST_MOVED", 2)
    memory = await recalled(notes)
    for number in range(3):
        await memory.note_draft(f"run-{number}", "7")
        await memory.note_move(f"-{number}", "-99")
    assert [memory.draft(f"run-{number}") for number in range(3)] == [None, "7", "7"]
    assert [memory.now_called(f"-{number}") for number in range(3)] == ["-0", "-99", "-99"]
