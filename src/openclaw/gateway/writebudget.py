"""How often one client may change the gateway itself: three times a minute per method.

A client that loops over `config.patch` would rewrite the file and reload the gateway
without end. Counts per method and client, bounded in memory.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from openclaw.engine.ports import Clock
from openclaw.errors import Unavailable
from openclaw.gateway.client import Client

MAX_WRITES = 3
WINDOW_S = 60.0
MAX_TRACKED = 1000


class WriteBudget:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def spend(self, method: str, client: Client) -> None:
        """Count one write, or refuse it and say when to come back."""
        now_s = self._clock.monotonic()
        key = (method, f"{client.connection.device_id or ''}@{client.peer_ip or ''}")
        times = self._times.setdefault(key, deque())
        self._times.move_to_end(key)
        while times and now_s - times[0] >= WINDOW_S:
            times.popleft()
        if len(times) >= MAX_WRITES:
            wait_ms = int((times[0] + WINDOW_S - now_s) * 1000) + 1
            raise Unavailable(
                f"rate limit exceeded for {method}; retry after {(wait_ms + 999) // 1000}s",
                retry_after_ms=wait_ms,
                method=method,
                limit=f"{MAX_WRITES} per {WINDOW_S:g}s",
            )
        times.append(now_s)
        while len(self._times) > MAX_TRACKED:
            self._times.popitem(last=False)
