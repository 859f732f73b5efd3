"""A disk on which one chosen call fails: a file system layer for SQLite, and a script that runs on it.

Registered as the default of the whole process, so it is used by a child process
only (`store_child faults`).
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import apsw

from openclaw.errors import StoreError
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, create, note, select, texts

KEY = MAIN.session_key


class Fault:
    """Counts the calls of one kind and says which of them fails."""

    def __init__(self) -> None:
        self.kind = ""
        self.at = 0
        self.calls = 0

    def arm(self, kind: str, at: int) -> None:
        self.kind, self.at, self.calls = kind, at, 0

    def strikes(self, kind: str) -> bool:
        self.calls += kind == self.kind
        return kind == self.kind and self.calls == self.at


fault = Fault()


class FaultyFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)

    def xSync(self, flags: int) -> None:
        if fault.strikes("sync"):
            raise apsw.IOError("the disk did not answer")
        super().xSync(flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        if fault.strikes("write"):
            raise apsw.FullError("no space left")
        super().xWrite(data, offset)


class FaultyDisk(apsw.VFS):
    def __init__(self) -> None:
        super().__init__("faulty", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> FaultyFile:
        return FaultyFile(name, flags)


async def write_some(path: Path) -> tuple[list[str], list[str]]:
    """A fixed script of batches; what was acknowledged, and the errors that callers were given."""
    try:
        database = await SqliteDatabase.open(path)
    except StoreError as error:
        return [], [type(error).__name__]
    store, kept, errors = Store(database), [], []
    for n in range(12):
        names = [f"{n}-{k}" for k in range(3)]
        try:
            await create(store, MAIN)
        except StoreError as error:
            errors.append(type(error).__name__)
            continue
        outcomes = await asyncio.gather(
            *(store.append(KEY, (note(name),), now_ms=NOON) for name in names), return_exceptions=True
        )
        for name, outcome in zip(names, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                errors.append(type(outcome).__name__)
            else:
                kept.append(name)
    await database.close()
    return kept, errors


async def try_fault(kind: str, at: int) -> dict[str, Any]:
    """Run the script with one failing call, then open the store on a sound disk and look."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "state" / "openclaw.sqlite"
        fault.arm(kind, at)
        kept, errors = await write_some(path)
        calls = fault.calls
        fault.arm("", 0)
        database = await SqliteDatabase.open(path)
        page = await Store(database).history(KEY, 1000)
        found = texts(page.entries) if page else []
        check = await select(database, "PRAGMA integrity_check")
        await database.close()
    return {
        "kind": kind, "at": at, "calls": calls, "kept": len(kept), "errors": sorted(set(errors)),
        "lost": sorted(set(kept) - set(found)), "twice": len(found) - len(set(found)), "check": check,
    }  # fmt: skip
