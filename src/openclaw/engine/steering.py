"""What waits for a run that is under way: inputs that may join it at its next boundary (QUE-2, QUE-5)."""

from __future__ import annotations

from openclaw.domain import queueing
from openclaw.engine.ports import Clock
from openclaw.engine.settings import EngineSettings
from openclaw.engine.started import StartedRun
from openclaw.store.records import QueuedInput
from openclaw.store.store import Store

_JOINING = ("steer", "queue", "steer-backlog")


class Steering:
    def __init__(self, store: Store, settings: EngineSettings, start: StartedRun, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._start = start
        self._principal = start.inputs[0].principal if start.inputs else "system"

    async def waiting(self) -> tuple[QueuedInput, ...]:
        """The inputs that join now, in the order of admission."""
        entry = self._start.session.entry
        queue = queueing.resolve_queue(
            self._settings.queue, channel=entry.channel, stored=queueing.stored_overrides(entry)
        )
        waiting = await self._store.queued(self._start.run.session_key)
        now_ms = self._clock.now_ms()
        fresh = [item for item in waiting if item.expires_at is None or item.expires_at > now_ms]
        # One turn has one principal: what a stranger says never runs with an owner's rights (AMB-35).
        ours = [item for item in fresh if item.principal in (self._principal, "system")]
        joining = [item for item in ours if (item.body.queue_mode or queue.mode) in _JOINING]
        # The legacy mode `queue` takes them one at a time.
        return tuple(joining[:1] if queue.mode == "queue" else joining)

    async def any(self) -> bool:
        return bool(await self.waiting())
