"""The store beside bare apsw: CPU per durable append, group commit, page reads, loop lag.

    python -m benchmarks.store [--quick]

Repeats are interleaved (bare, ours, bare, ours …) and medians are compared, so that
a noisy machine falls on both alike.
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

import apsw

from benchmarks.measuring import Figure, at_least, at_most, cpu_us_each, median, percentile, seconds, show
from openclaw.store import sessions, transcript
from openclaw.store.database import Transaction
from openclaw.store.records import EntryDraft, SessionSeed
from openclaw.store.sessions import ListQuery
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store

TEXT = "lorem ipsum dolor sit amet " * 7
BODY = b'{"role":"user","content":"' + TEXT.encode() + b'","timestamp":1794767344909}'
DRAFT = EntryDraft("message", BODY, "user", text=TEXT, words=TEXT.strip())
CALLERS = 32
BARE_SCHEMA = (
    "CREATE TABLE entries (window_no INTEGER, seq INTEGER, entry_id TEXT, type TEXT, role TEXT, "
    "created_at INTEGER, body BLOB, PRIMARY KEY (window_no, seq)) WITHOUT ROWID"
)


def key(number: int) -> str:
    return f"agent:main:s{number}"


class Bare:
    """What one durable insert costs at least: apsw, WAL, synchronous=FULL, one row, one commit."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            self._connection.execute("PRAGMA " + pragma).fetchall()
        self._connection.execute(BARE_SCHEMA)
        self._seq = 0

    async def insert(self, count: int) -> None:
        for _ in range(count):
            self._insert_one()

    async def insert_in_thread(self, count: int) -> None:
        """The same from a program that must not block its event loop."""
        for _ in range(count):
            await asyncio.to_thread(self._insert_one)

    def _insert_one(self) -> None:
        execute = self._connection.execute
        self._seq += 1
        execute("BEGIN IMMEDIATE")
        execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)",
            (1, self._seq, f"{self._seq:08x}", "message", "user", self._seq, BODY),
        )
        execute("COMMIT")


async def append_many(store: Store, session_key: str, count: int) -> None:
    for number in range(count):
        await store.append(session_key, (DRAFT,), now_ms=number)


async def append_together(store: Store, each: int) -> None:
    await asyncio.gather(*(append_many(store, key(number), each) for number in range(CALLERS)))


async def measure_appends(store: Store, bare: Bare, repeats: int, count: int) -> list[Figure]:
    bare_us, thread_us, ours_us, many_us, one_rate, many_rate = [], [], [], [], [], []
    each = count // 4
    await append_many(store, key(0), 200)
    await bare.insert(200)
    for _ in range(repeats):
        bare_us.append(await cpu_us_each(lambda: bare.insert(count), count))
        thread_us.append(await cpu_us_each(lambda: bare.insert_in_thread(count), count))
        ours_us.append(await cpu_us_each(lambda: append_many(store, key(0), count), count))
        one_rate.append(count / await seconds(lambda: append_many(store, key(0), count)))
        many_rate.append(CALLERS * each / await seconds(lambda: append_together(store, each)))
        many_us.append(await cpu_us_each(lambda: append_together(store, each), CALLERS * each))
    return [
        Figure("bare apsw insert, CPU", median(bare_us), "us"),
        Figure("the same from a thread, CPU (asyncio.to_thread)", median(thread_us), "us"),
        Figure("durable append, CPU (entry + version + search)", median(ours_us), "us"),
        Figure("the same with 32 callers, CPU each", median(many_us), "us"),
        at_most("append / bare insert, CPU", median(ours_us) / median(bare_us), 2.5, "x"),
        Figure("append / bare insert from a thread, CPU", median(ours_us) / median(thread_us), "x"),
        Figure("append with 32 callers / bare insert, CPU", median(many_us) / median(bare_us), "x"),
        Figure("one caller", median(one_rate), "/s"),
        Figure("32 callers", median(many_rate), "/s"),
        at_least("32 callers / one caller, rate", median(many_rate) / median(one_rate), 3, "x"),
    ]


