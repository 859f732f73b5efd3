"""Transcript verbs as units of work: append, read a page, read the active context.

The transcript is append-only: there is no update and no delete of an entry here.
Appending costs the same at entry 10 and at entry 10,000.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from openclaw.errors import SessionNotFound, VersionConflict
from openclaw.store import failpoints, search
from openclaw.store.database import Row, Transaction
from openclaw.store.records import EntryDraft, SessionRow, StoredEntry
from openclaw.store.statements import load_statements

SQL = load_statements("transcript.sql")
_CHANGED_ID = load_statements("imports.sql")["changed_id"]
BLOB_BYTES = 64 * 1024
PREVIEW_CHARS = 300
# Whose last words a list shows: what a tool answered is for the model.
_SPEAKERS = frozenset(("user", "assistant"))
LAST = 1 << 62
# Set in the salt of an imported window: ids that came with the file may be the ids of entries to come.
FOREIGN_IDS = 1 << 32
_GONE = b'{"customType":"erased"}'


def salt_of(session_id: str) -> int:
    return zlib.crc32(session_id.encode("utf-8"))


def entry_id_of(salt: int, seq: int) -> str:
    """Eight hex characters, unique in the transcript because odd multipliers permute 32 bits (TRX-4)."""
    return f"{(seq * 0x9E3779B1 + salt) & 0xFFFFFFFF:08x}"


def entry_no_of(window_no: int, seq: int) -> int:
    """The key of an entry: window first, so that a transcript lies together on disk."""
    return (window_no << 32) + seq


def entry_range(window_no: int) -> tuple[int, int]:
    """Bounds that lie just outside the entries of a window."""
    return entry_no_of(window_no, 0), entry_no_of(window_no + 1, 0)


def append(
    tx: Transaction,
    session_key: str,
    drafts: Sequence[EntryDraft],
    now_ms: int,
    *,
    window_no: int | None = None,
) -> tuple[StoredEntry, ...]:
    """Append entries to the session's current window; search rows come with them (DB-15).

    With `window_no`, fails with VersionConflict when the session has been reset to another window.
    """
    shown = [draft for draft in drafts if draft.type == "message" and draft.audience == "people"]
    count = len(drafts)
    advanced = tx.row(
        SQL["advance"],
        (
            count, len(shown), now_ms,
            next((_clip(draft.text) for draft in shown if draft.role == "user" and draft.text), None),
            next((_clip(one.text) for one in reversed(shown) if one.text and one.role in _SPEAKERS), None),
            session_key, window_no,
        ),
    )  # fmt: skip
    if advanced is None:
        if window_no is None:
            raise SessionNotFound(f"session not found: {session_key}")
        raise VersionConflict(f"session {session_key} was reset in the meantime")
    failpoints.reach("append.advanced")
    last_seq, window_no, salt = advanced
    seq = last_seq - count
    parent = seq or None
    stored = []
    for draft in drafts:
        seq += 1
        entry_id = entry_id_of(salt, seq) if salt < FOREIGN_IDS else _free_id(tx, window_no, salt, seq)
        stored.append(_insert(tx, window_no, entry_id, draft, seq, parent, now_ms))
        parent = seq
    return tuple(stored)


def touch(tx: Transaction, session: SessionRow, human: bool, now_ms: int) -> SessionRow:
    """Note activity: a person's turn refreshes the session, any turn moves it up in lists (LIFE-12).

    `session` must be the row as it is; returns it as it is then.
    """
    tx.run(SQL["touch"], (int(human), now_ms, session.session_no))
    entry = replace(
        session.entry,
        updated_at=max(session.entry.updated_at, now_ms),
        last_interaction_at=now_ms if human else session.entry.last_interaction_at,
    )
    return replace(session, version=session.version + 1, entry=entry)


def _insert(
    tx: Transaction,
    window_no: int,
    entry_id: str,
    draft: EntryDraft,
    seq: int,
    parent: int | None,
    now_ms: int,
) -> StoredEntry:
    body: bytes | None = draft.body
    blob_hash = None
    if len(draft.body) > BLOB_BYTES:
        blob_hash = hashlib.sha256(draft.body).hexdigest()
        tx.run(SQL["keep_blob"], (blob_hash, draft.body))
        failpoints.reach("append.blob_kept")
        body = None
    tx.run(
        SQL["insert_entry"],
        (
            entry_no_of(window_no, seq), window_no, seq, entry_id, parent, draft.type, draft.role,
            draft.provenance, draft.audience, draft.run_id, now_ms, body, blob_hash,
        ),
    )  # fmt: skip
    failpoints.reach("append.entry_kept")
    if draft.words:
        search.add(tx, window_no, seq, draft.words)
    return StoredEntry(
        seq, entry_id, parent, draft.type, draft.role, draft.provenance, draft.audience, draft.run_id, now_ms,
        draft.body,
    )  # fmt: skip


def _free_id(tx: Transaction, window_no: int, salt: int, seq: int) -> str:
    """The id of a new entry in an imported window; the import has set aside others for those it took."""
    changed = tx.row(_CHANGED_ID, (window_no, seq))
    return entry_id_of(salt, seq) if changed is None else str(changed[0])


def _clip(text: str | None) -> str | None:
    return text[:PREVIEW_CHARS] if text else None


def tail(
    tx: Transaction, window_no: int, limit: int, *, before_seq: int = LAST, people_only: bool = False
) -> tuple[StoredEntry, ...]:
    """The newest `limit` entries before `before_seq`, oldest first."""
    sql = SQL["tail_for_people"] if people_only else SQL["tail"]
    first, last = entry_range(window_no)
    found = tx.rows(sql, (first, min(last, first + before_seq), limit))
    return tuple(StoredEntry(*row) for row in reversed(found))


def span(
    tx: Transaction, window_no: int, first_seq: int, last_seq: int, limit: int = LAST
) -> tuple[StoredEntry, ...]:
    """Entries first_seq..last_seq in order, through the windows that this one goes on from (LIFE-23).

    A fork counts on from its base, so the numbers are dense. What an erase took out of a base is an
    entry that says nothing.
    """
    first_seq = max(first_seq, 1)
    own = _own_span(tx, window_no, first_seq, last_seq, limit)
    if own and own[0].seq == first_seq:
        return own
    found: list[StoredEntry] = []
    for piece in _stretches(tx, window_no):
        first = max(first_seq, piece.first_seq)
        if piece.window_no == window_no:
            there, last = own, own[-1].seq if own else 0
        else:
            last = min(last_seq, piece.last_seq)
            there = _own_span(tx, piece.window_no, first, last, limit)
        found += _without_holes(there, first, min(last, first + limit - 1), piece.id_salt)
    return tuple(found[:limit])


def entry_at(tx: Transaction, window_no: int, seq: int) -> StoredEntry | None:
    """One entry by its number, through the windows that this one goes on from."""
    row: Row | None = tx.row(SQL["entry"], (entry_no_of(window_no, seq),))
    if row is None:
        row = tx.row(SQL["entry"], (entry_no_of(holder_of(tx, window_no, seq), seq),))
    return None if row is None else StoredEntry(*row)


def holder_of(tx: Transaction, window_no: int, seq: int) -> int:
    """The window that holds the entry with this number: this one, or one that it goes on from."""
    pieces = _stretches(tx, window_no)
    return next((piece.window_no for piece in pieces if seq <= piece.last_seq), window_no)


class _Stretch(NamedTuple):
    """The part of a transcript that one window holds."""

    window_no: int
    first_seq: int
    last_seq: int
    id_salt: int


def _stretches(tx: Transaction, window_no: int) -> list[_Stretch]:
    """The parts of a window's transcript, oldest first, its own part last."""
    pieces: list[_Stretch] = []
    last_seq = LAST
    for number, base_no, base_seq, salt in tx.rows(SQL["bases"], (window_no,)):
        pieces.append(_Stretch(number, base_seq + 1 if base_no is not None else 1, last_seq, salt))
        last_seq = base_seq
    return pieces[::-1]


def _own_span(
    tx: Transaction, window_no: int, first_seq: int, last_seq: int, limit: int
) -> tuple[StoredEntry, ...]:
    first, last = entry_range(window_no)
    bounds = (first + first_seq, min(last - 1, first + last_seq), limit)
    return tuple(StoredEntry(*row) for row in tx.rows(SQL["from_seq"], bounds))


def _without_holes(
    entries: Sequence[StoredEntry], first_seq: int, last_seq: int, salt: int
) -> Sequence[StoredEntry]:
    """The entries first_seq..last_seq, an empty one in the place of each that is gone."""
    if len(entries) == last_seq - first_seq + 1:
        return entries
    there = {entry.seq: entry for entry in entries}
    return [there.get(seq) or _gone(seq, salt) for seq in range(first_seq, last_seq + 1)]


def _gone(seq: int, salt: int) -> StoredEntry:
    entry_id = entry_id_of(salt, seq)
    return StoredEntry(seq, entry_id, seq - 1 or None, "custom", None, None, "internal", None, 0, _GONE)
