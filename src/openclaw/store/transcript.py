"""Transcript verbs as units of work: append, read a page, read the active context.

The transcript is append-only: there is no update and no delete of an entry here.
Appending costs the same at entry 10 and at entry 10,000.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence

from openclaw.errors import SessionNotFound, VersionConflict
from openclaw.store import failpoints, search
from openclaw.store.database import Row, Transaction
from openclaw.store.records import EntryDraft, SessionRow, StoredEntry
from openclaw.store.statements import load_statements

SQL = load_statements("transcript.sql")
_CHANGED_ID = load_statements("imports.sql")["changed_id"]
BLOB_BYTES = 64 * 1024
PREVIEW_CHARS = 300
LAST = 1 << 62
# Set in the salt of an imported window: ids that came with the file may be the ids of entries to come.
FOREIGN_IDS = 1 << 32


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
            next((_clip(draft.text) for draft in reversed(shown) if draft.text), None),
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


def touch(tx: Transaction, session: SessionRow, human: bool, now_ms: int) -> None:
    """Note activity: a person's turn refreshes the session, any turn moves it up in lists (LIFE-12)."""
    tx.run(SQL["touch"], (int(human), now_ms, session.session_no))


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
    """Entries first_seq..last_seq in order."""
    first, last = entry_range(window_no)
    bounds = (first + max(first_seq, 1), min(last - 1, first + last_seq), limit)
    return tuple(StoredEntry(*row) for row in tx.rows(SQL["from_seq"], bounds))


def entry_at(tx: Transaction, window_no: int, seq: int) -> StoredEntry | None:
    row: Row | None = tx.row(SQL["entry"], (entry_no_of(window_no, seq),))
    return None if row is None else StoredEntry(*row)
