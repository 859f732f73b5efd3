"""The book of browsers that are signed in, and the marks and windows of a conversation, on every database."""

from __future__ import annotations

import msgspec

from openclaw.store.database import Database
from openclaw.store.pages import CompactionSeen, PageAsked, Pages
from openclaw.store.records import EntryDraft
from openclaw.store.signins import KeptSignin, KeptSignins, SigninBook
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, create, note

KEY = MAIN.session_key


async def test_the_book_keeps_what_was_written_last(database: Database) -> None:
    book = SigninBook(database)
    assert await book.read() is None
    first = KeptSignins(b"salt", bytes(32), (KeptSignin(b"\xff" * 32, NOON), KeptSignin(b"\x00" * 32, 1)))
    await book.write(first)
    assert await book.read() == first
    second = KeptSignins(b"other", b"\x01" * 32, ())
    await book.write(second)
    assert await SigninBook(database).read() == second


def compaction(tokens: object) -> EntryDraft:
    body = msgspec.json.encode({"summary": "s", "firstKeptEntryId": "x", "tokensBefore": tokens})
    return EntryDraft("compaction", body, audience="model")


async def test_compactions_belong_to_the_page_that_they_follow(database: Database, store: Store) -> None:
    pages = Pages(database)
    await create(store, MAIN)
    first = compaction(900)
    await store.append(KEY, (note("0"), note("1"), first, note("2")), now_ms=NOON)
    await store.append(KEY, (compaction("many"), compaction(True), note("3")), now_ms=NOON + 1)

    async def seen(limit: int, offset: int = 0) -> list[tuple[int, int | None]]:
        page = await pages.page(PageAsked(KEY, limit, offset))
        assert page is not None
        return [(one.seq, one.tokens_before) for one in page.compactions]

    assert await seen(10) == [(3, 900), (5, None), (6, None)]
    assert await seen(1) == []
    assert await seen(2) == [(5, None), (6, None)]
    assert await seen(1, 1) == [(5, None), (6, None)]
    assert await seen(2, 2) == [(3, 900)]
    assert await seen(1, 3) == []
    session = await store.session(KEY)
    assert session is not None
    since = await pages.since(KEY, session.entry.session_id, 3, 10)
    assert since is not None
    assert [one.seq for one in since.compactions] == [5, 6]
    assert isinstance(since.compactions[0], CompactionSeen)
    assert since.compactions[0].at_ms == NOON + 1


async def test_the_trail_of_nobody_is_empty(database: Database, store: Store) -> None:
    pages = Pages(database)
    assert await pages.trail(KEY, 10) == ()
    await create(store, MAIN)
    (only,) = await pages.trail(KEY, 10)
    assert (only.first_id, only.ended_at) == (None, None)
    (entry,) = await store.append(KEY, (note("0"),), now_ms=NOON)
    assert [one.first_id for one in await pages.trail(KEY, 10)] == [entry.entry_id]
