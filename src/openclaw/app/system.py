"""The real clock, real ids and the tasks of a process: what tests replace."""

from __future__ import annotations

import asyncio
import contextvars
import time
import uuid
from collections.abc import Coroutine
from typing import Any


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class RandomIds:
    def uuid(self) -> str:
        return str(uuid.uuid4())


class Tasks:
    """A task group that is cancelled, not waited for, when the gateway stops."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Tasks:
        await self._group.__aenter__()
        return self

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task with an empty context: nothing of one caller's leaks into another's (PITFALLS G4)."""
        task = self._group.create_task(work, context=contextvars.Context())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def __aexit__(self, *_exc: object) -> None:
        for task in tuple(self._running):
            task.cancel()
        await self._group.__aexit__(None, None, None)
