"""One suite, every database: a fixture per driver. A new driver is one more entry here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import unique_name


@pytest.fixture(params=["sqlite-file", "sqlite-memory"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    if request.param == "sqlite-file":
        opened = await SqliteDatabase.open(tmp_path / "state" / "openclaw.sqlite")
    else:
        opened = await SqliteDatabase.open_memory(unique_name())
    yield opened
    await opened.close()


@pytest.fixture
async def store(database: SqliteDatabase) -> Store:
    return Store(database)
