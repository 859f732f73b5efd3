"""Search on PostgreSQL: whole words and phrases, as the reference semantics say, in texts of any length."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.searchtext import index_text, matches, query_terms
from openclaw.store import search
from openclaw.store.postgres import PostgresDatabase
from openclaw.store.statements import load_statements
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, create, note
from tests.conformance.test_search import QUERIES, SENTENCES
from tests.fakes.postgres_server import shared_server
from tests.unit.store.postgres_driving import opened

KEY = MAIN.session_key


@pytest.fixture
async def database() -> AsyncIterator[PostgresDatabase]:
    async with opened(shared_server().wiped()) as driver:
        yield driver


@pytest.mark.spec("SRCH-2", "SRCH-3")
@settings(max_examples=40, deadline=None)
@given(
    messages=st.lists(SENTENCES, min_size=1, max_size=25),
    queries=st.lists(QUERIES, min_size=1, max_size=8),
    folded=st.integers(0, 25),
)
def test_search_equals_brute_force(messages: list[str], queries: list[str], folded: int) -> None:
    async def play() -> None:
        async with opened(shared_server().wiped(), readers=1) as database:
            store = Store(database)
            await create(store, MAIN)
            await store.append(KEY, tuple(note(text) for text in messages[:folded]), now_ms=NOON)
            await database.write(search.fold)
            await store.append(KEY, tuple(note(text) for text in messages[folded:]), now_ms=NOON)
            for text in queries:
                terms = query_terms(text)
                found = [hit.seq for hit in await store.search(terms, limit=100)]
                expected = [n for n, said in enumerate(messages, 1) if matches(index_text(said), terms)]
                assert found == expected[::-1], text

    asyncio.run(play())


@pytest.mark.spec("SRCH-3")
async def test_the_last_words_of_a_very_long_text_are_found(database: PostgresDatabase) -> None:
    """Where a text search vector keeps no places any more, and past its size."""
    store = Store(database)
    await create(store, MAIN)
    long = " ".join(f"word{n}" for n in range(150_000)) + " the gamma-ray end"
    often = "again " * 5_000 + "gamma and ray"
    await store.append(KEY, (note(long), note(often)), now_ms=NOON)
    await database.write(search.fold)
    assert [hit.seq for hit in await store.search(query_terms("gamma-ray"))] == [1]
    assert [hit.seq for hit in await store.search(query_terms("gamma ray"))] == [2, 1]
    assert [hit.seq for hit in await store.search(query_terms("word149999 end"))] == [1]
    assert [hit.seq for hit in await store.search((("again", "again", "gamma"),))] == [2]
    assert await store.search(query_terms("word15000")) != ()
    assert await store.search(query_terms("word150000")) == ()


async def test_the_index_is_used(database: PostgresDatabase) -> None:
    store = Store(database)
    await create(store, MAIN)
    for start in range(0, 3000, 500):
        drafts = tuple(note(f"common word{n}") for n in range(start, start + 500))
        await store.append(KEY, drafts, now_ms=NOON)
    await database.write(search.fold)
    await database.write(lambda tx: tx.run("ANALYZE"))
    variants = load_statements("search_postgres.sql")
    plan = await database.read(
        lambda tx: tx.rows("EXPLAIN " + variants["find"], ('"word77" "common"', None, 1 << 62, 20))
    )
    assert any("search_words" in line for (line,) in plan), plan
    assert [hit.seq for hit in await store.search(query_terms("word77"))] == [78]
