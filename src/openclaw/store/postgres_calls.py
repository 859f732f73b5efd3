"""The queues of the PostgreSQL driver: which call a thread takes next.

Writes go in the order in which they came, the background when nobody else waits;
reads go to any of the reading threads. Nothing here knows a database.
"""

from __future__ import annotations

import itertools
from queue import Empty, PriorityQueue, SimpleQueue
from typing import Any

from openclaw.errors import StoreClosed
from openclaw.store.line import Call

_CLOSE_RANK = 1  # after what people wait for, before the background


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

    def put(self, call: Call[Any]) -> None:
        rank = _CLOSE_RANK + 1 if call.background else 0
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
