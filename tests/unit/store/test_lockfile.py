"""The owner lock: one holder, who is named; nothing to clean up."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

import pytest

from openclaw.errors import StoreBusy, StoreError, StoreFull, StoreLocked, StoreReadOnly
from openclaw.store.lockfile import OwnerLock, unusable
from openclaw.store.sqlite import SqliteDatabase


@pytest.fixture
def lock(tmp_path: Path) -> OwnerLock:
    return OwnerLock(tmp_path / "openclaw.sqlite")


@pytest.mark.spec("OWN-6")
def test_the_second_is_refused_and_told_who_is_first(tmp_path: Path, lock: OwnerLock) -> None:
    lock.take()
    assert lock.path == tmp_path / "openclaw.sqlite.lock"
    assert lock.path.read_text() == str(os.getpid())
    assert stat.S_IMODE(lock.path.stat().st_mode) == 0o600
    second = OwnerLock(tmp_path / "openclaw.sqlite")
    for _ in range(3):
        with pytest.raises(StoreLocked) as caught:
            second.take()
    owner = f"another gateway (process {os.getpid()}) owns {tmp_path}."
    assert caught.value.message == f"{owner} Stop it, or use another OPENCLAW_STATE_DIR."
    assert caught.value.fields == {"path": str(tmp_path), "owner": str(os.getpid())}
    assert caught.value.code == "STORE_LOCKED"
    second.release()  # it has nothing to give back
    with pytest.raises(StoreLocked):
        second.take()
    lock.release()
    lock.release()
    second.take()
    second.release()
    assert not (tmp_path / "openclaw.sqlite").exists()


@pytest.mark.spec("OWN-6")
def test_what_a_dead_owner_left_behind_does_not_matter(lock: OwnerLock) -> None:
    lock.path.write_text("99999999999999999999")
    lock.take()
    assert lock.path.read_text() == str(os.getpid())
    lock.release()


@pytest.mark.parametrize(
    ("left", "named"), [(b"", ""), (b"12\n", " (process 12)"), (b"\xff", " (process \ufffd)")]
)
def test_an_owner_who_has_not_signed_yet(lock: OwnerLock, left: bytes, named: str) -> None:
    lock.path.write_bytes(left)
    descriptor = os.open(lock.path, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(StoreLocked) as caught:
        lock.take()
    assert caught.value.message.startswith(f"another gateway{named} owns ")
    assert lock.path.read_bytes() == left
    os.close(descriptor)


def test_a_directory_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreReadOnly, match="cannot write to the state directory") as caught:
        OwnerLock(tmp_path / "file" / "openclaw.sqlite").take()
    assert str(tmp_path / "file") in caught.value.message
    assert "OPENCLAW_STATE_DIR" in caught.value.message
    assert caught.value.fields == {"path": str(tmp_path / "file")}


def test_a_ground_that_knows_no_locks_is_not_taken_for_an_owner(
    lock: OwnerLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match="no locks available"):
        lock.take()
    monkeypatch.undo()
    lock.take()
    lock.release()


@pytest.mark.spec("OWN-6")
async def test_a_database_is_open_once_even_inside_one_process(path: Path) -> None:
    database = await SqliteDatabase.open(path)
    with pytest.raises(StoreLocked, match=f"process {os.getpid()}"):
        await SqliteDatabase.open(path)
    assert await database.write(lambda tx: tx.row("SELECT 1")) == (1,)
    await database.close()
    again = await SqliteDatabase.open(path)
    await again.close()


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.EMFILE, StoreBusy, "too many files are open to use the state directory /state. "),
        (errno.ENFILE, StoreBusy, "raise the limit (ulimit -n), and try again."),
        (errno.ENOSPC, StoreFull, "the disk is full: nothing could be created in /state. Free some space."),
        (errno.EDQUOT, StoreFull, "the disk is full"),
        (errno.EACCES, StoreReadOnly, "cannot write to the state directory /state: why. Make it writable"),
    ],
)
def test_why_a_directory_cannot_be_used_is_told_with_the_way_out(
    number: int, kind: type[StoreError], words: str
) -> None:
    told = unusable(Path("/state"), OSError(number, "why"))
    assert type(told) is kind
    assert words in told.message
