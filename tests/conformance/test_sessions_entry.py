"""The entry behind a row: every field comes back, nothing unknown breaks it, no file is named by it."""

from __future__ import annotations

from typing import Literal, get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings

from openclaw.domain.entry import DeliveryContext, SessionEntry
from openclaw.store import records
from openclaw.store.records import SESSION_COLUMNS, SessionRow
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.entries import ENTRIES, FIELDS, HINTS, entry_with, example_of
from tests.conformance.inspecting import columns_of, tables_of
from tests.conformance.making import MAIN, NOON, create, execute, in_memory, present, select

KEY = MAIN.session_key
SEED_FIELDS = [
    "session_id", "updated_at", "model", "input_tokens", "output_tokens", "total_tokens", "context_tokens",
    "thinking_level", "verbose_level", "system_sent", "aborted_last_run", "send_policy", "delivery_context",
    "label", "display_name", "channel", "subject", "group_channel", "space", "origin",
]  # fmt: skip


async def _written_and_read(store: Store, entry: SessionEntry) -> tuple[SessionRow, SessionRow]:
    written, _ = await store.edit_session(MAIN, lambda _: entry, session_id="id-1", now_ms=NOON)
    return written, await present(store)


@pytest.mark.spec("ENT-2", "ENT-3", "ENT-4", "ENT-5")
@settings(max_examples=150, deadline=None)
@given(entry=ENTRIES)
def test_every_field_of_an_entry_comes_back(entry: SessionEntry) -> None:
    written, read = in_memory(lambda store, _: _written_and_read(store, entry))
    assert written.entry == entry
    assert read == written


@pytest.mark.spec("ENT-4", "ENT-5")
async def test_each_field_is_stored_by_itself(store: Store) -> None:
    """One field set and the rest at their defaults: no field leans on another one being there."""
    empty = entry_with()
    for name in FIELDS:
        entry = entry_with(**{name: example_of(name)})
        assert entry != empty
        written, read = await _written_and_read(store, entry)
        assert read == written
        assert read.entry == entry, name
        _, cleared = await _written_and_read(store, empty)
        assert cleared.entry == empty, name


@pytest.mark.spec("ENT-4")
def test_the_fields_of_the_first_release_are_all_there() -> None:
    assert set(SEED_FIELDS) <= set(SessionEntry.__struct_fields__)


# -- what a row must survive -----------------------------------------------------------------------


@pytest.mark.spec("ENT-11")
@pytest.mark.parametrize("more", [b"{}", b'{"thinkingLevel":"low"}'])
async def test_unknown_words_in_columns_are_unset(
    store: Store, database: SqliteDatabase, more: bytes
) -> None:
    await create(store, MAIN, status="done", send_policy="deny", chat_type="group", label="work")
    await execute(
        database,
        "UPDATE sessions SET status = 'paused', send_policy = 'perhaps', chat_type = 'forum', more = ?",
        more,
    )
    entry = (await present(store)).entry
    assert (entry.status, entry.send_policy, entry.chat_type) == (None, None, None)
    assert entry.label == "work"
    assert entry.thinking_level == (None if more == b"{}" else "low")


@pytest.mark.spec("ENT-11")
async def test_every_known_word_in_a_column_is_kept(store: Store) -> None:
    for name, words in records.ENUM_WORDS.items():
        literal = next(part for part in get_args(HINTS[name]) if get_origin(part) is Literal)
        assert words == frozenset(get_args(literal))
        for word in words:
            _, read = await _written_and_read(store, entry_with(**{name: word}))
            assert getattr(read.entry, name) == word


@pytest.mark.spec("ENT-11")
async def test_unknown_words_and_wrong_types_in_the_rest_are_unset(
    store: Store, database: SqliteDatabase
) -> None:
    await create(store, MAIN, thinking_level="low", model="gpt-x")
    stored = {
        "thinkingLevel": "high",
        "queueMode": "sometimes",
        "elevatedLevel": 7,
        "spawnDepth": "deep",
        "origin": "nowhere",
        "compactionCount": 4,
        "sessionFile": "/home/me/transcript.jsonl",
        "inventedLater": {"x": 1},
    }
    await execute(database, "UPDATE sessions SET more = ?", msgspec.json.encode(stored))
    entry = (await present(store)).entry
    assert (entry.thinking_level, entry.compaction_count, entry.model) == ("high", 4, "gpt-x")
    assert (entry.queue_mode, entry.elevated_level, entry.spawn_depth, entry.origin) == (None,) * 4
    page = await store.history(KEY, 1)
    assert page is not None
    assert page.session.entry == entry


async def test_columns_win_over_the_rest(store: Store, database: SqliteDatabase) -> None:
    """A field with a column is kept once: a stray copy in `more` is not believed."""
    await create(store, MAIN, model="gpt-x")
    stray = b'{"sessionId":"stray","updatedAt":1,"model":"stray","status":"killed","thinkingLevel":"low"}'
    await execute(database, "UPDATE sessions SET more = ?, status = 'done'", stray)
    entry = (await present(store)).entry
    assert (entry.session_id, entry.updated_at) == (f"{KEY}-window", NOON)
    assert (entry.model, entry.status, entry.thinking_level) == ("gpt-x", "done", "low")


@pytest.mark.spec("ENT-6")
async def test_no_column_names_a_transcript_file(store: Store, database: SqliteDatabase) -> None:
    await create(store, MAIN)
    await execute(database, 'UPDATE sessions SET more = \'{"sessionFile":"/tmp/a.jsonl"}\'')
    await create(store, MAIN, thinking_level="low")
    assert await select(database, "SELECT more FROM sessions") == [(b'{"thinkingLevel":"low"}',)]
    # `imports` and `archives` name files that conversations came from or went to, `attachments` where a
    # helper finds what it was handed; no session is read there.
    for table in await tables_of(database) - {"imports", "archives", "attachments"}:
        for column in await columns_of(database, table):
            assert not any(word in column for word in ("path", "file", "locator", "uri", "jsonl")), table


@pytest.mark.spec("DB-8", "DB-13")
async def test_a_field_with_a_column_is_not_kept_twice(store: Store, database: SqliteDatabase) -> None:
    route = DeliveryContext(channel="telegram", to="42", account_id="bot", thread_id="7")
    await create(store, MAIN, delivery_context=route, label="work", input_tokens=5, aborted_last_run=True)
    (row,) = await select(database, "SELECT * FROM sessions")
    assert row[-1] == b"{}"
    columns = dict(zip(SESSION_COLUMNS, row, strict=True))
    assert (columns["route_channel"], columns["route_to"]) == ("telegram", "42")
    assert (columns["route_account"], columns["route_thread"]) == ("bot", "7")
    assert (columns["label"], columns["input_tokens"], columns["aborted_last_run"]) == ("work", 5, 1)
