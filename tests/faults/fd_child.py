"""The body of a process that runs out of file descriptors: it opens stores with one more each time."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
from multiprocessing.connection import Connection
from pathlib import Path

from openclaw.errors import StoreError
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, begin, create, note, seed


def _open_now() -> int:
    """How many descriptors are in use; the one that reads the list is not counted."""
    return len(os.listdir("/proc/self/fd")) - 1


def run(place: str, pipe: Connection) -> None:
    asyncio.run(_run(Path(place), pipe))


async def _run(place: Path, pipe: Connection) -> None:
    await (await SqliteDatabase.open_memory("warm")).close()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept = await SqliteDatabase.open(place / "kept" / "openclaw.sqlite")
    store = Store(kept)
    await create(store, MAIN)
    before = _open_now()
    for allowed in range(20):
        path = place / f"{allowed}" / "openclaw.sqlite"
        resource.setrlimit(resource.RLIMIT_NOFILE, (before + allowed, most[1]))
        try:
            database = await SqliteDatabase.open(path)
            code = "opened"
            await database.close()
        except StoreError as error:
            code = error.code
        except OSError as error:
            # Not one of our errors: the test does not expect its name.
            code = errno.errorcode[error.errno or 0]
        # A store that is open already goes on: it needs no descriptor more.
        entry = (await store.append(MAIN.session_key, (note(f"{allowed}"),), now_ms=NOON))[0]
        await store.history(MAIN.session_key, 10)
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
        leaked = _open_now() - before
        again = await SqliteDatabase.open(path)
        await begin(Store(again), "first", to=seed("later"))
        await again.close()
        pipe.send({"allowed": allowed, "code": code, "leaked": leaked, "seq": entry.seq})
    await kept.close()
