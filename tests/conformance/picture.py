"""Everything that a database holds as one comparable value, and the same of a model.

Read with plain portable SQL in one snapshot. Numbers that a database deals out (rows, admissions, windows)
are not part of it: order and identity are. `broken_rules` checks what must hold whatever was done.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from openclaw.domain.searchtext import query_terms
from openclaw.store import search
from openclaw.store.database import Database, Transaction
from openclaw.store.records import session_from_columns
from openclaw.store.transcript import BLOB_BYTES
from tests.conformance.model import Model
from tests.conformance.operations import WORDS, Note, drafted

Picture = dict[str, Any]

_ENTRIES = (
    "SELECT w.session_id, e.seq, e.role, e.audience, e.run_id, e.created_at, e.body, e.blob_hash "
    "FROM entries e JOIN windows w ON w.window_no = e.window_no ORDER BY e.entry_no"
)
_WINDOWS = (
    "SELECT w.session_id, w.session_key, p.session_id, w.reason, w.end_reason, w.deleted_at "
    "FROM windows w LEFT JOIN windows p ON p.window_no = w.previous_no"
)
_RUNS = (
    "SELECT r.run_id, r.session_key, w.session_id, r.state, r.outcome, r.stop_reason, r.owner, r.fence, "
    "r.resumes, r.started_at, r.last_progress, r.ended_at, r.reply_seq "
    "FROM runs r JOIN windows w ON w.window_no = r.window_no"
)
_SEARCH = (
    "SELECT w.session_id, s.seq FROM (SELECT search_no, window_no, seq FROM search_pending UNION ALL "
    "SELECT search_no, window_no, seq FROM search_rows) s JOIN windows w ON w.window_no = s.window_no "
    "ORDER BY s.search_no"
)


_INBOX = "SELECT run_id, session_key, state, consumed_by, human FROM inbox ORDER BY admission"


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


def read_picture(tx: Transaction) -> Picture:
    """All that the tables say."""
    rows = [session_from_columns(row) for row in tx.rows("SELECT * FROM sessions")]
    entries: dict[str, list[Any]] = {}
    for window, seq, role, audience, run_id, at, body, blob in tx.rows(_ENTRIES):
        mark = blob[:16] if body is None else _hash(bytes(body))
        entries.setdefault(window, []).append((seq, role, audience, run_id, at, mark))
    return {
        "sessions": {
            row.session_key: (
                row.agent_id, row.kind, row.version, row.last_seq, row.message_count, row.read_seq,
                row.first_text, row.last_text, msgspec.to_builtins(row.entry),
            )
            for row in rows
        },
        "windows": {name: (*rest, gone is not None) for name, *rest, gone in tx.rows(_WINDOWS)},
        "entries": entries,
        "inbox": tx.rows(_INBOX),
        "runs": {row[0]: row[1:] for row in tx.rows(_RUNS)},
        "usage": {
            row[0]: row[1:] for row in tx.rows("SELECT call_id, session_key, run_id, cost_usd FROM usage")
        },
        "outbox": {
            row[0]: row[1:]
            for row in tx.rows(
                "SELECT idempotency_key, session_key, run_id, state, attempts, expires_at FROM outbox"
            )
        },
        "counters": {
            tuple(row[:3]): row[3]
            for row in tx.rows("SELECT agent_id, kind, archived, sessions FROM counters WHERE sessions > 0")
        },
        "blobs": dict(tx.rows("SELECT hash, refs FROM blobs")),
        "search": tx.rows(_SEARCH),
        "found": {word: _found(tx, word) for word in WORDS},
    }  # fmt: skip


def _found(tx: Transaction, word: str) -> list[tuple[str, int]]:
    hits = search.find(tx, query_terms(word), agent_id=None, session_key=None, limit=100_000)
    return [(hit.session_id, hit.seq) for hit in hits]


@lru_cache(maxsize=4096)
def _body(note: Note) -> tuple[str, str | None]:
    """The mark of a note's body, and its whole hash when the body is kept apart."""
    body = drafted(note).body
    return _hash(body), hashlib.sha256(body).hexdigest() if len(body) > BLOB_BYTES else None


def picture_of(model: Model) -> Picture:
    """What the tables must say."""
    said = {window: entries for window, entries in model.entries.items() if entries}
    every = [entry.note for entries in said.values() for entry in entries]
    archived = [
        (row.agent_id, row.kind, int(row.entry.archived_at is not None)) for row in model.sessions.values()
    ]
    return {
        "sessions": {
            row.key: (
                row.agent_id, row.kind, row.version, row.last_seq, row.message_count, row.read_seq,
                row.first_text, row.last_text, msgspec.to_builtins(row.entry),
            )
            for row in model.sessions.values()
        },
        "windows": {
            name: (row.key, row.previous, row.reason, row.end_reason, row.deleted)
            for name, row in model.windows.items()
        },
        "entries": {
            window: [
                (item.seq, item.note.role, item.note.audience, item.run_id, item.at, _body(item.note)[0])
                for item in entries
            ]
            for window, entries in said.items()
        },
        "inbox": [
            (row.run_id, row.key, row.state, row.consumed_by, int(row.human)) for row in model.inbox.values()
        ],
        "runs": {
            row.run_id: (
                row.key, row.window, row.state, row.outcome, row.stop_reason, row.owner, row.fence,
                row.resumes, row.started_at, row.last_progress, row.ended_at, row.reply_seq,
            )
            for row in model.runs.values()
        },
        "usage": dict(model.usage),
        "outbox": {
            name: (row.key, row.run_id, row.state, row.attempts, row.expires_at)
            for name, row in model.outbox.items()
        },
        "counters": dict(Counter(archived)),
        "blobs": dict(Counter(whole for note in every if (whole := _body(note)[1]) is not None)),
        "search": [(window, seq) for window, seq, _ in model.said],
        "found": {word: model.find(word) for word in WORDS},
    }  # fmt: skip


