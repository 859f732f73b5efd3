"""An import that is killed again and again ends where one that was left alone ends."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from openclaw.store.legacy import importing
from tests.integration.importing import Place
from tests.unit.store.legacy.making import conversation, generated

ROOT = Path(__file__).resolve().parents[2]


def start(place: Place) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.integration.import_child"],
        cwd=ROOT,
        env={**os.environ, **place.env},
        stdout=subprocess.PIPE,
    )


def run_for(place: Place, parts: int, pause_s: float) -> bool:
    """Let an import write so many parts, wait a moment, and kill it. True when it had come to its end."""
    with start(place) as child:
        assert child.stdout is not None
        told = 0
        while told < parts and child.stdout.readline():
            told += 1
        if told == parts:
            time.sleep(pause_s)
            child.kill()
        child.stdout.read()
    assert child.returncode in (0, -9)
    return child.returncode == 0


async def check(tmp_path: Path, sessions: int, messages: int, kills: int) -> None:
    place, alone = Place(tmp_path / "killed"), Place(tmp_path / "alone")
    for one in (place, alone):
        generated(one.folder, sessions, messages)
        # One transcript that needs many parts, so that a kill lands in the middle of a file, too.
        (one.folder / "large.jsonl").write_bytes(conversation("large", 4 * importing.PART_RECORDS + 7))
    total = messages + 4 * importing.PART_RECORDS + 7
    before, chance = place.files(), random.Random(kills)
    # So many parts per run that the last kill comes near the end.
    step = max(sessions // (kills + 1), 1)
    for _ in range(kills):
        ended = run_for(place, chance.randrange(max(step // 2, 1), step + 2), chance.random() * 0.02)
        assert not ended, "the import ended before it was killed often enough"
    report = await place.doctor("import")
    assert report.ok and (await alone.doctor("import")).ok
    outcome = report.stores[0]
    assert (outcome.sessions, outcome.records) == (sessions + 1, total)
    assert await place.rows("SELECT count(*) FROM entries") == [(total,)]
    assert await place.rows("SELECT count(*) FROM sessions") == [(sessions + 1,)]
    assert await place.rows("SELECT sum(sessions) FROM counters") == [(sessions + 1,)]
    assert await place.rows("PRAGMA integrity_check") == [("ok",)]
    checked = await place.doctor("validate")
    assert checked.ok and checked.stores[0].already == sessions + 1
    state = await place.state_hash()
    assert state == await alone.state_hash()
    again = (await place.doctor("import")).stores[0]
    assert again.imported == 0 and await place.state_hash() == state and place.files() == before


@pytest.mark.spec("DB-3", "DB-16")
async def test_four_kills(tmp_path: Path) -> None:
    await check(tmp_path, 60, 3000, 4)


@pytest.mark.long
@pytest.mark.spec("DB-3", "DB-16")
async def test_twenty_kills(tmp_path: Path) -> None:
    began = time.monotonic()
    await check(tmp_path, 2000, 200_000, 20)
    print(f"2,000 sessions, 200,000 messages, 20 kills: {time.monotonic() - began:.0f} s")
