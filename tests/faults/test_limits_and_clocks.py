"""No file descriptors left, and clocks that jump: refused or carried out, never half done."""

from __future__ import annotations

import multiprocessing
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from openclaw.domain.lifecycle import ResetRule, ResetRules
from openclaw.store.inbox import ResetRulesAt
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance import model as model_module
from tests.conformance import performing
from tests.conformance.making import MAIN, NOON, create, in_memory, note, queue, texts
from tests.conformance.operations import Accept
from tests.conformance.picture import compare
from tests.faults import fd_child
from tests.faults.campaign import Script

HOUR_MS = 3600 * 1000
STEPS = 250
# Short runs and few inputs that wait: only an idle session is ever reset by the clock.
CALM = {"accept": 10, "claim": 10, "finish": 20, "cancel": 6, "append": 4, "reset": 1, "undo": 1, "delete": 1}


@pytest.mark.spec("DB-16")
def test_no_descriptors_left(tmp_path: Path) -> None:
    processes = multiprocessing.get_context("forkserver")
    here, there = processes.Pipe(duplex=False)
    child = processes.Process(target=fd_child.run, args=(str(tmp_path), there))
    child.start()
    there.close()
    told: list[dict[str, Any]] = []
    try:
        while here.poll(60):
            told.append(here.recv())
    except EOFError:
        child.join(60)
    here.close()
    assert child.exitcode == 0
    child.close()
    codes = [fact["code"] for fact in told]
    assert [fact["seq"] for fact in told] == list(range(1, 21)), "the open store stopped working"
    assert {fact["leaked"] for fact in told} == {0}
    # With too few it is refused, from some number on it opens; nothing in between breaks.
    first = codes.index("opened")
    assert first >= 4
    assert set(codes[first:]) == {"opened"}
    assert set(codes[:first]) <= {"STORE_READ_ONLY", "STORE_ERROR", "STORE_BUSY"}


def _berlin(year: int, month: int, day: int, hour: int) -> int:
    moment = datetime(year, month, day, hour, tzinfo=ZoneInfo("Europe/Berlin"))
    return int(moment.astimezone(UTC).timestamp() * 1000)


@pytest.mark.spec("LIFE-1", "LIFE-12", "DB-15")
@pytest.mark.parametrize(
    "start",
    [_berlin(2026, 10, 24, 20), _berlin(2027, 3, 27, 20), _berlin(2026, 11, 15, 20)],
    ids=["clocks-back", "clocks-forward", "a-common-day"],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_clocks_that_jump(start: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # The daily reset is at an hour that exists twice in one of these nights and not at all in another.
    resets = ResetRulesAt(ResetRules(reset=ResetRule(mode="daily", at_hour=2)), ZoneInfo("Europe/Berlin"))
    monkeypatch.setattr(performing, "RESETS", resets)
    monkeypatch.setattr(model_module, "RESETS", resets)
    chance, script = random.Random(seed), Script(seed, CALM)
    script.chooser.now = start

    async def play(store: Store, database: SqliteDatabase) -> None:
        newest: dict[str, int] = {}
        for step in range(STEPS):
            script.chooser.now += chance.choice((0, 0, 0, HOUR_MS, -HOUR_MS, 40 * 60_000, -1))
            await script.perform(store, database, script.choose())
            assert script.problems == [], step
            for key, session in script.model.sessions.items():
                row = await store.session(key)
                assert row is not None
                # The place in lists never goes back, whatever the clock says.
                assert row.entry.updated_at == session.entry.updated_at
                assert row.entry.updated_at >= newest.get(row.entry.session_id, 0)
                newest[row.entry.session_id] = row.entry.updated_at
        assert await compare(database, [script.model]) == []

    in_memory(play)
    rotations = sum(window.reason == "daily" for window in script.model.windows.values())
    assert rotations >= 1, "no daily reset was met"
    assert sum(isinstance(op, Accept) for op in script.done) > 30


@pytest.mark.spec("DB-14")
def test_a_jump_back_does_not_reorder() -> None:
    async def play(store: Store, database: SqliteDatabase) -> None:
        await create(store, MAIN, at=NOON)
        for number, at in enumerate((NOON, NOON - HOUR_MS, NOON + HOUR_MS, NOON - 2 * HOUR_MS)):
            await store.append(MAIN.session_key, (note(f"{number}"),), now_ms=at)
            await queue(store, f"run-{number}", at=at)
        page = await store.history(MAIN.session_key, 10)
        assert page is not None
        assert texts(page.entries) == ["0", "1", "2", "3"]
        assert [item.run_id for item in page.pending] == ["run-0", "run-1", "run-2", "run-3"]

    in_memory(play)
