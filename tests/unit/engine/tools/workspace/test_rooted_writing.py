"""Writing below one directory: whole files at once, and races that do not help an attacker."""

from __future__ import annotations

import ctypes
import os
import resource
import stat
import threading
from pathlib import Path

import pytest

from openclaw.engine.tools.workspace.rooted import Root
from openclaw.errors import InvalidRequest, OpenClawError, Unavailable


def test_writing_makes_parents_keeps_modes_and_leaves_nothing_behind(place: Path, root: Root) -> None:
    assert root.write("a/b/c.txt", b"one").created is True
    done = root.write("a/b/c.txt", b"three")
    assert (done.created, done.size) == (False, 5)
    assert (place / "a/b/c.txt").read_bytes() == b"three"
    os.chmod(place / "a/b/c.txt", 0o751)
    root.write("a/b/c.txt", b"again")
    assert stat.S_IMODE((place / "a/b/c.txt").stat().st_mode) == 0o751
    assert os.listdir(place / "a/b") == ["c.txt"]


def test_a_failed_write_leaves_the_old_file_and_no_rest(place: Path, root: Root) -> None:
    (place / "a.txt").write_text("old")
    facts = root.stat("a.txt")
    assert facts is not None
    (place / "a.txt").write_text("changed by another")
    with pytest.raises(InvalidRequest, match="changed meanwhile"):
        root.write("a.txt", b"new", unchanged=facts)
    (place / "a.txt").unlink()
    with pytest.raises(InvalidRequest, match="changed meanwhile"):
        root.write("a.txt", b"new", unchanged=facts)
    assert os.listdir(place) == []


def test_a_disk_that_takes_no_more_leaves_the_old_file(place: Path, root: Root) -> None:
    (place / "a.txt").write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(Unavailable, match="File too large"):
            root.write("a.txt", b"x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(place) == ["a.txt"]
    assert (place / "a.txt").read_text() == "old"


def test_readers_never_see_half_a_file(place: Path) -> None:
    bodies = (b"a" * 200_000, b"b" * 300_000)
    (place / "f").write_bytes(bodies[0])
    stop = threading.Event()

    def write() -> None:
        with Root(str(place)) as root:
            while not stop.is_set():
                for body in bodies:
                    root.write("f", body)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with Root(str(place)) as root:
            seen = {root.read("f", 1 << 20).data for _ in range(60)}
    finally:
        stop.set()
        writer.join()
    assert seen <= set(bodies)


@pytest.mark.spec("DB-19")
def test_swapping_a_directory_for_a_link_never_opens_the_outside(place: Path) -> None:
    """The classic race: between check and use, `d` becomes a link to a directory outside."""
    (place / "d").mkdir()
    (place / "d" / "secret.txt").write_text("inside")
    (place / "spare").symlink_to(place.parent / "outside")
    stop = threading.Event()

    exchange = ctypes.CDLL(None).renameat2
    names = (-100, os.fsencode(place / "d"), -100, os.fsencode(place / "spare"), 2)

    def swap() -> None:
        while not stop.is_set():
            exchange(*names)

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen = set()
    try:
        with Root(str(place)) as root:
            for _ in range(1500):
                try:
                    seen.add(root.read("d/secret.txt", 100).data.decode())
                    root.write("d/secret.txt", b"x")
                except OpenClawError as error:
                    seen.add(type(error).__name__)
    finally:
        stop.set()
        swapper.join()
    assert "secret" not in seen
    assert os.listdir(place.parent / "outside") == ["secret.txt"]
    assert (place.parent / "outside" / "secret.txt").read_text() == "secret"
    assert seen & {"inside", "x"}
    assert "Forbidden" in seen
