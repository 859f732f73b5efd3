"""Keeping only the newest messages of a context, without a summary and without losing the rest (RPC-9).

The whole transcript is written to an archive file first. Then a compaction record is
appended whose pointer names the first message that stays; nothing is rewritten, and
`/compact undo` takes it back. Whether anything runs meanwhile is the caller's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from openclaw.domain.compaction import CompactionSettings, Item
from openclaw.domain.tokens import message_tokens
from openclaw.domain.transcript import ToolResultMessage
from openclaw.engine import events
from openclaw.engine.compaction_context import ReadContext, read_for_compaction, summary_as_message
from openclaw.engine.contexts import ContextCache
from openclaw.engine.events import EventSink
from openclaw.engine.ports import Clock
from openclaw.errors import Unavailable
from openclaw.store.archiving import ArchiveFailed, Archives
from openclaw.store.compactions import CompactionDraft, Compactions
from openclaw.store.endings import Endings
from openclaw.store.records import SessionRow
from openclaw.store.store import Store

PUT_AWAY = "Earlier messages were put away on request. They are not part of this conversation any more."


class TrimResult(Struct, frozen=True):
    """How many messages the context has now, and the archive of the whole transcript if one was needed."""

    trimmed: bool
    kept: int
    archived: str | None = None


def first_kept(items: Sequence[Item], keep: int) -> int:
    """The index of the first message that stays: at most `keep`, never beginning with a tool's result.

    A result whose call is put away would be refused by every provider (COMP-7).
    """
    start = max(0, len(items) - keep)
    while 0 < start < len(items) and isinstance(items[start].message, ToolResultMessage):
        start += 1
    return start


class Trimmer:
    def __init__(
        self,
        store: Store,
        endings: Endings,
        compactions: Compactions,
        contexts: ContextCache,
        archives: Archives,
        overhead_tokens: Callable[[SessionRow], Awaitable[int]],
        clock: Clock,
        emit: EventSink,
    ) -> None:
        self._store = store
        self._endings = endings
        self._compactions = compactions
        self._contexts = contexts
        self._archives = archives
        self._overhead_tokens = overhead_tokens
        self._clock = clock
        self._emit = emit

    async def trim(self, session: SessionRow, keep: int) -> TrimResult:
        """Put all but the newest `keep` messages of the context away. Raises VersionConflict if overtaken."""
        rows = await self._compactions.context(session.window_no)
        overhead = await self._overhead_tokens(session)
        context = await asyncio.to_thread(
            read_for_compaction, rows, 0, "manual", CompactionSettings(), overhead
        )
        items = context.task.items
        start = first_kept(items, keep)
        if start == 0:
            return TrimResult(False, len(items))
        self._tell(session, done=False)
        compacted = False
        try:
            archived = await self._archive(session)
            await self._compactions.commit(
                _draft_of(session, context, start, overhead), now_ms=self._clock.now_ms()
            )
            compacted = True
        finally:
            self._contexts.forget(session.window_no)
            self._tell(await self._store.session(session.session_key) or session, True, compacted)
        return TrimResult(True, len(items) - start, archived)

    async def _archive(self, session: SessionRow) -> str:
        """The transcript as it is now, noted so that an erase and the retention of archives find it."""
        now_ms = self._clock.now_ms()
        windows = await self._store.windows_of(session.session_key)
        window = next(one for one in windows if one.window_no == session.window_no)
        try:
            file = await self._archives.write(window, "bak", now_ms, now_ms=now_ms)
        except ArchiveFailed as error:
            raise Unavailable(f"nothing was compacted: {error.message}") from error
        await self._endings.note_file(file)
        return file.path

    def _tell(self, session: SessionRow, done: bool, compacted: bool = False) -> None:
        self._emit(events.CompactionTold(session, None, "manual", done, compacted))


def _draft_of(session: SessionRow, context: ReadContext, start: int, overhead: int) -> CompactionDraft:
    items = context.task.items
    kept = items[start:]
    summary = message_tokens(summary_as_message(PUT_AWAY))
    return CompactionDraft(
        session_key=session.session_key,
        window_no=session.window_no,
        base_seq=context.base_seq,
        first_kept_seq=kept[0].seq if kept else context.base_seq + 1,
        summary=PUT_AWAY,
        tokens_before=context.task.before,
        tokens_after=overhead + summary + sum(item.tokens for item in kept),
        details={"strategy": "keep_last", "trigger": "manual"},
    )
