"""A gateway on PostgreSQL that is killed: what it was told is there, and the next one starts at once."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.fakes.postgres_server import shared_server
from tests.unit.store.driving import Word
from tests.unit.store.postgres_driving import opened, written

_WRITE_FOREVER = """
import asyncio, sys
from openclaw.store.postgres import PostgresDatabase

async def main():
    database = await PostgresDatabase.open(sys.argv[1])
    async def write(caller):
        for n in range(100_000):
            word = f"{caller}-{n}"
            await database.write(lambda tx, w=word: tx.run("INSERT INTO meta VALUES ($1, '')", (w,)))
            print(word, flush=True)
    await asyncio.gather(*map(write, range(4)))

asyncio.run(main())
"""
KILLS = 3
ACKNOWLEDGED = 60


def killed(url: str) -> list[str]:
    """What a process had been told when it was killed."""
    told: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", _WRITE_FOREVER, url], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        while len(told) < ACKNOWLEDGED:
            told.append(child.stdout.readline().strip())
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().splitlines(keepends=True)
    return told + [line.strip() for line in rest if line.endswith("\n")]


@pytest.mark.spec("DB-15", "DB-16")
async def test_nothing_that_was_acknowledged_is_lost() -> None:
    for _ in range(KILLS):
        url = shared_server().wiped()
        told = killed(url)
        async with opened(url) as database:
            found = set(await written(database))
            assert set(told) <= found
            # At most one unit for each caller was on its way.
            assert len(found - set(told)) <= 4
            assert await database.write(Word("next")) == "next"
