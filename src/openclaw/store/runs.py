"""Run verbs as units of work: claim, absorb, step, finish, take over.

A run is a row with an owner and a fence. Whoever writes for a run must hold the
current fence: a run that was taken over after a crash cannot be written to by
its former owner (PITFALLS C1). At most one run per session is active; the
database says so.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from openclaw.errors import StoreError
from openclaw.store import failpoints, inbox, sessions, transcript
from openclaw.store.database import Transaction
from openclaw.store.outbox import prepare
from openclaw.store.records import (
    DeliveryDraft,
    EntryDraft,
    QueuedInput,
    RunOutcome,
    RunRow,
    SessionRow,
    StoredEntry,
    UsageRow,
)
from openclaw.store.statements import load_statements

SQL = load_statements("runs.sql")
_STATUS = {
    "ok": "done",
    "error": "failed",
    "aborted": "killed",
    "timeout": "timeout",
    "interrupted": "failed",
}


class RunLost(StoreError):
    """The run was ended or taken over by somebody else; nothing was written."""

    code = "RUN_LOST"


class RunPlan(Struct, frozen=True):
    """How a run shall be started."""

    kind: str
    lane: str
    owner: str
    deadline: int | None = None


class Claimed(Struct, frozen=True):
    """A run that has begun: its inputs are consumed and stand in the transcript."""

    run: RunRow
    session: SessionRow
    inputs: tuple[QueuedInput, ...]
    entries: tuple[StoredEntry, ...]


class RunEnd(Struct, frozen=True):
    """How a run ended, and what is told about it."""

    outcome: RunOutcome
    stop_reason: str | None = None
    error: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    context_tokens: int | None = None
    provider: str | None = None
    model: str | None = None


class Finished(Struct, frozen=True):
    run: RunRow
    session: SessionRow
    entries: tuple[StoredEntry, ...]
    more_waiting: bool


def get(tx: Transaction, run_id: str) -> RunRow | None:
    found = tx.row(SQL["get"], (run_id,))
    return None if found is None else RunRow(*found)


def active_of(tx: Transaction, session_key: str) -> RunRow | None:
    found = tx.row(SQL["active_of"], (session_key,))
    return None if found is None else RunRow(*found)


def active(tx: Transaction, limit: int = 10_000) -> tuple[RunRow, ...]:
    return tuple(RunRow(*row) for row in tx.rows(SQL["active"], (limit,)))


def claim(
    tx: Transaction,
    session_key: str,
    admissions: tuple[int, ...],
    plan: RunPlan,
    draft_input: Callable[[QueuedInput], EntryDraft],
    now_ms: int,
) -> Claimed | None:
    """Start a run on queued inputs: run row, user entries and consumption are one commit.

    None when a run is active already or none of the inputs waits any more.
    """
    if active_of(tx, session_key) is not None:
        return None
    handles = (inbox.waiting_run_id(tx, session_key, admission) for admission in admissions)
    run_id = next((handle for handle in handles if handle is not None), None)
    if run_id is None:
        return None
    session = sessions.get(tx, session_key)
    inputs = inbox.consume(tx, session_key, admissions, run_id)
    tx.run(
        SQL["insert_run"],
        (
            run_id, session_key, session.agent_id, session.window_no, plan.kind, plan.lane, plan.owner,
            now_ms, now_ms, plan.deadline,
        ),
    )  # fmt: skip
    failpoints.reach("claim.run_begun")
    human = any(item.human for item in inputs)
    tx.run(SQL["begin_session"], (now_ms, run_id, int(human), session.session_no))
    entries = transcript.append(tx, session_key, [draft_input(item) for item in inputs], now_ms)
    failpoints.reach("claim.done")
    run = RunRow(
        run_id, session_key, session.agent_id, session.window_no, plan.kind, plan.lane, "active", None, None,
        None, plan.owner, 1, 0, now_ms, now_ms, plan.deadline, None, None,
    )  # fmt: skip
    return Claimed(run, sessions.get(tx, session_key), inputs, entries)


def absorb(
    tx: Transaction,
    run: RunRow,
    admissions: tuple[int, ...],
    draft_input: Callable[[QueuedInput], EntryDraft],
    now_ms: int,
) -> tuple[StoredEntry, ...]:
    """Steer queued inputs into a running turn: consumed and appended in one commit (QUE-2, QUE-5)."""
    _hold(tx, run, now_ms)
    inputs = inbox.consume(tx, run.session_key, admissions, run.run_id)
    if not inputs:
        return ()
    drafts = [draft_input(item) for item in inputs]
    failpoints.reach("absorb.consumed")
    return transcript.append(tx, run.session_key, drafts, now_ms, window_no=run.window_no)


def step(
    tx: Transaction,
    run: RunRow,
    drafts: tuple[EntryDraft, ...],
    usage: tuple[UsageRow, ...],
    now_ms: int,
) -> tuple[StoredEntry, ...]:
    """Commit one step of a run: its messages and what the model call used."""
    _hold(tx, run, now_ms)
    failpoints.reach("step.held")
    cost_usd = _record_usage(tx, run, usage, now_ms)
    if cost_usd is not None:
        tx.run(SQL["add_cost"], (cost_usd, run.session_key))
    failpoints.reach("step.used")
    return transcript.append(tx, run.session_key, drafts, now_ms, window_no=run.window_no)


def finish(
    tx: Transaction,
    run: RunRow,
    drafts: tuple[EntryDraft, ...],
    end: RunEnd,
    usage: tuple[UsageRow, ...],
    deliveries: tuple[DeliveryDraft, ...],
    now_ms: int,
) -> Finished:
    """End a run: last messages, usage, deliveries and the closing of the row are one commit."""
    session = sessions.find(tx, run.session_key)
    if session is None:
        raise RunLost()  # a deleted session has ended its run
    # A session that was reset under the run keeps its new window clean.
    stays = session.window_no == run.window_no
    entries = transcript.append(tx, run.session_key, drafts, now_ms) if drafts and stays else ()
    failpoints.reach("finish.appended")
    reply_seq = next((item.seq for item in reversed(entries) if item.role == "assistant"), None)
    ended = tx.row(
        SQL["end_run"], (end.outcome, end.stop_reason, end.error, now_ms, reply_seq, run.run_id, run.fence)
    )
    if ended is None:
        raise RunLost()
    failpoints.reach("finish.ended")
    cost_usd = _record_usage(tx, run, usage, now_ms)
    for delivery in deliveries:
        prepare(tx, delivery, run.session_key, run.run_id, now_ms)
    failpoints.reach("finish.handed_over")
    if stays:
        _close_session(tx, run, end, cost_usd, now_ms)
    failpoints.reach("finish.done")
    return Finished(
        RunRow(*ended),
        sessions.get(tx, run.session_key),
        entries,
        inbox.count_queued(tx, run.session_key) > 0,
    )


def _close_session(tx: Transaction, run: RunRow, end: RunEnd, cost_usd: float | None, now_ms: int) -> None:
    """Counters of the latest run; a failed run keeps the previous ones (LOOP-6)."""
    good = end.outcome == "ok"
    known = good and end.input_tokens is not None
    tx.run(
        SQL["end_session"],
        (
            _STATUS[end.outcome], now_ms, now_ms - run.started_at, int(end.outcome == "aborted"),
            end.provider if good else None, end.model if good else None,
            end.input_tokens if known else None, end.output_tokens if known else None,
            _prompt_tokens(end) if known else None, 1 if known else None,
            end.context_tokens if good else None,
            end.cache_read if known else None, end.cache_write if known else None,
            cost_usd, run.session_key,
        ),
    )  # fmt: skip


def _prompt_tokens(end: RunEnd) -> int:
    """What the last call had in its window: the context in use (PITFALLS F1)."""
    return (end.input_tokens or 0) + (end.cache_read or 0) + (end.cache_write or 0)


def _record_usage(tx: Transaction, run: RunRow, usage: tuple[UsageRow, ...], now_ms: int) -> float | None:
    """Record calls, each once; returns what the new ones cost, None when no price is known."""
    cost_usd = None
    for row in usage:
        recorded = tx.row(
            SQL["insert_usage"],
            (
                row.call_id, run.session_key, run.agent_id, run.run_id, row.provider, row.model,
                now_ms, row.input, row.output, row.cache_read, row.cache_write, row.cost_usd,
            ),
        )  # fmt: skip
        if recorded is not None and row.cost_usd is not None:
            cost_usd = (cost_usd or 0.0) + row.cost_usd
    return cost_usd


def _hold(tx: Transaction, run: RunRow, now_ms: int) -> None:
    """Show that the run is still ours; progress is what the watchdog looks at."""
    if tx.row(SQL["progress"], (now_ms, run.run_id, run.fence)) is None:
        raise RunLost()


def abandon(tx: Transaction, session_key: str, now_ms: int) -> None:
    """End the active run of a session that is being deleted; its owner finds it lost."""
    tx.run(SQL["abandon"], (now_ms, session_key))
    failpoints.reach("run.abandoned")


def take_over(tx: Transaction, run_id: str, owner: str, now_ms: int) -> RunRow | None:
    """Become the owner of an active run whose owner is gone. The fence shuts the former owner out."""
    found = tx.row(SQL["take_over"], (owner, now_ms, run_id))
    failpoints.reach("run.taken_over")
    return None if found is None else RunRow(*found)
