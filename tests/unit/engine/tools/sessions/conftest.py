"""A room on a store in memory."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from openclaw.store.sqlite import SqliteDatabase
from tests.unit.engine.tools.sessions.room import OWN, Room

_numbers = itertools.count(1)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    database = await SqliteDatabase.open_memory(f"session-tools-{next(_numbers)}", readers=1)
    made = Room(database, tmp_path)
    await made.add(OWN)
    yield made
    await database.close()
