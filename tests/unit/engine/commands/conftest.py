"""A house of commands for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from openclaw.store.sqlite import SqliteDatabase
from tests.conformance.making import unique_name
from tests.unit.engine.commands.house import House


@pytest.fixture
async def database() -> AsyncIterator[SqliteDatabase]:
    opened = await SqliteDatabase.open_memory(unique_name(), readers=1)
    yield opened
    await opened.close()


@pytest.fixture
def house(database: SqliteDatabase) -> House:
    return House(database)
