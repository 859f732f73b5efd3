"""The transcript: append-only, dense, read in pages; a body comes back as it went in."""

from __future__ import annotations

import asyncio
import re

import msgspec
import pytest

from openclaw.errors import SessionNotFound, VersionConflict
from openclaw.store import transcript
from openclaw.store.records import EntryDraft, StoredEntry
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.statements import load_statements
from openclaw.store.store import Store
from openclaw.store.transcript import BLOB_BYTES, PREVIEW_CHARS, entry_id_of, salt_of
from tests.conformance.making import MAIN, NOON, create, note, present, queue, seed, select, texts, turn

KEY = MAIN.session_key


def hidden(text: str, audience: str = "model") -> EntryDraft:
    return msgspec.structs.replace(note(text), audience=audience)


# -- append ----------------------------------------------------------------------------------------


@pytest.mark.spec("TRX-4", "DB-13")
async def test_an_entry_is_stored_with_all_its_columns(store: Store) -> None:
    row = await create(store, MAIN)
    draft = EntryDraft("custom", b'{"x":1}', "user", "inter_session", "internal", "run-1", "text", "")
    (first,) = await store.append(KEY, (note("hello"),), now_ms=NOON + 1)
    (second,) = await store.append(KEY, (draft,), now_ms=NOON + 2)
    assert first == StoredEntry(
        1, entry_id_of(row.id_salt, 1), None, "message", "user", None, "people", None, NOON + 1,
        note("hello").body,
    )  # fmt: skip
    assert second == StoredEntry(
        2, entry_id_of(row.id_salt, 2), 1, "custom", "user", "inter_session", "internal", "run-1", NOON + 2,
        b'{"x":1}',
    )  # fmt: skip
    assert await store.context(row.window_no) == (first, second)
    assert await store.context(row.window_no, after_seq=1) == (second,)
    assert await store.context(row.window_no, after_seq=2) == ()
    assert await store.entry(row.window_no, 2) == second
    assert await store.entry(row.window_no, 3) is None


@pytest.mark.spec("TRX-1", "TRX-4")
async def test_numbers_are_dense_whoever_writes(store: Store) -> None:
    await create(store, MAIN)
    await create(store, seed("other"))

    async def write(n: int) -> tuple[StoredEntry, ...]:
        key = KEY if n % 3 else "agent:main:other"
        return await store.append(key, tuple(note(f"{n}/{part}") for part in range(n % 5)), now_ms=NOON)

    written = await asyncio.gather(*(write(n) for n in range(60)))
    for key, mine in ((KEY, True), ("agent:main:other", False)):
        row = await present(store, key)
        entries = await store.context(row.window_no)
        total = sum(n % 5 for n in range(60) if bool(n % 3) == mine)
        assert row.last_seq == row.message_count == total
        assert [entry.seq for entry in entries] == list(range(1, total + 1))
        assert [entry.parent_seq for entry in entries] == [None, *range(1, total)]
        assert len({entry.entry_id for entry in entries}) == total
        # What one caller wrote together stands together and in order.
        for batch in (batch for n, batch in enumerate(written) if bool(n % 3) == mine and batch):
            start = batch[0].seq - 1
            assert entries[start : start + len(batch)] == batch


@pytest.mark.spec("TRX-4")
def test_entry_ids_are_unique_in_a_window() -> None:
    for session_id in ("a", "0d2f7b7e-1c5b-4d0c-9f0e-0d8f7a3f9a10"):
        salt = salt_of(session_id)
        ids = {entry_id_of(salt, seq) for seq in range(1, 100_001)}
        assert len(ids) == 100_000
        assert all(re.fullmatch("[0-9a-f]{8}", entry_id) for entry_id in ids)
    assert entry_id_of(salt_of("a"), 1) != entry_id_of(salt_of("b"), 1)
    assert entry_id_of(0, 1) == "9e3779b1"
    assert entry_id_of(0, 0) == "00000000"


