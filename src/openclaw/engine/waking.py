"""System events for a session: kept for its next turn, or told in a turn that begins at once (CLI-7).

The turn runs as the gateway's own: it has no owner's rights, it never extends the life
of the session (LIFE-12), and what people see of it is the answer.
"""

from __future__ import annotations

from collections.abc import Callable

from openclaw.domain.redaction import mask_machine_text
from openclaw.domain.systemevents import WAKE_PROMPT, SystemEvent, read_event_text
from openclaw.domain.transcript import Provenance
from openclaw.engine import events
from openclaw.engine.events import EventSink, RunScope
from openclaw.engine.ports import Clock, Ids
from openclaw.engine.settings import EngineSettings
from openclaw.engine.workers import Workers
from openclaw.store.inbox import NewInput
from openclaw.store.records import SessionSeed, UserInput
from openclaw.store.systemevents import WAKE_PREFIX
from openclaw.store.waking import SystemEvents


class Waking:
    def __init__(
        self,
        kept: SystemEvents,
        workers: Workers,
        settings: Callable[[], EngineSettings],
        secrets: Callable[[], frozenset[str]],
        clock: Clock,
        ids: Ids,
        emit: EventSink,
    ) -> None:
        self._kept = kept
        self._workers = workers
        self._settings = settings
        self._secrets = secrets
        self._clock = clock
        self._ids = ids
        self._emit = emit

    async def tell(self, seed: SessionSeed, text: str) -> None:
        """Keep an event until the session's next turn."""
        await self._kept.add(seed.session_key, self._read(text), now_ms=self._clock.now_ms())

    async def wake(self, seed: SessionSeed, text: str) -> None:
        """Keep an event and let the session answer to it now, or as soon as its present turn is over."""
        now_ms, settings, said = self._clock.now_ms(), self._settings(), self._read(text)
        body = UserInput(
            WAKE_PROMPT,
            now_ms,
            provenance=Provenance(kind="internal_system"),
            queue_mode="followup",
            hidden_prompt=True,
        )
        new = NewInput(
            f"{WAKE_PREFIX}{self._ids.uuid()}", seed, "system", "system", body,
            send_policy=settings.send_policy,
        )  # fmt: skip
        woken = await self._kept.wake(new, said, settings.resets, session_id=self._ids.uuid(), now_ms=now_ms)
        if woken.admission is not None:
            session, created = woken.admission.session, woken.admission.created
            scope = RunScope(new.run_id, session.session_key, session.agent_id, session.entry.session_id)
            self._emit(events.InputTaken(scope, session, created, None, queued=True))
        self._workers.wake(seed.session_key)

    async def waiting(self, session_key: str) -> tuple[SystemEvent, ...]:
        """What the session's next turn will be told."""
        return await self._kept.waiting(session_key)

    def _read(self, text: str) -> str:
        """The text as it is kept: clean, and without secrets, as everything that no person said (TRX-11)."""
        return mask_machine_text(read_event_text(text), self._secrets()).text
