"""A clock that a test may move: it runs like the real one, from wherever it was set."""

from __future__ import annotations

import asyncio
import time


class MovableClock:
    """`at_ms` is the time at the beginning; `move` jumps. Durations stay real."""

    def __init__(self, at_ms: int | None = None) -> None:
        real = time.time_ns() // 1_000_000
        self._offset_ms = 0 if at_ms is None else at_ms - real
        self._quiet_s = 0.0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._offset_ms

    def monotonic(self) -> float:
        return time.monotonic() + self._quiet_s

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def move(self, seconds: float) -> None:
        """Let time pass, for the wall clock and for durations."""
        self._offset_ms += int(seconds * 1000)
        self._quiet_s += seconds
