"""Backups: consistent while people write, proven whole, and a restore that loses nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
from pathlib import Path

import apsw
import pytest

from openclaw.errors import InvalidRequest, StoreCorrupt, StoreLocked, StoreTooNew
from openclaw.store.backup import (
    DATABASE_NAME,
    MANIFEST_NAME,
    create_backup,
    read_manifest,
    restore_backup,
    verify_backup,
)
from openclaw.store.manifest import Manifest
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import NOON, note, select, turn

STAMP = "2026-11-15T12-00-00.000Z"


@pytest.fixture
async def made(database: SqliteDatabase, tmp_path: Path) -> Path:
    """A backup of a store with one turn."""
    await turn(Store(database), "run-1", "hello backup")
    await create_backup(database, tmp_path / "made", now_ms=NOON)
    return tmp_path / "made"


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(item.stat().st_mode) for item in (folder, *folder.iterdir())}


def keep(path: Path) -> list[str]:
    return sorted(item.name for item in path.iterdir())


@pytest.mark.spec("DB-20")
async def test_a_backup_states_what_it_holds(made: Path, database: SqliteDatabase) -> None:
    manifest = verify_backup(made)
    assert keep(made) == [MANIFEST_NAME, DATABASE_NAME]
    assert (manifest.schema_version, manifest.created_at, manifest.last_admission) == (1, NOON, 1)
    assert manifest.rows["entries"] == 2 and manifest.rows["sessions"] == manifest.rows["runs"] == 1
    assert "search_pending" in manifest.rows and "search_data" not in manifest.rows
    entry_no = (await select(database, "SELECT max(entry_no) FROM entries"))[0][0]
    assert manifest.last_entry_no == entry_no
    assert (made / DATABASE_NAME).stat().st_size == manifest.size
    assert modes(made) == {0o700, 0o600}
    written = json.loads((made / MANIFEST_NAME).read_text())
    assert written["lastAdmission"] == 1 and written["sha256"] == manifest.sha256


@pytest.mark.spec("DB-20")
async def test_a_backup_is_one_moment_although_people_go_on_writing(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    store = Store(database)
    await turn(store, "first")
    for number in range(60):
        await store.append("agent:main:main", (note(f"{number} " + "words " * 3000),), now_ms=NOON)
    going, seen = True, []

    async def write_on() -> int:
        number = 0
        while going:
            number += 1
            await turn(store, f"run-{number}", "pair")
        return number

    writer = asyncio.create_task(write_on())
    manifest = await create_backup(
        database, tmp_path / "live", now_ms=NOON, progress=lambda done, total: seen.append((done, total))
    )
    going = False
    turns = await writer
    assert turns > 3 and seen[-1][0] == seen[-1][1] > 100
    assert 1 <= manifest.last_admission <= turns + 1
    copy = apsw.Connection(str(tmp_path / "live" / DATABASE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
    pairs = copy.execute("SELECT count(*) FROM inbox WHERE state = 'consumed'").fetchall()
    ended = copy.execute("SELECT count(*) FROM entries WHERE role = 'user' AND run_id IS NOT NULL").fetchall()
    assert pairs == ended == [(manifest.last_admission,)], "an input and its entry are one commit"
    assert copy.execute("PRAGMA journal_mode").fetchall() == [("delete",)]
    copy.close()


@pytest.mark.spec("DB-20")
async def test_restored_is_what_was_backed_up(made: Path, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere" / "openclaw.sqlite"
    restored = restore_backup(made, place, now_ms=NOON)
    assert restored.kept is None and restored.database == str(place)
    assert keep(place.parent) == ["openclaw.sqlite", "openclaw.sqlite.lock"]
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    opened = await SqliteDatabase.open(place)
    store = Store(opened)
    history = await store.history("agent:main:main", 10)
    assert history is not None and len(history.entries) == 2
    finished = await turn(store, "run-2", "goes on")
    assert finished.session.last_seq == 4
    await store.close()


@pytest.mark.spec("DB-17")
async def test_a_store_that_holds_something_is_kept_aside(made: Path, tmp_path: Path) -> None:
    place = tmp_path / "second" / "openclaw.sqlite"
    opened = await SqliteDatabase.open(place)
    await turn(Store(opened), "run-9", "precious")
    await opened.close()
    before = place.read_bytes()
    with pytest.raises(InvalidRequest, match="--force"):
        restore_backup(made, place, now_ms=NOON)
    assert place.read_bytes() == before
    restored = restore_backup(made, place, now_ms=NOON, force=True)
    kept = place.with_name(f"openclaw.sqlite.bak.{STAMP}")
    assert restored.kept == str(kept)
    assert keep(place.parent) == ["openclaw.sqlite", kept.name, "openclaw.sqlite.lock"]
    old = await SqliteDatabase.open(kept)
    assert await select(old, "SELECT run_id FROM inbox") == [("run-9",)]
    await old.close()
    new = await SqliteDatabase.open(place)
    assert await select(new, "SELECT run_id FROM inbox") == [("run-1",)]
    await new.close()


async def test_a_store_without_content_gives_way(made: Path, tmp_path: Path) -> None:
    place = tmp_path / "second" / "openclaw.sqlite"
    await (await SqliteDatabase.open(place)).close()
    assert restore_backup(made, place, now_ms=NOON).kept is not None
    damaged = tmp_path / "third" / "openclaw.sqlite"
    damaged.parent.mkdir()
    damaged.write_bytes(b"no database at all" * 100)
    with pytest.raises(InvalidRequest, match="--force"):
        restore_backup(made, damaged, now_ms=NOON)
    restored = restore_backup(made, damaged, now_ms=NOON, force=True)
    kept = damaged.with_name(f"openclaw.sqlite.bak.{STAMP}")
    assert restored.kept == str(kept) and kept.read_bytes().startswith(b"no database")


@pytest.mark.spec("OWN-6")
async def test_a_store_in_use_is_not_replaced(made: Path, database: SqliteDatabase, path: Path) -> None:
    with pytest.raises(StoreLocked):
        restore_backup(made, path, now_ms=NOON, force=True)
    assert await select(database, "SELECT count(*) FROM inbox") == [(1,)]


async def test_a_log_that_a_crash_left_is_kept_with_its_store(made: Path, tmp_path: Path) -> None:
    place = tmp_path / "second" / "openclaw.sqlite"
    place.parent.mkdir()
    place.write_bytes(b"broken")
    place.with_name("openclaw.sqlite-wal").write_bytes(b"log")
    place.with_name("openclaw.sqlite-shm").write_bytes(b"shared")
    restore_backup(made, place, now_ms=NOON, force=True)
    assert place.with_name(f"openclaw.sqlite.bak.{STAMP}-wal").read_bytes() == b"log"
    assert not place.with_name("openclaw.sqlite-wal").exists()


def spoil_manifest(folder: Path, **changes: object) -> None:
    manifest = json.loads((folder / MANIFEST_NAME).read_text())
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest | changes))


async def test_what_is_wrong_with_a_backup_is_said(made: Path, tmp_path: Path) -> None:
    copy = made / DATABASE_NAME
    whole, manifest = copy.read_bytes(), (made / MANIFEST_NAME).read_bytes()
    copy.write_bytes(whole[:-1])
    with pytest.raises(StoreCorrupt, match="bytes instead of"):
        verify_backup(made)
    copy.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    with pytest.raises(StoreCorrupt, match="not the file that was written"):
        verify_backup(made)
    copy.write_bytes(whole)
    spoil_manifest(made, rows={"sessions": 2})
    with pytest.raises(StoreCorrupt, match="rows"):
        verify_backup(made)
    for version in ({"schemaVersion": 2}, {"format": 2}):
        (made / MANIFEST_NAME).write_bytes(manifest)
        spoil_manifest(made, **version)
        with pytest.raises(StoreTooNew, match="Upgrade"):
            verify_backup(made)
    (made / MANIFEST_NAME).write_text("{")
    with pytest.raises(StoreCorrupt, match="cannot be read"):
        read_manifest(made)
    (made / MANIFEST_NAME).unlink()
    with pytest.raises(InvalidRequest, match="not a backup"):
        restore_backup(made, tmp_path / "x" / "openclaw.sqlite", now_ms=NOON)
    (made / MANIFEST_NAME).write_bytes(manifest)
    copy.unlink()
    with pytest.raises(StoreCorrupt, match="missing"):
        verify_backup(made)


async def test_damage_inside_is_found_even_when_the_hash_was_made_later(made: Path) -> None:
    copy = made / DATABASE_NAME
    connection = apsw.Connection(str(copy))
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_schema SET rootpage = 3 WHERE name = 'runs_active'")
    connection.close()
    spoil_manifest(made, sha256=hashlib.sha256(copy.read_bytes()).hexdigest(), size=copy.stat().st_size)
    with pytest.raises(StoreCorrupt):
        verify_backup(made)
    copy.write_bytes(b"")
    spoil_manifest(made, sha256=hashlib.sha256(b"").hexdigest(), size=0)
    with pytest.raises(StoreCorrupt, match="empty"):
        verify_backup(made)


async def test_a_folder_in_use_is_refused_and_a_failure_leaves_nothing(
    database: SqliteDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "something").touch()
    for folder in (full, full / "something"):
        with pytest.raises(InvalidRequest, match="not empty"):
            await create_backup(database, folder, now_ms=NOON)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert isinstance(await create_backup(database, empty, now_ms=NOON), Manifest)

    def fail(done: int, total: int) -> None:
        raise OSError("the disk went away")

    before = sorted(os.listdir(tmp_path))
    with pytest.raises(OSError, match="went away"):
        await create_backup(database, tmp_path / "lost", now_ms=NOON, progress=fail)
    assert sorted(os.listdir(tmp_path)) == before
    await turn(Store(database), "run-2", "the store goes on")
