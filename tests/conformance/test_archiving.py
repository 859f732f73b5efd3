"""Archive files: nothing is purged before its file was written and read back, and files go in their turn."""

from __future__ import annotations

import hashlib
import logging
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from openclaw.store import archiving
from openclaw.store.archiving import ArchiveFile, ArchivePlace, Archives, archive_name
from openclaw.store.database import Database
from openclaw.store.export import Export
from openclaw.store.maintenance import Maintenance
from openclaw.store.purging import Purged
from openclaw.store.records import Window
from openclaw.store.retention import sqlite_used_bytes
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import (
    DAY,
    MAIN,
    NOON,
    create,
    execute,
    note,
    present,
    seed,
    select,
    turn,
    unique_name,
)
from tests.conformance.test_maintenance import OLD, QUICK, keys, limits
from tests.conformance.test_maintenance_purge import HOOK, LARGE, count

DELETED = ".jsonl.deleted.2026-11-15T12-00-00.000Z"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def archives_in(database: Database, folder: Path) -> Archives:
    return Archives(database, lambda _key: ArchivePlace(folder, "/work"))


def keeper(database: Database, folder: Path, **changes: object) -> Maintenance:
    return Maintenance(database, limits(**changes), pace=QUICK, archives=archives_in(database, folder))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def modes(folder: Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())]


def size_and_hash(file: ArchiveFile) -> tuple[int, str]:
    data = Path(file.path).read_bytes()
    return len(data), hashlib.sha256(data).hexdigest()


def block(path: Path) -> None:
    """Put something where a folder or a file is expected that is neither."""
    path.unlink(missing_ok=True)
    path.mkdir(parents=True)


def unblock(path: Path) -> None:
    path.rmdir()


async def exported(database: Database, session_id: str) -> bytes:
    export = Export(database)
    window = await export.window_by_id(session_id)
    assert window is not None
    return b"".join([piece async for piece in export.lines(window, cwd="/work")])


async def archived(database: Database) -> list[ArchiveFile]:
    return list(await database.read(lambda tx: archiving.written_before(tx, 1 << 62)))


@pytest.mark.spec("DB-17")
async def test_a_transcript_is_a_file_before_its_rows_go(
    store: Store, database: Database, folder: Path
) -> None:
    await turn(store, "run-1", f"first {LARGE}", at=OLD)
    await store.reset_session(MAIN.session_key, "new", session_id="second", now_ms=OLD)
    await turn(store, "run-2", "second words", at=OLD)
    before = {name: await exported(database, name) for name in ("run-1-window", "second")}
    await store.delete_session(MAIN.session_key, now_ms=NOON)
    await create(store, HOOK, at=OLD)
    await store.delete_session(HOOK.session_key, now_ms=NOON)
    report = await keeper(database, folder, reset_archive_ms=DAY).run(now_ms=NOON + DAY)
    assert (report.purged.windows, report.purged.entries, report.purged.archives) == (3, 4, 2)
    reset = f"run-1-window.jsonl.reset.{archive_stamp(OLD)}"
    assert names(folder) == [reset, f"second{DELETED}"], "an empty transcript leaves no file"
    assert (folder / reset).read_bytes() == before["run-1-window"]
    assert (folder / f"second{DELETED}").read_bytes() == before["second"]
    assert modes(folder) == [0o700, 0o600, 0o600]
    assert await count(database, "entries") == 0
    for file in await archived(database):
        assert (file.size, file.sha256) == size_and_hash(file)
        assert (file.session_key, file.written_at) == (MAIN.session_key, NOON + DAY)


def archive_stamp(at_ms: int) -> str:
    window = Window(1, "x", "k", None, None, 0, 1, "created", 1, None, None)
    return archive_name(window, "reset", at_ms).removeprefix("x.jsonl.reset.")


@pytest.mark.spec("DB-17")
@pytest.mark.parametrize(
    ("session_id", "stem"),
    [
        ("3f2a-b_c.d", "3f2a-b_c.d"),
        ("../../etc/passwd", "window-7"),
        (".hidden", "window-7"),
        ("a/b", "window-7"),
        ("", "window-7"),
        ("x" * 182, "window-7"),
        ("x" * 181, "x" * 181),
        ("nul\0", "window-7"),
    ],
)
def test_names_have_the_time_without_colons_and_stay_in_their_folder(session_id: str, stem: str) -> None:
    window = Window(7, session_id, "k", None, None, 0, 1, "created", 1, None, None)
    assert archive_name(window, "deleted", NOON) == stem + DELETED
    assert archive_name(window, "reset", 1) == f"{stem}.jsonl.reset.1970-01-01T00-00-00.001Z"


