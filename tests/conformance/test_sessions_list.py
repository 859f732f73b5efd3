"""Lists of sessions: newest first, paged without gaps, filtered by columns, counted without counting."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from openclaw.domain.entry import SessionEntry
from openclaw.store.database import Database, Row, Transaction
from openclaw.store.records import SessionRow, fold_name
from openclaw.store.sessions import ListQuery, list_page
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import NOON, create, in_memory, queue, seed, select, turn

KINDS = ("main", "other", "global", "unknown", "cron-run")
WORDS = ("100%", "a_b", "a\\b", "École", "école", "ไทย", "Straße", "AbC", "100", "ab")


async def keys(store: Store, query: ListQuery) -> list[str]:
    return [row.session_key.removeprefix("agent:") for row in (await store.list_sessions(query)).rows]


# -- by example ------------------------------------------------------------------------------------


async def test_the_newest_come_first_across_agents(store: Store) -> None:
    for n, (agent, name) in enumerate([("a", "one"), ("b", "two"), ("a", "three"), ("b", "four")]):
        await create(store, seed(name, agent_id=agent), at=NOON + n)
    await create(store, seed("tie", agent_id="c"), at=NOON + 3)
    page = await store.list_sessions(ListQuery())
    assert [row.entry.updated_at - NOON for row in page.rows] == [3, 3, 2, 1, 0]
    # Of two that changed in the same millisecond the one created later comes first.
    assert [row.session_key for row in page.rows][:2] == ["agent:c:tie", "agent:b:four"]
    assert page.total == 5
    await queue(store, "run-1", to=seed("one", agent_id="a"), at=NOON + 9)
    assert (await keys(store, ListQuery(limit=1))) == ["a:one"]
    assert await keys(store, ListQuery(agent_id="b")) == ["b:four", "b:two"]
    assert (await store.list_sessions(ListQuery(agent_id="b", limit=1))).total == 2
    assert (await store.list_sessions(ListQuery(agent_id="nobody"))) == (
        await store.list_sessions(ListQuery(agent_id="a", label="nothing"))
    )


async def test_pages_have_no_gaps_and_no_repeats(store: Store) -> None:
    for n in range(23):
        await create(store, seed(f"s{n}", agent_id="abc"[n % 3]), at=NOON + n // 4)
    whole = await keys(store, ListQuery())
    assert len(whole) == len(set(whole)) == 23
    for agent_id in (None, "a"):
        expected = [key for key in whole if agent_id is None or key.startswith(agent_id)]
        for size in (1, 4, 7, 23, 50):
            pages: list[str] = []
            for offset in range(0, 30, size):
                page = await store.list_sessions(ListQuery(agent_id=agent_id, limit=size, offset=offset))
                assert page.total == len(expected)
                pages += [row.session_key.removeprefix("agent:") for row in page.rows]
            assert pages == expected


async def test_each_filter_alone(store: Store) -> None:
    await create(store, seed("plain"), at=NOON)
    await create(store, seed("labelled"), at=NOON + 1, label="work")
    await create(store, seed("child", spawned_by="agent:main:plain"), at=NOON + 2)
    await create(store, seed("gone"), at=NOON + 3, archived_at=NOON)
    for query, expected in [
        (ListQuery(), ["child", "labelled", "plain"]),
        (ListQuery(archived=True), ["gone"]),
        (ListQuery(archived=None), ["gone", "child", "labelled", "plain"]),
        (ListQuery(active_since_ms=NOON + 1), ["child", "labelled"]),
        (ListQuery(active_since_ms=NOON + 2), ["child"]),
        (ListQuery(active_since_ms=NOON + 3), []),
        (ListQuery(label="work"), ["labelled"]),
        (ListQuery(label="wor"), []),
        (ListQuery(spawned_by="agent:main:plain"), ["child"]),
        (ListQuery(search="LABEL"), ["labelled"]),
        (ListQuery(search="work"), ["labelled"]),
        (ListQuery(search="child-window"), ["child"]),
    ]:
        page = await store.list_sessions(query)
        assert [row.session_key.removeprefix("agent:main:") for row in page.rows] == expected
        assert page.total == len(expected)


@pytest.mark.spec("LIST-8")
async def test_hidden_kinds_are_neither_shown_nor_counted(store: Store) -> None:
    for kind in KINDS:
        await create(store, seed(kind, kind=kind))
    for query, expected in [
        (ListQuery(), {"main", "other"}),
        (ListQuery(include_global=True), {"main", "other", "global"}),
        (ListQuery(include_unknown=True), {"main", "other", "unknown"}),
        (ListQuery(include_global=True, include_unknown=True), {"main", "other", "global", "unknown"}),
        (ListQuery(search="main", archived=None), {"main", "other"}),
    ]:
        page = await store.list_sessions(query)
        assert {row.kind for row in page.rows} == expected
        assert page.total == len(expected)


@pytest.mark.spec("SRCH-1")
@pytest.mark.parametrize("field", ["label", "display_name", "subject"])
async def test_a_search_text_is_taken_literally(store: Store, field: str) -> None:
    for n, word in enumerate(WORDS):
        await create(store, seed(f"s{n}"), at=NOON + n, **{field: f"<{word}>"})

    async def found(text: str) -> set[str]:
        rows = (await store.list_sessions(ListQuery(search=text))).rows
        return {getattr(row.entry, field)[1:-1] for row in rows}

    for word in WORDS:
        assert word in await found(f"<{word}>")
    assert await found("100%") == {"100%"}
    assert await found("a_b") == {"a_b"}
    assert await found("a\\b") == {"a\\b"}
    assert await found("abc") == await found("ABC") == {"AbC"}
    assert await found("ไท") == {"ไทย"}
    assert await found("École") == await found("ÉCOLE") == {"École", "école"}
    assert await found("STRASSE") == await found("straße") == {"Straße"}
    assert await found("%") == {"100%"}
    assert await found("'; DROP TABLE sessions; --") == set()


@pytest.mark.spec("SRCH-1")
@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("Ñandú", ["ñandú", "ÑANDÚ", "ÑAND", "n\u0303andú"]),
        ("n\u0303andu\u0301", ["ñandú", "ÑANDÚ"]),
        ("Über uns", ["über", "ÜBER UNS", "r u"]),
        ("Москва", ["москва", "МОСКВА", "скв"]),
        ("ΣΊΣΥΦΟΣ", ["σίσυφος", "Σίσυφοσ"]),
        ("İstanbul", ["i\u0307stanbul", "İSTANBUL", "STANBUL"]),
    ],
)
async def test_letters_of_every_script_are_found_in_either_case(
    store: Store, database: SqliteDatabase, name: str, asked: list[str]
) -> None:
    await create(store, seed("plain"), label="plain")
    for number, field in enumerate(("label", "display_name", "subject")):
        await create(store, seed(f"s{number}"), at=NOON, **{field: f"<{name}>"})
    for text in asked:
        page = await store.list_sessions(ListQuery(search=text))
        assert (len(page.rows), page.total) == (3, 3), text
    assert (await store.list_sessions(ListQuery(search=name + name))).total == 0
    # A name of plain letters costs nothing more than before.
    rows = await select(database, "SELECT folded FROM sessions WHERE label = 'plain'")
    assert rows == [(None,)]
    await create(store, seed("s1"), display_name="plain now")
    assert (await store.list_sessions(ListQuery(search=asked[0]))).total == 2


def test_a_very_long_name_is_folded_in_linear_time() -> None:
    hostile = "a" + "\u0316\u0301" * 200_000
    assert fold_name(hostile).startswith("\xe1")
    assert fold_name("Ñ" * 1001) == "ñ" * 1001


class Watching:
    """A transaction that notes the statements that go through it."""

    def __init__(self, tx: Transaction, plans: list[str]) -> None:
        self._tx = tx
        self._plans = plans

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        self._plans.append(sql)
        return self._tx.rows(sql, params)

    def row(self, sql: str, params: Row = ()) -> Row | None:
        self._plans.append(sql)
        return self._tx.row(sql, params)

    def run(self, sql: str, params: Row = ()) -> None:
        self._plans.append(sql)
        self._tx.run(sql, params)


async def test_a_list_never_opens_a_transcript(store: Store, database: Database) -> None:
    await turn(store, "run-1", to=seed("one"))
    plans: list[str] = []
    page = await database.read(lambda tx: list_page(Watching(tx, plans), ListQuery(search="one")))
    assert page.total == 1
    assert any("FROM sessions" in sql for sql in plans)
    assert not any(table in sql for sql in plans for table in ("entries", "blobs", "search_", "windows"))


# -- against brute force ---------------------------------------------------------------------------


class Made(Struct, frozen=True):
    agent_id: str
    kind: str
    updated: int
    archived: bool
    name: str | None
    spawned_by: str | None


MADE = st.builds(
    Made,
    agent_id=st.sampled_from("abc"),
    kind=st.sampled_from(KINDS),
    updated=st.integers(0, 3),
    archived=st.booleans(),
    name=st.none() | st.sampled_from(WORDS),
    spawned_by=st.none() | st.sampled_from(["p", "q"]),
)
QUERIES = st.builds(
    ListQuery,
    agent_id=st.none() | st.sampled_from("ab"),
    archived=st.none() | st.booleans(),
    active_since_ms=st.none() | st.integers(NOON, NOON + 4),
    spawned_by=st.none() | st.just("p"),
    search=st.none() | st.sampled_from((*WORDS, "%", "_", "\\", "A", "zz")),
    include_global=st.booleans(),
    include_unknown=st.booleans(),
    limit=st.integers(1, 12),
    offset=st.integers(0, 4),
)


def caseless(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def matching(row: SessionRow, query: ListQuery) -> bool:
    entry = row.entry
    shown = {"cron-run": False, "global": query.include_global, "unknown": query.include_unknown}
    texts = (row.session_key, entry.session_id, entry.label, entry.display_name, entry.subject)
    return (
        shown.get(row.kind, True)
        and query.agent_id in (None, row.agent_id)
        and query.archived in (None, entry.archived_at is not None)
        and (query.active_since_ms is None or entry.updated_at >= query.active_since_ms)
        and query.spawned_by in (None, entry.spawned_by)
        and (
            query.search is None
            or any(caseless(query.search) in caseless(text) for text in texts if text is not None)
        )
    )


@pytest.mark.spec("LIST-8", "SRCH-1")
@settings(max_examples=100, deadline=None)
@given(made=st.lists(MADE, max_size=12), queries=st.lists(QUERIES, min_size=1, max_size=6))
def test_a_list_equals_brute_force(made: list[Made], queries: list[ListQuery]) -> None:
    async def scenario(store: Store, _: SqliteDatabase) -> None:
        rows = []
        for n, item in enumerate(made):
            planned = seed(f"s{n}", agent_id=item.agent_id, kind=item.kind, spawned_by=item.spawned_by)
            archived_at = NOON if item.archived else None
            at = NOON + item.updated
            rows.append(await create(store, planned, at=at, archived_at=archived_at, display_name=item.name))
        rows.sort(key=lambda row: (row.entry.updated_at, row.session_no), reverse=True)
        for query in queries:
            expected = [row for row in rows if matching(row, query)]
            page = await store.list_sessions(query)
            assert page.total == len(expected)
            assert list(page.rows) == expected[query.offset : query.offset + query.limit]

    in_memory(scenario)


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["create", "archive", "restore", "delete", "reset"]),
        st.sampled_from("ab"),
        st.sampled_from(KINDS),
    ),
    max_size=25,
)


def archiver(archived: bool) -> Callable[[SessionEntry], SessionEntry]:
    return lambda entry: msgspec.structs.replace(entry, archived_at=NOON if archived else None)


@pytest.mark.spec("LIFE-24", "ENT-1")
@settings(max_examples=100, deadline=None)
@given(operations=OPERATIONS)
def test_the_counters_are_exact_after_any_sequence(operations: list[tuple[str, str, str]]) -> None:
    numbers: Callable[[], int] = itertools.count(1).__next__

    async def scenario(store: Store, database: SqliteDatabase) -> None:
        alive: dict[tuple[str, str], bool] = {}
        for verb, agent_id, kind in operations:
            planned = seed(kind, agent_id=agent_id, kind=kind)
            exists = (agent_id, kind) in alive
            if verb in ("create", "archive", "restore"):
                archived = alive.get((agent_id, kind), False) if verb == "create" else verb == "archive"
                await store.edit_session(
                    planned, archiver(archived), session_id=f"id-{numbers()}", now_ms=NOON
                )
                alive[agent_id, kind] = archived
            elif verb == "delete":
                assert await store.delete_session(planned.session_key, now_ms=NOON) is exists
                alive.pop((agent_id, kind), None)
            elif exists:
                await store.reset_session(
                    planned.session_key, "reset", session_id=f"id-{numbers()}", now_ms=NOON
                )
        for agent, state, everything in itertools.product(
            (None, "a", "b"), (None, True, False), (True, False)
        ):
            query = ListQuery(
                agent_id=agent, archived=state, include_global=everything, include_unknown=everything
            )
            expected = sum(
                agent in (None, one)
                and state in (None, archived)
                and kind != "cron-run"
                and (everything or kind not in ("global", "unknown"))
                for (one, kind), archived in alive.items()
            )
            page = await store.list_sessions(query)
            assert page.total == len(page.rows) == expected

    in_memory(scenario)


@pytest.mark.spec("RPC-5")
async def test_a_list_without_machines_and_of_some_agents(store: Store) -> None:
    kinds = ("main", "subagent", "cron", "hook", "node", "other")
    for number, kind in enumerate(kinds):
        await create(store, seed(kind, "a", kind=kind), at=NOON + number)
    await create(store, seed("old", "gone"), at=NOON + 10)

    async def listed(**asked: Any) -> tuple[list[str], int]:
        page = await store.list_sessions(ListQuery(**asked))
        return [row.session_key.split(":")[-1] for row in page.rows], page.total

    assert await listed(agent_id="a", hide_subagents=True) == (["other", "node", "hook", "cron", "main"], 5)
    assert await listed(agent_id="a", hide_cron=True) == (["other", "node", "hook", "subagent", "main"], 5)
    assert await listed(agent_id="a", hide_system=True) == (["other", "cron", "subagent", "main"], 4)
    everything = {"hide_subagents": True, "hide_cron": True, "hide_system": True}
    assert await listed(**everything) == (["old", "other", "main"], 3)
    assert await listed(**everything, agent_ids=("a",)) == (["other", "main"], 2)
    assert await listed(**everything, agent_ids=("a", "b"), limit=1) == (["other"], 2)
    assert await listed(agent_ids=("a",), search="AIN") == (["main"], 1)
    assert await listed(agent_id="gone", agent_ids=("a",)) == ([], 0)
    assert await listed(agent_ids=()) == ([], 0)
