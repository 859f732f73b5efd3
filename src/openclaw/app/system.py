"""The real clock, real ids and the tasks of a process: what tests replace."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
import uuid
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger("openclaw.gateway")


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
    """The tasks of a gateway: cancelled, not waited for, when it stops.

    No task group: there one failure ends all the others, and a client that hangs up at
    the wrong moment would take the gateway with it.
    """

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Tasks:
        return self

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task with an empty context: nothing of one caller's leaks into another's (PITFALLS G4).

        A failure that nobody expected ends this task and is logged; the others are not its business.
        """
        task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("a task failed inside the gateway; the others go on", exc_info=error)

    async def __aexit__(self, *_exc: object) -> None:
        while self._running:  # what ends may start something once more
            for task in tuple(self._running):
                task.cancel()
            await asyncio.wait(self._running)
