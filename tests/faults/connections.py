"""The way to a PostgreSQL server that breaks at the Nth statement: what was acknowledged is there.

`python -m tests.faults.connections MODE [--first N] [--every N] [--seeds N] [--from-seed N] [--plant BUG]`
prints a line of JSON for each trial that found something, and a last one with the totals. Statements are
counted over all connections of the store, those that open it and own it included. A trial plays the script of
a seed with one break, looks at the database on a sound connection, and compares all of it with the model of
what was acknowledged. Only a break in a commit may leave an operation in doubt, and then its caller is told.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args
from unittest.mock import patch

import psycopg

from openclaw.errors import StoreError
from openclaw.store import search
from openclaw.store.postgres import PostgresDatabase
from openclaw.store.store import Store
from tests.conformance.model import replay
from tests.conformance.picture import compare
from tests.fakes.postgres_server import shared_server
from tests.faults.campaign import BROKEN_GROUND, Script, Trial, run_from_terminal

Mode = Literal["none", "request-lost", "answer-lost", "three-in-a-row", "gone-for-a-while"]
MODES: tuple[Mode, ...] = get_args(Mode)[1:]
OPERATIONS = 40
AFTER_THE_BREAK = 15
GONE_FOR = 60  # statements
# Words for which a caller may try again: the break was noticed, and nobody was told that it is safe.
TOLD = BROKEN_GROUND | {"StoreBusy"}


class Wire:
    """One trial: which statement meets a broken connection, and how."""

    def __init__(self, mode: Mode = "none", at: int = 0) -> None:
        self.mode = mode
        length = {"none": 0, "three-in-a-row": 3, "gone-for-a-while": GONE_FOR}.get(mode, 1)
        self.broken = range(at, at + length)
        self.statements = 0
        self.struck: str | None = None

    def breaks(self, statement: str) -> bool:
        """Count a statement; True when its connection breaks."""
        self.statements += 1
        hit = self.statements in self.broken
        if hit:
            self.struck = self.struck or statement.split()[0].rstrip(";")
        return hit


_wire = Wire()


class BreakingCursor(psycopg.RawCursor[Any]):
    def execute(self, query: Any, *rest: Any, **options: Any) -> Any:
        breaks = _wire.breaks(bytes(query).decode())
        if breaks and _wire.mode != "answer-lost":
            _cut(self.connection)
        done = super().execute(query, *rest, **options)
        if breaks:
            _cut(self.connection)
            raise psycopg.OperationalError("the answer was lost")
        return done


def _cut(connection: psycopg.Connection[Any]) -> None:
    """Cut the connection below the client library, which does not know it yet."""
    if connection.closed:
        return
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as line:
        line.shutdown(socket.SHUT_RDWR)


@contextmanager
def breaking(wire: Wire) -> Iterator[None]:
    """Every statement of a store that is opened inside the block goes over this wire."""
    global _wire
    _wire = wire
    with patch.object(psycopg, "RawCursor", BreakingCursor):
        yield


async def play(url: str, wire: Wire, script: Script) -> None:
    """Run the script until its end, or some time after the break."""
    try:
        database = await PostgresDatabase.open(url, readers=1)
    except (StoreError, psycopg.Error) as error:
        script.refused += 1
        if type(error).__name__ not in TOLD:
            script.problems.append(f"opening: {type(error).__name__}: {error}")
        return
    store, left = Store(database), AFTER_THE_BREAK
    while len(script.done) < OPERATIONS and left:
        left -= wire.struck is not None
        if await settle(script, database):
            await script.perform(store, database, script.choose())
    await database.close()


async def settle(script: Script, database: PostgresDatabase) -> bool:
    """Look what became of operations that are in doubt, as the error says. False when that cannot be read."""
    told: list[str] = []
    for happened in script.outcomes() if script.failed else ():
        try:
            told = await compare(database, [replay(happened)])
        except StoreError:
            script.refused += 1
            return False
        if not told:
            script.adopt(happened)
            return True
    script.problems += told
    return True


async def attempt(mode: Mode, at: int, seed: int) -> tuple[Trial, int]:
    """One trial, and how many statements it made. The break is at the `at`-th statement."""
    url, wire, script = shared_server().wiped(), Wire(mode, at), Script(seed, told=TOLD, replaced=False)
    with breaking(wire):
        await play(url, wire, script)
    database = await PostgresDatabase.open(url, readers=1)
    problems = script.problems + await compare(database, script.candidates())
    await database.close()
    return Trial(mode, at, seed, wire.struck, len(script.done), script.refused, problems), wire.statements


async def run(mode: Mode, first: int, every: int, seeds: range) -> dict[str, Any]:
    """All trials of a mode; prints each that found something."""
    search.FOLD_EVERY = 16
    started, totals, struck = time.monotonic(), Counter[str](), Counter[str]()
    length = 0
    for seed in seeds:
        _, statements = await attempt("none", 0, seed)
        length += statements
        for at in range(first, statements + 1, every):
            trial, _ = await attempt(mode, at, seed)
            totals.update(
                trials=1,
                acknowledged=trial.acknowledged,
                refused=trial.refused,
                wrong=int(bool(trial.problems)),
            )
            struck[str(trial.struck)] += 1
            if totals["trials"] % 100 == 0:
                print(f"seed {seed}, {at} of {statements}: {dict(totals)}", file=sys.stderr, flush=True)
            if trial.problems:
                print(json.dumps({"trial": [mode, at, seed], "problems": trial.problems[:5]}), flush=True)
    return {
        "mode": mode, "script_statements": length, **totals, "struck": dict(struck),
        "seconds": round(time.monotonic() - started, 1),
    }  # fmt: skip


if __name__ == "__main__":
    run_from_terminal(__doc__, MODES, run)
