"""One process owns the files: a second is refused, a dead one leaves nothing, and nobody sniffs at them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from openclaw.errors import StoreLocked
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import MAIN, create
from tests.integration.child_process import PATIENCE_S, started


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "openclaw.sqlite"


@pytest.mark.spec("OWN-6")
async def test_a_second_process_is_refused_and_told_who_owns_the_directory(path: Path) -> None:
    async with started("hold", str(path)) as owner:
        assert await owner.told() == {"opened": True, "pid": owner.pid}
        with pytest.raises(StoreLocked) as caught:
            await SqliteDatabase.open(path)
        assert caught.value.message == (
            f"another gateway (process {owner.pid}) owns {path.parent}. "
            "Stop it, or use another OPENCLAW_STATE_DIR."
        )
        assert caught.value.fields == {"path": str(path.parent), "owner": str(owner.pid)}
        await owner.say("let go")
        assert await owner.ended() == 0
    database = await SqliteDatabase.open(path)
    async with started("hold", str(path)) as second:
        told = await second.told()
        assert (told["opened"], told["code"]) == (False, "STORE_LOCKED")
        assert told["fields"]["owner"] == str(os.getpid())
    await create(Store(database), MAIN)
    await database.close()


@pytest.mark.spec("OWN-6", "DB-16")
async def test_a_killed_owner_frees_the_directory_at_once(path: Path) -> None:
    for _ in range(3):
        async with started("hold", str(path)) as owner:
            assert (await owner.told())["opened"]
            owner.kill()
            assert await owner.ended() == -9
        database = await SqliteDatabase.open(path)
        await create(Store(database), MAIN)
        await database.close()


@pytest.mark.spec("OWN-6")
async def test_a_child_process_does_not_inherit_the_ownership(path: Path) -> None:
    """A program that the gateway starts must not keep the directory locked after the gateway has gone."""
    database = await SqliteDatabase.open(path)
    sleeper = await asyncio.create_subprocess_exec("sleep", str(PATIENCE_S))
    try:
        await database.close()
        again = await SqliteDatabase.open(path)
        await again.close()
    finally:
        sleeper.kill()
        await sleeper.wait()


@pytest.mark.spec("OWN-1")
async def test_the_owner_itself_never_opens_the_database_files(path: Path) -> None:
    """Closing any handle on them would drop SQLite's locks (PITFALLS A3). The control shows that we look."""
    async with started("audit", str(path)) as child:
        told = await child.told()
        assert await child.ended() == 0
    assert told == {"by_the_store": [], "by_the_control": 1}