@pytest.mark.spec("TRX-1")
def test_no_statement_changes_or_removes_an_entry() -> None:
    names = ("inbox", "outbox", "runs", "search_sqlite", "sessions", "transcript")
    texts_of = [text for name in names for text in load_statements(f"{name}.sql").values()]
    assert len(texts_of) > 50
    for text in texts_of:
        assert not re.search(r"\b(update|delete\s+from|replace\s+into)\s+(entries|blobs)\b", text, re.I)
    inserts = [text for text in texts_of if re.search(r"insert\s+into\s+entries\b", text, re.I)]
    assert inserts == [transcript.SQL["insert_entry"]]
    assert "on conflict" not in inserts[0].lower()


async def test_appending_nothing_only_checks_that_the_session_is_there(store: Store) -> None:
    row = await create(store, MAIN)
    assert await store.append(KEY, (), now_ms=NOON) == ()
    assert (await present(store)).last_seq == row.last_seq
    with pytest.raises(SessionNotFound, match="session not found: agent:main:gone"):
        await store.append("agent:main:gone", (), now_ms=NOON)


async def test_an_append_for_a_window_that_was_left_is_refused(
    store: Store, database: SqliteDatabase
) -> None:
    row = await create(store, MAIN)
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON)
    fresh = await present(store)
    with pytest.raises(VersionConflict, match="session agent:main:main was reset in the meantime"):
        await database.write(
            lambda tx: transcript.append(tx, KEY, [note("late")], NOON, window_no=row.window_no)
        )
    assert await present(store) == fresh
    (entry,) = await database.write(
        lambda tx: transcript.append(tx, KEY, [note("in time")], NOON, window_no=fresh.window_no)
    )
    assert entry.seq == 1


# -- what lists show -------------------------------------------------------------------------------


async def test_the_row_keeps_the_first_and_the_last_words(store: Store) -> None:
    await create(store, MAIN)
    await store.append(KEY, (hidden("a note for the model"), note("greeting", "assistant")), now_ms=NOON)
    row = await present(store)
    assert (row.first_text, row.last_text, row.message_count, row.last_seq) == (None, "greeting", 1, 2)
    await store.append(KEY, (note("question"), note("more"), note("answer", "assistant")), now_ms=NOON)
    row = await present(store)
    assert (row.first_text, row.last_text, row.message_count, row.last_seq) == ("question", "answer", 4, 5)
    await store.append(KEY, (note("second question"), hidden("aside", "internal")), now_ms=NOON)
    row = await present(store)
    assert (row.first_text, row.last_text, row.message_count) == ("question", "second question", 5)
    silent = msgspec.structs.replace(note("x", "assistant"), text="")
    await store.append(KEY, (silent, msgspec.structs.replace(note("y"), type="custom")), now_ms=NOON)
    row = await present(store)
    assert (row.last_text, row.message_count, row.last_seq) == ("second question", 6, 9)
    # What a tool answered is for the model; a list shows what was said to somebody.
    await store.append(KEY, (note("I look.", "assistant"), note('{"a": 1}', "toolResult")), now_ms=NOON)
    await store.append(KEY, (note('{"b": 2}', "toolResult"),), now_ms=NOON)
    row = await present(store)
    assert (row.last_text, row.message_count, row.last_seq) == ("I look.", 9, 12)


async def test_previews_are_cut(store: Store) -> None:
    await create(store, MAIN)
    await store.append(KEY, (note("a" * PREVIEW_CHARS), note("b" * (PREVIEW_CHARS + 1))), now_ms=NOON)
    row = await present(store)
    assert (row.first_text, row.last_text) == ("a" * 300, "b" * 300)
    assert PREVIEW_CHARS == 300


async def test_an_append_makes_the_session_newer_never_older(store: Store) -> None:
    await create(store, MAIN)
    await store.append(KEY, (note("x"),), now_ms=NOON + 5)
    await store.append(KEY, (note("y"),), now_ms=NOON + 1)
    row = await present(store)
    assert row.entry.updated_at == NOON + 5
    assert row.entry.last_interaction_at is None


# -- blobs -----------------------------------------------------------------------------------------


