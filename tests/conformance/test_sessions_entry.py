"""The entry behind a row: every field comes back, nothing unknown breaks it, no file is named by it."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain import entry as entry_module
from openclaw.domain.entry import DeliveryContext, Origin, PendingDelivery, SessionEntry
from openclaw.store import records
from openclaw.store.records import SESSION_COLUMNS, SessionRow
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, create, execute, in_memory, present, select

KEY = MAIN.session_key
SEED_FIELDS = [
    "session_id", "updated_at", "model", "input_tokens", "output_tokens", "total_tokens", "context_tokens",
    "thinking_level", "verbose_level", "system_sent", "aborted_last_run", "send_policy", "delivery_context",
    "label", "display_name", "channel", "subject", "group_channel", "space", "origin",
]  # fmt: skip

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBER = st.integers(-(2**63), 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
ROUTE = st.builds(
    DeliveryContext, channel=TEXT, to=st.none() | TEXT, account_id=st.none() | TEXT, thread_id=TEXT
)
BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: NUMBER,
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    type(None): st.none(),
    DeliveryContext: ROUTE,
    Origin: st.builds(Origin, label=st.none() | TEXT, from_=st.none() | TEXT, chat_type=st.just("group")),
    PendingDelivery: st.builds(PendingDelivery, text=TEXT, context=ROUTE, attempt_count=NUMBER),
    dict[str, Any]: st.dictionaries(TEXT, JSON, max_size=3),
    tuple[str, ...]: st.lists(TEXT, max_size=3).map(tuple),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    if kind in BY_TYPE:
        return BY_TYPE[kind]
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    return st.one_of(*(values_of(part) for part in get_args(kind)))


def entry_with(**fields: Any) -> SessionEntry:
    known: dict[str, Any] = {"session_id": "id-1", "updated_at": NOON, "created_at": NOON}
    return SessionEntry(**known | fields)


HINTS = get_type_hints(SessionEntry, vars(entry_module))
SET_BY_THE_STORE = ("session_id", "updated_at")
FIELDS = {name: values_of(kind) for name, kind in HINTS.items() if name not in SET_BY_THE_STORE}
ENTRIES = st.fixed_dictionaries({}, optional=FIELDS | {"created_at": NUMBER}).map(
    lambda chosen: entry_with(**chosen)
)


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
        entry = entry_with(**{name: _example(name)})
        assert entry != empty
        written, read = await _written_and_read(store, entry)
        assert read == written
        assert read.entry == entry, name
        _, cleared = await _written_and_read(store, empty)
        assert cleared.entry == empty, name


def _example(name: str) -> Any:
    structured = {
        "origin": Origin(label="x"),
        "delivery_context": DeliveryContext(to="42"),
        "pending_final_delivery": PendingDelivery("text", DeliveryContext(channel="c")),
        "skills_snapshot": {"name": ["value"]},
        "system_prompt_report": {"name": {"nested": True}},
        "usage_family_session_ids": ("a", "b"),
    }
    if name in structured:
        return structured[name]
    simple = {str: "x", int: 5, bool: True, float: 0.5}
    kind = HINTS[name] if HINTS[name] in simple else get_args(HINTS[name])[0]
    return simple[kind] if kind in simple else get_args(kind)[-1]


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
    tables = await select(database, "SELECT name FROM sqlite_schema WHERE type = 'table'")
    for (table,) in tables:
        for column in await select(database, "SELECT name FROM pragma_table_info(?)", table):
            assert not any(word in column[0] for word in ("path", "file", "locator", "uri", "jsonl")), table


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
