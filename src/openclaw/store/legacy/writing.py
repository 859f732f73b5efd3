"""Import verbs as units of work: a part of a transcript, the session that it becomes, what is done.

A part is one commit: its entries, their search rows, and how far the file has come. A
session row appears only with its last part, so that nobody ever sees half a history;
killed in between, the next run goes on after the last part (PITFALLS A10).
"""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import Struct

from openclaw.domain.entry import ChatType, SessionEntry
from openclaw.domain.transcript import decode_message, text_of
from openclaw.store import search, sessions, transcript
from openclaw.store.database import Transaction
from openclaw.store.legacy.planning import PlannedSession
from openclaw.store.legacy.reading import Scanned
from openclaw.store.records import SessionRow, session_to_columns
from openclaw.store.statements import load_statements
from openclaw.store.transcript import BLOB_BYTES, FOREIGN_IDS, entry_id_of, entry_no_of, entry_range, salt_of

SQL = load_statements("imports.sql")
# Ids are set aside for so many entries to come; no transcript of people and models gets there.
FORESEEN_ENTRIES = 1 << 24
_MULTIPLIER = 0x9E3779B1
_INVERSE = pow(_MULTIPLIER, -1, 1 << 32)


class ImportRow(Struct, frozen=True):
    """How far a file has come. `hash` is set once all of it is in the store."""

    agent_id: str
    file_name: str
    window_no: int | None
    records: int
    skipped: int
    prefix_hash: str
    hash: str | None
    size: int
    changed_ns: int


class Part(Struct, frozen=True):
    """Records that follow each other, and the file as it stands after them."""

    records: tuple[Scanned, ...]
    progress: ImportRow
    header: bytes
    tail: bytes
    started_at: int
    last_at_ms: int


class Settled(Struct, frozen=True):
    """What a session became: new, or behind one that was there already; with a label or without."""

    session_key: str
    lies_behind: bool = False
    label_dropped: str | None = None


def find_import(tx: Transaction, agent_id: str, file_name: str) -> ImportRow | None:
    found = tx.row(SQL["get_import"], (agent_id, file_name))
    return None if found is None else ImportRow(*found)


def imports_of(tx: Transaction, agent_id: str) -> tuple[ImportRow, ...]:
    return tuple(ImportRow(*found) for found in tx.rows(SQL["imports_of"], (agent_id,)))


def put_import(tx: Transaction, row: ImportRow, now_ms: int) -> None:
    tx.run(SQL["put_import"], (*msgspec.structs.astuple(row), now_ms))


# -- parts -----------------------------------------------------------------------------------------


def write_part(tx: Transaction, planned: PlannedSession, part: Part, now_ms: int) -> int:
    """Write a part and its progress; returns the window. The first part opens the window."""
    window_no = part.progress.window_no
    if window_no is None:
        window_no = _open_window(tx, planned, part.started_at)
    for scanned in part.records:
        _insert(tx, window_no, scanned)
    last_seq = part.progress.records
    tx.run(SQL["put_source"], (window_no, part.header, part.tail, last_seq))
    put_import(tx, msgspec.structs.replace(part.progress, window_no=window_no), now_ms)
    visible = sessions.find(tx, planned.seed.session_key)
    if visible is not None and visible.window_no == window_no:
        _grow(tx, visible, part)
    return window_no


def _open_window(tx: Transaction, planned: PlannedSession, started_at: int) -> int:
    salt = salt_of(planned.session_id) + FOREIGN_IDS
    opened = tx.row(SQL["open_window"], (planned.session_id, planned.seed.session_key, salt, started_at))
    assert opened is not None
    return int(opened[0])


def _insert(tx: Transaction, window_no: int, scanned: Scanned) -> None:
    record, entry_no = scanned.record, entry_no_of(window_no, scanned.seq)
    body: bytes | None = record.body
    blob_hash = None
    if len(record.body) > BLOB_BYTES:
        blob_hash = hashlib.sha256(record.body).hexdigest()
        tx.run(transcript.SQL["keep_blob"], (blob_hash, record.body))
        body = None
    tx.run(
        transcript.SQL["insert_entry"],
        (
            entry_no, window_no, scanned.seq, record.entry_id, scanned.parent_seq, record.type, record.role,
            record.provenance, record.audience, None, record.created_at, body, blob_hash,
        ),
    )  # fmt: skip
    if scanned.source is not None:
        tx.run(SQL["keep_line"], (entry_no, scanned.source))
    if record.words:
        search.add(tx, window_no, scanned.seq, record.words)


# -- the end of a transcript -----------------------------------------------------------------------