def differences(found: Picture, wanted: Picture) -> list[str]:
    """Where two pictures differ, short enough to read."""
    told = []
    for part in wanted:
        here, there = found[part], wanted[part]
        if here == there:
            continue
        if isinstance(there, dict):
            names = [name for name in {**here, **there} if here.get(name) != there.get(name)]
            told += [f"{part}[{name}]: {here.get(name)} != {there.get(name)}" for name in names[:3]]
        else:
            told.append(f"{part}: {here[-5:]} != {there[-5:]}")
    return told


# -- what must hold whatever was done ------------------------------------------------------------------


def broken_rules(tx: Transaction) -> list[str]:
    """The rules that the rows break; none of them looks at a model."""
    return [name for name, broken in _RULES if tx.rows(broken)] + _broken_totals(tx)


_RULES = (
    (
        "a window has a hole, or its entries do not follow one another",
        "SELECT window_no FROM entries GROUP BY window_no HAVING min(seq) <> 1 OR max(seq) <> count(*) "
        "OR count(DISTINCT entry_id) <> count(*) "
        "UNION ALL SELECT window_no FROM entries WHERE coalesce(parent_seq, 0) <> seq - 1",
    ),
    (
        "a session does not know how long its transcript is",
        "SELECT s.session_key FROM sessions s WHERE s.last_seq <> "
        "(SELECT count(*) FROM entries e WHERE e.window_no = s.window_no) OR s.message_count <> "
        "(SELECT count(*) FROM entries e WHERE e.window_no = s.window_no AND e.audience = 'people')",
    ),
    (
        "two runs are active in one session",
        "SELECT session_key FROM runs WHERE state = 'active' GROUP BY session_key HAVING count(*) > 1",
    ),
    (
        "a consumed input does not stand in the transcript once, or one that was not does",
        "SELECT i.run_id FROM inbox i WHERE (i.state = 'consumed') <> "
        "((SELECT count(*) FROM entries e WHERE e.run_id = i.run_id AND e.role = 'user') = 1)",
    ),
    (
        "an input is consumed by no run",
        "SELECT i.run_id FROM inbox i LEFT JOIN runs r ON r.run_id = i.consumed_by "
        "WHERE i.state = 'consumed' AND r.run_id IS NULL",
    ),
    (
        "an agent uses a label twice",
        "SELECT label FROM sessions WHERE label IS NOT NULL GROUP BY agent_id, label HAVING count(*) > 1",
    ),
    (
        "a session points at no window of its own",
        "SELECT s.session_key FROM sessions s LEFT JOIN windows w ON w.window_no = s.window_no "
        "WHERE w.session_id IS NULL OR w.session_id <> s.session_id OR w.ended_at IS NOT NULL",
    ),
    (
        "an entry cannot be searched for, or a search row has no entry",
        "SELECT e.entry_no FROM entries e LEFT JOIN (SELECT window_no, seq FROM search_pending UNION ALL "
        "SELECT window_no, seq FROM search_rows) s ON s.window_no = e.window_no AND s.seq = e.seq "
        "WHERE (e.audience = 'people') <> (s.seq IS NOT NULL)",
    ),
    (
        "a session costs other than its calls",
        "SELECT s.session_key FROM sessions s WHERE coalesce(s.estimated_cost_usd, 0) > "
        "(SELECT coalesce(sum(u.cost_usd), 0) FROM usage u WHERE u.session_key = s.session_key)",
    ),
    (
        "a body that is kept apart is not counted right",
        "SELECT b.hash FROM blobs b WHERE b.refs <> "
        "(SELECT count(*) FROM entries e WHERE e.blob_hash = b.hash)",
    ),
)  # fmt: skip


def _broken_totals(tx: Transaction) -> list[str]:
    counted = {tuple(row[:3]): row[3] for row in tx.rows("SELECT * FROM counters WHERE sessions > 0")}
    there = Counter(
        tuple(row)
        for row in tx.rows(
            "SELECT agent_id, kind, CASE WHEN archived_at IS NULL THEN 0 ELSE 1 END FROM sessions"
        )
    )
    return [] if counted == dict(there) else [f"the counters say {counted}, the rows {dict(there)}"]


async def compare(database: Database, candidates: Iterable[Model]) -> list[str]:
    """Nothing when the database is as one of the models says and breaks no rule; else what is wrong."""
    broken, found = await database.read(lambda tx: (broken_rules(tx), read_picture(tx)))
    told: list[str] = []
    for model in candidates:
        differing = differences(found, picture_of(model))
        if not differing:
            return broken
        told = told or differing
    return broken + told
