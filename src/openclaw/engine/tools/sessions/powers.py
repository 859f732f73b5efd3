"""What session tools that act may do beside their own commit: hand a message over, wait, stop, wake.

The engine is built around its tools, so its powers come last: `Powers` is made empty
and filled once everything stands.
"""

from __future__ import annotations

from collections.abc import Callable

from openclaw.domain.redaction import mask_machine_text
from openclaw.engine.lanes import Lanes
from openclaw.engine.settings import EngineSettings
from openclaw.engine.threads import Threads
from openclaw.engine.turns import Turns
from openclaw.engine.workers import Workers
from openclaw.store.spawns import Spawns
from openclaw.store.store import Store


class Powers:
    turns: Turns
    workers: Workers
    lanes: Lanes

    def __init__(
        self,
        store: Store,
        spawns: Spawns,
        settings: Callable[[], EngineSettings],
        check_model: Callable[[str], str],
        secrets: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self.store = store
        self.spawns = spawns
        self.settings = settings
        self.check_model = check_model
        self._secrets = secrets
        # Who waits for whom, each for one or several: a wait that would close a circle is not begun (QUE-1).
        self.waiting: dict[str, list[str]] = {}
        self.threads = Threads()

    def fill(self, turns: Turns, workers: Workers) -> None:
        self.turns, self.workers, self.lanes = turns, workers, workers.lanes

    def masked(self, text: str) -> str:
        """Text of one session before another one stores it: without secrets and credentials (TRX-11)."""
        return mask_machine_text(text, self._secrets()).text

    def closes_circle(self, waiter: str, target: str) -> bool:
        """Whether `target` waits for `waiter` already, through however many others."""
        seen: set[str] = set()
        ahead = [target]
        while ahead:
            session_key = ahead.pop()
            if session_key == waiter:
                return True
            if session_key not in seen:
                seen.add(session_key)
                ahead += self.waiting.get(session_key, ())
        return False
