"""Inbox verbs as units of work: accept an input once, find what waits, cancel, hand over to a run.

An input is in the inbox before anybody is told that it was accepted. It leaves
by being consumed, in the same commit as its transcript entry, or by being
cancelled. Nothing else (PITFALLS C2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct

from openclaw.domain import lifecycle, queueing
from openclaw.domain.entry import SessionEntry
from openclaw.domain.origin import DmScope, InboundContext, apply_inbound, update_last_route
from openclaw.domain.policy import SendPolicy, decide_send, send_facts
from openclaw.domain.queueing import QueueConfig
from openclaw.domain.resets import StartEmpty
from openclaw.domain.transcript import TextBlock
from openclaw.errors import IdempotencyConflict, Overloaded, SendDenied
from openclaw.store import conversations, failpoints, forking, sessions, transcript
from openclaw.store.conversations import ConversationRef
from openclaw.store.database import Row, Transaction
from openclaw.store.forking import Forked
from openclaw.store.records import QueuedInput, SessionRow, SessionSeed, UserInput
from openclaw.store.sessions import Rotation, RotationReason
from openclaw.store.statements import load_statements

SQL = load_statements("inbox.sql")
MAX_QUEUED = 1000  # per session; past it the sender is told, nothing is dropped silently

encode_input = msgspec.json.Encoder().encode
_decode_input = msgspec.json.Decoder(UserInput).decode
_SAID_NOTHING = UserInput("", 0)


class ExternalId(Struct, frozen=True):
    """A platform's own message id. Ids are only unique inside one conversation (ROUTE-4)."""

    channel: str
    account_id: str
    peer_id: str
    message_id: str


class Inbound(Struct, frozen=True):
    """What the surface tells about where an input came from (ORG-4)."""

    context: InboundContext
    place: ConversationRef | None = None
    dm_scope: DmScope = "main"
    sole_owner: str | None = None


class NewInput(Struct, frozen=True):
    """An input as it arrives. `run_id` is the idempotency key and the handle to cancel it by."""

    run_id: str
    seed: SessionSeed
    source: lifecycle.TurnSource
    principal: str
    body: UserInput
    external: ExternalId | None = None
    expires_at: int | None = None
    reset: Literal["new", "reset"] | None = None
    send_policy: SendPolicy | None = None
    inbound: Inbound | None = None
    # The session that the thread of this input hangs on: its first turn goes on from there (LIFE-23).
    fork_from: str | None = None
    queue: QueueConfig | None = None
    # A choice that comes with the input, such as the model named after `/new` (LIFE-15).
    edit: Callable[[SessionEntry], SessionEntry] | None = None
    # What belongs into the same commit, such as the end of what was overheard before it.
    also: Callable[[Transaction], None] | None = None
    # A run that never goes on from the one before it (LIFE-20).
    fresh: bool = False


class ResetRulesAt(Struct, frozen=True):
    """The reset rules in force and the zone of the host, for judging freshness on arrival (LIFE-1)."""

    rules: lifecycle.ResetRules
    zone: ZoneInfo


class Admission(Struct, frozen=True):
    """An input that was taken in just now, and what its arrival did to the session."""

    session: SessionRow
    run_id: str
    admission: int
    created: bool = False
    rotation: Rotation | None = None
    dropped: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()  # what waited in a session that this input reset
    fork: Forked | StartEmpty | None = None
    others_wait: bool = False  # before it, in the same session


class Known(Struct, frozen=True):
    """An input that was taken in before: by its idempotency key or by the platform's message id."""

    run_id: str
    session_key: str
    state: str
    consumed_by: str | None


def fingerprint(new: NewInput) -> str:
    """What makes two uses of one idempotency key the same request (AMB-36)."""
    digest = hashlib.sha256(new.seed.session_key.encode("utf-8", "replace"))
    digest.update(b"\0")
    digest.update(encode_input(new.body.content))
    return digest.hexdigest()[:32]


def accept(
    tx: Transaction, new: NewInput, resets: ResetRulesAt, session_id: str, now_ms: int
) -> Admission | Known:
    """Take an input in: find or create its session, rotate it if it is due, and queue the input.

    `session_id` is used if a new window is needed. Rotation and the input that caused it
    are one commit. A known idempotency key or platform id stores nothing.
    """
    mark = fingerprint(new)
    seen = _find_known(tx, new, mark)
    if seen is not None:
        return seen
    row = sessions.find(tx, new.seed.session_key)
    _check_send(new, row)
    rotation, created = None, row is None
    cancelled: tuple[str, ...] = ()
    waiting = count_queued(tx, new.seed.session_key)
    if row is None:
        row = sessions.create(tx, new.seed, session_id, now_ms)
    else:
        reason = _rotation_due(row, new, resets, waiting, now_ms)
        if new.reset is not None:
            cancelled = cancel(tx, row.session_key)
            waiting -= len(cancelled)
        if reason is not None:
            row, rotation = sessions.rotate(tx, row, session_id, reason, now_ms)
    fork = None if new.fork_from is None else forking.fork_thread(tx, new.fork_from, row, now_ms)
    if isinstance(fork, Forked):
        row = fork.session
    human = lifecycle.counts_as_interaction(new.source)
    dropped = _make_room(tx, row, new.queue if human else None, waiting)
    failpoints.reach("accept.session_found")
    if new.edit is not None:
        row = sessions.modify(tx, row, new.edit, now_ms)
    if dropped:
        new = msgspec.structs.replace(new, body=msgspec.structs.replace(new.body, dropped=_lines_of(dropped)))
    admission = _insert(tx, new, mark, now_ms)
    failpoints.reach("accept.input_kept")
    row = _describe(tx, row, new.inbound, now_ms) or transcript.touch(tx, row, human, now_ms)
    if new.also is not None:
        new.also(tx)
    failpoints.reach("accept.done")
    handles = tuple(item.run_id for item in dropped)
    others_wait = waiting > len(dropped)
    return Admission(row, new.run_id, admission, created, rotation, handles, cancelled, fork, others_wait)


