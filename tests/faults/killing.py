"""Starts writing processes, lets them be killed, and compares what is left with what they had acknowledged.

The processes are forked from a clean one that has everything imported, so that thousands can be killed. A
killed process leaves its pages with the system, so a file system in memory tells no less here than a disk.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from openclaw.store.failpoints import POINTS
from openclaw.store.sqlite import SqliteDatabase
from tests.conformance.making import select
from tests.conformance.model import Model, replay
from tests.conformance.model import outcome_of as expected_of
from tests.conformance.operations import Operation
from tests.conformance.picture import compare
from tests.faults import kill_child
from tests.faults.campaign import Script, fresh_place

PATIENCE_S = 60
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.faults.kill_child"])


class Killed(Struct):
    """What became of one process. `steps` is how many it told before its end."""

    code: int | None
    steps: int
    reached: dict[str, int]
    problems: list[str]


class Shot(Struct, frozen=True):
    """When to kill from outside: so long after so many told steps."""

    steps: int
    delay_s: float


def run_child(path: Path, seed: int, point: str = "", nth: int = 1, shot: Shot | None = None) -> Killed:
    """Run a process to its end, check the store it leaves."""
    here, there = _processes.Pipe(duplex=False)
    child = _processes.Process(target=kill_child.run, args=(str(path), seed, point, nth, there))
    child.start()
    there.close()
    told: list[Any] = []
    try:
        while here.poll(PATIENCE_S):
            told.append(here.recv())
            if shot is not None and len(told) == shot.steps + 1:
                time.sleep(shot.delay_s)
                child.kill()
    except EOFError:
        child.join(PATIENCE_S)
    finally:
        child.kill()
        here.close()
    steps = sum(1 for fact in told if isinstance(fact, int))
    last = told[-1] if told and isinstance(told[-1], dict) else {}
    code = child.exitcode
    child.join()
    child.close()
    problems = last.get("wrong", [])
    if path.exists():
        problems = problems + asyncio.run(check(path, seed, steps))
    elif steps:
        problems = [*problems, "the file is gone"]
    return Killed(code, steps, last.get("reached", {}), problems)


def models_after(seed: int, steps: int) -> list[Model]:
    """The model after so many acknowledged steps, and as far as the one under way may have come."""
    script, done = Script(seed), list[Operation]()
    for _ in range(steps):
        chosen = script.choose()
        done += chosen
        for op in chosen:
            expected_of(script.model, op)
    ahead = script.choose()
    return [script.model, *(replay(done + ahead[:count]) for count in range(1, len(ahead) + 1))]


async def check(path: Path, seed: int, steps: int) -> list[str]:
    """What is wrong with the store that a killed process left."""
    database = await SqliteDatabase.open(path, readers=1)
    problems = await compare(database, models_after(seed, steps))
    sound = await select(database, "PRAGMA integrity_check")
    await database.close()
    return problems if sound == [("ok",)] else [*problems, f"integrity_check: {sound}"]


def kill_at_point(point: str, seed: int, nth: int) -> Killed:
    with fresh_place() as place:
        return run_child(Path(place) / "state" / "openclaw.sqlite", seed, point, nth)


def kill_at_random(chance: random.Random) -> Killed:
    seed, shot = chance.randrange(1000), Shot(chance.randrange(kill_child.STEPS), chance.uniform(0, 0.01))
    with fresh_place() as place:
        return run_child(Path(place) / "state" / "openclaw.sqlite", seed, shot=shot)


def points_of(seed: int) -> dict[str, int]:
    """How often the script of a seed comes by each point when nobody kills it."""
    with fresh_place() as place:
        ended = run_child(Path(place) / "state" / "openclaw.sqlite", seed)
    assert (ended.code, ended.problems) == (0, [])
    return {point: ended.reached.get(point, 0) for point in POINTS}
