"""What a gateway costs as it fills: lists, pages and search at 1,000, 10,000 and 100,000 sessions.

    python -m benchmarks.growth [--quick] [--sizes N ...]

Each size is a state directory of its own, filled through the store, with one gateway on
it; all are asked in turns, so that a noisy machine is noisy for each of them. CPU is
that of the gateway process. One session in each has 10,000 messages.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import uvloop

from benchmarks.load import Json, LoadClient
from benchmarks.measuring import Figure, at_most, median, show
from benchmarks.processes import Measured, gateway
from benchmarks.store import DRAFT
from benchmarks.zero_model import zero_model
from openclaw.store import sessions, transcript
from openclaw.store.database import Transaction
from openclaw.store.records import EntryDraft, SessionSeed
from openclaw.store.sqlite import SqliteDatabase

LONG, LONG_MESSAGES = "agent:main:long", 10_000
RARE = EntryDraft("message", b'{"role":"user","content":"xylophone","timestamp":1}', "user",
                  text="xylophone", words="xylophone")  # fmt: skip
QUESTIONS: dict[str, tuple[str, Json]] = {
    "newest 100 sessions": ("sessions.list", {"limit": 100}),
    "last 50 of 10,000 messages": ("chat.history", {"sessionKey": LONG, "limit": 50}),
    "last 200 of 10,000 messages": ("chat.history", {"sessionKey": LONG, "limit": 200}),
    "search, a rare word": ("sessions.search", {"query": "xylophone"}),
    "search, a word of every message": ("sessions.search", {"query": "lorem"}),
}


def fill_sessions(tx: Transaction, first: int, last: int) -> None:
    for number in range(first, last):
        key = f"agent:main:s{number:06d}"
        sessions.create(tx, SessionSeed(key, "main"), f"w{number}", number + 1)
        transcript.append(tx, key, [RARE if number % 200 == 0 else DRAFT], number + 1)


def fill_long(tx: Transaction, count: int) -> None:
    transcript.append(tx, LONG, [DRAFT] * count, 1)


def _file_bytes(tx: Transaction) -> int:
    """Of the file with its log folded in."""
    pages, page = tx.rows("PRAGMA page_count"), tx.rows("PRAGMA page_size")
    return int(pages[0][0]) * int(page[0][0])


# On an idle machine; a busy one takes longer.
WALL_BARS_MS = {
    ("newest 100 sessions", 10_000): 5.0,
    ("last 200 of 10,000 messages", 10_000): 8.0,
}


async def fill(folder: Path, size: int) -> tuple[float, float]:
    """(CPU microseconds, bytes of the file) per session with one message."""
    database = await SqliteDatabase.open(folder / "openclaw.sqlite")
    began = time.process_time()
    for start in range(0, size, 500):
        await database.write(partial(fill_sessions, first=start, last=min(size, start + 500)))
    each_us = (time.process_time() - began) / size * 1e6
    each_bytes = await database.read(_file_bytes) / size
    await database.write(lambda tx: sessions.create(tx, SessionSeed(LONG, "main"), "long", size + 1))
    for _ in range(0, LONG_MESSAGES, 500):
        await database.write(partial(fill_long, count=500))
    await database.close()
    return each_us, each_bytes


async def ask(process: Measured, client: LoadClient, name: str, times: int) -> tuple[float, float]:
    """(CPU ms, median ms) of one question."""
    method, params = QUESTIONS[name]
    taken, before = [], process.used()
    for _ in range(times):
        began = time.perf_counter()
        await client.call(method, params)
        taken.append(time.perf_counter() - began)
    return process.used().since(before).cpu_s / times * 1000, median(taken) * 1000


async def measure(home: Path, llm: str, sizes: tuple[int, ...], repeats: int, times: int) -> list[Figure]:
    figures: list[Figure] = []
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    async with AsyncExitStack() as stack:
        places = {}
        for size in sizes:
            each_us, each_bytes = await fill(home / str(size) / "state", size)
            figures.append(Figure(f"fill, per session, {size:,}", each_us, "us CPU"))
            figures.append(Figure(f"file, per session with a message, {size:,}", each_bytes, "B"))
            process = await stack.enter_async_context(gateway(home / str(size), llm))
            places[size] = (process, await stack.enter_async_context(process.client()))
            figures.append(Figure(f"start at {size:,} sessions, CPU", process.started_cpu_s, "s"))
        for _ in range(repeats):
            for name in QUESTIONS:
                for size, (process, client) in places.items():
                    found.setdefault((name, size), []).append(await ask(process, client, name, times))
        for size, (process, _client) in places.items():
            figures.append(
                Figure(f"memory at {size:,} sessions", process.used().rss_bytes / (1 << 20), "MiB")
            )
    cpu = {at: median([one[0] for one in values]) for at, values in found.items()}
    for (name, size), values in found.items():
        figures.append(Figure(f"{name}, at {size:,}", cpu[name, size], "ms CPU"))
        took_ms, bar = median([one[1] for one in values]), WALL_BARS_MS.get((name, size))
        told = f"{name}, at {size:,}, p50"
        figures.append(Figure(told, took_ms, "ms") if bar is None else at_most(told, took_ms, bar, "ms"))
    smallest, largest = sizes[0], sizes[-1]
    for name in QUESTIONS:
        ratio, bar = cpu[name, largest] / cpu[name, smallest], 3.0 if name.startswith("search") else 1.5
        figures.append(at_most(f"{name}, at {largest:,} / at {smallest:,}, CPU", ratio, bar, "x"))
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer questions, and no 100,000 sessions")
    parser.add_argument("--sizes", type=int, nargs="+", help="these numbers of sessions instead")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="openclaw-bench-"))
    sizes, repeats, times = ((1_000, 10_000), 3, 20) if options.quick else ((1_000, 10_000, 100_000), 5, 30)
    try:
        with zero_model() as llm:
            chosen = tuple(options.sizes or sizes)
            figures = uvloop.run(measure(home, llm, chosen, repeats, times))
        return 0 if show("as it fills", figures) else 1
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
