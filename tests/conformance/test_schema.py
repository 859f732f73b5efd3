"""The schema: what the database itself refuses, whoever asks."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.store.database import ConstraintViolated
from openclaw.store.records import SESSION_COLUMNS, session_from_columns, session_to_columns
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.sqlite_file import APPLICATION_ID, SCHEMA_VERSION
from openclaw.store.store import Store
from openclaw.store.transcript import entry_no_of
from tests.conformance.inspecting import columns_of, tables_of
from tests.conformance.making import MAIN, create, execute, seed, select, turn

ENTRY = entry_no_of(1, 900)
# A row of each table that the database takes; a test then changes one thing about it.
ROWS: dict[str, dict[str, Any]] = {
    "meta": {"name": "a", "value": "1"},
    "counters": {"agent_id": "a", "kind": "main", "archived": 0, "sessions": 0},
    "windows": {"window_no": 900, "session_id": "w", "session_key": "k", "base_seq": 0, "id_salt": 1,
                "reason": "created", "started_at": 1},
    "entries": {"entry_no": ENTRY, "window_no": 1, "seq": 900, "entry_id": "0", "type": "message",
                "audience": "people", "created_at": 1, "body": b"{}", "blob_hash": None},
    "blobs": {"hash": "h", "refs": 1, "body": b"x"},
    "conversations": {"channel": "c", "account_id": "", "peer_kind": "direct", "peer_id": "P",
                      "thread_id": "", "created_at": 1, "updated_at": 1},
    "session_conversations": {"session_key": "k", "conversation_no": 1, "first_at": 1, "last_at": 1},
    "inbox": {"run_id": "i", "session_key": "k", "fingerprint": "f", "source": "cli", "principal": "p",
              "human": 1, "channel": "c", "account_id": "a", "peer_id": "p", "external_id": "x",
              "body": b"{}", "state": "queued", "consumed_by": None, "accepted_at": 1},
    "system_events": {"session_key": "k", "text": "t", "missed": 0, "created_at": 1},
    "runs": {"run_id": "r", "session_key": "k", "agent_id": "a", "window_no": 1, "kind": "turn",
             "lane": "main", "state": "active", "outcome": None, "owner": "o", "fence": 1, "resumes": 0,
             "started_at": 1, "last_progress": 1},
    "spawns": {"child_run_id": "c", "parent_key": "p", "child_key": "k", "parent_run_id": "r",
               "tool_call_id": "t", "state": "active", "body": b"{}", "created_at": 1},
    "waits": {"session_key": "k", "target": "t", "created_at": 1},
    "attachments": {"child_key": "agent:main:main", "path": "a.txt", "size": 1, "sha256": "h", "body": b"x",
                    "created_at": 1},
    "thread_bindings": {"channel": "c", "account_id": "a", "recipient": "r", "thread_id": "",
                        "session_key": "agent:main:main", "origin": "focus", "bound_at": 1, "used_at": 1,
                        "idle_ms": None, "max_age_ms": None},
    "outbox": {"idempotency_key": "i", "session_key": "k", "channel": "c", "target": "t", "body": b"{}",
               "state": "prepared", "attempts": 0, "created_at": 1, "updated_at": 1, "expires_at": 1},
    "senders": {"channel": "c", "account_id": "a", "sender_id": "s", "state": "asking", "code": "X",
                "is_owner": 0, "asked_at": 1, "expires_at": 2},
    "connector_notes": {"channel": "c", "account_id": "a", "name": "n", "value": b"x", "updated_at": 1},
    "overheard": {"channel": "c", "account_id": "a", "peer_id": "p", "thread_id": "", "message_id": "m",
                  "sender_id": "s", "sender": "Ann", "said": "hi", "heard_at": 1},
    "usage": {"call_id": "c", "state": "settled", "session_key": "k", "agent_id": "a", "run_id": "r",
              "provider": "p", "model": "m", "at": 1},
    "imports": {"agent_id": "a", "file_name": "f", "records": 0, "skipped": 0, "prefix_hash": "h", "size": 0,
                "changed_ns": 1, "imported_at": 1},
    "window_sources": {"window_no": 1, "header": b"", "tail": b"", "last_seq": 0},
    "entry_sources": {"entry_no": ENTRY, "line": b"x"},
    "id_changes": {"window_no": 1, "seq": 1, "entry_id": "0"},
    "removals": {"session_key": "k", "session_id": "w", "agent_id": "a", "kind": "hook", "state": "archived",
                 "reason": "age", "at": 1},
    "archives": {"window_no": 1, "session_key": "k", "path": "/a", "size": 0, "sha256": "h", "written_at": 1},
    "search_pending": {"window_no": 1, "seq": 1, "words": "w"},
    "search_rows": {"window_no": 1, "seq": 1},
    "jobs": {"job_id": "j", "agent_id": "a", "enabled": 1, "body": b"{}", "created_at": 1, "updated_at": 1},
    "job_runs": {"job_id": "j", "due_at": 1, "run_id": "r", "session_key": "k", "state": "open", "missed": 0,
                 "delivery": "none", "fired_at": 1},
    "devices": {"device_id": "d", "public_key": "p", "body": b"{}", "created_at": 1, "approved_at": 1,
                "last_seen_at": 1},
    "device_tokens": {"token_hash": "t", "device_id": "known", "role": "node", "scopes": "", "created_at": 1,
                      "last_used_at": 1},
    "device_requests": {"request_id": "r", "device_id": "d", "body": b"{}", "created_at": 1, "expires_at": 1},
    "diagnostics": {"diagnostic_no": 1, "at": 1, "kind": "start", "detail": "d"},
}  # fmt: skip
# A second row that differs from the first one only by these fields collides with it.
TWINS: list[tuple[str, dict[str, Any]]] = [
    ("meta", {"value": "2"}),
    ("counters", {"sessions": 5}),
    ("windows", {"window_no": 901}),
    ("windows", {"session_id": "v"}),
    ("entries", {"entry_id": "1"}),
    ("blobs", {"body": b"y"}),
    ("conversations", {"label": "other"}),
    ("session_conversations", {"last_at": 2}),
    ("inbox", {"run_id": "j"}),
    ("inbox", {"external_id": "y"}),
    ("runs", {"session_key": "l"}),
    ("runs", {"run_id": "s"}),
    ("spawns", {"child_key": "l", "tool_call_id": "u"}),
    ("spawns", {"child_run_id": "d", "tool_call_id": "u"}),
    ("spawns", {"child_run_id": "d", "child_key": "l"}),
    ("waits", {"created_at": 2}),
    ("attachments", {"body": b"y"}),
    ("thread_bindings", {"origin": "spawn"}),
    ("outbox", {"target": "u"}),
    ("senders", {"code": "Y"}),
    ("senders", {"sender_id": "t"}),
    ("overheard", {"said": "other"}),
    ("connector_notes", {"value": b"y"}),
    ("job_runs", {"run_id": "s"}),
    ("job_runs", {"due_at": 2}),
    ("usage", {"run_id": "s"}),
    ("jobs", {"agent_id": "b"}),
    ("devices", {"public_key": "q"}),
    ("archives", {"size": 5}),
    ("devices", {"device_id": "e"}),
    ("device_tokens", {"role": "operator"}),
    ("device_requests", {"device_id": "e"}),
    ("device_requests", {"request_id": "s"}),
    ("diagnostics", {"at": 2}),
]
# These differ in what makes a row another one.
SIBLINGS: list[tuple[str, dict[str, Any]]] = [
    ("counters", {"archived": 1}),
    ("counters", {"kind": "cron"}),
    ("entries", {"entry_no": ENTRY + 1, "seq": 901}),
    ("conversations", {"peer_id": "p"}),
    ("conversations", {"thread_id": "7"}),
    ("conversations", {"peer_kind": "group"}),
    ("conversations", {"account_id": "b"}),
    ("conversations", {"channel": "d"}),
    ("inbox", {"run_id": "j", "peer_id": "q"}),
    ("inbox", {"run_id": "j", "external_id": None}),
    ("runs", {"run_id": "s", "state": "ended", "outcome": "ok"}),
    ("runs", {"run_id": "s", "session_key": "l"}),
    ("spawns", {"child_run_id": "d", "child_key": "l", "tool_call_id": "u"}),
    ("spawns", {"child_run_id": "d", "child_key": "l", "parent_run_id": "s"}),
    ("waits", {"target": "u"}),
    ("waits", {"session_key": "l"}),
    ("attachments", {"path": "b.txt"}),
    ("thread_bindings", {"thread_id": "7"}),
    ("devices", {"device_id": "e", "public_key": "q"}),
    ("device_tokens", {"token_hash": "u"}),
    ("device_requests", {"request_id": "s", "device_id": "e"}),
    ("diagnostics", {"diagnostic_no": 2}),
]
# A row with this change is refused by itself.
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("diagnostics", {"kind": "pause"}),
    ("counters", {"archived": 2}),
    ("counters", {"sessions": -1}),
    ("entries", {"entry_no": entry_no_of(1, 0), "seq": 0}),
    ("entries", {"entry_no": ENTRY + 1}),
    ("entries", {"seq": 901}),
    ("entries", {"window_no": 2}),
    ("entries", {"audience": "everybody"}),
    ("entries", {"body": None}),
    ("entries", {"blob_hash": "h"}),
    ("entries", {"body": None, "blob_hash": "unknown"}),
    ("entries", {"entry_no": entry_no_of(77, 900), "window_no": 77}),
    ("blobs", {"refs": -1}),
    ("conversations", {"peer_kind": "room"}),
    ("session_conversations", {"conversation_no": 77}),
    ("inbox", {"state": "lost"}),
    ("inbox", {"state": "consumed"}),
    ("inbox", {"consumed_by": "r"}),
    ("inbox", {"state": "cancelled", "consumed_by": "r"}),
    ("system_events", {"missed": -1}),
    ("runs", {"state": "paused"}),
    ("runs", {"state": "ended"}),
    ("runs", {"outcome": "ok"}),
    ("runs", {"state": "ended", "outcome": "maybe"}),
    ("spawns", {"state": "lost"}),
    ("outbox", {"state": "gone"}),
    ("thread_bindings", {"session_key": "agent:main:unknown"}),
    ("thread_bindings", {"origin": "wish"}),
    ("thread_bindings", {"idle_ms": -1}),
    ("senders", {"state": "gone"}),
    ("senders", {"state": "admitted"}),
    ("job_runs", {"state": "ended"}),
    ("job_runs", {"delivery": "lost"}),
    ("usage", {"state": "free"}),
    ("jobs", {"enabled": 2}),
    ("archives", {"size": -1}),
    ("archives", {"window_no": 77}),
    ("device_tokens", {"device_id": "unknown"}),
    ("attachments", {"child_key": "agent:main:unknown"}),
    ("attachments", {"size": -1}),
    ("device_tokens", {"role": "king"}),
]


async def insert(database: SqliteDatabase, table: str, changes: dict[str, Any]) -> None:
    row = ROWS[table] | changes
    marks = ", ".join("?" * len(row))
    await execute(database, f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", *row.values())


@pytest.fixture
async def ground(store: Store, database: SqliteDatabase) -> SqliteDatabase:
    """A database with what the rows above refer to."""
    await create(store, MAIN)
    await execute(database, "INSERT INTO blobs VALUES ('stored', 1, ?)", b"\0")
    await execute(database, "INSERT INTO devices VALUES ('known', 'its key', ?, 1, 1, 1)", b"{}")
    await execute(
        database,
        "INSERT INTO conversations (channel, account_id, peer_kind, peer_id, thread_id, created_at, "
        "updated_at) VALUES ('x', '', 'direct', 'y', '', 1, 1)",
    )
    return database


async def test_the_columns_of_a_session_are_the_ones_that_are_read(database: SqliteDatabase) -> None:
    assert tuple(await columns_of(database, "sessions")) == SESSION_COLUMNS


async def test_a_row_is_written_in_the_order_of_the_columns(store: Store, database: SqliteDatabase) -> None:
    await turn(store, "run-1", "words")
    (stored,) = await select(database, "SELECT * FROM sessions")
    assert (stored[0], *session_to_columns(session_from_columns(stored))) == stored


@pytest.mark.spec("DB-11")
async def test_the_file_says_what_it_is(database: SqliteDatabase) -> None:
    if isinstance(database, SqliteDatabase):
        assert await select(database, "PRAGMA application_id") == [(APPLICATION_ID,)]
        assert await select(database, "PRAGMA user_version") == [(SCHEMA_VERSION,)]
    else:
        assert await select(database, "SELECT version FROM openclaw_schema") == [(SCHEMA_VERSION,)]
    assert (APPLICATION_ID.to_bytes(4, "big"), SCHEMA_VERSION) == (b"OCLW", 1)


@pytest.mark.spec("DB-1", "DB-9")
async def test_every_table_is_tried_here(database: SqliteDatabase) -> None:
    assert await tables_of(database) == ROWS.keys() | {"sessions"}


@pytest.mark.parametrize(("table", "changes"), TWINS)
@pytest.mark.spec("DB-9", "DB-13")
async def test_twins_collide(ground: SqliteDatabase, table: str, changes: dict[str, Any]) -> None:
    await insert(ground, table, {})
    with pytest.raises(ConstraintViolated, match="UNIQUE"):
        await insert(ground, table, changes)


@pytest.mark.parametrize(("table", "changes"), SIBLINGS)
async def test_siblings_live_together(ground: SqliteDatabase, table: str, changes: dict[str, Any]) -> None:
    (before,) = await select(ground, f"SELECT count(*) FROM {table}")
    await insert(ground, table, {})
    await insert(ground, table, changes)
    assert await select(ground, f"SELECT count(*) FROM {table}") == [(before[0] + 2,)]


@pytest.mark.parametrize(("table", "changes"), REFUSED)
async def test_impossible_rows_are_refused(
    ground: SqliteDatabase, table: str, changes: dict[str, Any]
) -> None:
    with pytest.raises(ConstraintViolated, match=r"CHECK|FOREIGN KEY") as caught:
        await insert(ground, table, changes)
    assert caught.value.code == "CONSTRAINT"
    await insert(ground, table, {})


async def test_what_must_be_known_cannot_be_absent(ground: SqliteDatabase) -> None:
    for table, row in ROWS.items():
        columns = await columns_of(ground, table)
        required = {name for name, known in columns.items() if known} & row.keys()
        assert required or table in ("search_pending", "search_rows")
        for name in required:
            with pytest.raises(ConstraintViolated, match="NOT NULL"):
                await insert(ground, table, {name: None})


@pytest.mark.spec("ENT-1", "DB-13")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("session_key = 'agent:main:main'", "UNIQUE"),
        ("window_no = (SELECT window_no FROM sessions WHERE session_key = 'agent:main:main')", "UNIQUE"),
        ("label = 'work'", "UNIQUE"),
        ("session_type = 'forum'", "CHECK"),
        ("window_no = 77", "FOREIGN KEY"),
        ("session_id = NULL", "NOT NULL"),
        ("updated_at = NULL", "NOT NULL"),
        ("agent_id = NULL", "NOT NULL"),
        ("more = NULL", "NOT NULL"),
    ],
)
async def test_a_session_row_is_guarded(
    store: Store, database: SqliteDatabase, change: str, reason: str
) -> None:
    await create(store, MAIN, label="work")
    await turn(store, "run-1", to=seed("other"))
    with pytest.raises(ConstraintViolated, match=reason):
        await execute(database, f"UPDATE sessions SET {change} WHERE session_key = 'agent:main:other'")
    rows = await select(database, "SELECT session_key, label FROM sessions ORDER BY session_no")
    assert rows == [("agent:main:main", "work"), ("agent:main:other", None)]
