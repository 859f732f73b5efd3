"""A process of its own for tests of the store: `python -m tests.integration.store_child COMMAND …`.

It speaks in lines of JSON on its output and takes lines on its input, so that a
test knows what has happened before it goes on, pulls the plug or lets go.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from openclaw.errors import StoreError, StoreFull
from openclaw.store.database import Transaction
from openclaw.store.records import EntryDraft
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, begin, create, note, queue, seed, select, turn
from tests.integration.faulty_disk import FaultyDisk, try_fault

NOBODY = 65534
KEY = MAIN.session_key


def tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


async def hear() -> str:
    line: str = await asyncio.to_thread(sys.stdin.readline)
    return line.strip()


async def try_open(path: str) -> SqliteDatabase | None:
    """Open and say so, or say why not."""
    try:
        database = await SqliteDatabase.open(Path(path))
    except StoreError as error:
        tell(opened=False, code=error.code, message=error.message, fields=error.fields)
        return None
    except BaseException as error:
        tell(opened=False, code=None, message=repr(error))
        return None
    tell(opened=True, pid=os.getpid())
    return database


async def hold(path: str) -> None:
    """Own a store until a line or the end of the input comes."""
    database = await try_open(path)
    if database is not None:
        await hear()
        await database.close()


async def race() -> None:
    """For each line: open the store of this path; keep it until the next line."""
    database = None
    tell(ready=True)
    while path := await hear():
        if database is not None:
            await database.close()
            database = None
        if path == "release":
            tell(released=True)
            continue
        database = await try_open(path)
        if database is not None:
            await create(Store(database), MAIN, label=str(os.getpid()))
            tell(written=True)


async def open_unprivileged(path: str) -> None:
    """Give up all rights, then try to open. What opening needs is loaded before, with the old rights."""
    await (await SqliteDatabase.open_memory("warm")).close()
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    database = await try_open(path)
    if database is not None:
        await database.close()


async def load(path: str, round_name: str) -> None:
    """Write for ever from several tasks at once; tell each thing only when the store has acknowledged it."""
    tell(starting=True)
    database = await SqliteDatabase.open(Path(path))
    store = Store(database)
    await create(store, MAIN)

    async def appender(number: int) -> None:
        for n in range(10**9):
            text = f"entry {round_name} {number} {n}"
            drafts = [note(f"{text} {part}") for part in range(1 + n % 3)]
            for entry in await store.append(KEY, tuple(drafts), now_ms=NOON):
                tell(said=json.loads(entry.body)["content"], seq=entry.seq)

    async def sender(number: int) -> None:
        for n in range(900):
            run_id = f"input {round_name} {number} {n}"
            await queue(store, run_id, to=seed(f"in-{round_name}-{number}"))
            tell(taken=run_id)

    async def worker(number: int) -> None:
        for n in range(10**9):
            run_id = f"turn {round_name} {number} {n}"
            await turn(store, run_id, to=seed(f"turns-{round_name}-{number}"))
            tell(finished=run_id)

    await asyncio.gather(appender(0), appender(1), sender(0), sender(1), worker(0), worker(1))


async def audit(path: str) -> None:
    """Count how often this program itself opens one of the database files while it owns them."""
    seen: list[str] = []
    watching = False

    def note_open(event: str, arguments: tuple[Any, ...]) -> None:
        named = str(arguments[0]) if arguments else ""
        if watching and event in ("open", "os.truncate", "os.rename", "os.remove") and named.startswith(path):
            seen.append(f"{event} {named}")

    sys.addaudithook(note_open)
    database = await SqliteDatabase.open(Path(path))
    watching = True
    store = Store(database)
    for n in range(30):
        await turn(store, f"run-{n}", "words " * 2000)
    await store.append(KEY, (EntryDraft("custom", os.urandom(200_000)),), now_ms=NOON)
    await asyncio.gather(*(queue(store, f"wait-{n}", to=seed(f"s{n}")) for n in range(50)))
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON)
    await store.history(KEY, 100)
    await store.search((("words",),))
    await database.close()
    by_the_store = list(seen)
    await asyncio.to_thread(Path(path).read_bytes)
    watching = False
    tell(by_the_store=by_the_store, by_the_control=len(seen) - len(by_the_store))


def _forbid_growth(tx: Transaction) -> None:
    """Let the file grow by two megabytes from now on, and no more."""
    (pages,), (size,) = tx.rows("PRAGMA page_count")[0], tx.rows("PRAGMA page_size")[0]
    tx.run(f"PRAGMA max_page_count = {pages + 2_000_000 // size}")


async def fill_disk(path: str, real: bool) -> None:
    """Write until there is no room, look at what is left, make room, and go on."""
    filler = Path(path).parent / "filler"
    if real:
        filler.write_bytes(b"x" * 1_000_000)
    database = await SqliteDatabase.open(Path(path))
    store = Store(database)
    if not real:
        await database.write(_forbid_growth)
    await create(store, MAIN)
    kept, error = 0, None
    while error is None and kept < 1000:
        try:
            await store.append(KEY, (note("a"), EntryDraft("custom", os.urandom(50_000))), now_ms=NOON)
            kept += 2
        except StoreFull as full:
            error = full.message
    together = await asyncio.gather(
        *(begin(store, f"run-{n}", "x" * 60_000, to=seed(f"s{n}")) for n in range(8)), return_exceptions=True
    )
    refused = [outcome for outcome in together if isinstance(outcome, BaseException)]
    unfinished = await store.unfinished()
    entries = await select(database, "SELECT window_no, count(*), max(seq) FROM entries GROUP BY window_no")
    sessions = await select(database, "SELECT count(*) FROM sessions")
    if real:
        filler.unlink()
    else:
        await database.write(lambda tx: tx.run("PRAGMA max_page_count = 4000000000"))
    again = await store.append(KEY, (EntryDraft("custom", os.urandom(50_000)),), now_ms=NOON)
    later = await begin(store, "later", to=seed("later"))
    await database.close()
    reopened = await SqliteDatabase.open(Path(path))
    check = await select(reopened, "PRAGMA integrity_check")
    await reopened.close()
    tell(
        kept=kept,
        error=error,
        refused=[type(outcome).__name__ for outcome in refused],
        runs=len(unfinished.runs),
        waiting=len(unfinished.waiting),
        entries=entries,
        sessions=sessions[0][0],
        next_seq=again[0].seq,
        later=later.run.run_id,
        check=check,
    )


async def faults(kind: str, step: str) -> None:
    """Let each `step`-th call of a kind fail, one run each; the first report is of a run without a fault."""
    disk = FaultyDisk()
    sound = await try_fault(kind, 0)
    tell(**sound)
    for at in range(1, sound["calls"] + 1, int(step)):
        tell(**await try_fault(kind, at))
    disk.unregister()


COMMANDS: dict[str, Callable[..., Awaitable[None]]] = {
    "hold": hold,
    "race": race,
    "unprivileged": open_unprivileged,
    "load": load,
    "audit": audit,
    "faults": faults,
    "fill-real-disk": lambda path: fill_disk(path, True),
    "fill-file": lambda path: fill_disk(path, False),
}


async def main() -> None:
    await COMMANDS[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    asyncio.run(main())
