"""Pages of a conversation, what came since, and sums of usage, on every database."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.errors import InvalidRequest
from openclaw.store.database import Database
from openclaw.store.pages import PageAsked, Pages
from openclaw.store.records import EntryDraft
from openclaw.store.sessionusage import Amounts, SessionUsages, UsageSpan, add
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, create, execute, in_memory, note, queue, seed

KEY = MAIN.session_key
HIDDEN = EntryDraft("custom", b"{}", audience="internal")


@pytest.fixture
def pages(database: Database) -> Pages:
    return Pages(database)


async def fill(store: Store, count: int) -> None:
    """Messages 0, 1, … with an entry that nobody is shown before each."""
    for number in range(count):
        await store.append(KEY, (HIDDEN, note(str(number))), now_ms=NOON + number)


async def shown(pages: Pages, **asked: Any) -> tuple[list[int], int, bool]:
    page = await pages.page(PageAsked(KEY, **asked))
    assert page is not None
    return [entry.seq // 2 - 1 for entry in page.entries], page.offset, page.more


@pytest.mark.spec("RPC-11")
async def test_a_page_is_the_newest_before_its_offset(store: Store, pages: Pages) -> None:
    assert await pages.page(PageAsked(KEY, 5)) is None
    await create(store, MAIN)
    assert await shown(pages, limit=5) == ([], 0, False)
    await fill(store, 12)
    assert await shown(pages, limit=5) == ([7, 8, 9, 10, 11], 0, True)
    assert await shown(pages, limit=5, offset=5) == ([2, 3, 4, 5, 6], 5, True)
    assert await shown(pages, limit=5, offset=10) == ([0, 1], 10, False)
    assert await shown(pages, limit=2, offset=10) == ([0, 1], 10, False)
    assert await shown(pages, limit=5, offset=12) == ([], 12, False)
    assert await shown(pages, limit=5, offset=1 << 40) == ([], 1 << 40, False)
    assert await shown(pages, limit=12) == (list(range(12)), 0, False)


@pytest.mark.spec("RPC-11")
async def test_a_page_around_an_entry(store: Store, pages: Pages) -> None:
    await create(store, MAIN)
    await fill(store, 10)
    page = await pages.page(PageAsked(KEY, 100))
    assert page is not None
    ids = [entry.entry_id for entry in page.entries]
    assert await shown(pages, limit=3, around=ids[5]) == ([4, 5, 6], 3, True)
    assert await shown(pages, limit=3, around=ids[0]) == ([0, 1], 8, False)
    assert await shown(pages, limit=3, around=ids[9]) == ([7, 8, 9], 0, True)
    assert await shown(pages, limit=1, around=ids[4]) == ([4], 5, True)
    with pytest.raises(InvalidRequest, match="message not found: zz"):
        await shown(pages, limit=3, around="zz")
    assert await pages.holds(KEY, ids[3]) and not await pages.holds(KEY, "zz")
    assert not await pages.holds("agent:main:nobody", ids[3])


@pytest.mark.spec("RPC-11")
async def test_one_message_is_found_by_its_id_in_the_conversation_that_is_named(
    store: Store, pages: Pages
) -> None:
    assert await pages.message(KEY, "zz") is None
    old = (await create(store, MAIN)).entry.session_id
    (kept,) = await store.append(KEY, (note("x" * 70_000),), now_ms=NOON)
    assert await pages.message(KEY, kept.entry_id) == kept
    assert await pages.message(KEY, kept.entry_id, old) == kept
    assert await pages.message(KEY, "zz") is None
    await store.reset_session(KEY, "reset", session_id="later", now_ms=NOON + 1)
    assert await pages.message(KEY, kept.entry_id) is None
    assert await pages.message(KEY, kept.entry_id, "later") is None
    assert await pages.message(KEY, kept.entry_id, old) == kept
    other = (await create(store, seed("other"))).entry.session_id
    for foreign in (other, "nobody's"):
        with pytest.raises(InvalidRequest, match="No session found"):
            await pages.message(KEY, kept.entry_id, foreign)


@pytest.mark.spec("RPC-11")
async def test_what_came_since_is_all_or_nothing(store: Store, pages: Pages) -> None:
    row = await create(store, MAIN)
    session_id = row.entry.session_id
    await fill(store, 6)

    async def since(seq: int, limit: int = 100, window: str = session_id) -> list[int] | None:
        came = await pages.since(KEY, window, seq, limit)
        return None if came is None else [entry.seq for entry in came.entries]

    assert await since(0) == [2, 4, 6, 8, 10, 12]
    assert await since(8) == [10, 12] and await since(9) == [10, 12]
    assert await since(12) == []
    assert await since(13) is None and await since(-1) is None
    assert await since(8, limit=2) == [10, 12] and await since(8, limit=1) is None
    assert await since(8, window="other") is None
    assert await pages.since("agent:main:nobody", session_id, 0, 10) is None


@pytest.mark.spec("RPC-11")
@settings(max_examples=60, deadline=None)
@given(kinds=st.lists(st.booleans(), max_size=30), limit=st.integers(1, 12), start=st.integers(0, 30))
def test_pages_put_together_are_the_transcript(kinds: list[bool], limit: int, start: int) -> None:
    async def scenario(store: Store, database: SqliteDatabase) -> None:
        row = await create(store, MAIN)
        pages = Pages(database)
        for number, visible in enumerate(kinds):
            await store.append(KEY, (note(str(number)) if visible else HIDDEN,), now_ms=NOON)
        wanted = [number + 1 for number, visible in enumerate(kinds) if visible]
        seen: list[int] = []
        offset, more = 0, True
        while more:
            page = await pages.page(PageAsked(KEY, limit, offset))
            assert page is not None and len(page.entries) <= limit
            seen = [entry.seq for entry in page.entries] + seen
            offset, more = offset + len(page.entries), page.more
        assert seen == wanted
        came = await pages.since(KEY, row.entry.session_id, min(start, len(kinds)), 100)
        assert came is not None
        assert [entry.seq for entry in came.entries] == [seq for seq in wanted if seq > start]

    in_memory(scenario)


@pytest.mark.spec("RPC-11")
async def test_what_waits_is_paged_from_the_newest(store: Store, pages: Pages) -> None:
    await create(store, MAIN)
    for number in range(105):
        await queue(store, f"run-{number}")
    page = await pages.page(PageAsked(KEY, 1))
    assert page is not None and page.waiting.total == 105
    names = [item.run_id for item in page.waiting.items]
    assert names == [f"run-{number}" for number in range(5, 105)]
    older = await pages.page(PageAsked(KEY, 1, pending_before=page.waiting.items[0].admission))
    assert older is not None
    assert [item.run_id for item in older.waiting.items] == [f"run-{number}" for number in range(5)]
    named = await pages.page(PageAsked(KEY, 1, run_ids=("run-2", "run-50", "unknown")))
    assert named is not None and len(named.waiting.items) == 101
    assert named.waiting.items[0].run_id == "run-2"


@pytest.mark.spec("RPC-6")
async def test_sessions_by_the_beginning_of_an_id(store: Store, pages: Pages) -> None:
    await store.edit_session(seed("a"), lambda entry: entry, session_id="abcd-1", now_ms=NOON)
    await store.edit_session(seed("b"), lambda entry: entry, session_id="abcd-2", now_ms=NOON)
    found = await pages.by_short_id("abcd-1")
    assert found is not None and found.session_key == "agent:main:a"
    assert await pages.by_short_id("abce") is None and await pages.by_short_id("bcd-") is None
    with pytest.raises(InvalidRequest, match="several sessions"):
        await pages.by_short_id("abcd")
    with pytest.raises(InvalidRequest, match="at least 4"):
        await pages.by_short_id("abc")
    assert await pages.by_short_id("%___") is None


async def use(database: Database, call: str, at: int, cost: float | None, **fields: str) -> None:
    row = {"key": KEY, "agent": "main", "model": "m"} | fields
    await execute(
        database,
        "INSERT INTO usage (call_id, state, session_key, agent_id, run_id, provider, model, at, input,"
        " output, cache_read, cache_write, cost_usd) VALUES (?, ?, ?, ?, 'r', 'p', ?, ?, 10, 5, 2, 1, ?)",
        call, fields.get("state", "settled"), row["key"], row["agent"], row["model"], at, cost,
    )  # fmt: skip


@pytest.mark.spec("RPC-10")
async def test_usage_is_summed_by_the_database(database: Database) -> None:
    usages = SessionUsages(database)
    await use(database, "1", NOON, 0.5)
    await use(database, "2", NOON + 899_999, 0.25)
    await use(database, "3", NOON + 900_000, None, model="n")
    await use(database, "4", NOON, 1.0, key="agent:bob:x", agent="bob")
    await use(database, "5", NOON, 9.0, state="reserved")
    await use(database, "6", NOON - 1, 9.0)
    await use(database, "7", NOON + 10_000_000, 9.0)
    report = await usages.report(UsageSpan(NOON, NOON + 10_000_000), 10)
    assert [(one.session_key, one.amounts.calls) for one in report.sessions] == [(KEY, 3), ("agent:bob:x", 1)]
    mine = report.sessions[0]
    assert mine.amounts == Amounts(3, 30, 15, 6, 3, 0.75, 1) and mine.amounts.total_tokens == 54
    assert (mine.first_at, mine.last_at, report.session_count) == (NOON, NOON + 900_000, 2)
    slices = {(one.agent_id, one.model, one.at_ms): one.amounts.calls for one in report.slices}
    assert slices == {
        ("main", "m", NOON): 2, ("main", "n", NOON + 900_000): 1, ("bob", "m", NOON): 1,
    }  # fmt: skip
    assert add(one.amounts for one in report.slices) == Amounts(4, 40, 20, 8, 4, 1.75, 1)
    one = await usages.report(UsageSpan(NOON, NOON + 10_000_000, session_key="agent:bob:x"), 10)
    assert (one.session_count, len(one.slices), one.sessions[0].agent_id) == (1, 1, "bob")
    agent = await usages.report(UsageSpan(NOON, NOON + 10_000_000, agent_id="main"), 10)
    assert [one.session_key for one in agent.sessions] == [KEY]
    assert len((await usages.report(UsageSpan(NOON, NOON + 10_000_000), 1)).sessions) == 1
    empty = await usages.report(UsageSpan(0, 1), 10)
    assert (empty.sessions, empty.slices, empty.session_count) == ((), (), 0)