@pytest.mark.spec("TRX-1", "DB-13")
async def test_a_large_body_is_kept_once_and_read_back(store: Store, database: SqliteDatabase) -> None:
    await create(store, MAIN)
    await create(store, seed("other"))
    edge, large = bytes(range(256)) * 256, b"x" + bytes(range(256)) * 256
    assert (len(edge), len(large)) == (BLOB_BYTES, BLOB_BYTES + 1)
    drafts = tuple(EntryDraft("custom", body) for body in (edge, large, large, b"small"))
    appended = await store.append(KEY, drafts, now_ms=NOON)
    await store.append("agent:main:other", drafts[1:2], now_ms=NOON)
    window_no = (await present(store)).window_no
    assert [entry.body for entry in appended] == [edge, large, large, b"small"]
    assert await store.context(window_no) == appended
    for people_only in (True, False):
        page = await store.history(KEY, 10, people_only=people_only)
        assert page is not None
        assert page.entries == appended
    assert await store.entry(window_no, 2) == appended[1]
    sql = "SELECT body IS NULL, blob_hash IS NULL FROM entries WHERE window_no = ? ORDER BY seq"
    assert await select(database, sql, window_no) == [(0, 1), (1, 0), (1, 0), (0, 1)]
    assert await select(database, "SELECT refs, body FROM blobs") == [(3, large)]


async def test_a_large_searchable_message_is_found_with_its_body(store: Store) -> None:
    await create(store, MAIN)
    long = note("needle " + "hay " * 20_000)
    await store.append(KEY, (long,), now_ms=NOON)
    (hit,) = await store.search((("needle",),))
    assert hit.body == long.body


# -- pages -----------------------------------------------------------------------------------------


async def test_pages_run_backwards_without_gaps(store: Store) -> None:
    await create(store, MAIN)
    drafts = [note(str(n)) if n % 3 else hidden(str(n)) for n in range(20)]
    entries = await store.append(KEY, tuple(drafts), now_ms=NOON)
    for people_only in (True, False):
        expected = [entry for entry in entries if not people_only or entry.audience == "people"]
        for size in (1, 3, 7, 20, 30):
            collected: list[StoredEntry] = []
            before = transcript.LAST
            while True:
                page = await store.history(KEY, size, before_seq=before, people_only=people_only)
                assert page is not None
                if not page.entries:
                    break
                collected[:0] = page.entries
                before = page.entries[0].seq
            assert collected == expected


async def test_a_page_shows_what_waits_and_what_runs(store: Store) -> None:
    await turn(store, "run-1", "one")
    page = await store.history(KEY, 1)
    assert page is not None
    assert texts(page.entries) == ["re: one"]
    assert (page.pending, page.active_run) == ((), None)
    for n in range(102):
        await queue(store, f"wait-{n}", str(n))
    page = await store.history(KEY, 10)
    assert page is not None
    assert page.session == await present(store)
    assert [item.body.content for item in page.pending] == [str(n) for n in range(100)]


@pytest.mark.spec("TRX-14")
async def test_a_page_is_for_people_unless_asked(store: Store) -> None:
    await create(store, MAIN)
    await store.append(KEY, (note("seen"), hidden("for the model"), hidden("ours", "internal")), now_ms=NOON)
    page = await store.history(KEY, 10)
    assert page is not None
    assert texts(page.entries) == ["seen"]
    page = await store.history(KEY, 10, people_only=False)
    assert page is not None
    assert texts(page.entries) == ["seen", "for the model", "ours"]


async def test_a_span_can_be_bounded(store: Store, database: SqliteDatabase) -> None:
    row = await create(store, MAIN)
    await store.append(KEY, tuple(note(str(n)) for n in range(1, 8)), now_ms=NOON)

    async def span(first: int, last: int, limit: int) -> list[str]:
        return texts(await database.read(lambda tx: transcript.span(tx, row.window_no, first, last, limit)))

    assert await span(2, 4, 10) == ["2", "3", "4"]
    assert await span(2, 2, 10) == ["2"]
    assert await span(5, 100, 2) == ["5", "6"]
    assert await span(8, 9, 10) == []
    await store.append(KEY, (hidden("8"),), now_ms=NOON)
    newest = await database.read(lambda tx: transcript.tail(tx, row.window_no, 2))
    assert texts(newest) == ["7", "8"]
