"""Claiming the next turn of a session: what waits, the choice among it, and the claim are one commit.

One way to the database instead of four: a worker that finds its lane full pays for
nothing but this. What is chosen, and how long to wait, is decided by the caller's
pure function over the rows as they are in that very commit.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from openclaw.store import inbox, runs, sessions
from openclaw.store.database import Database, Transaction
from openclaw.store.records import QueuedInput, RunRow, SessionRow
from openclaw.store.runs import Claimed, DraftInputs, RunPlan


class Chosen(Struct, frozen=True):
    """The inputs of the next turn, and how it shall run."""

    admissions: tuple[int, ...]
    plan: RunPlan


class Later(Struct, frozen=True):
    """More may come that belongs to the same turn: look again then."""

    at_ms: int


Choose = Callable[[SessionRow, tuple[QueuedInput, ...]], Chosen | Later]


class Next(Struct, frozen=True):
    """What a worker found. Nothing set: nothing waits.

    `left_over` is a run that nobody ended; `expired` are the inputs that were too old and are settled.
    """

    claimed: Claimed | None = None
    later_ms: int | None = None
    left_over: RunRow | None = None
    expired: tuple[str, ...] = ()


class Claims:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def next(self, session_key: str, choose: Choose, draft_inputs: DraftInputs, *, now_ms: int) -> Next:
        """Begin the next turn of a session, or say why none begins."""
        return await self._database.write(
            lambda tx: claim_next(tx, session_key, choose, draft_inputs, now_ms)
        )


def claim_next(
    tx: Transaction, session_key: str, choose: Choose, draft_inputs: DraftInputs, now_ms: int
) -> Next:
    session = sessions.find(tx, session_key)
    waiting = inbox.queued(tx, session_key)
    if session is None or not waiting:
        return Next()  # deleted just now, and its inputs with it; or nothing came
    fresh = tuple(item for item in waiting if item.expires_at is None or item.expires_at > now_ms)
    late = [item for item in waiting if item not in fresh] if len(fresh) < len(waiting) else []
    expired = tuple(run_id for item in late for run_id in inbox.cancel(tx, session_key, item.run_id))
    if not fresh:
        return Next(expired=expired)
    left_over = runs.active_of(tx, session_key)
    if left_over is not None:
        return Next(left_over=left_over, expired=expired)
    chosen = choose(session, fresh)
    if isinstance(chosen, Later):
        return Next(later_ms=chosen.at_ms, expired=expired)
    claimed = runs.claim(
        tx, session_key, chosen.admissions, chosen.plan, draft_inputs, now_ms, session=session
    )
    return Next(claimed=claimed, expired=expired)
