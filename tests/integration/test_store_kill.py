"""The store alone under `kill -9`: what it acknowledged is there, once, and the file is whole."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import select
from tests.integration.child_process import started

ROUNDS = 15


async def run_until_killed(path: Path, name: str, chance: random.Random) -> list[dict[str, Any]]:
    """What a loaded child was told before it was killed at a random moment."""
    async with started("load", str(path), name) as child:
        assert await child.told() == {"starting": True}
        told = []
        if int(name) % 5 == 0:
            # Somewhere between opening the file and the first writes.
            await asyncio.sleep(chance.uniform(0, 0.06))
        else:
            told = [await child.told() for _ in range(chance.randint(1, 250))]
        child.kill()
        told += await child.rest()
        assert await child.ended() == -9
    return told


async def check(path: Path, told: list[dict[str, Any]]) -> None:
    database = await SqliteDatabase.open(path)
    store = Store(database)
    assert await select(database, "PRAGMA integrity_check") == [("ok",)]
    assert await select(database, "PRAGMA foreign_key_check") == []
    # Every window is dense, and its session knows how far it goes.
    windows = await select(
        database,
        "SELECT s.last_seq, count(e.seq), coalesce(min(e.seq), 1), coalesce(max(e.seq), 0) FROM sessions s "
        "LEFT JOIN entries e ON e.window_no = s.window_no GROUP BY s.session_no",
    )
    assert all(count == last == top and low == 1 for last, count, low, top in windows)
    bodies = await select(
        database,
        "SELECT e.body, e.seq FROM entries e JOIN sessions s ON s.window_no = e.window_no "
        "WHERE s.session_key = 'agent:main:main'",
    )
    said = {msgspec.json.decode(body)["content"]: seq for body, seq in bodies}
    assert len(said) == len(bodies)
    acknowledged = {fact["said"]: fact["seq"] for fact in told if "said" in fact}
    assert acknowledged.items() <= said.items()
    inputs = Counter(run_id for (run_id,) in await select(database, "SELECT run_id FROM inbox"))
    for fact in told:
        if "taken" in fact:
            assert inputs[fact["taken"]] == 1
        if "finished" in fact:
            run = await store.run(fact["finished"])
            assert run is not None
            assert (run.state, run.outcome, run.reply_seq is not None) == ("ended", "ok", True)
    # Whatever was cut off is named as unfinished, in no more sessions than were being written to.
    unfinished = await store.unfinished()
    assert all(run.session_key.startswith("agent:main:turns-") for run in unfinished.runs)
    assert len({run.session_key for run in unfinished.runs}) == len(unfinished.runs)
    # A message and its words for the search are one commit.
    (counts,) = await select(
        database,
        "SELECT (SELECT count(*) FROM search_pending) + (SELECT count(*) FROM search_rows), "
        "(SELECT count(*) FROM entries)",
    )
    assert counts[0] == counts[1]
    await database.close()


@pytest.mark.spec("DB-15", "DB-16", "REST-1")
async def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "state" / "openclaw.sqlite"
    chance = random.Random(20261115)
    told: list[dict[str, Any]] = []
    for number in range(ROUNDS):
        told += await run_until_killed(path, str(number), chance)
        # The lock died with its process: the next owner opens at once.
        await check(path, told)
    kinds = Counter(key for fact in told for key in fact)
    assert min(kinds["said"], kinds["taken"], kinds["finished"]) > ROUNDS
