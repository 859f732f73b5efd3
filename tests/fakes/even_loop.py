"""An event loop whose time passes evenly: when the machine stands still, so does the clock of the timers.

A process that gets no processor for a second finds all its deadlines passed at once, and whichever callback
comes first wins. Here such a gap counts as a twentieth of a second, so a short patience in a test measures
what the code under test does and not how busy the machine is. The clock is never ahead of the real one.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable

LARGEST_GAP_S = 0.05


class EvenClock:
    """The time that was waited for on purpose, and of any other stretch at most `LARGEST_GAP_S`."""

    def __init__(self, real: Callable[[], float] = time.monotonic) -> None:
        self._real = real
        self._looked_at = real()
        self._now = self._looked_at

    def now(self) -> float:
        self.passed(0.0)
        return self._now

    def passed(self, waited_s: float) -> None:
        """Count the time since the last look, `waited_s` of which the process meant to wait."""
        real = self._real()
        self._now += min(real - self._looked_at, waited_s + LARGEST_GAP_S)
        self._looked_at = real


class _WatchedSelector(selectors.DefaultSelector):
    """Tells the clock how long the loop meant to wait."""

    def __init__(self, clock: EvenClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._clock.passed(0.0)
        try:
            return super().select(timeout)
        finally:
            self._clock.passed(float("inf") if timeout is None else max(timeout, 0.0))


class EvenLoop(asyncio.SelectorEventLoop):
    """What every asynchronous test runs on."""

    def __init__(self) -> None:
        self._even = EvenClock()
        super().__init__(_WatchedSelector(self._even))

    def time(self) -> float:
        return self._even.now()