@pytest.mark.spec("DB-17")
async def test_without_its_file_a_transcript_stays_and_the_next_run_tries_again(
    store: Store, database: Database, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    block(folder / f".run-1-window{DELETED}.writing")
    await turn(store, "run-1", "words", at=OLD)
    await store.delete_session(MAIN.session_key, now_ms=NOON)
    maintenance = keeper(database, folder, reset_archive_ms=DAY)
    with caplog.at_level(logging.WARNING):
        report = await maintenance.run(now_ms=NOON + DAY)
    assert report.purged == Purged(held_back=1)
    assert "cannot write the archive" in caplog.text and "nothing was purged" in caplog.text
    assert await count(database, "entries") == 2 and await count(database, "archives") == 0
    assert await count(database, "removals") == 0
    unblock(folder / f".run-1-window{DELETED}.writing")
    report = await maintenance.run(now_ms=NOON + DAY)
    assert (report.purged.windows, report.purged.held_back) == (1, 0) and len(names(folder)) == 1


@pytest.mark.spec("DB-17")
async def test_a_file_that_reads_back_differently_is_no_archive(
    store: Store, database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await turn(store, "run-1", "words", at=OLD)
    await store.delete_session(MAIN.session_key, now_ms=NOON)
    honest = archiving._append

    def lying(draft: Path, pieces: list[bytes], hashing: hashlib._Hash) -> int:
        written = honest(draft, pieces, hashing)
        with draft.open("r+b") as file:
            first = file.read(1)
            file.seek(0)
            file.write(bytes([first[0] ^ 1]))
        return written

    monkeypatch.setattr(archiving, "_append", lying)
    maintenance = keeper(database, folder, reset_archive_ms=DAY)
    assert (await maintenance.run(now_ms=NOON + DAY)).purged == Purged(held_back=1)
    assert names(folder) == [] and await count(database, "entries") == 2
    monkeypatch.undo()
    folder.joinpath(f"run-1-window{DELETED}").write_bytes(b"left by a crash")
    whole = await exported(database, "run-1-window")
    assert (await maintenance.run(now_ms=NOON + DAY)).purged.windows == 1
    assert folder.joinpath(f"run-1-window{DELETED}").read_bytes() == whole


@pytest.mark.spec("MAINT-1")
async def test_what_maintenance_deleted_can_be_taken_back_for_its_whole_time(
    store: Store, database: Database, folder: Path
) -> None:
    await turn(store, "run-1", "words", to=HOOK, at=OLD)
    maintenance = keeper(database, folder, prune_after_ms=DAY, reset_archive_ms=1)
    await maintenance.run(now_ms=NOON)
    assert (await maintenance.run(now_ms=NOON + DAY - 1)).purged.windows == 0, (
        "a short retention ends no undo"
    )
    await maintenance.restore(HOOK.session_key, now_ms=NOON + DAY - 1)
    assert (await present(store, HOOK.session_key)).last_seq == 2


@pytest.mark.spec("MAINT-1")
async def test_all_windows_of_a_deleted_session_go_together(
    store: Store, database: Database, folder: Path
) -> None:
    await turn(store, "run-1", "one", to=HOOK, at=OLD)
    await store.reset_session(HOOK.session_key, "new", session_id="second", now_ms=OLD)
    await turn(store, "run-2", "two", to=HOOK, at=OLD)
    maintenance = keeper(database, folder, prune_after_ms=DAY)
    await maintenance.run(now_ms=NOON)
    report = await maintenance.run(now_ms=NOON + DAY)
    assert (report.purged.windows, report.purged.archives) == (2, 2)
    assert [row.state for row in await maintenance.removals_of(HOOK.session_key)] == ["purged"]


@pytest.mark.spec("DB-17")
async def test_what_is_taken_back_in_the_meantime_lives_on_without_a_file(
    store: Store, database: Database, folder: Path
) -> None:
    await turn(store, "run-1", "words", to=HOOK, at=OLD)
    maintenance = keeper(database, folder, prune_after_ms=DAY)
    await maintenance.run(now_ms=NOON)

    class TakesBack(Archives):
        async def write(
            self, window: Window, cause: archiving.Cause, at_ms: int, *, now_ms: int
        ) -> ArchiveFile:
            file = await super().write(window, cause, at_ms, now_ms=now_ms)
            await maintenance.restore(HOOK.session_key, now_ms=NOON + 1)
            return file

    late = TakesBack(database, lambda _key: ArchivePlace(folder, "/work"))
    hasty = Maintenance(database, limits(prune_after_ms=DAY), pace=QUICK, archives=late)
    purged = await hasty.purge(now_ms=NOON + DAY)
    assert (purged.windows, purged.archives) == (0, 0) and names(folder) == []
    assert (await present(store, HOOK.session_key)).last_seq == 2
    assert await count(database, "archives") == 0


@pytest.mark.spec("MAINT-1")
async def test_files_are_kept_for_their_time(store: Store, database: Database, folder: Path) -> None:
    await turn(store, "run-1", "words", to=HOOK, at=OLD)
    await store.delete_session(HOOK.session_key, now_ms=OLD)
    maintenance = keeper(database, folder, reset_archive_ms=30 * DAY)
    await maintenance.run(now_ms=NOON)
    assert (await maintenance.run(now_ms=NOON + 30 * DAY - 1)).dropped == 0 and len(names(folder)) == 1
    forever = await keeper(database, folder).run(now_ms=NOON + 999 * DAY)
    assert forever.dropped == 0 and len(names(folder)) == 1
    assert (await maintenance.run(now_ms=NOON + 30 * DAY)).dropped == 1
    assert names(folder) == [] and await count(database, "archives") == 0


async def test_a_base_stays_until_everything_on_it_is_gone(
    store: Store, database: Database, folder: Path
) -> None:
    await turn(store, "run-1", to=seed("base"), at=OLD)
    await turn(store, "run-2", to=HOOK, at=OLD)
    await execute(
        database,
        "UPDATE windows SET base_no = (SELECT w.window_no FROM windows w WHERE w.session_key = $1) "
        "WHERE session_key = $2",
        "agent:main:base",
        HOOK.session_key,
    )
    maintenance = keeper(database, folder, prune_after_ms=DAY, reset_archive_ms=DAY)
    await store.delete_session("agent:main:base", now_ms=OLD)
    await maintenance.run(now_ms=NOON)
    assert await keys(database) == set(), "the fork is deleted, and can be taken back"
    assert (await maintenance.run(now_ms=NOON + DAY - 1)).purged.windows == 0
    assert (await maintenance.run(now_ms=NOON + DAY)).purged.windows == 2, "both, the fork first"


@pytest.mark.spec("MAINT-2")
async def test_past_the_disk_budget_archives_go_first_and_then_the_oldest_of_all_agents(
    tmp_path: Path,
) -> None:
    database = await SqliteDatabase.open_memory(unique_name())
    store, folder = Store(database), tmp_path / "archive"

    async def fill(agents: Sequence[str], first_day: int) -> None:
        for number, agent in enumerate(agents):
            made = seed(f"hook:{number + first_day}", agent, kind="hook")
            at = NOON - (first_day + number) * DAY
            await create(store, made, at=at)
            await store.append(made.session_key, (note(f"{number} {agent} {LARGE}"),), now_ms=at)

    await fill(("zeta", "alpha"), 100)
    for key in await keys(database):
        await store.delete_session(key, now_ms=OLD)
    await keeper(database, folder, reset_archive_ms=DAY).run(now_ms=NOON)
    assert len(names(folder)) == 2
    await fill(("alpha", "zeta", "alpha", "zeta"), 1)
    full = await database.read(lambda tx: sqlite_used_bytes(tx) + archiving.total_size(tx))
    size = len(LARGE)

    def tight(high: int) -> Maintenance:
        bounds = limits(max_disk_bytes=full - 1, high_water_bytes=high, reset_archive_ms=99 * DAY)
        return Maintenance(
            database, bounds, pace=QUICK, used_bytes=sqlite_used_bytes, archives=archives_in(database, folder)
        )

    plan = await tight(full - size).plan(now_ms=NOON)
    assert plan.over_budget and plan.used_bytes == full
    report = await tight(full - size).run(now_ms=NOON)
    assert (report.dropped, report.deleted) == (1, 0) and len(names(folder)) == 1
    await fill(("omega",), 0)
    report = await tight(full - 3 * size).run(now_ms=NOON)
    left = {key.split(":", 1)[1] for key in await keys(database)}
    assert report.dropped >= 1 and report.deleted == 2
    assert left == {"omega:hook:0", "alpha:hook:1", "zeta:hook:2"}, "the oldest went, whoever's they were"
    await database.close()


async def test_a_file_that_cannot_be_removed_is_told_and_kept_in_mind(
    store: Store, database: Database, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await turn(store, "run-1", "words", at=OLD)
    await store.delete_session(MAIN.session_key, now_ms=OLD)
    maintenance = keeper(database, folder, reset_archive_ms=DAY)
    await maintenance.run(now_ms=NOON)
    path = folder / names(folder)[0]
    block(path)
    with caplog.at_level(logging.WARNING):
        assert (await maintenance.run(now_ms=NOON + DAY)).dropped == 0
    assert "cannot be removed" in caplog.text and await count(database, "archives") == 1
    unblock(path)
    assert (await maintenance.run(now_ms=NOON + DAY)).dropped == 1, "one that is gone already is no problem"
    assert await select(database, "SELECT * FROM archives") == []