def settle(
    tx: Transaction, planned: PlannedSession, window_no: int | None, part: Part, now_ms: int
) -> Settled:
    """Let the session appear, complete; or put the window behind the session that has the key."""
    if window_no is None:
        window_no = _open_window(tx, planned, part.started_at)
    _set_ids_aside(tx, window_no, planned.session_id, part.progress.records)
    key = planned.seed.session_key
    existing = sessions.find(tx, key)
    if existing is not None and existing.window_no == window_no:
        return Settled(key)
    if existing is not None or not planned.is_current:
        tx.run(sessions.SQL["end_window"], (max(part.last_at_ms, part.started_at), "imported", window_no))
        return Settled(key, lies_behind=True)
    entry = entry_of(planned, part, now_ms)
    dropped = None
    if entry.label is not None and sessions.find_by_label(tx, entry.label, planned.seed.agent_id) is not None:
        dropped, entry = entry.label, msgspec.structs.replace(entry, label=None)
    _create(tx, planned, window_no, entry)
    return Settled(key, label_dropped=dropped)


def entry_of(planned: PlannedSession, part: Part, now_ms: int) -> SessionEntry:
    """The entry with what the old one lacked (DB-7); no time lies in the future."""
    updated = part.last_at_ms or part.started_at
    old = planned.entry or SessionEntry(session_id="", updated_at=updated, archived_at=now_ms)
    started = old.session_started_at or part.started_at
    return msgspec.structs.replace(
        old,
        session_id=planned.session_id,
        updated_at=min(old.updated_at or updated, now_ms),
        created_at=min(old.created_at or started, now_ms),
        session_started_at=min(started, now_ms),
        last_interaction_at=min(old.last_interaction_at or started, now_ms),
        chat_type=old.chat_type or msgspec.convert(planned.seed.chat_type, ChatType | None),
        channel=old.channel or planned.seed.channel,
    )


def _create(tx: Transaction, planned: PlannedSession, window_no: int, entry: SessionEntry) -> None:
    seed, salt = planned.seed, salt_of(planned.session_id) + FOREIGN_IDS
    last_seq, count, first, last = _totals(tx, window_no)
    row = SessionRow(
        0, seed.session_key, seed.agent_id, seed.kind, seed.session_type, window_no, salt, 1, last_seq, count,
        last_seq, first, last, entry,
    )  # fmt: skip
    tx.run(sessions.SQL["insert_session"], (None, *session_to_columns(row)))
    tx.run(sessions.SQL["count"], (seed.agent_id, seed.kind, int(entry.archived_at is not None)))


def _grow(tx: Transaction, row: SessionRow, part: Part) -> None:
    """The file got longer since its import, and nobody spoke here: its new lines follow."""
    last_seq, count, first, last = _totals(tx, row.window_no)
    sessions.change(
        tx, row, row.entry, now_ms=part.last_at_ms, last_seq=last_seq, message_count=count, read_seq=last_seq,
        first_text=first, last_text=last,
    )  # fmt: skip


def _totals(tx: Transaction, window_no: int) -> tuple[int, int, str | None, str | None]:
    """Last sequence number, messages, first words of a person, last words of a person or agent."""
    counted = tx.row(sessions.SQL["window_totals"], entry_range(window_no))
    assert counted is not None
    first = _said(tx, "first_said", window_no)
    return int(counted[0]), int(counted[1]), first, _said(tx, "last_said", window_no)


def _said(tx: Transaction, statement: str, window_no: int) -> str | None:
    for _role, body in tx.rows(SQL[statement], (*entry_range(window_no), 20)):
        text = text_of(decode_message(body))
        if text:
            return text[: transcript.PREVIEW_CHARS]
    return None


def _set_ids_aside(tx: Transaction, window_no: int, session_id: str, records: int) -> None:
    """Find the entries to come whose id the file has taken, and give each an id that nobody has.

    The ids that belong to the numbers of imported entries are free, because those brought their own.
    """
    salt = salt_of(session_id)
    tx.run(SQL["forget_changes"], (window_no,))
    taken = {str(row[0]) for row in tx.rows(SQL["ids_of_window"], entry_range(window_no))}
    free = (entry_id_of(salt, seq) for seq in range(1, records + 1))
    spare = (entry_id for entry_id in free if entry_id not in taken)
    for entry_id in sorted(taken):
        seq = number_of(salt, entry_id)
        if seq is not None and records < seq <= records + FORESEEN_ENTRIES:
            tx.run(SQL["change_id"], (window_no, seq, next(spare)))


def number_of(salt: int, entry_id: str) -> int | None:
    """The sequence number whose id this is; the inverse of `entry_id_of`. None for another form."""
    if len(entry_id) != 8 or not set(entry_id) <= set("0123456789abcdef"):
        return None
    return (int(entry_id, 16) - salt) * _INVERSE % (1 << 32)
