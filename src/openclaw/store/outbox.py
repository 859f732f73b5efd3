"""Outbox verbs as units of work: prepare, start, settle, expire, retry.

A delivery is written with the reply it carries. A sending that was cut off is
`unknown` and is never sent again blindly; an expired one is `failed`, visible, and
a person may retry it (PITFALLS C4).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from openclaw.store import failpoints
from openclaw.store.database import Transaction
from openclaw.store.records import DeliveryDraft
from openclaw.store.statements import load_statements

SQL = load_statements("outbox.sql")


class Delivery(Struct, frozen=True, rename="camel"):
    """One delivery on its way. `body` is what the channel gets."""

    delivery_no: int
    idempotency_key: str
    session_key: str
    run_id: str | None
    channel: str
    target: str
    account_id: str | None
    thread_id: str | None
    body: bytes
    state: str
    attempts: int
    created_at: int
    expires_at: int


def prepare(tx: Transaction, draft: DeliveryDraft, session_key: str, run_id: str | None, now_ms: int) -> None:
    """Write a delivery. The same idempotency key writes nothing a second time."""
    route = draft.route
    tx.run(
        SQL["prepare"],
        (
            draft.idempotency_key, session_key, run_id, route.channel, route.to, route.account_id,
            route.thread_id, draft.body, now_ms, now_ms, draft.expires_at,
        ),
    )  # fmt: skip
    failpoints.reach("delivery.prepared")


def due(tx: Transaction, channel: str, now_ms: int, limit: int = 100) -> tuple[Delivery, ...]:
    """What waits to be sent on a channel, oldest first. What has expired is left for `expire`."""
    return tuple(Delivery(*row) for row in tx.rows(SQL["due"], (channel, now_ms, limit)))


def start(tx: Transaction, delivery_no: int, now_ms: int) -> bool:
    """Mark as being sent. False when somebody else did or it was settled."""
    return tx.row(SQL["start"], (now_ms, delivery_no)) is not None


def settle(
    tx: Transaction,
    delivery_no: int,
    state: Literal["sent", "unknown", "failed"],
    error: str | None,
    now_ms: int,
) -> bool:
    return tx.row(SQL["settle"], (state, error, now_ms, delivery_no)) is not None


def postpone(tx: Transaction, delivery_no: int, error: str, now_ms: int) -> bool:
    """Nobody saw it, and it may be tried again: back among what waits."""
    return tx.row(SQL["postpone"], (error, now_ms, delivery_no)) is not None


def expire(tx: Transaction, now_ms: int) -> int:
    """Fail what waited past its time; returns how many."""
    return len(tx.rows(SQL["expire"], (now_ms,)))


def forget_sending(tx: Transaction, now_ms: int) -> int:
    """At start-up: what was being sent when the process died is `unknown`."""
    return len(tx.rows(SQL["forget_sending"], (now_ms,)))


def resume_sending(tx: Transaction, channel: str, account_id: str, now_ms: int) -> int:
    """What `forget_sending` left open goes out again, for a platform that shows one key once."""
    return len(tx.rows(SQL["resume_sending"], (now_ms, channel, account_id)))


def retry(tx: Transaction, delivery_no: int, now_ms: int, expires_at: int) -> bool:
    """A person asks to send an `unknown` or `failed` delivery again."""
    return tx.row(SQL["retry"], (now_ms, expires_at, delivery_no)) is not None


def states(tx: Transaction) -> dict[str, int]:
    return {row[0]: row[1] for row in tx.rows(SQL["states"])}