async def measure_lag(store: Store, seconds_long: float) -> Figure:
    lags: list[float] = []
    ending = time.perf_counter() + seconds_long

    async def append_forever(number: int) -> None:
        while time.perf_counter() < ending:
            await store.append(key(number), (DRAFT,), now_ms=1)

    async def watch() -> None:
        while time.perf_counter() < ending:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - began - 0.001)

    await asyncio.gather(watch(), *(append_forever(number) for number in range(CALLERS)))
    return at_most("event loop lag p99, 32 callers appending", percentile(lags, 0.99) * 1e3, 10, "ms")


def fill_transcript(tx: Transaction, session_key: str, first: int, last: int) -> None:
    drafts = [DRAFT] * (last - first)
    transcript.append(tx, session_key, drafts, first)


def fill_sessions(tx: Transaction, first: int, last: int) -> None:
    for number in range(first, last):
        sessions.create(tx, SessionSeed(f"agent:main:list-{number:06d}", "main"), f"list-{number}", number)


async def p50_ms(work: Callable[[], Awaitable[object]], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - began)
    return median(taken) * 1e3


async def measure_history(database: SqliteDatabase, store: Store) -> list[Figure]:
    small, large = "agent:main:hundred", "agent:main:tenthousand"
    for session_key, size in ((small, 100), (large, 10_000)):
        await store.edit_session(
            SessionSeed(session_key, "main"), lambda entry: entry, session_id=session_key, now_ms=1
        )
        for start in range(0, size, 500):
            end = min(size, start + 500)
            await database.write(partial(fill_transcript, session_key=session_key, first=start, last=end))
    at_small, at_large = [], []
    for _ in range(7):
        at_small.append(await p50_ms(lambda: store.history(small, 50), 60))
        at_large.append(await p50_ms(lambda: store.history(large, 50), 60))
    return [
        at_most("last 50 of 10,000 messages, p50", median(at_large), 3, "ms"),
        at_most("the same / last 50 of 100", median(at_large) / median(at_small), 1.5, "x"),
    ]


async def measure_lists(folder: Path, total: int) -> list[Figure]:
    figures: dict[int, list[float]] = {}
    stores: dict[int, Store] = {}
    for size in (total // 100, total):
        database = await SqliteDatabase.open(folder / f"list-{size}" / "openclaw.sqlite")
        for start in range(0, size, 500):
            await database.write(partial(fill_sessions, first=start, last=min(size, start + 500)))
        stores[size] = Store(database)
        figures[size] = []
    for _ in range(7):
        for size, store in stores.items():
            figures[size].append(await p50_ms(partial(store.list_sessions, ListQuery(limit=100)), 40))
    for store in stores.values():
        await store.close()
    small, large = median(figures[total // 100]), median(figures[total])
    return [
        at_most(f"newest 100 of {total:,} sessions, p50", large, 3, "ms"),
        at_most(f"the same / newest 100 of {total // 100:,}", large / small, 1.5, "x"),
    ]


async def run(folder: Path, quick: bool) -> bool:
    database = await SqliteDatabase.open(folder / "ours" / "openclaw.sqlite")
    store = Store(database)
    for number in range(CALLERS):
        await store.edit_session(
            SessionSeed(key(number), "main"), lambda entry: entry, session_id=f"w{number}", now_ms=1
        )
    bare = Bare(folder / "bare.sqlite")
    figures = await measure_appends(store, bare, 3 if quick else 5, 300 if quick else 1000)
    figures.append(await measure_lag(store, 1.0 if quick else 4.0))
    figures += await measure_history(database, store)
    await store.close()
    figures += await measure_lists(folder, 10_000 if quick else 100_000)
    return show("store", figures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, a tenth of the sessions")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="openclaw-bench-"))
    import uvloop

    try:
        return 0 if uvloop.run(run(folder, options.quick)) else 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
