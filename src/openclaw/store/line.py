"""Calls on their way to a database thread: waiting in line, carried over, and answered.

The event loop hands a call over and waits for its future; a thread takes it and
leaves its result or its error in it. How many calls may be under way is bounded, and
who waits longer than the busy time is told. A place belongs to the call, not to the
caller: who goes away before the answer leaves work behind that still fills the line.
Nothing here knows a database.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic

from openclaw.errors import StoreBusy, StoreClosed
from openclaw.store.database import Result


class Call(Generic[Result]):
    """A unit on its way through a thread, and the future that waits for it.

    With `background` it waits until nobody else does. With `bare` the work gets the
    connection itself, outside any transaction.
    """

    __slots__ = ("background", "bare", "error", "future", "result", "unit")

    def __init__(
        self,
        unit: Callable[[Any], Result],
        future: asyncio.Future[Result],
        background: bool = False,
        bare: bool = False,
    ) -> None:
        self.unit = unit
        self.future = future
        self.background = background
        self.bare = bare
        self.result: Result | None = None
        self.error: Exception | None = None

    def succeed(self, result: Result) -> None:
        self.result, self.error = result, None

    def fail(self, error: BaseException) -> None:
        self.result, self.error = None, answerable(error)


def answerable(error: BaseException) -> Exception:
    """The error as a future can carry it. What would end a task or a thread is told as an ordinary error."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    told = RuntimeError(f"a unit of work raised {type(error).__name__}")
    told.__cause__ = error
    return told


class Line:
    """The places for calls under way, first come first served. Used on the event loop only."""

    def __init__(self, places: int, patience_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._places = places
        self._patience_s = patience_s
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.closed = False

    async def enter(self) -> None:
        """Take a place; StoreBusy when none gets free in time, StoreClosed after closing (DB-14)."""
        if self.closed:
            raise StoreClosed()
        if self._taken < self._places:
            self._taken += 1
            return
        await self._wait()
        if self.closed:
            self.leave()
            raise StoreClosed()

    def leave(self) -> None:
        """Give a place back: to the first in line, or to nobody."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return
        self._taken -= 1

    def close(self) -> None:
        """Let nobody in any more, and tell those who wait."""
        self.closed = True
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(StoreClosed())

    def answer(self, calls: Sequence[Call[Any]]) -> None:
        """Tell the callers, and give the places of their calls back. To be called from a thread.

        Without a loop nobody is left to tell; what was committed stays committed.
        """
        try:
            self._loop.call_soon_threadsafe(self._answer, calls)
        except RuntimeError:
            return

    def _answer(self, calls: Sequence[Call[Any]]) -> None:
        for call in calls:
            self.leave()
            if call.future.done():
                continue  # the caller went away
            if call.error is None:
                call.future.set_result(call.result)
            else:
                call.future.set_exception(call.error)

    async def _wait(self) -> None:
        """Stand in line until a place is handed over."""
        waiting: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(self._patience_s):
                await waiting
        except BaseException as error:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self.leave()  # the place came at the moment of going away: it is the next one's
            if isinstance(error, TimeoutError):
                raise StoreBusy() from None
            raise
