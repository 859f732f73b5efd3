"""Bad ground: what is wrong is said in one sentence with the way out, and nothing is touched."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from openclaw.errors import StoreCorrupt, StoreError, StoreReadOnly, StoreTooNew
from openclaw.store import sqlite_file
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.statements import read_sql
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, begin, note, select, texts, turn
from tests.integration.child_process import started

KEY = MAIN.session_key


@pytest.fixture
def path(tmp_path: Path) -> Path:
    state = tmp_path / "state"
    state.mkdir()
    return state / "openclaw.sqlite"


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def put(path: Path, raw: bytes | bytearray) -> None:
    path.write_bytes(raw)


def taken(path: Path) -> bytes:
    return path.read_bytes()


def contents(path: Path) -> dict[str, bytes]:
    """The bytes of the database and of its log."""
    return {item.name: item.read_bytes() for item in (path, beside(path, "-wal")) if item.exists()}


async def filled(path: Path) -> bytes:
    """A database with a few turns, closed; its bytes."""
    database = await SqliteDatabase.open(path)
    for n in range(20):
        await turn(Store(database), f"run-{n}", "words " * 500)
    await database.close()
    return taken(path)


async def refused(path: Path, kind: type[StoreError], *way_out: str) -> None:
    """Opening fails with this error, again and again; nothing is changed, and nothing stays locked."""
    before = contents(path)
    for _ in range(2):
        with pytest.raises(kind) as caught:
            await SqliteDatabase.open(path)
        assert type(caught.value) is kind
        assert str(path) in caught.value.message
        for words in way_out:
            assert words in caught.value.message
        assert caught.value.fields["path"] == str(path)
        left = contents(path)
        assert left.pop(path.name) == before[path.name]
        assert left.get(path.name + "-wal", b"") == before.get(path.name + "-wal", b"")


async def moved_away(path: Path) -> None:
    """The way out works: with the file moved away the store starts empty, in the same process."""
    for suffix in ("", "-wal", "-shm"):
        if beside(path, suffix).exists():
            beside(path, suffix).rename(beside(path, f"{suffix}.away"))
    database = await SqliteDatabase.open(path)
    assert await Store(database).session(KEY) is None
    await turn(Store(database), "run-new")
    await database.close()


# -- files that are not ours -----------------------------------------------------------------------


@pytest.mark.spec("DB-11")
async def test_a_database_of_a_newer_version(path: Path) -> None:
    await filled(path)
    newer = apsw.Connection(str(path))
    newer.execute("PRAGMA user_version = 2")
    newer.close()
    await refused(
        path, StoreTooNew, "has schema 2", "understands 1", "Upgrade openclaw", "nothing was changed"
    )
    older = apsw.Connection(str(path))
    older.execute("PRAGMA user_version = 1")
    older.close()
    database = await SqliteDatabase.open(path)
    assert await Store(database).session(KEY) is not None
    await database.close()


@pytest.mark.spec("DB-11")
async def test_a_newer_database_whose_log_was_not_folded(path: Path, tmp_path: Path) -> None:
    """What a newer gateway left behind when it was killed: neither the file nor its log is touched."""
    source = tmp_path / "source.sqlite"
    await filled(source)
    newer = apsw.Connection(str(source))
    newer.wal_autocheckpoint(0)
    newer.execute("PRAGMA user_version = 7")
    for suffix in ("", "-wal"):
        beside(path, suffix).write_bytes(beside(source, suffix).read_bytes())
    newer.close()
    assert len(contents(path)[path.name + "-wal"]) > 0
    await refused(path, StoreTooNew, "has schema 7")


@pytest.mark.spec("DB-11")
@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize(
    "script", ["CREATE TABLE t (a); INSERT INTO t VALUES (1)", "PRAGMA user_version = 1"]
)
async def test_a_database_of_another_program(path: Path, mode: str, script: str) -> None:
    foreign = apsw.Connection(str(path))
    foreign.execute(f"PRAGMA journal_mode = {mode}").fetchall()
    foreign.execute(script).fetchall()
    foreign.close()
    await refused(
        path,
        StoreCorrupt,
        "of another program",
        "It was not changed",
        "Move it away or set OPENCLAW_STATE_DIR",
    )
    await moved_away(path)


@pytest.mark.spec("DB-16")
@pytest.mark.parametrize(
    "text",
    [b"not a database at all " * 300, bytes(5000), random.Random(1).randbytes(9000), b'{"a":1}'],
    ids=["text", "zeros", "noise", "short"],
)
async def test_a_file_that_is_no_database(path: Path, text: bytes) -> None:
    put(path, text)
    await refused(path, StoreCorrupt, "not a database", "It was not changed", "Restore a backup, or move")
    await moved_away(path)


@pytest.mark.spec("DB-16")
@pytest.mark.parametrize("share", [0.0005, 0.01, 0.3, 0.6, 0.95])
async def test_a_database_that_was_cut_off(path: Path, share: float) -> None:
    whole = await filled(path)
    put(path, whole[: int(len(whole) * share)])
    await refused(path, StoreCorrupt, "damaged", "It was not changed", "Restore a backup, or move")
    put(path, whole)  # the backup
    for suffix in ("-wal", "-shm"):
        beside(path, suffix).unlink(missing_ok=True)
    database = await SqliteDatabase.open(path)
    row = await Store(database).session(KEY)
    assert row is not None
    assert row.message_count == 40
    await database.close()


async def test_damage_inside_the_file_is_told_when_it_is_met(path: Path) -> None:
    """Opening reads no pages it does not need; what is broken is a clear error for who asks for it."""
    await filled(path)
    look = apsw.Connection(str(path))
    found = look.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'sessions'").fetchall()
    root, size = int(str(found[0][0])), int(str(look.pragma("page_size")))
    look.close()
    raw = bytearray(taken(path))
    raw[(root - 1) * size : root * size] = b"\xee" * size
    put(path, raw)
    database = await SqliteDatabase.open(path)
    store = Store(database)
    with pytest.raises(StoreCorrupt, match="Restore a backup"):
        await store.session(KEY)
    with pytest.raises(StoreCorrupt, match="Restore a backup"):
        await store.append(KEY, (note("x"),), now_ms=NOON)
    assert await store.run("run-1") is not None
    await database.close()


@pytest.mark.parametrize("size", [0, 1])
async def test_an_empty_file_is_a_fresh_start(path: Path, size: int) -> None:
    """A process that was killed before its first commit leaves this behind."""
    put(path, b"\x00" * size)
    database = await SqliteDatabase.open(path)
    await turn(Store(database), "run-1")
    await database.close()


# -- places that cannot be written -----------------------------------------------------------------


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that every user of the machine may enter."""
    with tempfile.TemporaryDirectory(prefix="openclaw-ground-") as name:
        place = Path(name)
        place.chmod(0o755)
        yield place


