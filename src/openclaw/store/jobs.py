"""Scheduled jobs as rows: kept, fired exactly once for each time they are due, and their runs (AUTO-4).

Firing is one commit: the job moves on to its next time, the run is noted under the time it
was due for, and what it does stands in an inbox. A crash before it leaves the job due; a
crash after it leaves an input that runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Struct

from openclaw.domain.jobs import MAX_JOBS, Job
from openclaw.errors import InvalidRequest
from openclaw.store import inbox, systemevents
from openclaw.store.database import Database, Transaction
from openclaw.store.inbox import Admission, NewInput, ResetRulesAt
from openclaw.store.statements import load_statements

SQL = load_statements("jobs.sql")
KEPT_RUNS = 200  # per job
_decode = msgspec.json.Decoder(Job).decode
_encode = msgspec.json.Encoder().encode


class StoredJob(Struct, frozen=True):
    job: Job
    next_at: int | None


class JobRun(Struct, frozen=True, rename="camel"):
    """One time that a job was due."""

    job_id: str
    due_at: int
    run_id: str
    session_key: str
    session_id: str | None
    state: Literal["open", "ended"]
    status: Literal["ok", "error", "skipped"] | None
    error: str | None
    missed: int
    delivery: str
    fired_at: int
    ended_at: int | None


class Firing(Struct, frozen=True, kw_only=True):
    """Everything that one firing changes. Exactly one of `new` and `event` says what it does."""

    job: Job
    due_at: int
    next_at: int | None
    run_id: str
    session_key: str
    missed: int
    new: NewInput | None
    event: str | None


class Fired(Struct, frozen=True):
    """`admission` is None when the job only left a note for the session's next turn."""

    admission: Admission | None


class Busy(Struct, frozen=True):
    """The session still works; the job stays due."""


class Settled(Struct, frozen=True):
    """A run of a job that has just ended."""

    run_id: str
    job_id: str
    due_at: int
    delivery: str


# -- units of work -------------------------------------------------------------------------------


def put(tx: Transaction, stored: StoredJob) -> None:
    job = stored.job
    if tx.row(SQL["get"], (job.id,)) is None:
        counted = tx.row(SQL["count"])
        if counted is not None and int(counted[0]) >= MAX_JOBS:
            raise InvalidRequest(f"there are {MAX_JOBS} jobs already; remove some first")
    tx.run(
        SQL["put"],
        (
            job.id, job.agent_id, int(job.enabled), stored.next_at, _encode(job), job.created_at_ms,
            job.updated_at_ms,
        ),
    )  # fmt: skip


def fire(
    tx: Transaction, firing: Firing, resets: ResetRulesAt, session_id: str, now_ms: int
) -> Fired | Busy | None:
    """Fire a job for one due time; None when that was done before or the job is gone."""
    job = firing.job
    if job.is_isolated and tx.row(SQL["busy"], (firing.session_key,)) is not None:
        return Busy()
    over = firing.next_at is None and not job.delete_after_run
    moved = tx.row(SQL["advance"], (firing.next_at, int(not over), now_ms, job.id, firing.due_at))
    if moved is None:
        return None
    note_only = firing.new is None
    made = tx.row(
        SQL["add_run"],
        (
            job.id, firing.due_at, firing.run_id, firing.session_key,
            session_id if job.is_isolated else None,
            "ended" if note_only else "open", "ok" if note_only else None, None, firing.missed,
            job.delivery.mode, now_ms, now_ms if note_only else None,
        ),
    )  # fmt: skip
    if made is None:
        return None
    if firing.event is not None:
        systemevents.add(tx, firing.session_key, firing.event, now_ms)
    admission = None
    if firing.new is not None:
        taken = inbox.accept(tx, firing.new, resets, session_id, now_ms)
        admission = taken if isinstance(taken, Admission) else None
    if note_only and job.delete_after_run and firing.next_at is None:
        tx.run(SQL["remove"], (job.id,))
    _trim(tx, job.id)
    return Fired(admission)


