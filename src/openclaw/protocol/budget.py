"""A token bucket that is told the time. It bounds; what happens on refusal is the caller's decision."""

from __future__ import annotations


class TokenBucket:
    """Holds up to `capacity` tokens and gains `per_second`; starts full."""

    __slots__ = ("_at_ms", "_capacity", "_per_second", "_tokens")

    def __init__(self, capacity: int, per_second: float, now_ms: int) -> None:
        self._capacity = capacity
        self._per_second = per_second
        self._tokens = float(capacity)
        self._at_ms = now_ms

    def take(self, now_ms: int) -> bool:
        """Take one token if there is one. A clock that steps back gains nothing and costs nothing."""
        elapsed_ms = max(0, now_ms - self._at_ms)
        self._tokens = min(float(self._capacity), self._tokens + elapsed_ms * self._per_second / 1000)
        self._at_ms = now_ms
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def wait_ms(self) -> int:
        """Milliseconds, counted from the last take, until one token is there."""
        missing = max(0.0, 1 - self._tokens)
        return int(missing / self._per_second * 1000) + (1 if missing else 0)
