"""A story: one database from its first message to its last, through crashes, stops and quiet points.

Everything in it follows from its seed. A long run is many stories, one seed after the other, so that a broken
promise is always a short story to read and to run again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import ClassVar

from msgspec import Struct

from tests.simulation.actors import Actors
from tests.simulation.audit import audit, check_caches
from tests.simulation.loop import Crashed
from tests.simulation.memory import Memory, Violation, failures_kept
from tests.simulation.process import Process

STEPS_PER_STORY = 1000
ENOUGH_KEPT = 0.99
_PAUSES_S = (0, 0, 0, 0.001, 0.001, 0.002, 0.005, 0.02, 0.2, 3)
_PATIENCE_S = 4 * 3600.0
_BEFORE_SWEEPS_S = 60.0
_DRAIN_S = 5.0


class Told(Struct, frozen=True):
    """What happened in one story or several."""

    steps: int
    kinds: dict[str, int]
    processes: int
    prefix_pairs: int
    prefix_kept: int
    audits: int
    prefix_lost: tuple[str, ...] = ()

    def plus(self, other: Told) -> Told:
        return Told(
            self.steps + other.steps,
            dict(Counter(self.kinds) + Counter(other.kinds)),
            self.processes + other.processes,
            self.prefix_pairs + other.prefix_pairs,
            self.prefix_kept + other.prefix_kept,
            self.audits + other.audits,
            (*self.prefix_lost, *other.prefix_lost)[:20],
        )


class Story:
    process_kind: ClassVar[type[Process]] = Process
    actors_kind: ClassVar[type[Actors]] = Actors

    def __init__(self, seed: int, steps: int = STEPS_PER_STORY) -> None:
        self.memory = Memory(seed)
        self._limit = steps
        self._audits = 0
        self._over = False

    def tell(self) -> Told:
        """Play it to the end. Raises Violation with the way to see it again."""
        memory = self.memory
        try:
            with failures_kept(memory):
                while not self._over:
                    self._live_once()
        except BaseException as error:
            error.add_note(f"seed {memory.seed}, after {memory.total_steps} steps")
            option = "" if type(self) is Story else " --helpers"
            again = f"--seed {memory.seed} --steps {self._limit}{option}"
            error.add_note(f"again: scripts/simulate {again} --verbose")
            raise
        finally:
            memory.image.close()
        return Told(
            memory.total_steps, dict(memory.steps), memory.processes, memory.prefix_pairs,
            memory.prefix_kept, self._audits, tuple(memory.prefix_lost),
        )  # fmt: skip

    def _live_once(self) -> None:
        process = self.process_kind(self.memory)
        asyncio.set_event_loop(process.loop)
        try:
            try:
                process.loop.run_until_complete(self._live(process))
            except Crashed:
                self.memory.note("the process crashed")
            self._raise_what_broke(process)
        finally:
            process.gone()
            process.loop.crash_in = None
            process.loop.throw_away()
            asyncio.set_event_loop(None)

    def _raise_what_broke(self, process: Process) -> None:
        problems = [*self.memory.violations, *process.loop.problems]
        if problems:
            raise Violation("\n".join(problems))

    # -- one process ---------------------------------------------------------------------------

    async def _live(self, process: Process) -> None:
        memory, actors = self.memory, self.actors_kind(process)
        _set_faults(memory, on=True)
        process.spawn(process.recover())
        while not self._over:
            for _ in range(process.rng.randrange(20, 90)):
                actors.act()
                await asyncio.sleep(process.rng.choice(_PAUSES_S))
                self._raise_what_broke(process)
                if actors.stop_asked:
                    await self._stop(process)
                    return
                if memory.total_steps >= self._limit:
                    break
            await self._quiet(process, actors)
            self._over = memory.total_steps >= self._limit
            _set_faults(memory, on=True)

    async def _stop(self, process: Process) -> None:
        """A graceful stop: running turns get a short time, then their tasks are cancelled (REST-6)."""
        try:
            async with asyncio.timeout(_DRAIN_S):
                await process.workers.drain()
        except TimeoutError:
            self.memory.note("some turns are still running; they go on at the next start")
        for task in sorted(process.tasks, key=hash):
            task.cancel()
        await asyncio.sleep(process.rng.choice((0, 0.001, 0.01)))

    async def _quiet(self, process: Process, actors: Actors) -> None:
        """Wait until nothing moves, let the sweep take up what a failure dropped, and check everything."""
        memory = self.memory
        process.loop.crash_in = None
        _set_faults(memory, on=False)
        await self._until_idle(process, actors)
        _check_neglect(process)
        await actors.sweep()
        await self._until_idle(process, actors)
        await self._settle_down(process, actors)
        process.excused.clear()
        _check_neglect(process)
        self._raise_what_broke(process)
        self._audit(process)
        await check_caches(process)
        self._audits += 1
        memory.note("quiet")

    async def _settle_down(self, process: Process, actors: Actors) -> None:
        """What a story of another kind waits for besides."""

    def _audit(self, process: Process) -> None:
        audit(process)

    async def _until_idle(self, process: Process, actors: Actors) -> None:
        began_s = process.loop.time()
        pause_s = 0.05
        while process.tasks or actors.clients:
            waited_s = process.loop.time() - began_s
            if waited_s > _PATIENCE_S:
                left = [str(task.get_coro()) for task in (*process.tasks, *actors.clients)]
                raise Violation(f"not quiet after {waited_s} s: {left}")
            if waited_s > _BEFORE_SWEEPS_S:
                await actors.sweep()
            await asyncio.sleep(pause_s)
            pause_s = min(30.0, pause_s * 2)
            self._raise_what_broke(process)


def _set_faults(memory: Memory, *, on: bool) -> None:
    faults = memory.faults
    faults.broken = False
    faults.failing, faults.reading, faults.again = (0.002, 0.0005, 0.01) if on else (0.0, 0.0, 0.0)


def _check_neglect(process: Process) -> None:
    """Work that waits has somebody who works on it, unless a failure dropped it: then the sweep finds it."""
    waiting = process.memory.image.peek(
        "SELECT session_key FROM inbox WHERE state = 'queued' UNION "
        "SELECT session_key FROM runs WHERE state = 'active'"
    )
    for (session_key,) in waiting:
        if session_key not in process.excused and not process.workers.is_busy(session_key):
            process.memory.broken(f"work waits in {session_key} and nobody looks after it")


def tell_stories(
    seed: int,
    steps: int,
    watch: Callable[[Told], None] = lambda _told: None,
    kind: type[Story] = Story,
) -> Told:
    """Stories with the seeds from `seed` on, until so many steps were taken."""
    told = Told(0, {}, 0, 0, 0, 0)
    while told.steps < steps:
        before = told.steps
        story = kind(seed, min(STEPS_PER_STORY, steps - before))
        try:
            told = told.plus(story.tell())
            check_beginnings(told)
        except BaseException as error:
            error.add_note(f"found after {before + story.memory.total_steps} steps")
            raise
        watch(told)
        seed += 1
    return told


def check_beginnings(told: Told) -> None:
    """Nearly every request begins with the one before it (LOOP-2)."""
    if told.prefix_pairs > 200 and told.prefix_kept < ENOUGH_KEPT * told.prefix_pairs:
        lost = "\n".join(told.prefix_lost[:3])
        raise Violation(f"{told.prefix_kept} of {told.prefix_pairs} requests begin as before\n{lost}")
