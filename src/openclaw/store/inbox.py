"""Inbox verbs as units of work: accept an input once, find what waits, cancel, hand over to a run.

An input is in the inbox before anybody is told that it was accepted. It leaves
by being consumed, in the same commit as its transcript entry, or by being
cancelled. Nothing else (PITFALLS C2).
"""

from __future__ import annotations

import hashlib
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct

from openclaw.domain import lifecycle
from openclaw.domain.origin import DmScope, InboundContext, apply_inbound
from openclaw.domain.policy import SendPolicy, decide_send, send_facts
from openclaw.errors import IdempotencyConflict, Overloaded, SendDenied
from openclaw.store import conversations, failpoints, sessions, transcript
from openclaw.store.conversations import ConversationRef
from openclaw.store.database import Row, Transaction
from openclaw.store.records import QueuedInput, SessionRow, SessionSeed, UserInput
from openclaw.store.sessions import Rotation, RotationReason
from openclaw.store.statements import load_statements

SQL = load_statements("inbox.sql")
MAX_QUEUED = 1000  # per session; past it the sender is told, nothing is dropped silently

encode_input = msgspec.json.Encoder().encode
_decode_input = msgspec.json.Decoder(UserInput).decode


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
    if row is None:
        row = sessions.create(tx, new.seed, session_id, now_ms)
    else:
        reason = _rotation_due(tx, row, new, resets, now_ms)
        if new.reset is not None:
            cancel(tx, row.session_key)
        if reason is not None:
            row, rotation = sessions.rotate(tx, row, session_id, reason, now_ms)
    if count_queued(tx, row.session_key) >= MAX_QUEUED:
        raise Overloaded(f"{MAX_QUEUED} inputs already wait in {row.session_key}; nothing was stored")
    failpoints.reach("accept.session_found")
    human = lifecycle.counts_as_interaction(new.source)
    external = new.external
    inserted = tx.row(
        SQL["insert_input"],
        (
            new.run_id, row.session_key, mark, new.source, new.principal, int(human),
            external.channel if external else None, external.account_id if external else None,
            external.peer_id if external else None, external.message_id if external else None,
            encode_input(new.body), "queued", None, now_ms, new.expires_at,
        ),
    )  # fmt: skip
    assert inserted is not None
    failpoints.reach("accept.input_kept")
    if not _describe(tx, row, new.inbound, now_ms):
        transcript.touch(tx, row, human, now_ms)
    failpoints.reach("accept.done")
    return Admission(row, new.run_id, inserted[0], created, rotation)


def _describe(tx: Transaction, row: SessionRow, inbound: Inbound | None, now_ms: int) -> bool:
    """Keep origin, route and place of an input. False when that changes nothing about the entry."""
    if inbound is None:
        return False
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
        return False
    sessions.change(tx, row, entry, now_ms=now_ms)
    return True


def _check_send(new: NewInput, row: SessionRow | None) -> None:
    """A denied session stores nothing and starts nothing (SEND-5, SEND-8)."""
    facts = send_facts(row.entry if row else None, new.seed.session_key, request_channel=new.seed.channel)
    if decide_send(new.send_policy, facts).action == "deny":
        raise SendDenied()


def _rotation_due(
    tx: Transaction, row: SessionRow, new: NewInput, resets: ResetRulesAt, now_ms: int
) -> RotationReason | None:
    if new.reset is not None:
        return new.reset
    policy = lifecycle.resolve_reset(resets.rules, session_type=row.session_type, channel=row.entry.channel)
    verdict = lifecycle.judge_freshness(
        policy,
        last_interaction_ms=row.entry.last_interaction_at,
        now_ms=now_ms,
        zone=resets.zone,
        run_active=row.entry.status == "running",
        inputs_waiting=count_queued(tx, row.session_key) > 0,
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


def waiting_run_id(tx: Transaction, session_key: str, admission: int) -> str | None:
    """The handle of an input of this session that still waits."""
    found = tx.row(SQL["waiting_run_id"], (admission, session_key))
    return None if found is None else str(found[0])


def queued(tx: Transaction, session_key: str, limit: int = MAX_QUEUED) -> tuple[QueuedInput, ...]:
    """What waits in a session, in the order of admission (PITFALLS C3)."""
    return tuple(_input(row) for row in tx.rows(SQL["queued"], (session_key, limit)))


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
    """Cancel one queued input, or all of a session; returns the run ids that were (QUE-6, QUE-7)."""
    if run_id is None:
        rows = tx.rows(SQL["cancel_all"], (session_key,))
    else:
        rows = tx.rows(SQL["cancel_one"], (run_id, session_key))
    failpoints.reach("inbox.cancelled")
    return tuple(row[0] for row in rows)


def sessions_waiting(tx: Transaction, limit: int = 10_000) -> tuple[str, ...]:
    """Sessions with queued inputs, oldest input first: waking is a query."""
    return tuple(row[0] for row in tx.rows(SQL["sessions_waiting"], (limit,)))


def _input(row: Row) -> QueuedInput:
    return QueuedInput(
        row[0], row[1], row[2], row[3], row[4], bool(row[5]), row[6], row[7], _decode_input(row[8])
    )
