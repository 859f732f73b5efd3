"""The context of one run: what its models are shown, kept in step with what the run commits.

A view over the cached window. The rows are the truth: whatever was appended by
others meanwhile (a note, an injected message) is read before the next call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from openclaw.domain.context import make_valid
from openclaw.domain.pruning import PruningSettings, prune
from openclaw.domain.transcript import Message
from openclaw.engine.contexts import ContextCache
from openclaw.engine.ports import Clock, ModelTarget
from openclaw.store.records import RunRow, SessionRow, StoredEntry


class RunView:
    """Implements `answering.RunContext`."""

    def __init__(
        self,
        contexts: ContextCache,
        run: RunRow,
        session: SessionRow,
        *,
        clock: Clock,
        pruning: PruningSettings,
        window_of: Callable[[ModelTarget], int],
        compact: Callable[[ModelTarget, int], Awaitable[bool]],
    ) -> None:
        self._contexts = contexts
        self._window_no = run.window_no
        self._last_seq = session.last_seq
        self._clock = clock
        self._pruning = pruning
        self._window_of = window_of
        self._compact = compact
        self._compactions = 0
        self._last_run_ended = session.entry.ended_at
        self._new_ids: frozenset[str] = frozenset()
        # Why a request did not begin like the one before it; the run writes these down (LOOP-2, PRUNE-3).
        self.boundaries: list[str] = []

    def begin(self, entries: Sequence[StoredEntry]) -> None:
        """The entries that the run began with: what was said just now."""
        self._new_ids = frozenset(entry.entry_id for entry in entries)
        self.note(entries)

    def note(self, entries: Sequence[StoredEntry]) -> None:
        """The run committed entries."""
        if entries:
            self._last_seq = max(self._last_seq, entries[-1].seq)
            self._contexts.extend(self._window_no, entries)

    async def messages(self) -> tuple[Message, ...]:
        return await self._contexts.messages(self._window_no, self._last_seq)

    async def shown_to(self, target: ModelTarget) -> Sequence[Message]:
        """The context, old tool results pruned (PRUNE-1), as the dialect of this model wants it."""
        messages, now_ms = await self.messages(), self._clock.now_ms()
        before, called_ms = self._contexts.prune_state(self._window_no)
        view = prune(
            messages,
            self._pruning,
            window_tokens=self._window_of(target),
            last_call_ms=called_ms or self._last_run_ended,
            now_ms=now_ms,
            before=before,
        )
        self._contexts.keep_pruned(self._window_no, view.state, now_ms)
        if view.changed:
            self.boundaries.append("pruned")
        return make_valid(view.messages, target.dialect)

    async def compact(self, target: ModelTarget) -> bool:
        self._compactions += 1
        return await self._compact(target, self._compactions)

    async def suspects(self) -> Sequence[str]:
        await self.messages()
        return self._contexts.suspects(self._window_no, self._new_ids)