def enqueue(tx: Transaction, new: NewInput, now_ms: int) -> None:
    """Queue an input that the gateway itself makes for a session that exists, once per run id.

    It obeys no send policy, no reset and no cap: what one session owes another is never dropped.
    """
    if tx.row(SQL["by_run_id"], (new.run_id,)) is None:
        _insert(tx, new, fingerprint(new), now_ms)


def _insert(tx: Transaction, new: NewInput, mark: str, now_ms: int) -> int:
    external = new.external
    inserted = tx.row(
        SQL["insert_input"],
        (
            new.run_id, new.seed.session_key, mark, new.source, new.principal,
            int(lifecycle.counts_as_interaction(new.source)),
            external.channel if external else None, external.account_id if external else None,
            external.peer_id if external else None, external.message_id if external else None,
            encode_input(new.body), "queued", None, now_ms, new.expires_at,
        ),
    )  # fmt: skip
    assert inserted is not None
    return int(inserted[0])


def _make_room(
    tx: Transaction, row: SessionRow, queue: QueueConfig | None, waiting: int
) -> tuple[QueuedInput, ...]:
    """What leaves the queue for a new input when the cap is reached (QUE-3). Refused when nothing may."""
    if waiting >= MAX_QUEUED:
        raise Overloaded(f"{MAX_QUEUED} inputs already wait in {row.session_key}; nothing was stored")
    if queue is None or waiting == 0:
        return ()
    settings = queueing.resolve_queue(
        queue, channel=row.entry.channel, stored=queueing.stored_overrides(row.entry)
    )
    decided = queueing.decide_arrival(
        settings, run_active=row.entry.status == "running", queued_count=waiting
    )
    if isinstance(decided, queueing.Reject):
        raise Overloaded(decided.reason)
    if not isinstance(decided, queueing.DropOldest):
        return ()
    rows = tx.rows(SQL["drop_oldest"], (row.session_key, decided.count))
    failpoints.reach("inbox.dropped")
    gone = sorted((_input(found) for found in rows), key=lambda item: item.admission)
    if decided.summarize:
        return tuple(gone)
    # Dropped without a summary: nothing of them goes on, not even what they carried.
    return tuple(msgspec.structs.replace(item, body=_SAID_NOTHING) for item in gone)


def _lines_of(dropped: tuple[QueuedInput, ...]) -> tuple[str, ...]:
    """The dropped texts, oldest first, each behind what it carried itself; bounded."""
    lines = [
        line
        for item in dropped
        if item.body is not _SAID_NOTHING
        for line in (*item.body.dropped, _text_of(item))
    ]
    return tuple(queueing.dropped_line(line) for line in lines[-queueing.DROPPED_MAX_LINES :])


def _text_of(item: QueuedInput) -> str:
    content = item.body.content
    if isinstance(content, str):
        return content
    return " ".join(block.text for block in content if isinstance(block, TextBlock))


def note_route(tx: Transaction, row: SessionRow, inbound: Inbound, now_ms: int) -> SessionRow:
    """Keep origin, route and place of what starts no turn (ORG-3, ORG-4)."""
    if inbound.place is not None:
        conversations.link(tx, row.session_key, inbound.place, now_ms)
    entry = update_last_route(
        row.entry,
        inbound.context,
        now_ms=now_ms,
        dm_scope=inbound.dm_scope,
        sole_owner=inbound.sole_owner,
    )
    return sessions.modify(tx, row, lambda old: entry or old, now_ms)


def _describe(tx: Transaction, row: SessionRow, inbound: Inbound | None, now_ms: int) -> SessionRow | None:
    """Keep origin, route and place of an input. None when that changes nothing about the entry."""
    if inbound is None:
        return None
    if inbound.place is not None:
        conversations.link(tx, row.session_key, inbound.place, now_ms)
    entry = apply_inbound(
        row.entry,
        inbound.context,
        now_ms=now_ms,
        dm_scope=inbound.dm_scope,
        sole_owner=inbound.sole_owner,
    )
    settled = msgspec.structs.replace(
        row.entry, updated_at=entry.updated_at, last_interaction_at=entry.last_interaction_at
    )
    if entry == settled:
        return None
    return sessions.change(tx, row, entry, now_ms=now_ms)


