"""One script of store verbs, once for every call to the disk that can break: what was acknowledged is there.

`python -m tests.faults.campaign MODE [--first N] [--every N] [--seeds N] [--plant BUG]` prints a line of JSON
for each trial that found something, and a last one with the totals. A trial runs the script with one broken
call, opens the store again on a sound disk, and compares all of it with the model of what was acknowledged. A
call that was not acknowledged may have happened or not, but never in part.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec import Struct

from openclaw.errors import StoreError
from openclaw.store import search, sqlite
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import select
from tests.conformance.model import Model, replay
from tests.conformance.model import outcome_of as expected_of
from tests.conformance.operations import WEIGHTS, Chooser, Operation, about
from tests.conformance.performing import outcome_of, ready
from tests.conformance.picture import compare
from tests.faults.planted import PLANTED
from tests.faults.vfs import MODES, Disk, Mode, failing

OPERATIONS = 200
AFTER_THE_FAULT = 25
# An edit from an old reading is two writes, and half of it is no operation of its own.
KINDS = {kind: weight for kind, weight in WEIGHTS.items() if kind != "stale"}
BROKEN_GROUND = frozenset(("StoreError", "StoreFull", "StoreReadOnly"))


class Trial(Struct):
    mode: str
    at: int
    seed: int
    calls: int = 0
    struck: str | None = None
    acknowledged: int = 0
    refused: int = 0
    problems: list[str] = []


class Script:
    """Arbitrary operations, alone and together, and the record of what was acknowledged."""

    def __init__(self, seed: int, kinds: Mapping[str, int] = KINDS) -> None:
        self.chance = random.Random(seed)
        self.kinds = kinds
        self.model = Model()
        self.chooser = Chooser(self.model, self.chance.randrange)
        self.done: list[Operation] = []
        self.failed: list[Operation] = []  # since the last that was acknowledged
        self.refused = 0
        self.problems: list[str] = []

    def choose(self) -> list[Operation]:
        """The next operation, or now and then up to four about different sessions."""
        chosen: dict[str | None, Operation] = {}
        count = 4 if self.chance.random() < 0.2 else 1
        for kind in self.chance.choices(list(self.kinds), list(self.kinds.values()), k=count):
            op = self.chooser.make(kind)
            if op is not None and (key := about(op, self.model)) not in chosen and (key or count == 1):
                chosen[key] = op
        return list(chosen.values())

    async def perform(self, store: Store, database: SqliteDatabase, chosen: list[Operation]) -> None:
        calls = [await ready(store, database, op) for op in chosen]
        answers = await asyncio.gather(*(outcome_of(call) for call in calls))
        for op, answer in zip(chosen, answers, strict=True):
            if answer[:1] == ("error",) and answer[1] in BROKEN_GROUND:
                self.failed.append(op)
                self.refused += 1
                continue
            expected = expected_of(self.model, op)
            self.done.append(op)
            self.failed.clear()
            if answer != expected:
                self.problems.append(f"{op} answered {answer}, expected {expected}")

    def candidates(self) -> Iterator[Model]:
        """The model of what was acknowledged, then with what may have been kept without being so."""
        yield self.model
        for first, last in combinations(range(len(self.failed) + 1), 2):
            yield replay(self.done + self.failed[first:last])


async def play(path: Path, disk: Disk, script: Script) -> None:
    """Run the script until its end, until some time after the fault, or until there is no power."""
    try:
        database = await SqliteDatabase.open(path, readers=1)
    except (StoreError, apsw.IOError) as error:
        # Closing a connection without power raises too, but only through a layer written in Python.
        script.refused += 1
        if type(error).__name__ not in BROKEN_GROUND and not disk.off:
            script.problems.append(f"opening: {type(error).__name__}: {error}")
        return
    store, left = Store(database), AFTER_THE_FAULT
    while len(script.done) < OPERATIONS and left and not disk.off:
        await script.perform(store, database, script.choose())
        left -= disk.struck is not None
    disk.over = disk.off
    await leave(database)


async def leave(database: SqliteDatabase) -> None:
    """Close. A fault in the last moment raises out of it, but only through a layer written in Python."""
    try:
        await database.close()
    except apsw.Error:
        assert database._lock is not None
        database._lock.release()


async def check(path: Path, script: Script) -> list[str]:
    """Open on a sound disk and compare. Also that the store goes on working."""
    database = await SqliteDatabase.open(path, readers=1)
    problems = await compare(database, script.candidates())
    sound = await select(database, "PRAGMA integrity_check")
    if sound != [("ok",)]:
        problems.append(f"integrity_check: {sound}")
    try:
        await database.write(lambda tx: tx.run("INSERT INTO search(search) VALUES ('integrity-check')"))
    except StoreError as error:
        problems.append(f"search index: {error}")
    await database.close()
    return problems


def fresh_place() -> tempfile.TemporaryDirectory[str]:
    """In memory where that is possible: what is lost is decided by the layer, and by it alone."""
    return tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)


async def attempt(mode: Mode, at: int, seed: int) -> Trial:
    """One trial. The script is the same for the same seed; the fault is in its `at`-th changing call."""
    disk, script = Disk(mode, at, seed), Script(seed)
    with fresh_place() as place:
        path = Path(place) / "state" / "openclaw.sqlite"
        with failing(disk):
            await play(path, disk, script)
        disk.settle()
        problems = script.problems + await check(path, script)
    return Trial(mode, at, seed, disk.calls, disk.struck, len(script.done), script.refused, problems)


async def run(mode: Mode, first: int, every: int, seeds: int) -> dict[str, Any]:
    """All trials of a mode; prints each that found something."""
    # Small numbers, so that a short script meets checkpoints and the folding of the search index.
    sqlite.CHECKPOINT_PAGES, search.FOLD_EVERY = 150, 16
    started, totals, struck = time.monotonic(), Counter[str](), Counter[str]()
    length = first_found = 0
    for seed in range(seeds):
        calls = (await attempt("none", 0, seed)).calls
        length += calls
        for at in range(first, calls + 1, every):
            trial = await attempt(mode, at, seed)
            totals.update(
                trials=1, acknowledged=trial.acknowledged, refused=trial.refused, wrong=bool(trial.problems)
            )
            struck[str(trial.struck)] += 1
            if totals["trials"] % 500 == 0:
                print(f"seed {seed}, call {at} of {calls}: {dict(totals)}", file=sys.stderr, flush=True)
            if trial.problems:
                first_found = first_found or totals["trials"]
                print(json.dumps({"trial": [mode, at, seed], "problems": trial.problems[:5]}), flush=True)
    return {
        "mode": mode, "script_calls": length, **totals, "first_found": first_found,
        "struck": dict(struck), "seconds": round(time.monotonic() - started, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--plant", choices=sorted(PLANTED), help="break the store first, to see it found")
    given = parser.parse_args()
    if given.plant:
        PLANTED[given.plant].plant(pytest.MonkeyPatch())
    print(json.dumps(asyncio.run(run(given.mode, given.first, given.every, given.seeds))), flush=True)


if __name__ == "__main__":
    main()
