"""The body of a process that writes to a store until it is killed.

It tells each acknowledged step over its pipe; the parent makes the same operations again from the seed. At
the named point it ends itself with SIGKILL; without one it goes on until somebody else does that or its
script ends, and then tells which points it came by. No test imports it but through `killing`.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

from openclaw.store import failpoints, search, sqlite
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.faults.campaign import Script

STEPS = 150


def small_numbers() -> None:
    """So that a short script meets checkpoints and the folding of the search index."""
    sqlite.CHECKPOINT_PAGES, search.FOLD_EVERY = 150, 16


def run(path: str, seed: int, point: str, nth: int, pipe: Connection) -> None:
    """Play the script; kill this process when `point` is reached for the `nth` time."""
    asyncio.run(_play(Path(path), seed, point, nth, pipe))


async def _play(path: Path, seed: int, point: str, nth: int, pipe: Connection) -> None:
    reached: Counter[str] = Counter()

    def watch(name: str) -> None:
        reached[name] += 1
        if name == point and reached[name] == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.watch(watch)
    small_numbers()
    script = Script(seed)
    pipe.send("starting")
    database = await SqliteDatabase.open(path, readers=1)
    store = Store(database)
    for number in range(STEPS):
        await script.perform(store, database, script.choose())
        if script.problems or script.refused:
            pipe.send({"wrong": [*script.problems, f"{script.refused} refused"]})
            return
        pipe.send(number)
    await database.close()
    pipe.send({"reached": dict(reached)})
