"""One suite, every database: a fixture per driver. A new driver is one more entry here."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from openclaw.store.database import Database
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import unique_name

DRIVERS = ["sqlite-file", "sqlite-memory"]
# In CI a missing package is a failure, not a smaller suite.
if os.environ.get("CI") or importlib.util.find_spec("psycopg"):
    DRIVERS.append("postgres")


async def open_postgres(**options: Any) -> Database:
    """A PostgreSQL database with nothing in it, on the server of this test process."""
    try:
        from openclaw.store.postgres import PostgresDatabase
        from tests.fakes.postgres_server import shared_server
    except ImportError as error:
        pytest.fail(f"the PostgreSQL driver cannot be tried ({error}): run `uv sync`")
    return await PostgresDatabase.open(shared_server().wiped(), **options)


@pytest.fixture(params=DRIVERS)
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    opened: Database
    if request.param == "sqlite-file":
        opened = await SqliteDatabase.open(tmp_path / "state" / "openclaw.sqlite")
    elif request.param == "sqlite-memory":
        opened = await SqliteDatabase.open_memory(unique_name())
    else:
        opened = await open_postgres()
    yield opened
    await opened.close()


@pytest.fixture
async def store(database: Database) -> Store:
    return Store(database)
