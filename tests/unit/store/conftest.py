"""A database file of one's own for the tests of the driver."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from openclaw.store.sqlite import SqliteDatabase


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "openclaw.sqlite"


@pytest.fixture
async def database(path: Path) -> AsyncIterator[SqliteDatabase]:
    opened = await SqliteDatabase.open(path)
    yield opened
    await opened.close()
