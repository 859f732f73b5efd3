"""An event loop in virtual time: nothing sleeps, and everything that happens follows from the seed.

What asyncio promises holds: callbacks that are ready run first in, first out. What it leaves open is
drawn from the seed: the order of timers that are due at the same moment. Time moves in ticks of a
millisecond, so that many things fall on one moment, as they do when a machine is busy.
There is no I/O here, no thread and no real clock: what is meant for a thread runs on a later tick.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from itertools import count
from random import Random
from typing import Any, TypeVar, TypeVarTuple

TICK_S = 0.001
_Args = TypeVarTuple("_Args")
_Result = TypeVar("_Result")


class Stuck(AssertionError):
    """Nothing is ready and no timer is set, but somebody still waits."""


class Crashed(BaseException):
    """The process is gone, between two callbacks."""


class NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set follows from when it was made, not from where it lies in memory."""

    def __init__(self, coro: Coroutine[Any, Any, Any], number: int, **options: Any) -> None:
        self._number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class VirtualLoop(asyncio.BaseEventLoop):
    _ready: deque[asyncio.Handle]
    _scheduled: list[Any]

    def __init__(self, rng: Random, start_s: float = 0.0) -> None:
        super().__init__()
        self._rng = rng
        self._now_s = start_s
        self._numbers = count(1)
        self.crash_in: int | None = None  # callbacks until the process is gone
        self.problems: list[str] = []
        self.set_task_factory(self._make_task)
        self.set_exception_handler(self._note_problem)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Future[Any]:
        return NumberedTask(coro, next(self._numbers), loop=loop, **options)

    def _note_problem(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.problems.append(f"{context.get('message')}: {error!r}")

    def time(self) -> float:
        return self._now_s

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*_Args], _Result], *args: *_Args
    ) -> asyncio.Future[_Result]:
        """Work for a thread is done here, at once, a little later."""
        done: asyncio.Future[_Result] = self.create_future()

        def work() -> None:
            if done.done():
                return
            try:
                done.set_result(func(*args))
            except Exception as error:
                done.set_exception(error)

        self.call_later(self._rng.choice((0, TICK_S, 3 * TICK_S)), work)
        return done

    def _run_once(self) -> None:
        """One round: move time if nothing is ready, then run what is ready now."""
        scheduled, ready = self._scheduled, self._ready
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        if not ready and not getattr(self, "_stopping", False):
            if not scheduled:
                raise Stuck("nothing is ready, no timer is set, and the simulation is not over")
            self._now_s = max(self._now_s, _tick_of(scheduled[0]))
        due = []
        while scheduled and _tick_of(scheduled[0]) <= self._now_s + TICK_S / 2:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            due.append(handle)
        self._rng.shuffle(due)
        ready.extend(due)
        for _ in range(len(ready)):
            if self.crash_in is not None:
                if self.crash_in <= 0:
                    self.crash_in = None
                    raise Crashed()
                self.crash_in -= 1
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _write_to_self(self) -> None:
        """There is no other thread that would have to wake this one."""

    def _timer_handle_cancelled(self, _handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are left out when they come up."""

    def throw_away(self, rounds: int = 200) -> None:
        """Unwind every task, so that nothing of a crashed process lingers. Nobody hears what they do."""
        for _ in range(rounds):
            tasks = [task for task in asyncio.all_tasks(self) if not task.done()]
            if not tasks:
                break
            for task in sorted(tasks, key=hash):
                task.cancel()
            self._run_on(lambda: asyncio.sleep(TICK_S))
        left = [task for task in asyncio.all_tasks(self) if not task.done()]
        if left:
            raise AssertionError(f"tasks that cannot be thrown away: {left}")
        self._run_on(self.shutdown_asyncgens)
        self.close()

    def _run_on(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run on after a crash. The end of the crashed program itself may stop the loop once more."""
        for _ in range(3):
            try:
                self.run_until_complete(work())
                return
            except RuntimeError as error:
                if "stopped before" not in str(error):
                    raise


def _tick_of(handle: asyncio.TimerHandle) -> float:
    return math.ceil(round(handle.when() / TICK_S, 3)) * TICK_S
