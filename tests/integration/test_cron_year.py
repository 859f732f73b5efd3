"""A year of scheduled jobs: changes of clocks, restarts, gaps and jumps (AUTO-4)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from openclaw.domain.jobs import AgentTurn, CronLine, Interval, Job, Schedule
from openclaw.domain.keys import KeySettings
from openclaw.domain.lifecycle import ResetRules
from openclaw.engine.cron import Cron
from openclaw.engine.schedule import next_due
from openclaw.store.inbox import ResetRulesAt
from openclaw.store.jobs import Jobs
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import DONE, PLAN, draft_inputs

MADRID = ZoneInfo("Europe/Madrid")
SPRING = ((2026, 3, 22), (2026, 4, 5))
AUTUMN = ((2026, 10, 18), (2026, 11, 3))
YEAR = ((2026, 1, 1), (2027, 1, 1))
Span = tuple[tuple[int, int, int], tuple[int, int, int]]
HOUR = 3_600_000
SCHEDULES: dict[str, Schedule] = {
    "skipped-hour": CronLine(expr="30 2 * * *"),
    "morning": CronLine(expr="0 7 * * 1-5"),
    "elsewhere": CronLine(expr="15 9 * * *", tz="America/New_York"),
    "six-hours": Interval(every_ms=6 * HOUR),
}


class Settings:
    """As much of the engine's settings as jobs ask for."""

    agents: dict[str, Any] = {"main": None}  # noqa: RUF012
    keys = KeySettings()
    resets = ResetRulesAt(ResetRules(), MADRID)


def midnight(day: tuple[int, int, int]) -> int:
    return int(datetime(*day, 0, 30, tzinfo=MADRID).timestamp() * 1000)


class YearClock:
    def __init__(self, at: int) -> None:
        self.at = at

    def now_ms(self) -> int:
        return self.at

    def monotonic(self) -> float:
        return self.at / 1000

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps here")


class NobodyWorks:
    """Turns are run by the test itself."""

    def wake(self, session_key: str) -> None: ...


class Numbers:
    def __init__(self) -> None:
        self._next = 0

    def uuid(self) -> str:
        self._next += 1
        return f"00000000-0000-4000-8000-{self._next:012d}"


async def _no_post(*_given: object) -> bool:
    return True


def cron_on(database: SqliteDatabase, clock: YearClock, ids: Numbers) -> Cron:
    workers: Any = NobodyWorks()
    settings: Any = Settings
    return Cron(Jobs(database), Store(database), workers, settings, clock, ids, lambda _event: None, _no_post)


async def work(store: Store, database: SqliteDatabase, now_ms: int) -> None:
    """Run every turn that waits, as workers would."""
    for session_key in (await store.unfinished()).waiting:
        for item in await store.queued(session_key):
            claimed = await store.claim(session_key, (item.admission,), PLAN, draft_inputs, now_ms=now_ms)
            assert claimed is not None
            await store.finish(claimed.run, (), DONE, now_ms=now_ms)


def due_in(schedule: Schedule, start_ms: int, until_ms: int) -> list[int]:
    found: list[int] = []
    at: int | None = start_ms
    while at is not None:
        at = next_due(schedule, after_ms=at, made_ms=start_ms, zone=MADRID)
        if at is None or at > until_ms:
            break
        found.append(at)
    return found


PROVES = pytest.mark.spec("AUTO-1", "AUTO-2", "AUTO-4", "LIFE-20", "REST-1")


@PROVES
@pytest.mark.parametrize(("span", "seed"), [(SPRING, 0), (AUTUMN, 1)])
async def test_weeks_around_a_change_of_clocks(span: Span, seed: int, tmp_path: Path) -> None:
    await live(span, seed, tmp_path)


@PROVES
@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
async def test_a_whole_year(seed: int, tmp_path: Path) -> None:
    await live(YEAR, seed, tmp_path)


async def live(span: Span, seed: int, tmp_path: Path) -> None:
    """Each due time is run once, or counted as missed by the run that made up for it."""
    start, end = midnight(span[0]), midnight(span[1])
    rng, clock, ids = Random(seed), YearClock(start), Numbers()
    database = await SqliteDatabase.open(tmp_path / "year.sqlite")
    store, jobs = Store(database), Jobs(database)
    cron = cron_on(database, clock, ids)
    for name, schedule in SCHEDULES.items():
        await cron.add(
            Job(
                id=name, name=name, agent_id="main", schedule=schedule, session_target="isolated",
                payload=AgentTurn(message="go"), created_at_ms=start, updated_at_ms=start,
            )
        )  # fmt: skip
    furthest = start
    while clock.at < end:
        next_at = await jobs.next_at() or clock.at
        clock.at = max(clock.at, next_at) + rng.choice((0, 0, 1, 40, 5000))
        chance = rng.random()
        if chance < 0.02:
            clock.at += rng.choice((3, 30, 100)) * HOUR  # nobody ran
        elif chance < 0.03 and seed:
            clock.at -= rng.choice((1, 5)) * HOUR  # the clock was set back
        if rng.random() < 0.05:
            cron = cron_on(database, clock, ids)  # a restart
        furthest = max(furthest, clock.at)
        await cron._round()
        if rng.random() < 0.3:
            await cron._round()
        await work(store, database, clock.at)
        await cron._round()
    session_ids: list[str | None] = []
    for name, schedule in SCHEDULES.items():
        runs = list(reversed(await jobs.runs(name, 100_000)))
        times = [run.due_at for run in runs]
        expected = due_in(schedule, start, furthest)
        known = set(expected)
        assert len(set(times)) == len(times) and times == sorted(times)
        assert set(times) <= known, "nothing runs at a time that was not due"
        # Older runs are trimmed: what is left is complete from its first one on.
        tail = [at for at in expected if at >= times[0]]
        assert len(times) + sum(run.missed for run in runs) >= len(tail) - 1
        assert len(times) + sum(run.missed for run in runs) <= len(tail) + 1
        assert all(run.status == "ok" for run in runs[:-1])
        session_ids += [run.session_id for run in runs]
    assert len(set(session_ids)) == len(session_ids) and None not in session_ids
    await database.close()
