"""Compactions in the store: where the active context begins, and the commits that move that place.

A compaction is an appended entry with a pointer; undoing it is another entry.
Nothing is rewritten (TRX-1), and neither ever changes the session id. Both are
refused when the context that they were made from is no longer the current one
(PITFALLS E6). Nothing here decides what to summarise.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from openclaw.domain.boundaries import COMPACTION_UNDONE
from openclaw.domain.entry import SessionEntry
from openclaw.domain.transcript import encode
from openclaw.errors import InvalidRequest, VersionConflict
from openclaw.store import sessions, transcript
from openclaw.store.database import Database, Transaction
from openclaw.store.records import EntryDraft, RunRow, SessionRow, StoredEntry
from openclaw.store.runs import RunLost
from openclaw.store.statements import load_statements
from openclaw.store.transcript import entry_range

SQL = load_statements("compactions.sql")
_HOLD = load_statements("runs.sql")["progress"]
_CHANGED_ID = load_statements("imports.sql")["changed_id"]


class ContextStart(Struct, frozen=True):
    """Where the active context begins. `compaction_seq` is the compaction that opens it, if one does."""

    first_seq: int
    compaction_seq: int | None = None
    compaction_id: str | None = None


class ContextRows(Struct, frozen=True):
    """The entries of the active context, from where it begins to the end."""

    start: ContextStart
    entries: tuple[StoredEntry, ...]


class CompactionDraft(Struct, frozen=True, kw_only=True):
    """A summary that is ready, of what comes before `first_kept_seq` in a context read up to `base_seq`.

    `first_kept_seq` one past `base_seq` keeps nothing of what was read; what came later stays in any case.
    """

    session_key: str
    window_no: int
    base_seq: int
    first_kept_seq: int
    summary: str
    tokens_before: int
    tokens_after: int
    details: dict[str, Any] | None = None
    run_id: str | None = None


class UndoDraft(Struct, frozen=True, kw_only=True):
    """The wish to take a compaction back, made from a context read up to `base_seq`."""

    session_key: str
    window_no: int
    base_seq: int
    compaction_id: str
    tokens_after: int


class CompactionKept(Struct, frozen=True):
    """What was appended, and the session as it is now."""

    session: SessionRow
    entry: StoredEntry


class _Pointer(Struct, frozen=True, rename="camel"):
    first_kept_entry_id: str | None = None


class _UndoneData(Struct, frozen=True, rename="camel"):
    target_id: str


class _Undone(Struct, frozen=True, rename="camel"):
    custom_type: str
    data: _UndoneData


_pointer_of = msgspec.json.Decoder(_Pointer).decode
_undone_of = msgspec.json.Decoder(_Undone).decode


# -- where the context begins ----------------------------------------------------------------------


def context_start(tx: Transaction, window_no: int, *, undone: Collection[str] = ()) -> ContextStart:
    """The entry from which on `rebuild_context` gives what it would give for the whole window (TRX-9).

    Looks backwards from the end and stops at the first boundary that holds, so it costs no more than
    reading the context does. Compactions named in `undone` count as taken back.
    """
    first, end = entry_range(window_no)
    taken_back = set(undone)
    before = end
    while (found := tx.row(SQL["boundary_before"], (first, before))) is not None:
        seq, entry_id, kind, body = found
        taken_back |= _undone_between(tx, first + seq, before)
        if kind == "reset" or entry_id not in taken_back:
            kept = _kept_seq(tx, window_no, seq, body)
            opener = (seq, entry_id) if kind == "compaction" else (None, None)
            if kept is None or not _is_plain(tx, window_no, kept, seq):
                return ContextStart(1, *opener)
            return ContextStart(kept, *opener)
        before = first + seq
    return ContextStart(1)


def _undone_between(tx: Transaction, after_no: int, before_no: int) -> set[str]:
    targets = set()
    for (body,) in tx.rows(SQL["customs_between"], (after_no, before_no)):
        try:
            record = _undone_of(body)
        except msgspec.MsgspecError:
            continue  # a note of another kind
        if record.custom_type == COMPACTION_UNDONE:
            targets.add(record.data.target_id)
    return targets


def _kept_seq(tx: Transaction, window_no: int, seq: int, body: bytes) -> int | None:
    """The first entry that a boundary kept; the boundary itself when it kept none.

    None: what it kept begins before this window, in one that it goes on from (LIFE-23).
    """
    kept_id = _pointer_of(body).first_kept_entry_id
    if kept_id is None:
        return seq
    first, _ = entry_range(window_no)
    found = tx.row(SQL["seq_of_id"], (first, first + seq, kept_id))
    if found is not None:
        return int(found[0])
    return None if sessions.window_by_no(tx, window_no).base_no is not None else seq


def _is_plain(tx: Transaction, window_no: int, kept: int, seq: int) -> bool:
    """Whether the entries from `kept` on are one line without another reset before the boundary.

    Only imported transcripts branch or hold resets; those are read whole until the next compaction.
    """
    first, end = entry_range(window_no)
    if tx.row(SQL["jump_between"], (first + kept, end)) is not None:
        return False
    return tx.row(SQL["reset_between"], (first + kept - 1, first + seq)) is None


def read_context(tx: Transaction, window_no: int, *, undone: Collection[str] = ()) -> ContextRows:
    """The active context of a window: only the entries that it is made of."""
    start = context_start(tx, window_no, undone=undone)
    return ContextRows(start, transcript.span(tx, window_no, start.first_seq, transcript.LAST))


# -- commits ---------------------------------------------------------------------------------------


def commit_compaction(
    tx: Transaction, draft: CompactionDraft, now_ms: int, run: RunRow | None = None
) -> CompactionKept:
    """Append a compaction, count it, and note the new size as an estimate (COMP-3, COMP-9).

    Refused with VersionConflict when the session was reset, compacted or taken back in the meantime.
    With `run` the fence is checked too: RunLost. Messages that were appended meanwhile stay visible.
    """
    _hold(tx, run, now_ms)
    row = _unchanged(tx, draft.session_key, draft.window_no, draft.base_seq)
    body: dict[str, Any] = {
        "summary": draft.summary,
        "firstKeptEntryId": _kept_id(tx, row, draft.first_kept_seq),
        "tokensBefore": draft.tokens_before,
    }
    if draft.details is not None:
        body["details"] = draft.details
    entry = EntryDraft("compaction", encode(body), audience="model", run_id=draft.run_id)
    return _append(tx, row, entry, draft.tokens_after, 1, now_ms)


def undo_compaction(tx: Transaction, draft: UndoDraft, now_ms: int) -> CompactionKept:
    """Append the record that takes the last compaction back; the context is again what it was, and what
    came later. The count of compactions stays: it says how many there were.

    Refused with VersionConflict when another boundary came in the meantime, and with InvalidRequest
    when the compaction is not the one in force.
    """
    row = _unchanged(tx, draft.session_key, draft.window_no, draft.base_seq)
    if context_start(tx, draft.window_no).compaction_id != draft.compaction_id:
        raise InvalidRequest("this compaction is not the last one; only the last one can be undone")
    body = {"customType": COMPACTION_UNDONE, "data": {"targetId": draft.compaction_id}}
    entry = EntryDraft("custom", encode(body), audience="internal")
    return _append(tx, row, entry, draft.tokens_after, 0, now_ms)


def note_flush(tx: Transaction, session_key: str, compaction_count: int, now_ms: int) -> SessionRow:
    """Remember that the memory flush of this cycle was made (FLUSH-4)."""
    row = sessions.get(tx, session_key)

    def noted(entry: SessionEntry) -> SessionEntry:
        return replace(entry, memory_flush_at=now_ms, memory_flush_compaction_count=compaction_count)

    return sessions.modify(tx, row, noted, now_ms)


def _hold(tx: Transaction, run: RunRow | None, now_ms: int) -> None:
    if run is not None and tx.row(_HOLD, (now_ms, run.run_id, run.fence)) is None:
        raise RunLost()


def _unchanged(tx: Transaction, session_key: str, window_no: int, base_seq: int) -> SessionRow:
    """The session, if the context that was read up to `base_seq` still begins where it began."""
    row = sessions.get(tx, session_key)
    if row.window_no != window_no:
        raise VersionConflict(f"session {session_key} was reset in the meantime")
    first, end = entry_range(window_no)
    moved = tx.row(SQL["boundary_after"], (first + base_seq, end))
    if moved is not None or _undone_between(tx, first + base_seq, end):
        raise VersionConflict(f"session {session_key} was compacted in the meantime")
    return row


def _kept_id(tx: Transaction, row: SessionRow, first_kept_seq: int) -> str:
    """The id of the first kept entry; the id of the compaction to come when nothing is kept."""
    found = transcript.entry_at(tx, row.window_no, first_kept_seq)
    if found is not None:
        return found.entry_id
    next_seq = row.last_seq + 1
    if row.id_salt >= transcript.FOREIGN_IDS:
        changed = tx.row(_CHANGED_ID, (row.window_no, next_seq))
        if changed is not None:
            return str(changed[0])
    return transcript.entry_id_of(row.id_salt, next_seq)


def _append(
    tx: Transaction, row: SessionRow, draft: EntryDraft, tokens: int, counted: int, now_ms: int
) -> CompactionKept:
    (entry,) = transcript.append(tx, row.session_key, (draft,), now_ms, window_no=row.window_no)

    def noted(old: SessionEntry) -> SessionEntry:
        count = old.compaction_count + counted
        return replace(old, compaction_count=count, total_tokens=tokens, total_tokens_fresh=False)

    session = sessions.modify(tx, sessions.get(tx, row.session_key), noted, now_ms)
    return CompactionKept(session, entry)


# -- the verbs over a database ---------------------------------------------------------------------


class Compactions:
    """Compaction verbs, each one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def context(self, window_no: int, *, undone: Collection[str] = ()) -> ContextRows:
        """The entries of the active context; what a compaction put away is not read."""
        return await self._database.read(lambda tx: read_context(tx, window_no, undone=undone))

    async def commit(
        self, draft: CompactionDraft, *, now_ms: int, run: RunRow | None = None
    ) -> CompactionKept:
        """See `commit_compaction`."""
        return await self._database.write(lambda tx: commit_compaction(tx, draft, now_ms, run))

    async def undo(self, draft: UndoDraft, *, now_ms: int) -> CompactionKept:
        """See `undo_compaction`."""
        return await self._database.write(lambda tx: undo_compaction(tx, draft, now_ms))

    async def note_flush(self, session_key: str, compaction_count: int, *, now_ms: int) -> SessionRow:
        """See `note_flush`."""
        return await self._database.write(lambda tx: note_flush(tx, session_key, compaction_count, now_ms))
