"""Maintenance beside people: how long an append takes while 50,000 old rows are tidied away.

    python -m benchmarks.maintenance [--quick]

32 callers append all the time: alone, then while maintenance archives and deletes,
then while what was deleted is purged. The bar is the 99th percentile: at most three
times as long as without maintenance. Alone and beside are measured in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import uvloop

from benchmarks.measuring import Figure, at_most, median, percentile, show
from benchmarks.store import CALLERS, DRAFT, key
from openclaw.config.views import Retention
from openclaw.store import sessions, transcript
from openclaw.store.database import Transaction
from openclaw.store.maintenance import Maintenance
from openclaw.store.records import SessionSeed
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store

DAY_MS = 24 * 3600 * 1000
NOW_MS = 1_794_744_000_000
LIMITS = Retention("enforce", 30 * DAY_MS, None, 30 * DAY_MS, None, None, DAY_MS)


def fill(tx: Transaction, first: int, last: int) -> None:
    """Old sessions with a message each: one half of cron runs, one half of people."""
    for number in range(first, last):
        kind = "cron-run" if number % 2 else "other"
        made = SessionSeed(f"agent:main:old-{number:06d}", "main", kind)
        sessions.create(tx, made, f"old-{number}", 1)
        transcript.append(tx, made.session_key, [DRAFT], number + 1)


class Callers:
    """Appends from 32 tasks until told to stop; the time of each append."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def during(self, work: Callable[[], Awaitable[object]]) -> list[float]:
        taken: list[float] = []
        going = True

        async def append_on(number: int) -> None:
            while going:
                began = time.perf_counter()
                await self._store.append(key(number), (DRAFT,), now_ms=NOW_MS)
                taken.append(time.perf_counter() - began)

        tasks = [asyncio.create_task(append_on(number)) for number in range(CALLERS)]
        await work()
        going = False
        await asyncio.gather(*tasks)
        return taken


async def run(folder: Path, total: int, alone_s: float) -> bool:
    database = await SqliteDatabase.open(folder / "openclaw.sqlite")
    store = Store(database)
    for number in range(CALLERS):
        made = SessionSeed(key(number), "main", "main")
        await store.edit_session(made, lambda entry: entry, session_id=f"w{number}", now_ms=NOW_MS)
    for start in range(0, total, 500):
        await database.write(partial(fill, first=start, last=min(total, start + 500)))
    callers = Callers(store)
    maintenance = Maintenance(database, LIMITS)
    seconds: list[float] = []

    async def timed(work: Awaitable[object]) -> None:
        began = time.perf_counter()
        await work
        seconds.append(time.perf_counter() - began)

    await callers.during(partial(asyncio.sleep, 1.0))
    before = await callers.during(partial(asyncio.sleep, alone_s))
    tidying = await callers.during(lambda: timed(maintenance.run(now_ms=NOW_MS)))
    between = await callers.during(partial(asyncio.sleep, alone_s))
    purging = await callers.during(lambda: timed(maintenance.run(now_ms=NOW_MS + DAY_MS)))
    after = await callers.during(partial(asyncio.sleep, alone_s))
    left = await database.read(lambda tx: tx.rows("SELECT state, count(*) FROM removals GROUP BY state"))
    await store.close()
    alone = [*before, *between, *after]
    p99 = percentile(alone, 0.99)
    print(f"  removals: {dict(left)}")
    return show(
        f"maintenance of {total:,} old rows, {CALLERS} callers appending",
        [
            Figure("append p50, alone", median(alone) * 1e3, "ms"),
            Figure("append p99, alone", p99 * 1e3, "ms"),
            Figure("append p50 while archiving and deleting", median(tidying) * 1e3, "ms"),
            Figure("append p99 while archiving and deleting", percentile(tidying, 0.99) * 1e3, "ms"),
            at_most("the same / alone, p99", percentile(tidying, 0.99) / p99, 3, "x"),
            Figure("append p50 while purging", median(purging) * 1e3, "ms"),
            Figure("append p99 while purging", percentile(purging, 0.99) * 1e3, "ms"),
            at_most("the same / alone, p99", percentile(purging, 0.99) / p99, 3, "x"),
            Figure("slowest append beside maintenance", max(*tidying, *purging) * 1e3, "ms"),
            Figure("slowest append alone", max(alone) * 1e3, "ms"),
            Figure("archiving and deleting took", seconds[0], "s"),
            Figure("purging took", seconds[1], "s"),
        ],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="openclaw-bench-"))
    try:
        total, alone_s = (5_000, 2.0) if options.quick else (50_000, 8.0)
        return 0 if uvloop.run(run(folder, total, alone_s)) else 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
