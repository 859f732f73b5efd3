"""Mending a damaged database and shrinking a fat one: what can be read is kept, nothing is thrown away."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from openclaw.domain.searchtext import query_terms
from openclaw.domain.transcript import AssistantMessage, TextBlock
from openclaw.engine.drafts import draft_message
from openclaw.errors import InvalidRequest, StoreCorrupt, StoreFull, StoreLocked
from openclaw.store import salvage
from openclaw.store.lockfile import OwnerLock
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import DONE, NOON, begin, seed

SESSIONS = 12
TURNS = 8


async def write_all(path: Path) -> None:
    """Twelve sessions with eight turns each, every message with a word of its own."""
    database = await SqliteDatabase.open(path)
    store = Store(database)
    for session in range(SESSIONS):
        for number in range(TURNS):
            run_id = f"run-{session}-{number}"
            claimed = await begin(store, run_id, f"question {run_id} {'x' * 300}", to=seed(f"s{session}"))
            reply = AssistantMessage((TextBlock(f"answer a{session}b{number} {'y' * 300}"),), NOON)
            await store.finish(claimed.run, (draft_message(reply, run_id),), DONE, now_ms=NOON)
    await database.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("written") / "openclaw.sqlite"
    asyncio.run(write_all(path))
    connection = apsw.Connection(str(path))
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()
    return path.read_bytes()


@pytest.fixture
def path(written: bytes, tmp_path: Path) -> Path:
    place = tmp_path / "state" / "openclaw.sqlite"
    place.parent.mkdir()
    place.write_bytes(written)
    return place


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def pages_of(path: Path, name: str, kind: str = "leaf") -> list[int]:
    found = rows(
        path, f"SELECT pageno FROM dbstat WHERE name = '{name}' AND pagetype = '{kind}' ORDER BY path"
    )
    return [int(number) for (number,) in found]


def spoil(path: Path, *pages: int) -> None:
    """Overwrite whole pages with what is no page."""
    (size,) = rows(path, "PRAGMA page_size")[0]
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * size)
            file.write(b"\xa5" * size)


async def after(path: Path, work: Callable[[Store], Any]) -> Any:
    database = await SqliteDatabase.open(path)
    try:
        return await work(Store(database))
    finally:
        await database.close()


@pytest.mark.spec("CLI-10")
def test_a_whole_file_is_left_alone(path: Path, written: bytes) -> None:
    assert salvage.find_damage(path) == ()
    done = salvage.recover(path, "now")
    assert done == salvage.Recovered(ok=True, damaged=False, problems=(), rows={}, dropped=0)
    assert path.read_bytes() == written
    assert sorted(
        one.name for one in path.parent.iterdir() if not one.name.endswith((".lock", "-wal", "-shm"))
    ) == [path.name]


@pytest.mark.spec("CLI-10", "DB-7")
async def test_a_damaged_transcript_page_costs_only_itself(path: Path) -> None:
    before = dict(rows(path, "SELECT window_no, count(*) FROM entries GROUP BY 1"))
    leaves = pages_of(path, "entries")
    assert len(leaves) > 20
    lost_pages = (leaves[5], leaves[12])
    ((lost,),) = rows(path, f"SELECT sum(ncell) FROM dbstat WHERE pageno IN {lost_pages}")
    spoil(path, *lost_pages)
    assert salvage.find_damage(path)
    done = salvage.recover(path, "20261116")
    assert done.ok and done.damaged and done.problems
    assert sum(before.values()) - lost == done.rows["entries"], "what lies between two damaged pages is kept"
    assert done.rows["sessions"] == SESSIONS and done.rows["windows"] == SESSIONS and done.dropped == 0
    assert salvage.find_damage(path) == ()
    assert done.kept_as == str(path) + ".damaged-20261116"
    assert salvage.find_damage(Path(done.kept_as)), "the damaged file is kept as it was"

    async def look(store: Store) -> None:
        row = await store.session("agent:main:s11")
        assert row is not None and row.message_count == 2 * TURNS
        page = await store.history("agent:main:s11", limit=100)
        assert page is not None and len(page.entries) == 2 * TURNS
        hits = await store.search(query_terms("a11b7"))
        assert [hit.session_key for hit in hits] == ["agent:main:s11"]
        new = await begin(store, "after", "and on", to=seed("s11"))
        assert new.session.last_seq == 2 * TURNS + 1

    await after(path, look)


@pytest.mark.spec("CLI-10")
def test_what_belongs_to_lost_rows_is_left_out_and_counted(path: Path) -> None:
    (leaf,) = pages_of(path, "windows")[:1]
    spoil(path, leaf)
    done = salvage.recover(path, "x")
    kept = {no for (no,) in rows(path, "SELECT window_no FROM windows")}
    assert done.ok and done.dropped > 0 and len(kept) < SESSIONS
    assert {no for (no,) in rows(path, "SELECT DISTINCT window_no FROM entries")} <= kept
    assert {no for (no,) in rows(path, "SELECT window_no FROM sessions")} <= kept
    counted = rows(path, "SELECT coalesce(sum(sessions), 0) FROM counters")[0][0]
    assert counted == rows(path, "SELECT count(*) FROM sessions")[0][0]


@pytest.mark.spec("CLI-10")
def test_derived_rows_are_made_again_as_they_were(path: Path) -> None:
    """Damage to an index alone loses nothing, and counters and the search index come out equal."""
    counters = rows(path, "SELECT * FROM counters ORDER BY 1, 2, 3")
    spoil(path, pages_of(path, "sessions_recent")[0])
    done = salvage.recover(path, "x")
    assert done.ok and done.damaged and done.dropped == 0
    assert done.rows["entries"] == 2 * TURNS * SESSIONS
    assert rows(path, "SELECT * FROM counters ORDER BY 1, 2, 3") == counters
    found = rows(path, "SELECT count(*) FROM search WHERE words MATCH 'question'")
    assert found == [(TURNS * SESSIONS,)]


@pytest.mark.spec("CLI-10", "OWN-6")
def test_nothing_is_touched_that_somebody_owns_or_that_is_not_ours(path: Path, tmp_path: Path) -> None:
    lock = OwnerLock(path)
    lock.take()
    try:
        for work in (lambda: salvage.recover(path, "x"), lambda: salvage.compact(path)):
            with pytest.raises(StoreLocked):
                work()
    finally:
        lock.release()
    foreign = tmp_path / "foreign.sqlite"
    foreign.write_bytes(b"not a database at all" * 500)
    for work in (lambda: salvage.recover(foreign, "x"), lambda: salvage.compact(foreign)):
        with pytest.raises(StoreCorrupt):
            work()
    assert foreign.read_bytes() == b"not a database at all" * 500
    with pytest.raises(InvalidRequest, match="there is no database"):
        salvage.compact(tmp_path / "nowhere.sqlite")


@pytest.mark.spec("CLI-10")
def test_compacting_gives_space_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF; DELETE FROM entries WHERE window_no > 2").fetchall()
    connection.close()
    left = rows(path, "SELECT count(*) FROM entries")
    done = salvage.compact(path)
    assert done.after_bytes < done.before_bytes - 100_000 and done.after_bytes == path.stat().st_size
    assert rows(path, "SELECT count(*) FROM entries") == left and salvage.find_damage(path) == ()
    with monkeypatch.context() as patched:
        free = type("Usage", (), {"free": path.stat().st_size - 1})
        patched.setattr(shutil, "disk_usage", lambda _path: free)
        with pytest.raises(StoreFull, match="free some space"):
            salvage.compact(path)


def test_a_recovery_that_was_cut_off_can_be_begun_again(path: Path) -> None:
    left_over = path.with_name(path.name + ".recovering")
    left_over.write_bytes(b"half of it")
    spoil(path, pages_of(path, "entries")[3])
    assert salvage.recover(path, "x").ok and not left_over.exists()


def test_an_earlier_damaged_file_is_never_overwritten(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice in one second, and on a file system without hard links."""

    def no_links(*_names: object) -> None:
        raise PermissionError

    for expected in ("x", "x-2"):
        spoil(path, pages_of(path, "entries")[3])
        damaged = path.read_bytes()
        done = salvage.recover(path, "x")
        assert done.kept_as == f"{path}.damaged-{expected}"
        assert Path(done.kept_as).read_bytes() == damaged and salvage.find_damage(path) == ()
        monkeypatch.setattr("os.link", no_links)


def test_a_full_disk_leaves_the_damaged_file_where_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(path, pages_of(path, "entries")[3])
    damaged = path.read_bytes()

    def fill(*_arguments: object) -> None:
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(salvage, "_copy_table", fill)
    with pytest.raises(StoreFull):
        salvage.recover(path, "x")
    assert path.read_bytes() == damaged
    monkeypatch.undo()
    assert salvage.recover(path, "x").ok
