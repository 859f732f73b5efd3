"""Compacting a session: one pipeline for `/compact`, the threshold and an overflow (SPEC §20).

Reads the active context, asks for a summary within a deadline, and commits it if
it is worth it; stronger strategies follow weaker ones, at most three. Nothing is
written before the one commit at the end, so a cancelled or failed compaction
leaves everything as it was (COMP-10). Who may compact, and what happens to the
turn afterwards, is decided by the caller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from msgspec import Struct

from openclaw.domain.compaction import (
    CompactionSettings,
    Strategy,
    Trigger,
    choose_cut,
    effective_reserve,
    find_cut,
    keep_for,
    strategies_from,
)
from openclaw.engine.compaction_context import ReadContext, read_for_compaction, read_for_undo
from openclaw.engine.ports import Clock, ModelDone, ModelRequest, ModelTarget
from openclaw.engine.summarising import (
    Pass,
    Useless,
    judge_reply,
    request_summary,
    summarise_locally,
)
from openclaw.errors import InvalidRequest, VersionConflict
from openclaw.store.compactions import CompactionDraft, CompactionKept, Compactions, UndoDraft
from openclaw.store.records import RunRow, SessionRow, StoredEntry

log = logging.getLogger("openclaw.compaction")

DEFAULT_TIMEOUT_S = 900.0
LOCAL_RESERVE_S = 5.0  # of the run's own deadline, so that a summary without a model can still be made

Summarise = Callable[[ModelRequest], Awaitable[ModelDone]]
NotReason = Literal["too_short", "busy", "failed", "overtaken", "cancelled"]


class CompactionJob(Struct, frozen=True, kw_only=True):
    """One compaction to make.

    `window` is that of the model which goes on with the conversation, `overhead_tokens` what prompt and
    tools cost besides the messages. `target` and `summarise` are the model that writes the summary and
    one accounted call to it; without them the summary is made locally. `attempt` counts the compactions
    of one turn after overflows: each starts with a stronger strategy. `run` is held by its fence.
    """

    session: SessionRow
    trigger: Trigger
    window: int
    settings: CompactionSettings = CompactionSettings()
    overhead_tokens: int = 0
    target: ModelTarget | None = None
    summarise: Summarise | None = None
    instructions: str = ""
    attempt: int = 1
    run: RunRow | None = None


class Compacted(Struct, frozen=True):
    tokens_before: int
    tokens_after: int
    strategy: Strategy
    session: SessionRow
    entry: StoredEntry


class NotCompacted(Struct, frozen=True):
    """Nothing was changed, and why (COMP-9). `message` is for people."""

    reason: NotReason
    message: str


CompactionResult = Compacted | NotCompacted


class CompactionStarted(Struct, frozen=True):
    session: SessionRow
    trigger: Trigger
    run_id: str | None


class CompactionFinished(Struct, frozen=True):
    """Follows every CompactionStarted, also when the compaction was cancelled or failed."""

    session: SessionRow
    trigger: Trigger
    run_id: str | None
    result: CompactionResult


CompactionEvent = CompactionStarted | CompactionFinished


class Compactor:
    """Compacts sessions, one compaction per session at a time."""

    def __init__(
        self, compactions: Compactions, clock: Clock, emit: Callable[[CompactionEvent], None]
    ) -> None:
        self._compactions = compactions
        self._clock = clock
        self._emit = emit
        self._busy: set[str] = set()

    async def compact(self, job: CompactionJob) -> CompactionResult:
        """Compact a session, or say why not. Ends within its deadline, whatever the model does.

        Raises what the store raises (a lost run, a full disk) and cancellation. Nothing was written then,
        unless the cancellation came during the commit itself: the rows tell.
        """
        session_key = job.session.session_key
        if session_key in self._busy:
            return NotCompacted("busy", "This session is being compacted already.")
        with self._reporting(job) as report:
            result = await self._compact(job)
            report(result)
        return result

    async def undo(
        self,
        session: SessionRow,
        *,
        window: int,
        settings: CompactionSettings,
        overhead_tokens: int = 0,
    ) -> CompactionKept:
        """Take the last compaction back; the context is what it was before, and what came later.

        InvalidRequest when there is none, or when the context would no longer fit.
        """
        rows = await self._compactions.context(session.window_no)
        undone_id = rows.start.compaction_id
        if undone_id is None:
            raise InvalidRequest("there is no compaction to undo in this session")
        wider = await self._compactions.context(session.window_no, undone=(undone_id,))
        tokens = overhead_tokens + await asyncio.to_thread(read_for_undo, wider, undone_id)
        fits = window - effective_reserve(settings, window)
        if tokens > fits:
            raise InvalidRequest(
                f"the earlier context has about {tokens} tokens and only {fits} fit this model's window; "
                "choose a model with a larger window, or keep the summary"
            )
        draft = UndoDraft(
            session_key=session.session_key, window_no=session.window_no, base_seq=wider.entries[-1].seq,
            compaction_id=undone_id, tokens_after=tokens,
        )  # fmt: skip
        kept = await self._compactions.undo(draft, now_ms=self._clock.now_ms())
        log.info("compaction undone: session=%s tokens=%d", session.session_key, tokens)
        return kept

    @contextmanager
    def _reporting(self, job: CompactionJob) -> Iterator[Callable[[CompactionResult], None]]:
        """Hold the session and tell beginning and end, also of a compaction that was cancelled (COMP-12)."""
        key, run_id = job.session.session_key, job.run.run_id if job.run else None
        # What is told if nothing better becomes known: the compaction was cancelled on its way.
        result: CompactionResult = NotCompacted("cancelled", "The compaction was stopped.")

        def report(known: CompactionResult) -> None:
            nonlocal result
            result = known

        self._busy.add(key)
        log.info("compaction start: session=%s trigger=%s attempt=%d", key, job.trigger, job.attempt)
        self._emit(CompactionStarted(job.session, job.trigger, run_id))
        try:
            yield report
        except Exception as error:
            report(NotCompacted("failed", f"Nothing was compacted: {error}"))
            raise
        finally:
            self._busy.discard(key)
            if isinstance(result, Compacted):
                log.info(
                    "compaction complete: session=%s trigger=%s strategy=%s tokens=%d->%d",
                    key, job.trigger, result.strategy, result.tokens_before, result.tokens_after,
                )  # fmt: skip
            else:
                log.info("compaction complete: session=%s nothing changed: %s", key, result.message)
            self._emit(CompactionFinished(job.session, job.trigger, run_id, result))

    # -- the pipeline --------------------------------------------------------------------------

    async def _compact(self, job: CompactionJob) -> CompactionResult:
        ends = self._clock.monotonic() + self._seconds_for(job)
        rows = await self._compactions.context(job.session.window_no)
        context = await asyncio.to_thread(
            read_for_compaction, rows, job.window, job.trigger, job.settings, job.overhead_tokens
        )
        found = await self._find_pass(job, context, ends)
        if isinstance(found, NotCompacted):
            return found
        try:
            kept = await self._compactions.commit(
                _draft_of(job, context, found), now_ms=self._clock.now_ms(), run=job.run
            )
        except VersionConflict as conflict:
            return NotCompacted("overtaken", f"Nothing was compacted: {conflict.message}.")
        before = context.task.before
        return Compacted(before, found.tokens_after, found.strategy, kept.session, kept.entry)

    def _seconds_for(self, job: CompactionJob) -> float:
        """How long models may take: never longer than the run has, less what the last resort needs."""
        asked = float(job.settings.timeout_seconds)
        limit = asked if asked > 0 else DEFAULT_TIMEOUT_S
        if job.run is not None and job.run.deadline is not None:
            limit = min(limit, (job.run.deadline - self._clock.now_ms()) / 1000 - LOCAL_RESERVE_S)
        return limit

    async def _find_pass(self, job: CompactionJob, context: ReadContext, ends: float) -> Pass | NotCompacted:
        task = context.task
        if job.trigger == "manual" and find_cut(task.items, keep_for(task, "summary")) is None:
            return NotCompacted("too_short", "The conversation is too short to be compacted.")
        reason = "there is nothing that could be summarised"
        for strategy in strategies_from(job.attempt) if job.summarise else ("local",):
            if strategy == "local":
                if job.summarise is not None and not task.needs_room:
                    break  # it still fits: better whole than in a poor summary (COMP-10)
                outcome = await asyncio.to_thread(summarise_locally, context)
            else:
                outcome = await self._ask(job, context, strategy, ends)
            if isinstance(outcome, Pass):
                return outcome
            reason = outcome.reason
            log.warning("compaction of %s: %s did not work: %s", job.session.session_key, strategy, reason)
        return NotCompacted("failed", f"Nothing was compacted: {reason.rstrip('.')}.")

    async def _ask(
        self, job: CompactionJob, context: ReadContext, strategy: Strategy, ends: float
    ) -> Pass | Useless:
        """One pass with a model. The first may use two thirds of the time that is left."""
        if job.summarise is None or job.target is None:
            return Useless("no model is there to write a summary")
        left = ends - self._clock.monotonic()
        seconds = left * 2 / 3 if strategy == "summary" else left
        cut = choose_cut(context.task, strategy)
        if cut is None:
            return Useless("there is nothing to summarise, or no room for a summary beside what stays")
        if seconds <= 0:
            return Useless("there was no time left to ask a model")
        request = await asyncio.to_thread(
            request_summary, context, cut, strategy, job.target, job.instructions
        )
        try:
            async with asyncio.timeout(seconds):
                done = await job.summarise(request)
        except TimeoutError:
            return Useless(f"the model did not answer within {seconds:.0f} s")
        return await asyncio.to_thread(judge_reply, context, cut, strategy, done)


def _draft_of(job: CompactionJob, context: ReadContext, found: Pass) -> CompactionDraft:
    items = context.task.items
    whole = found.cut.index == len(items)
    return CompactionDraft(
        session_key=job.session.session_key,
        window_no=job.session.window_no,
        base_seq=context.base_seq,
        first_kept_seq=context.base_seq + 1 if whole else items[found.cut.index].seq,
        summary=found.summary,
        tokens_before=context.task.before,
        tokens_after=found.tokens_after,
        details={
            "readFiles": list(found.files.read),
            "modifiedFiles": list(found.files.changed),
            "strategy": found.strategy,
            "trigger": job.trigger,
        },
        run_id=job.run.run_id if job.run else None,
    )


def tell_result(result: CompactionResult, window: int) -> str:
    """The answer to `/compact` (COMP-9)."""
    if isinstance(result, NotCompacted):
        return result.message
    share = round(100 * result.tokens_after / window) if window > 0 else 0
    return (
        f"Compacted: {result.tokens_before} → {result.tokens_after} tokens "
        f"({share} % of the {window} that fit). /compact undo takes it back."
    )