def _check_send(new: NewInput, row: SessionRow | None) -> None:
    """A denied session stores nothing and starts nothing (SEND-5, SEND-8)."""
    facts = send_facts(row.entry if row else None, new.seed.session_key, request_channel=new.seed.channel)
    if decide_send(new.send_policy, facts).action == "deny":
        raise SendDenied()


def _rotation_due(
    row: SessionRow, new: NewInput, resets: ResetRulesAt, waiting: int, now_ms: int
) -> RotationReason | None:
    if new.reset is not None:
        return new.reset
    if new.fresh:
        return "cron"
    policy = lifecycle.resolve_reset(resets.rules, session_type=row.session_type, channel=row.entry.channel)
    verdict = lifecycle.judge_freshness(
        policy,
        last_interaction_ms=row.entry.last_interaction_at,
        now_ms=now_ms,
        zone=resets.zone,
        run_active=row.entry.status == "running",
        inputs_waiting=waiting > 0,
        source=new.source,
    )
    return verdict.reason if isinstance(verdict, lifecycle.Expired) else None


def _find_known(tx: Transaction, new: NewInput, mark: str) -> Known | None:
    found = tx.row(SQL["by_run_id"], (new.run_id,))
    if found is not None and found[2] != mark:
        raise IdempotencyConflict()
    external = new.external
    if found is None and external is not None:
        found = tx.row(
            SQL["by_external_id"],
            (external.channel, external.account_id, external.peer_id, external.message_id),
        )
    return None if found is None else Known(found[0], found[1], found[3], found[4])


def known(tx: Transaction, run_id: str) -> Known | None:
    """What became of an input."""
    found = tx.row(SQL["by_run_id"], (run_id,))
    return None if found is None else Known(found[0], found[1], found[3], found[4])


def get(tx: Transaction, run_id: str) -> QueuedInput | None:
    """An input by its handle, whatever became of it."""
    found = tx.row(SQL["get"], (run_id,))
    return None if found is None else _input(found)


def waiting_run_id(tx: Transaction, session_key: str, admission: int) -> str | None:
    """The handle of an input of this session that still waits."""
    found = tx.row(SQL["waiting_run_id"], (admission, session_key))
    return None if found is None else str(found[0])


def queued(tx: Transaction, session_key: str, limit: int = MAX_QUEUED) -> tuple[QueuedInput, ...]:
    """What waits in a session, in the order of admission (PITFALLS C3)."""
    return tuple(_input(row) for row in tx.rows(SQL["queued"], (session_key, limit)))


def queued_before(tx: Transaction, session_key: str, admission: int, limit: int) -> tuple[QueuedInput, ...]:
    """The newest inputs that wait and were admitted before this one, oldest first."""
    rows = tx.rows(SQL["queued_before"], (session_key, admission, limit))
    return tuple(_input(row) for row in reversed(rows))


def count_queued(tx: Transaction, session_key: str) -> int:
    counted = tx.row(SQL["count_queued"], (session_key,))
    assert counted is not None
    return int(counted[0])


def consume(
    tx: Transaction, session_key: str, admissions: tuple[int, ...], run_id: str
) -> tuple[QueuedInput, ...]:
    """Mark inputs as consumed by a run. Those cancelled or consumed in the meantime are left out."""
    taken = []
    for admission in admissions:
        row = tx.row(SQL["consume"], (run_id, admission, session_key))
        if row is not None:
            taken.append(_input(row))
            failpoints.reach("inbox.consumed")
    return tuple(taken)


def cancel(tx: Transaction, session_key: str, run_id: str | None = None) -> tuple[str, ...]:
    """Cancel one queued input, or all of a session; returns the run ids that were (QUE-6, QUE-7).

    What a finished helper owes the session is not among all: no stop and no reset loses a result (ANN-8).
    """
    if run_id is None:
        rows = tx.rows(SQL["cancel_all"], (session_key,))
    else:
        rows = tx.rows(SQL["cancel_one"], (run_id, session_key))
    failpoints.reach("inbox.cancelled")
    return tuple(row[0] for row in rows)


def discard(tx: Transaction, session_key: str) -> tuple[str, ...]:
    """Cancel everything that waits in a session that ends for good; returns the run ids that were."""
    rows = tx.rows(SQL["discard"], (session_key,))
    return tuple(row[0] for row in rows)


def sessions_waiting(tx: Transaction, limit: int = 10_000) -> tuple[str, ...]:
    """Sessions with queued inputs, oldest input first: waking is a query."""
    return tuple(row[0] for row in tx.rows(SQL["sessions_waiting"], (limit,)))


def _input(row: Row) -> QueuedInput:
    return QueuedInput(
        row[0], row[1], row[2], row[3], row[4], bool(row[5]), row[6], row[7], _decode_input(row[8])
    )