async def opened_without_rights(path: Path) -> dict[str, object]:
    async with started("unprivileged", str(path)) as child:
        told = await child.told()
        assert await child.ended() == 0
    return told


@pytest.mark.spec("DB-12")
@pytest.mark.parametrize("missing", [False, True])
async def test_a_directory_that_cannot_be_written(open_place: Path, missing: bool) -> None:
    state = open_place / "state"
    state.mkdir()
    state.chmod(0o555)
    path = (state / "deeper" if missing else state) / "openclaw.sqlite"
    told = await opened_without_rights(path)
    assert (told["opened"], told["code"]) == (False, "STORE_READ_ONLY")
    assert told["message"] == (
        f"cannot write to the state directory {path.parent}: Permission denied. "
        "Make it writable or set OPENCLAW_STATE_DIR."
    )
    assert contents_of(state) == []
    state.chmod(0o777)
    assert (await opened_without_rights(path))["opened"]


@pytest.mark.spec("DB-12")
async def test_a_file_that_cannot_be_written(open_place: Path) -> None:
    path = open_place / "state" / "openclaw.sqlite"
    whole = await filled(path)
    path.parent.chmod(0o777)
    beside(path, ".lock").chmod(0o666)
    path.chmod(0o444)
    told = await opened_without_rights(path)
    assert (told["opened"], told["code"]) == (False, "STORE_READ_ONLY")
    assert "Permission denied. Make it writable or set OPENCLAW_STATE_DIR." in str(told["message"])
    assert path.read_bytes() == whole


async def test_a_directory_in_the_place_of_the_file(tmp_path: Path) -> None:
    place = tmp_path / "openclaw.sqlite" / "openclaw.sqlite"
    await filled(place)
    with pytest.raises(StoreReadOnly, match="Is a directory"):
        await SqliteDatabase.open(place.parent)
    assert {item.name for item in contents_of(place.parent)} == {"openclaw.sqlite", "openclaw.sqlite.lock"}


def contents_of(directory: Path) -> list[Path]:
    return list(directory.iterdir())


# -- no room ---------------------------------------------------------------------------------------


def small_disk(directory: Path) -> tuple[str, ...]:
    """A command that gives the one after it a disk of 3 MB at this place; () where nobody may mount."""
    privately = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])
    mount = 'mount -t tmpfs -o size=3m tmpfs "$0" && exec "$@"'
    command = (*privately, "sh", "-c", mount, str(directory))
    try:
        allowed = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    return command if allowed else ()


@pytest.mark.spec("DB-15", "DB-16")
@pytest.mark.parametrize("ground", ["disk", "file"])
async def test_a_full_disk_refuses_whole_writes_and_recovers(path: Path, ground: str) -> None:
    """Where no disk can be mounted both kinds run against a file that may not grow."""
    before = await asyncio.to_thread(small_disk, path.parent) if ground == "disk" else ()
    command = "fill-real-disk" if before else "fill-file"
    async with started(command, str(path), before=before) as child:
        told = await child.told()
        assert await child.ended() == 0
    assert told["error"] == f"the disk is full: {path} could not grow. Free some space and try again."
    assert told["kept"] >= 20
    # Whoever was refused left nothing behind; whoever was not is there as a whole.
    assert set(told["refused"]) == {"StoreFull"}
    begun = 8 - len(told["refused"])
    assert (told["runs"], told["waiting"], told["sessions"]) == (begun, 0, begun + 1)
    assert all(count == last for _, count, last in told["entries"])
    assert len(told["entries"]) == begun + 1
    assert told["entries"][0][2] == told["kept"]
    # With room again the same process goes on where it stopped.
    assert told["next_seq"] == told["kept"] + 1
    assert (told["later"], told["check"]) == ("later", [["ok"]])


async def test_a_first_start_that_fails_leaves_no_half_store(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Creating the schema is one transaction: it is there as a whole or not at all."""
    broken = read_sql("schema.sql") + "\nINSERT INTO elsewhere VALUES (1);"
    monkeypatch.setattr(sqlite_file, "read_sql", lambda _: broken)
    with pytest.raises(StoreError, match="no such table: elsewhere"):
        await SqliteDatabase.open(path)
    monkeypatch.undo()
    database = await SqliteDatabase.open(path)
    claimed = await begin(Store(database), "run-1", "hello")
    assert texts(claimed.entries) == ["hello"]
    assert await select(database, "PRAGMA integrity_check") == [("ok",)]
    await database.close()
