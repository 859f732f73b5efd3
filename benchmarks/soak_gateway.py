"""A whole gateway whose calendar runs fast, and which notes its own size: the patient of the soak.

    python -m benchmarks.soak_gateway --port N --samples FILE --every SECONDS

Configuration and state come from the environment, as for the real command. Only the
calendar is replaced: it leaps three hours every fifteen seconds, as on a machine that
sleeps, so that days of resets and maintenance pass in a quarter of an hour. Between two
leaps time is real, or a stall of the machine would look like a client that hangs. Each
sample is one line of JSON. SIGUSR1 writes beside them how many objects of each type live.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec
import uvloop

from openclaw.app import Gateway
from openclaw.app.running import share_heaps
from openclaw.config.load import config_path, load_or_raise, state_dir

LEAP_EVERY_S, LEAP_MS = 15, 3 * 3600 * 1000
PAUSES = 20  # pauses between two looks of maintenance and the watchdog are this much shorter
_PAGE = os.sysconf("SC_PAGE_SIZE")


class FastClock:
    """A calendar that leaps; durations as they are."""

    def __init__(self) -> None:
        self._began_ms = time.time_ns() // 1_000_000
        self._began_s = time.monotonic()

    def now_ms(self) -> int:
        passed_s = time.monotonic() - self._began_s
        return self._began_ms + int(passed_s * 1000) + int(passed_s / LEAP_EVERY_S) * LEAP_MS

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / PAUSES)


class Sample(msgspec.Struct, frozen=True):
    """The size of the process and of its files at one moment."""

    at_s: float
    cpu_s: float
    rss_bytes: int
    descriptors: int
    tasks: int
    threads: int
    wal_bytes: int
    database_bytes: int
    lag_ms: float


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def take_sample(database: Path, at_s: float, lag_ms: float) -> Sample:
    """Reads `/proc/self`; a millisecond, so rarely."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    return Sample(
        at_s=round(at_s, 2),
        cpu_s=round(time.process_time(), 2),
        rss_bytes=resident,
        descriptors=sum(1 for _ in Path("/proc/self/fd").iterdir()),
        tasks=len(asyncio.all_tasks()),
        threads=threading.active_count(),
        wal_bytes=_size(database.with_name(database.name + "-wal")),
        database_bytes=_size(database),
        lag_ms=round(lag_ms, 2),
    )


async def sample_forever(database: Path, into: Path, every_s: float) -> None:
    """A line every so often, with the worst lateness of the event loop since the last one."""
    began = time.monotonic()
    with into.open("ab", buffering=0) as out:
        while True:
            ending, worst = time.monotonic() + every_s, 0.0
            while (now := time.monotonic()) < ending:
                await asyncio.sleep(0.05)
                worst = max(worst, time.monotonic() - now - 0.05)
            out.write(msgspec.json.encode(take_sample(database, ending - began, worst * 1000)) + b"\n")


def count_types(into: Path) -> None:
    """The kinds of objects that live, most frequent first: what a leak is made of."""
    gc.collect()
    found = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())
    into.write_bytes(msgspec.json.encode(dict(found.most_common(200))))


async def serve(port: int, samples: Path, every_s: float) -> None:
    env = dict(os.environ)
    stop = asyncio.Event()
    types = samples.with_name("types.json")
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, count_types, types)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Gateway(load_or_raise(config_path(env), env), env, port=port, clock=FastClock()):
        sampling = asyncio.create_task(sample_forever(state_dir(env) / "openclaw.sqlite", samples, every_s))
        await stop.wait()
        sampling.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--samples", type=Path, required=True)
    parser.add_argument("--every", type=float, default=1.0)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    share_heaps()
    uvloop.run(serve(options.port, options.samples, options.every))


if __name__ == "__main__":
    main()
