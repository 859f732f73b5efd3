"""One script of store verbs, once for every call to the disk that can break: what was acknowledged is there.

`python -m tests.faults.campaign MODE [--first N] [--every N] [--seeds N] [--from-seed N] [--plant BUG]`
prints a line of JSON for each trial that found something, and a last one with the totals. A trial runs the
script with one broken call, opens the store again on a sound disk, and compares all of it with the model of
what was acknowledged. A call that was not acknowledged may have happened or not, but never in part.

The script has acts; between two of them the store is closed and opened again. That is a fault of its own to
survive, and it lets a trial begin with the act that its call belongs to.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pickle
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec import Struct

from openclaw.errors import StoreError
from openclaw.store import search, sqlite
from openclaw.store.database import Database
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import select
from tests.conformance.model import Model, replay
from tests.conformance.model import outcome_of as expected_of
from tests.conformance.operations import WEIGHTS, Chooser, Operation, about
from tests.conformance.performing import Act, outcome_of, ready
from tests.conformance.picture import compare
from tests.faults.planted import PLANTED
from tests.faults.vfs import MODES, Disk, Mode, failing

ACTS = 4
OPERATIONS = 50  # of an act
AFTER_THE_FAULT = 25
# An edit from an old reading is two writes, and half of it is no operation of its own.
KINDS = {kind: weight for kind, weight in WEIGHTS.items() if kind != "stale"}
BROKEN_GROUND = frozenset(("StoreError", "StoreFull", "StoreReadOnly"))


class Trial(Struct):
    mode: str
    at: int
    seed: int
    struck: str | None = None
    acknowledged: int = 0
    refused: int = 0
    problems: list[str] = []


class Script:
    """Arbitrary operations, alone and together, and the record of what was acknowledged."""

    def __init__(
        self,
        seed: int,
        kinds: Mapping[str, int] = KINDS,
        told: frozenset[str] = BROKEN_GROUND,
        *,
        replaced: bool = True,
    ) -> None:
        self.chance = random.Random(seed)
        self.kinds = kinds
        self.told = told  # the errors by which a caller may learn of a fault
        self.replaced = replaced  # the next success lies in the place of what failed before
        self.model = Model()
        self.chooser = Chooser(self.model, self.chance.randrange)
        self.done: list[Operation] = []
        self.failed: list[tuple[int, Operation]] = []  # with how many were done before
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

    async def perform(self, store: Store, database: Database, chosen: list[Operation]) -> None:
        calls: dict[Operation, Act] = {}
        for op in chosen:
            try:
                calls[op] = await ready(store, database, op)
            except StoreError as error:
                # What it is about could not be read, so it was never handed over.
                self.refused += 1
                if type(error).__name__ not in self.told:
                    self.problems.append(f"before {op}: {type(error).__name__}: {error}")
        answers = await asyncio.gather(*(outcome_of(call) for call in calls.values()))
        for op, answer in zip(calls, answers, strict=True):
            if answer[:1] == ("error",) and answer[1] in self.told:
                # A busy store has rolled back; after any other fault the outcome may be unknown.
                self.failed += [(len(self.done), op)] if answer[1] != "StoreBusy" else []
                self.refused += 1
                continue
            expected = expected_of(self.model, op)
            if answer != expected and self.failed:
                # It may have been carried out after what failed, in the same transaction.
                expected = expected_of(replay(self.with_kept(self.failed)), op)
            self.done.append(op)
            if self.replaced and answer[:1] != ("error",):
                self.failed.clear()
            if answer != expected:
                self.problems.append(f"{op} answered {answer}, expected {expected}")

    def outcomes(self) -> Iterator[list[Operation]]:
        """All that may have happened: what was acknowledged, with any run of what failed."""
        yield self.done
        for first, last in combinations(range(len(self.failed) + 1), 2):
            yield self.with_kept(self.failed[first:last])

    def with_kept(self, kept: list[tuple[int, Operation]]) -> list[Operation]:
        happened = list(self.done)
        for position, op in reversed(kept):
            happened.insert(position, op)
        return happened

    def candidates(self) -> Iterator[Model]:
        """The model of what was acknowledged, then with what may have been kept without being so."""
        yield self.model
        yield from (replay(happened) for happened in islice(self.outcomes(), 1, None))

    def adopt(self, happened: list[Operation]) -> None:
        """Go on from what is known to have happened."""
        self.done = happened
        self.failed.clear()
        self.model = self.chooser.model = replay(happened)


class Start(Struct, frozen=True):
    """How things stand at the start of an act, and which calls to the disk it makes."""

    script: bytes
    database: bytes | None
    first: int
    calls: int


async def play(path: Path, disk: Disk, script: Script, end: int) -> None:
    """Go on with the script to the end of its act, or some time after the fault, or while there is power."""
    try:
        database = await SqliteDatabase.open(path, readers=1)
    except (StoreError, apsw.IOError) as error:
        # Closing a connection without power raises too, but only through a layer written in Python.
        script.refused += 1
        if type(error).__name__ not in BROKEN_GROUND and not disk.off:
            script.problems.append(f"opening: {type(error).__name__}: {error}")
        return
    store, left = Store(database), AFTER_THE_FAULT
    while not disk.off and (len(script.done) < end if disk.struck is None else left):
        left -= disk.struck is not None
        await script.perform(store, database, script.choose())
    disk.over = disk.off
    await leave(database)


async def rehearse(mode: Mode, seed: int) -> list[Start]:
    """Play all acts on a sound disk, and count the calls that this mode can break."""
    script, acts, first = Script(seed), list[Start](), 1
    with fresh_place() as place:
        path = Path(place) / "state" / "openclaw.sqlite"
        for number in range(1, ACTS + 1):
            begun, disk = pickle.dumps(script), Disk()
            database = path.read_bytes() if path.exists() else None
            with failing(disk, reads=mode == "unreadable"):
                await play(path, disk, script, number * OPERATIONS)
            left = [name for name in disk.files if name != str(path)]
            if left or script.problems or script.refused:
                raise AssertionError((left, script.problems, script.refused))
            acts.append(Start(begun, database, first, disk.calls))
            first += disk.calls
    return acts


async def leave(database: SqliteDatabase) -> None:
    """Close. A fault in the last moment raises out of it, but only through a layer written in Python."""
    try:
        await database.close()
    except apsw.Error:
        assert database._lock is not None
        database._lock.release()


async def check(path: Path, script: Script) -> list[str]:
    """Open on a sound disk and compare. Also that the store goes on working."""
    try:
        database = await SqliteDatabase.open(path, readers=1)
    except StoreError as error:
        return [f"cannot be opened again: {type(error).__name__}: {error}"]
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


async def attempt(mode: Mode, act: Start, at: int, seed: int) -> Trial:
    """One trial. The script is the same for the same seed; the fault is in its `at`-th changing call."""
    disk, script = Disk(mode, at - act.first + 1, seed), pickle.loads(act.script)
    before = len(script.done)
    end = (before // OPERATIONS + 1) * OPERATIONS
    with fresh_place() as place:
        path = Path(place) / "state" / "openclaw.sqlite"
        if act.database is not None:
            path.parent.mkdir(mode=0o700)
            path.write_bytes(act.database)
        with failing(disk, reads=mode == "unreadable"):
            await play(path, disk, script, end)
        if (left := len(apsw.connections())) and not disk.off:
            # They would be closed at some moment, and lock out whoever opens the file just then.
            script.problems.append(f"{left} connections were left open")
        disk.settle()
        problems = script.problems + await check(path, script)
    return Trial(mode, at, seed, disk.struck, len(script.done) - before, script.refused, problems)


async def run(mode: Mode, first: int, every: int, seeds: range) -> dict[str, Any]:
    """All trials of a mode; prints each that found something."""
    # Small numbers, so that a short script meets checkpoints and the folding of the search index.
    sqlite.CHECKPOINT_PAGES, search.FOLD_EVERY = 150, 16
    started, totals, struck = time.monotonic(), Counter[str](), Counter[str]()
    length = first_found = 0
    for seed in seeds:
        acts = await rehearse(mode, seed)
        calls = sum(act.calls for act in acts)
        length += calls
        for at in range(first, calls + 1, every):
            act = next(act for act in reversed(acts) if act.first <= at)
            trial = await attempt(mode, act, at, seed)
            totals.update(
                trials=1,
                acknowledged=trial.acknowledged,
                refused=trial.refused,
                wrong=int(bool(trial.problems)),
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


def run_from_terminal(
    told: str | None, modes: Sequence[str], run: Callable[[Any, int, int, range], Coroutine[Any, Any, Any]]
) -> None:
    """Read the arguments, run the campaign, and print its totals."""
    parser = argparse.ArgumentParser(description=told)
    parser.add_argument("mode", choices=modes)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--from-seed", type=int, default=0)
    parser.add_argument("--plant", choices=sorted(PLANTED), help="break the store first, to see it found")
    given = parser.parse_args()
    if given.plant:
        PLANTED[given.plant].plant(pytest.MonkeyPatch())
    seeds = range(given.from_seed, given.from_seed + given.seeds)
    print(json.dumps(asyncio.run(run(given.mode, given.first, given.every, seeds))), flush=True)


if __name__ == "__main__":
    run_from_terminal(__doc__, MODES, run)
