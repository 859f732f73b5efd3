"""Carrying out operations on a real store, with answers in the terms of the model.

`ready` looks up what an operation needs and returns the call itself, so that several calls can be handed to
the store at the same moment and in a known order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from openclaw.domain.entry import DeliveryContext
from openclaw.domain.queueing import QueueConfig
from openclaw.errors import OpenClawError, VersionConflict
from openclaw.store import sessions
from openclaw.store.database import Database, Transaction
from openclaw.store.inbox import ExternalId, Known, NewInput
from openclaw.store.records import (
    DeliveryDraft,
    EntryDraft,
    QueuedInput,
    RunRow,
    SessionRow,
    UsageRow,
    UserInput,
)
from openclaw.store.runs import Claimed
from openclaw.store.store import Store
from tests.conformance import operations as ops
from tests.conformance.making import NOON, PLAN, RESETS, select
from tests.conformance.model_sessions import Outcome
from tests.conformance.operations import Note, Operation, drafted, run_end, seed_of

Act = Callable[[], Awaitable[Any]]
NO_RUN = RunRow(
    "none", "none", "main", 0, "", "", "active", None, None, None, "", 0, 0, 0, 0, None, None, None
)


async def outcome_of(act: Act) -> Outcome:
    """What the store answered, in the model's terms. An error of ours is an outcome too."""
    try:
        return told(await act())
    except OpenClawError as error:
        return ("error", type(error).__name__)


def draft_inputs(_session: SessionRow | None, inputs: tuple[QueuedInput, ...]) -> list[EntryDraft]:
    return [drafted(Note(str(queued.body.content)), queued.run_id) for queued in inputs]


async def ready(store: Store, database: Database, op: Operation) -> Act:
    """The call of an operation; calling it hands its unit to the store at once."""
    if isinstance(op, ops.Absorb | ops.Step | ops.Finish):
        return await _ready_for_run(store, database, op)
    if isinstance(op, ops.Claim):
        numbers = await _admissions(database, op.run_ids)
        claim = op
        return lambda: store.claim(claim.key, numbers, PLAN, draft_inputs, now_ms=claim.at)
    if isinstance(op, ops.Deliver):
        return await _ready_to_deliver(store, database, op)
    if isinstance(op, ops.Stale):
        stale = op
        return lambda: _edit_twice(store, database, stale)
    return _ready_for_session(store, op)


async def _ready_for_run(store: Store, database: Database, op: ops.Absorb | ops.Step | ops.Finish) -> Act:
    run = replace(await store.run(op.run_id) or NO_RUN, fence=op.fence)
    if isinstance(op, ops.Absorb):
        numbers, at = await _admissions(database, op.run_ids), op.at
        return lambda: store.absorb(run, numbers, draft_inputs, now_ms=at)
    drafts = tuple(drafted(note, op.run_id) for note in op.notes)
    usage = tuple(UsageRow(call.call_id, "p", "m", 1, 1, cost_usd=call.cost_usd) for call in op.usage)
    if isinstance(op, ops.Step):
        at = op.at
        return lambda: store.step(run, drafts, usage, now_ms=at)
    route, expires_at = DeliveryContext("tg", "peer"), op.at + ops.DELIVERY_LIFE_MS
    deliveries = tuple(DeliveryDraft(name, route, b"{}", expires_at) for name in op.deliveries)
    end, at = run_end(op), op.at
    return lambda: store.finish(run, drafts, end, usage, deliveries, now_ms=at)


async def _ready_to_deliver(store: Store, database: Database, op: ops.Deliver) -> Act:
    found = await select(database, "SELECT delivery_no FROM outbox WHERE idempotency_key = $1", op.name)
    number = found[0][0] if found else 0
    if op.move == "start":
        return lambda: store.start_delivery(number, now_ms=op.at)
    if op.move == "retry":
        return lambda: store.retry_delivery(number, now_ms=op.at, expires_at=op.at + ops.DELIVERY_LIFE_MS)
    return lambda: store.settle_delivery(number, op.move, now_ms=op.at)


