"""Calls on their way to a PostgreSQL connection: waiting in line, and coming back.

The event loop hands a call over and waits for its future; a thread takes it. How
many may be under way is bounded, and who waits longer than the busy time is told.
Nothing here knows a database.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from queue import Empty, PriorityQueue, SimpleQueue
from typing import Any, Generic

from openclaw.errors import StoreBusy, StoreClosed
from openclaw.store.database import Priority, Result, Unit

_CLOSE_RANK = 1  # after what people wait for, before the background


class Call(Generic[Result]):
    """A unit on its way through a thread, and the future that waits for it."""

    __slots__ = ("error", "future", "result", "unit")

    def __init__(self, unit: Unit[Result], future: asyncio.Future[Result]) -> None:
        self.unit = unit
        self.future = future
        self.result: Result | None = None
        self.error: Exception | None = None

    def succeed(self, result: Result) -> None:
        self.result, self.error = result, None

    def fail(self, error: Exception) -> None:
        # A future cannot carry StopIteration, and whoever waits must be told.
        lost = isinstance(error, StopIteration)
        self.result = None
        self.error = RuntimeError("a unit of work raised StopIteration") if lost else error


def settle(loop: asyncio.AbstractEventLoop, calls: list[Call[Any]]) -> None:
    """Answer from a thread. Without a loop nobody is left to tell; what was committed stays committed."""
    try:
        loop.call_soon_threadsafe(_settle, calls)
    except RuntimeError:
        return


def _settle(calls: list[Call[Any]]) -> None:
    for call in calls:
        if call.future.done():
            continue
        if call.error is None:
            call.future.set_result(call.result)
        else:
            call.future.set_exception(call.error)


class Line:
    """The places for calls under way. Used on the event loop only."""

    def __init__(self, places: int, patience_s: float) -> None:
        self._places = places
        self._patience_s = patience_s
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.closed = False

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place; StoreBusy when none gets free in time, StoreClosed after closing (DB-14)."""
        if self.closed or self._taken >= self._places:
            await self._wait()
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1
            self._call_next()

    def close(self) -> None:
        self.closed = True
        while self._waiting:
            self._call_next()

    def _call_next(self) -> None:
        """Wake the first in line. Who is woken looks again, so one call too many does no harm."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                while self._taken >= self._places and not self.closed:
                    waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiting.append(waiting)
                    await waiting
            if self.closed:
                raise StoreClosed()
        except BaseException as error:
            # The wake-up may have been for a place that is now not taken: it is the next one's.
            self._call_next()
            if isinstance(error, TimeoutError):
                raise StoreBusy() from None
            raise


class Queries:
    """Reads on their way to any of the reading threads."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Call[Any] | None] = SimpleQueue()

    def put(self, call: Call[Any]) -> None:
        self._calls.put(call)

    def take(self) -> list[Call[Any]]:
        """The next call; none at the end."""
        call = self._calls.get()
        return [] if call is None else [call]

    def end(self, threads: int) -> None:
        for _ in range(threads):
            self._calls.put(None)


class Writes:
    """Writes in the order in which they came; the background goes when nobody else waits."""

    def __init__(self, max_batch: int) -> None:
        self._calls: PriorityQueue[tuple[int, int, Call[Any] | None]] = PriorityQueue()
        self._numbers = itertools.count()
        self._max_batch = max_batch

    def put(self, call: Call[Any], priority: Priority) -> None:
        rank = 0 if priority is Priority.USER else _CLOSE_RANK + 1
        self._calls.put((rank, next(self._numbers), call))

    def take(self) -> list[Call[Any]]:
        """What people wait for, up to a batch, or one call of the background; none at the end."""
        rank, number, call = self._calls.get()
        batch = [] if call is None else [call]
        while rank == 0 and len(batch) < self._max_batch:
            try:
                rank, number, call = self._calls.get_nowait()
            except Empty:
                break
            if rank == 0 and call is not None:
                batch.append(call)
            else:
                self._calls.put((rank, number, call))
        return batch

    def end(self, threads: int) -> None:
        for _ in range(threads):
            self._calls.put((_CLOSE_RANK, next(self._numbers), None))

    def abandon(self) -> list[Call[Any]]:
        """What nobody will run any more."""
        left: list[Call[Any]] = []
        while True:
            try:
                _, _, call = self._calls.get_nowait()
            except Empty:
                return left
            if call is not None:
                call.fail(StoreClosed())
                left.append(call)
