"""Run verbs as units of work: claim, absorb, step, finish, take over.

A run is a row with an owner and a fence. Whoever writes for a run must hold the
current fence: a run that was taken over after a crash cannot be written to by
its former owner (PITFALLS C1). At most one run per session is active; the
database says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from openclaw.domain.entry import SessionEntry, SessionStatus
from openclaw.errors import StoreError
from openclaw.store import failpoints, inbox, sessions, systemevents, transcript
from openclaw.store.budgets import Payer, charge, record_usage
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
STATUS: dict[RunOutcome, SessionStatus] = {
    "ok": "done",
    "error": "failed",
    "aborted": "killed",
    "timeout": "timeout",
    "interrupted": "failed",
}


# How accepted inputs become transcript entries. The session is given as it was before the run that begins
# with them, and None when they join a run that is under way.
DraftInputs = Callable[[SessionRow | None, tuple[QueuedInput, ...]], Sequence[EntryDraft]]


# What the tools of a step did to this store: done in its transaction, told by the entries returned.
Effects = Callable[[Transaction], Sequence[EntryDraft]]


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
    # Why the window was opened, when this is its first turn.
    opened: str | None = None


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
    fell_back: bool = False  # another model than the first choice answered
    prompt_report: dict[str, Any] | None = None  # when the prompt is another than the last turn's


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
    draft_inputs: DraftInputs,
    now_ms: int,
    *,
    session: SessionRow | None = None,
) -> Claimed | None:
    """Start a run on queued inputs: run row, user entries and consumption are one commit.

    None when a run is active already or none of the inputs waits any more. `session` is the row
    as it is, from a caller who has it.
    """
    if active_of(tx, session_key) is not None:
        return None
    handles = (inbox.waiting_run_id(tx, session_key, admission) for admission in admissions)
    run_id = next((handle for handle in handles if handle is not None), None)
    if run_id is None:
        return None
    session = session or sessions.get(tx, session_key)
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
    # The gateway's own note-taking turn is not the one that events wait for.
    events = () if inputs[0].body.purpose == "flush" else systemevents.take(tx, session_key, run_id)
    entries = transcript.append(tx, session_key, (*events, *draft_inputs(session, inputs)), now_ms)
    failpoints.reach("claim.done")
    run = RunRow(
        run_id, session_key, session.agent_id, session.window_no, plan.kind, plan.lane, "active", None, None,
        None, plan.owner, 1, 0, now_ms, now_ms, plan.deadline, None, None,
    )  # fmt: skip
    opened = sessions.window_by_no(tx, session.window_no).reason if session.last_seq == 0 else None
    return Claimed(run, sessions.get(tx, session_key), inputs, entries, opened)


def absorb(
    tx: Transaction,
    run: RunRow,
    admissions: tuple[int, ...],
    draft_inputs: DraftInputs,
    now_ms: int,
) -> tuple[StoredEntry, ...]:
    """Steer queued inputs into a running turn: consumed and appended in one commit (QUE-2, QUE-5).

    When none of them waits any more nothing is written: that is no progress of the run.
    """
    inputs = inbox.consume(tx, run.session_key, admissions, run.run_id)
    if not inputs:
        if tx.row(SQL["held"], (run.run_id, run.fence)) is None:
            raise RunLost()
        return ()
    _hold(tx, run, now_ms)
    drafts = draft_inputs(None, inputs)
    failpoints.reach("absorb.consumed")
    return transcript.append(tx, run.session_key, drafts, now_ms, window_no=run.window_no)


def step(
    tx: Transaction,
    run: RunRow,
    drafts: tuple[EntryDraft, ...],
    usage: tuple[UsageRow, ...],
    now_ms: int,
    effects: Effects | None = None,
) -> tuple[StoredEntry, ...]:
    """Commit one step of a run: its messages and what the model call used.

    `effects` are what tools did to this store: they happen here, and what they say is part of the step.
    """
    _hold(tx, run, now_ms)
    failpoints.reach("step.held")
    charge(tx, run.session_key, record_usage(tx, _payer(run), usage, now_ms))
    failpoints.reach("step.used")
    if effects is not None:
        drafts = (*drafts, *effects(tx))
    return transcript.append(tx, run.session_key, drafts, now_ms, window_no=run.window_no)


def finish(
    tx: Transaction,
    run: RunRow,
    drafts: tuple[EntryDraft, ...],
    end: RunEnd,
    usage: tuple[UsageRow, ...],
    deliveries: tuple[DeliveryDraft, ...],
    now_ms: int,
    also: Callable[[Transaction], None] | None = None,
) -> Finished:
    """End a run: last messages, usage, deliveries and the closing of the row are one commit.

    `also` is what the end of this run means for others, such as a completion for the session that asked.
    """
    session = sessions.find(tx, run.session_key)
    if session is None:
        raise RunLost()  # a deleted session has ended its run
    # A session that was reset under the run keeps its new window clean.
    stays = session.window_no == run.window_no
    if stays and end.outcome == "ok" and (end.fell_back or end.prompt_report is not None):
        sessions.modify(tx, session, lambda entry: _with_news(entry, end), now_ms)
    entries = transcript.append(tx, run.session_key, drafts, now_ms) if drafts and stays else ()
    failpoints.reach("finish.appended")
    reply_seq = next((item.seq for item in reversed(entries) if item.role == "assistant"), None)
    ended = tx.row(
        SQL["end_run"], (end.outcome, end.stop_reason, end.error, now_ms, reply_seq, run.run_id, run.fence)
    )
    if ended is None:
        raise RunLost()
    failpoints.reach("finish.ended")
    cost_usd = record_usage(tx, _payer(run), usage, now_ms)
    for delivery in deliveries:
        prepare(tx, delivery, run.session_key, None if delivery.aside else run.run_id, now_ms)
    failpoints.reach("finish.handed_over")
    if stays:
        _close_session(tx, run, end, cost_usd, now_ms)
    if also is not None:
        also(tx)
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
            STATUS[end.outcome], now_ms, now_ms - run.started_at, int(end.outcome == "aborted"),
            end.provider if good else None, end.model if good else None,
            end.input_tokens if known else None, end.output_tokens if known else None,
            _prompt_tokens(end) if known else None, 1 if known else None,
            end.context_tokens if good else None,
            end.cache_read if known else None, end.cache_write if known else None,
            cost_usd, run.session_key,
        ),
    )  # fmt: skip


def _with_news(entry: SessionEntry, end: RunEnd) -> SessionEntry:
    """What a run leaves behind on the entry: the make-up of its prompt, and the model that answered instead.

    That model serves until the next reset, unless a person chose one (LOOP-7).
    """
    if end.prompt_report is not None:
        entry = msgspec.structs.replace(entry, system_prompt_report=end.prompt_report)
    if not end.fell_back or entry.model_override_source == "user":
        return entry
    return msgspec.structs.replace(
        entry, provider_override=end.provider, model_override=end.model, model_override_source="auto"
    )


def _prompt_tokens(end: RunEnd) -> int:
    """What the last call had in its window: the context in use (PITFALLS F1)."""
    return (end.input_tokens or 0) + (end.cache_read or 0) + (end.cache_write or 0)


def _payer(run: RunRow) -> Payer:
    return Payer(run.session_key, run.agent_id, run.run_id)


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
