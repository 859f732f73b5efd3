"""Pages of an export: joined they are the whole, whatever their size, and their end does not move."""

from __future__ import annotations

import json
import threading
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.errors import InvalidRequest, Unavailable
from openclaw.store import rendering
from openclaw.store.erasing import Erasing
from openclaw.store.export import START, Export, Position
from openclaw.store.records import Window
from openclaw.store.rendering import PIECE_PAGES, Cursor, View, read_cursor
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, create, execute, in_memory, note, turn
from tests.conformance.test_maintenance import QUICK

SECRET = "sk-ant-REDACTED"
KNOWN = frozenset({"a-password-of-the-config"})
VIEWS = [View(), View(redact=True), View("markdown"), View("html")]
Data = tuple[bytes, list[bytes]]


async def fill(store: Store, database: SqliteDatabase) -> None:
    """A transcript with a large body, odd letters and secrets; as imported, its tail ends in no line."""
    await turn(store, "run-1", f"hello \u2028 ünï {SECRET}")
    await store.append(MAIN.session_key, (note("x" * 20_000), note(next(iter(KNOWN)))), now_ms=NOON)
    await execute(
        database, "INSERT INTO window_sources VALUES (1, $1, $2, 2)", b'{"type":"session"}', b"torn \xff line"
    )


async def current(export: Export) -> Window:
    window = await export.window_of(MAIN.session_key)
    assert window is not None
    return window


async def by_pages(export: Export, view: View, limit: int) -> list[bytes]:
    window, cursor, parts = await current(export), None, list[bytes]()
    while True:
        page = await rendering.page(export, window, view, cursor, cwd="/w", secrets=KNOWN, limit=limit)
        parts.append(page.data)
        if page.cursor is None:
            return parts
        cursor = read_cursor(page.cursor)


async def as_whole(export: Export, view: View) -> bytes:
    pieces = rendering.whole(export, await current(export), view, cwd="/w", secrets=KNOWN)
    return b"".join([piece async for piece in pieces])


@pytest.mark.spec("CLI-11", "DB-4")
@settings(max_examples=40, deadline=None)
@given(limit=st.integers(200, 30_000), view=st.sampled_from(VIEWS))
def test_pages_of_any_size_are_the_whole(limit: int, view: View) -> None:
    async def scenario(store: Store, database: SqliteDatabase) -> Data:
        await fill(store, database)
        export = Export(database)
        return await as_whole(export, view), await by_pages(export, view, limit)

    whole, parts = in_memory(scenario)
    assert b"".join(parts) == whole
    most = (PIECE_PAGES + 1) * limit + 4096  # the first page may begin with the head of an HTML page
    assert all(len(part) <= most for part in parts) and len(parts) >= len(whole) // most
    assert all(len(part) >= limit for part in parts[:-1])


@pytest.mark.spec("CLI-11", "DB-4", "TRX-11")
def test_exact_is_exact_and_views_show_no_secret() -> None:
    async def scenario(store: Store, database: SqliteDatabase) -> list[bytes]:
        await fill(store, database)
        return [await as_whole(Export(database), view) for view in VIEWS]

    exact, masked, notes, page = in_memory(scenario)
    lines = exact.split(b"\n")
    assert lines[0] == b'{"type":"session"}' and lines[3] == b"torn \xff line" and len(lines) == 7
    assert SECRET.encode() in exact and next(iter(KNOWN)).encode() in exact
    assert len(json.loads(lines[4])["message"]["content"]) == 20_000
    for shown in (masked, notes, page):
        assert SECRET.encode() not in shown and next(iter(KNOWN)).encode() not in shown
        assert b"x" * 20_000 in shown
    assert len(masked.splitlines()) == 5 and notes.startswith(b"# agent:main:main\n")
    assert page.startswith(b"<!") and page.endswith(b"</html>\n")


@pytest.mark.spec("CLI-11")
async def test_the_end_is_fixed_by_the_first_page() -> None:
    database = await SqliteDatabase.open_memory("rendering-end")
    store, export = Store(database), Export(database)
    await turn(store, "run-1")
    before = await as_whole(export, View())
    window = await current(export)
    first = await rendering.page(export, window, View(), None, cwd="/w", secrets=KNOWN, limit=60)
    assert (first.seq, first.last_seq) == (0, 2) and first.cursor is not None
    begun = read_cursor(first.cursor)
    await turn(store, "run-2", "later")
    page, data = first, first.data
    while page.cursor is not None:
        page = await rendering.page(
            export, window, View(), read_cursor(page.cursor), cwd="/w", secrets=KNOWN, limit=60
        )
        data += page.data
    assert data == before and (page.seq, page.last_seq) == (2, 2)
    await Erasing(database, pace=QUICK).erase_session(MAIN.session_key, now_ms=NOON)
    with pytest.raises(Unavailable, match="removed while it was read"):
        await rendering.page(export, window, View(), begun, cwd="/w", secrets=KNOWN, limit=60)
    await database.close()


async def test_an_empty_transcript_is_its_header() -> None:
    database = await SqliteDatabase.open_memory("rendering-empty")
    store, export = Store(database), Export(database)
    await create(store, MAIN)
    page = await rendering.page(export, await current(export), View(), None, cwd="/w", secrets=KNOWN)
    assert page.cursor is None and json.loads(page.data)["cwd"] == "/w" and page.last_seq == 0
    await database.close()


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "{}", '[1,2,[3,true,false],0,"more"]', "[1,2,3]", "\ud800", '["a",2,[3],0]']
)
def test_a_cursor_from_elsewhere_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="begin again without one"):
        read_cursor(text)


def test_a_cursor_is_read_as_it_was_written() -> None:
    for cursor in (Cursor(1, 2, START), Cursor(9, 8, Position(7, True, True), 6)):
        assert read_cursor(msgspec.json.encode(cursor).decode()) == cursor


@pytest.mark.parametrize("view", VIEWS[1:])
def test_nothing_is_rendered_on_the_event_loop(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()
    render = rendering._render

    def noting(piece: bytes, *rest: Any) -> bytes:
        threads.add(threading.get_ident())
        return render(piece, *rest)

    async def scenario(store: Store, database: SqliteDatabase) -> None:
        await fill(store, database)
        await as_whole(Export(database), view)
        await by_pages(Export(database), view, 2000)

    monkeypatch.setattr(rendering, "_render", noting)
    in_memory(scenario)
    assert threads and threading.get_ident() not in threads
