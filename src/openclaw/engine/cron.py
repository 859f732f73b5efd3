"""Scheduled jobs: who is due is a question to the rows, firing is one commit, and a run is an ordinary turn.

The rule for times that passed while nobody ran: the job runs once, as soon as somebody does, and
the run says how many times were missed. A job that still runs is not started beside itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from openclaw.domain.entry import DeliveryContext
from openclaw.domain.jobs import AgentTurn, EventNote, Job, check_job, job_session_key
from openclaw.domain.keys import format_key
from openclaw.domain.silence import visible_reply
from openclaw.domain.systemevents import WAKE_PROMPT
from openclaw.domain.transcript import Provenance, decode_message, text_of
from openclaw.engine import events
from openclaw.engine.events import EngineEvent, EventSink, RunEnded, RunScope
from openclaw.engine.ports import Clock, Ids
from openclaw.engine.schedule import check_schedule, missed_between, next_due
from openclaw.engine.seeds import seed_for_key
from openclaw.engine.settings import EngineSettings
from openclaw.engine.workers import Workers
from openclaw.errors import InvalidRequest, OpenClawError
from openclaw.store.inbox import NewInput
from openclaw.store.jobs import Busy, Fired, Firing, JobRun, Jobs, Settled, StoredJob
from openclaw.store.records import SessionSeed, UserInput
from openclaw.store.store import Store

log = logging.getLogger("openclaw.cron")
LONGEST_SLEEP_S = 30.0
BUSY_AGAIN_S = 2.0
RUN_PREFIX = "cron:"

# Sends a finished run's result to an address; True when it was taken.
Post = Callable[[Job, JobRun, str], Awaitable[bool]]


def first_due(job: Job, settings: EngineSettings, now_ms: int) -> StoredJob:
    """A new job, checked, with its first due time. InvalidRequest when it has none or does not fit."""
    stored = StoredJob(_checked(job, settings), _next(job, now_ms, settings.resets.zone))
    if stored.next_at is None and job.enabled:
        raise InvalidRequest("this schedule is never due: its time has passed")
    return stored


def _checked(job: Job, settings: EngineSettings) -> Job:
    if job.agent_id not in settings.agents:
        known = ", ".join(sorted(settings.agents))
        raise InvalidRequest(f'unknown agent id "{job.agent_id[:64]}"; configured: {known}')
    check_schedule(job.schedule, settings.resets.zone)
    job_session_key(job, settings.keys)
    return check_job(job)


def _next(job: Job, after_ms: int, zone: ZoneInfo) -> int | None:
    if not job.enabled:
        return None
    return next_due(job.schedule, after_ms=after_ms, made_ms=job.created_at_ms, zone=zone)


class Cron:
    def __init__(
        self,
        jobs: Jobs,
        store: Store,
        workers: Workers,
        settings: Callable[[], EngineSettings],
        clock: Clock,
        ids: Ids,
        emit: EventSink,
        post: Post,
        *,
        enabled: Callable[[], bool] = lambda: True,
    ) -> None:
        self._jobs = jobs
        self._store = store
        self._workers = workers
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._emit = emit
        self._post = post
        self._enabled = enabled
        self._changed = asyncio.Event()

    @property
    def enabled(self) -> bool:
        return self._enabled()

    # -- jobs ----------------------------------------------------------------------------------

    async def add(self, job: Job) -> StoredJob:
        """Keep a job, checked, with its first due time."""
        stored = first_due(job, self._settings(), self._clock.now_ms())
        await self._jobs.put(stored)
        self._changed.set()
        return stored

    async def change(self, job_id: str, edit: Callable[[Job], Job]) -> StoredJob | None:
        """Change a job; its next time follows from the schedule as it is now."""
        now_ms = self._clock.now_ms()

        def apply(found: StoredJob) -> StoredJob:
            job = _checked(msgspec.structs.replace(edit(found.job), updated_at_ms=now_ms), self._settings())
            same = job.schedule == found.job.schedule and job.enabled == found.job.enabled
            next_at = found.next_at if same else self._next(job, now_ms)
            return StoredJob(job, next_at)

        changed = await self._jobs.change(job_id, apply)
        self._changed.set()
        return changed

    async def remove(self, job_id: str) -> bool:
        return await self._jobs.remove(job_id)

    async def all(self) -> tuple[StoredJob, ...]:
        return await self._jobs.list()

    async def get(self, job_id: str) -> StoredJob | None:
        return await self._jobs.get(job_id)

    async def runs(self, job_id: str, limit: int) -> tuple[JobRun, ...]:
        return await self._jobs.runs(job_id, limit)

    async def run_now(self, job_id: str, mode: Literal["force", "due"]) -> bool:
        """Run a job beside its schedule, or only if it is due. False when it was not run."""
        found = await self._jobs.get(job_id)
        if found is None:
            raise InvalidRequest(f"no job has the id {job_id[:80]!r}; see openclaw cron list")
        now_ms = self._clock.now_ms()
        if mode == "due" and (found.next_at is None or found.next_at > now_ms):
            return False
        if mode == "force":
            # Its own time stays what it was; only this once it is due now.
            changed = await self._jobs.change(
                job_id, lambda one: StoredJob(msgspec.structs.replace(one.job, enabled=True), now_ms)
            )
            if changed is None:
                return False
            fired = await self._fire(changed, now_ms, keep_enabled=found.job.enabled)
            return isinstance(fired, Fired)
        return isinstance(await self._fire(found, now_ms), Fired)

    @property
    def _zone(self) -> ZoneInfo:
        return self._settings().resets.zone

    def _next(self, job: Job, after_ms: int) -> int | None:
        return _next(job, after_ms, self._zone)

    # -- the clockwork -------------------------------------------------------------------------

    async def run_forever(self) -> None:
        while True:
            try:
                wait_s = await self._round()
            except OpenClawError as error:
                log.error("jobs wait: %s", error)
                wait_s = LONGEST_SLEEP_S
            try:
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()

    async def _round(self) -> float:
        """Settle what ended, fire what is due; how long to sleep then."""
        now_ms = self._clock.now_ms()
        for settled in await self._jobs.settle_left_open(now_ms=now_ms):
            await self._deliver(settled)
        if not self._enabled():
            return LONGEST_SLEEP_S
        busy = False
        for stored in await self._jobs.due(now_ms):
            try:
                busy = isinstance(await self._fire(stored, now_ms), Busy) or busy
            except InvalidRequest as error:
                await self._give_up(stored, error.message)
        if busy:
            return BUSY_AGAIN_S
        next_at = await self._jobs.next_at()
        if next_at is None:
            return LONGEST_SLEEP_S
        return min(LONGEST_SLEEP_S, max(0.01, (next_at - self._clock.now_ms()) / 1000))

    async def _fire(
        self, stored: StoredJob, now_ms: int, *, keep_enabled: bool = True
    ) -> Fired | Busy | None:
        job, due_at = stored.job, stored.next_at or now_ms
        firing = await self._firing(stored, due_at, now_ms)
        if not keep_enabled:
            firing = msgspec.structs.replace(firing, next_at=None)
        session_id = self._ids.uuid()
        done = await self._jobs.fire(firing, self._settings().resets, session_id=session_id, now_ms=now_ms)
        if not isinstance(done, Fired):
            return done
        missed = f", {firing.missed} earlier times were missed" if firing.missed else ""
        log.info("job %s (%s) runs in %s%s", job.id, job.name, firing.session_key, missed)
        if done.admission is not None:
            row = done.admission.session
            scope = RunScope(firing.run_id, row.session_key, row.agent_id, row.entry.session_id)
            self._emit(
                events.InputTaken(scope, row, done.admission.created, done.admission.rotation, queued=True)
            )
            self._workers.wake(row.session_key)
        return done

    async def _firing(self, stored: StoredJob, due_at: int, now_ms: int) -> Firing:
        job, settings = stored.job, self._settings()
        key = job_session_key(job, settings.keys)
        seed = seed_for_key(key, job.agent_id, settings.keys, "internal")
        run_id = f"{RUN_PREFIX}{job.id}:{due_at}"
        return Firing(
            job=job,
            due_at=due_at,
            next_at=self._next(job, now_ms),
            run_id=run_id,
            session_key=seed.session_key,
            missed=missed_between(
                job.schedule, due_ms=due_at, now_ms=now_ms, made_ms=job.created_at_ms, zone=self._zone
            ),
            new=await self._input(job, seed, run_id, now_ms),
            event=job.payload.text if isinstance(job.payload, EventNote) else None,
        )

    async def _input(self, job: Job, seed: SessionSeed, run_id: str, now_ms: int) -> NewInput | None:
        """The turn of this job; None when a note for the session's next turn is all."""
        payload, provenance = job.payload, Provenance(kind="internal_system")
        if isinstance(payload, EventNote):
            if job.wake_mode != "now":
                return None
            body = UserInput(
                WAKE_PROMPT, now_ms, provenance=provenance, queue_mode="followup", hidden_prompt=True
            )
            return NewInput(run_id, seed, "cron", "system", body)
        assert isinstance(payload, AgentTurn)
        route = await self._route(job)
        body = UserInput(
            payload.message,
            now_ms,
            route=route,
            deliver=route is not None,
            provenance=provenance,
            model=payload.model,
            thinking=payload.thinking,
            timeout_ms=None if payload.timeout_seconds is None else payload.timeout_seconds * 1000,
            queue_mode="followup",
        )
        return NewInput(run_id, seed, "cron", "system", body, fresh=job.is_isolated)

    async def _route(self, job: Job) -> DeliveryContext | None:
        """Where the result goes, fixed when the job fires; never what a model or a later turn says."""
        delivery = job.delivery
        if delivery.mode != "announce":
            return None
        if delivery.channel and delivery.to:
            return DeliveryContext(delivery.channel, delivery.to, delivery.account_id, delivery.thread_id)
        key = format_key(
            job_session_key(msgspec.structs.replace(job, session_target="main"), self._settings().keys)
        )
        main = await self._store.session(key)
        route = main.entry.delivery_context if main else None
        if route is None or (delivery.channel and route.channel != delivery.channel):
            return None
        return route

    # -- the end of a run ----------------------------------------------------------------------

    def observe(self, event: EngineEvent) -> None:
        """Part of the event sink: when a run of a job has ended, the rows are asked at once."""
        if isinstance(event, RunEnded) and event.scope.run_id.startswith(RUN_PREFIX):
            self._changed.set()

    async def _deliver(self, settled: Settled) -> None:
        """Send the result to an address, once; an attempt that was cut off is not repeated."""
        if settled.delivery != "webhook":
            return
        stored = await self._jobs.get(settled.job_id)
        if stored is None or not await self._jobs.set_delivery(settled.run_id, "webhook", "posting"):
            return
        runs = [run for run in await self._jobs.runs(settled.job_id) if run.run_id == settled.run_id]
        taken = await self._post(stored.job, runs[0], await self._said(settled.run_id))
        await self._jobs.set_delivery(settled.run_id, "posting", "posted" if taken else "failed")

    async def _said(self, run_id: str) -> str:
        run = await self._store.run(run_id)
        if run is None or run.reply_seq is None:
            return ""
        entry = await self._store.entry(run.window_no, run.reply_seq)
        return visible_reply(text_of(decode_message(entry.body))) if entry is not None else ""

    async def _give_up(self, stored: StoredJob, why: str) -> None:
        """A job that cannot run any more, e.g. of an agent that is gone, is switched off and says so."""
        log.error("job %s (%s) was switched off: %s", stored.job.id, stored.job.name, why)
        await self._jobs.change(
            stored.job.id, lambda one: StoredJob(msgspec.structs.replace(one.job, enabled=False), None)
        )
