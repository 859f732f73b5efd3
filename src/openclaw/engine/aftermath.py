"""What the end of a run means for other sessions: decided here, done in the commit that ends it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from openclaw.engine.exchanges import at_end_of_exchange
from openclaw.engine.started import StartedRun
from openclaw.engine.subagents import at_end_of_child
from openclaw.store.database import Transaction
from openclaw.store.runs import RunEnd

log = logging.getLogger("openclaw.exchanges")


class Aftermath:
    """One run's effect on others. Ordinary turns have none, and pay nothing for it."""

    def __init__(self, start: StartedRun, wake: Callable[[str], None]) -> None:
        self._start = start
        self._wake = wake
        self._woken: list[str] = []
        self._end: RunEnd | None = None
        self._is_child = start.session.entry.spawned_by is not None
        self._is_exchange = bool(start.inputs) and start.inputs[0].body.exchange is not None

    def unit(self, end: RunEnd, reply: str, now_ms: int) -> Callable[[Transaction], None] | None:
        """What belongs into the commit that ends the run; None when nobody else is concerned."""
        if not self._is_child and not self._is_exchange:
            return None

        self._end = end

        def also(tx: Transaction) -> None:
            self._woken.clear()  # a unit may be run again
            if self._is_exchange:
                at_end_of_exchange(tx, self._start, end, reply, now_ms, self._woken)
            if self._is_child:
                at_end_of_child(tx, self._start, end, reply, now_ms, self._woken)

        return also

    def kept(self) -> None:
        """The commit is done: see that whoever got something has somebody to look after it."""
        for session_key in self._woken:
            self._wake(session_key)
        exchange = self._start.inputs[0].body.exchange if self._is_exchange else None
        if exchange is not None and exchange.phase == "announce" and self._end and self._end.outcome != "ok":
            # The requester has its answer and is not told: an announcement is a best effort (A2A-15).
            log.warning("the announcement of %s failed: %s", exchange.target, self._end.error)