def _ready_for_session(store: Store, op: Operation) -> Act:
    match op:
        case ops.Accept():
            return lambda: _accept(store, op)
        case ops.Cancel(key, run_id):
            return lambda: store.cancel(key, run_id)
        case ops.TakeOver(run_id, owner, at):
            return lambda: store.take_over(run_id, owner, now_ms=at)
        case ops.Append(key, notes, at):
            return lambda: store.append(key, tuple(map(drafted, notes)), now_ms=at)
        case ops.Edit():
            return lambda: store.edit_session(
                seed_of(op.key), lambda entry: replace(entry, **{op.field: op.value}),
                session_id=op.session_id, now_ms=op.at, expected_session_id=op.expected,
            )  # fmt: skip
        case ops.Reset(key, reason, session_id, at):
            return lambda: store.reset_session(key, reason, session_id=session_id, now_ms=at)
        case ops.Undo(key, at):
            return lambda: store.undo_reset(key, now_ms=at)
        case ops.Delete(key, at):
            return lambda: store.delete_session(key, now_ms=at)
        case ops.MarkRead(key, seq):
            return lambda: store.mark_read(key, seq)
        case ops.Recover(at):
            return lambda: store.recover_deliveries(now_ms=at)
    raise AssertionError(op)


async def _accept(store: Store, op: ops.Accept) -> Any:
    external = ExternalId("tg", "a", "p", op.message_id) if op.message_id else None
    new = NewInput(
        op.run_id, seed_of(op.key), op.source, "operator", UserInput(op.text, NOON), external, None, op.reset,
        queue=QueueConfig(cap=ops.QUEUE_CAP, drop=op.full) if op.full else None,
    )  # fmt: skip
    plan = PLAN if op.start else None
    return await store.accept(
        new, RESETS, session_id=op.session_id, now_ms=op.at, start=plan, draft_inputs=draft_inputs
    )


async def _edit_twice(store: Store, database: Database, op: ops.Stale) -> Outcome:
    """Read once, change, and change again from the old reading."""

    def first(tx: Transaction) -> SessionRow:
        row = sessions.get(tx, op.key)
        sessions.change(tx, row, replace(row.entry, subject=op.subject), now_ms=op.at)
        return row

    row = await database.write(first)
    late = replace(row.entry, subject="late")
    try:
        await database.write(lambda tx: sessions.change(tx, row, late, now_ms=op.at))
    except VersionConflict:
        return ("VersionConflict",)
    return ("overwritten",)


async def _admissions(database: Database, run_ids: tuple[str, ...]) -> tuple[int, ...]:
    if not run_ids:
        return ()
    rows: dict[str, int] = dict(await select(database, "SELECT run_id, admission FROM inbox"))
    return tuple(rows.get(run_id, 0) for run_id in run_ids)


def told(answer: Any) -> Outcome:
    """A store's answer in the terms of the model."""
    match answer:
        case Known(run_id, key, state, by):
            return ("known", run_id, key, state, by)
        case Claimed():
            return ("claimed", _claimed(answer))
        case None:
            return ("nothing",)
        case bool():
            return (answer,)
    if hasattr(answer, "admission"):
        taken = answer.admission
        claimed = None if answer.claimed is None else _claimed(answer.claimed)
        reason = taken.rotation.reason if taken.rotation else None
        return ("accepted", taken.session.entry.session_id, taken.created, reason, claimed)
    if hasattr(answer, "more_waiting"):
        seqs = tuple(entry.seq for entry in answer.entries)
        return ("finished", answer.run.reply_seq, seqs, answer.more_waiting)
    if isinstance(answer, RunRow):
        return ("owner", answer.fence)
    return _told_of_rows(answer)


def _told_of_rows(answer: Any) -> Outcome:
    if isinstance(answer, SessionRow):
        return (answer.version, answer.last_seq)
    if isinstance(answer, tuple) and answer and isinstance(answer[0], SessionRow):
        row, other = answer
        return (row.version,) if isinstance(other, sessions.Rotation) else (other, row.version)
    if isinstance(answer, tuple) and answer and hasattr(answer[0], "seq"):
        return tuple(entry.seq for entry in answer)
    return (
        tuple(sorted(answer)) if answer and isinstance(answer[0], str) and len(answer) > 1 else tuple(answer)
    )


def _claimed(claimed: Claimed) -> Outcome:
    return (
        claimed.run.run_id, claimed.session.entry.session_id,
        tuple(item.run_id for item in claimed.inputs), tuple(entry.seq for entry in claimed.entries),
    )  # fmt: skip