def _trim(tx: Transaction, job_id: str) -> None:
    oldest = tx.row(SQL["keep_from"], (job_id, KEPT_RUNS - 1))
    if oldest is not None:
        tx.run(SQL["trim_runs"], (job_id, oldest[0]))


def settle(
    tx: Transaction, run_id: str, status: Literal["ok", "error", "skipped"], error: str | None, now_ms: int
) -> Settled | None:
    """Note how a run ended; a job that should go after its run goes now. None when it is known already."""
    row = tx.row(SQL["end_run"], (status, error, now_ms, run_id))
    if row is None:
        return None
    job_id, due_at, delivery = row
    stored = get(tx, str(job_id))
    if stored is not None and stored.job.delete_after_run and stored.next_at is None:
        tx.run(SQL["remove"], (job_id,))
    return Settled(run_id, str(job_id), int(due_at), str(delivery))


def get(tx: Transaction, job_id: str) -> StoredJob | None:
    row = tx.row(SQL["get"], (job_id,))
    return None if row is None else StoredJob(_decode(row[0]), row[1])


def settle_left_open(tx: Transaction, now_ms: int) -> tuple[Settled, ...]:
    """Runs that ended while nobody noted it: after a crash, or an input that was cancelled."""
    found = []
    for run_id, waiting, outcome, error, ended_at in tx.rows(SQL["left_open"]):
        status: Literal["ok", "error"] = "ok" if outcome == "ok" else "error"
        why = error or (None if outcome else "cancelled before it ran" if waiting else "its session is gone")
        done = settle(tx, str(run_id), status, why if status == "error" else None, ended_at or now_ms)
        if done is not None:
            found.append(done)
    return tuple(found)


# -- the verbs -----------------------------------------------------------------------------------


class Jobs:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, stored: StoredJob) -> None:
        await self._database.write(lambda tx: put(tx, stored))

    async def change(self, job_id: str, edit: Callable[[StoredJob], StoredJob]) -> StoredJob | None:
        """Change a job in one commit; None when there is none of this id."""

        def unit(tx: Transaction) -> StoredJob | None:
            found = get(tx, job_id)
            if found is None:
                return None
            changed = edit(found)
            put(tx, changed)
            return changed

        return await self._database.write(unit)

    async def get(self, job_id: str) -> StoredJob | None:
        return await self._database.read(lambda tx: get(tx, job_id))

    async def list(self) -> tuple[StoredJob, ...]:
        rows = await self._database.read(lambda tx: tx.rows(SQL["list"]))
        return tuple(StoredJob(_decode(row[0]), row[1]) for row in rows)

    async def remove(self, job_id: str) -> bool:
        gone = await self._database.write(lambda tx: tx.row(SQL["remove"], (job_id,)))
        return gone is not None

    async def due(self, now_ms: int, limit: int = 100) -> tuple[StoredJob, ...]:
        rows = await self._database.read(lambda tx: tx.rows(SQL["due"], (now_ms, limit)))
        return tuple(StoredJob(_decode(row[0]), row[1]) for row in rows)

    async def next_at(self) -> int | None:
        row = await self._database.read(lambda tx: tx.row(SQL["next"]))
        return None if row is None or row[0] is None else int(row[0])

    async def fire(
        self, firing: Firing, resets: ResetRulesAt, *, session_id: str, now_ms: int
    ) -> Fired | Busy | None:
        return await self._database.write(lambda tx: fire(tx, firing, resets, session_id, now_ms))

    async def settle_left_open(self, *, now_ms: int) -> tuple[Settled, ...]:
        return await self._database.write(lambda tx: settle_left_open(tx, now_ms))

    async def set_delivery(self, run_id: str, before: str, after: str) -> bool:
        row = await self._database.write(lambda tx: tx.row(SQL["set_delivery"], (after, run_id, before)))
        return row is not None

    async def runs(self, job_id: str, limit: int = 50) -> tuple[JobRun, ...]:
        rows = await self._database.read(lambda tx: tx.rows(SQL["runs"], (job_id, limit)))
        return tuple(JobRun(*row) for row in rows)
