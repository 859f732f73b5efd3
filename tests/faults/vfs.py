"""A disk that fails: a file system layer for SQLite that breaks the Nth call, in one of several ways.

Calls are xWrite, xSync and xTruncate, counted together over all files; for a disk that cannot be read they
are xRead alone. The layer knows for every file what has been synced and what has not, so it can take the
power away: everything since the last sync of each file is lost, or an arbitrary part of it. Registered as the
default of the whole process: for child processes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import apsw

Mode = Literal["none", "error", "full", "torn", "lost-sync", "power-cut", "read-only", "unreadable"]
MODES: tuple[Mode, ...] = ("error", "full", "torn", "lost-sync", "power-cut", "read-only", "unreadable")
CHANGING = frozenset(("xWrite", "xSync", "xTruncate"))
READING = frozenset(("xRead",))
SECTOR = 512
Change = tuple[int, bytes | None]  # (offset, data), or (size, None) for a truncation


class Shadow:
    """What one file holds for sure, and the changes since its last sync."""

    def __init__(self, content: bytes = b"") -> None:
        self.synced = bytearray(content)
        self.pending: list[Change] = []

    def sync(self) -> None:
        for change in self.pending:
            apply_change(self.synced, change)
        self.pending.clear()


def apply_change(content: bytearray, change: Change) -> None:
    place, data = change
    if data is None:
        del content[place:]
        return
    if len(content) < place:
        content.extend(bytes(place - len(content)))
    content[place : place + len(data)] = data


class Disk:
    """One trial: which call breaks, how, and what has happened so far."""

    def __init__(self, mode: Mode = "none", at: int = 0, seed: int = 0) -> None:
        self.mode = mode
        self.at = at
        self.chance = random.Random(f"{mode} {at} {seed}")
        self.keep_nothing = seed == 0
        self.full_until = at + self.chance.randint(1, 30)
        self.counted = CHANGING
        self.calls = 0
        self.struck: str | None = None
        self.off = False
        self.over = False  # the process is being cleared away: its last calls are nobody's
        self.files: dict[str, Shadow] = {}

    def strikes(self, call: str) -> bool:
        """Count a call; True when this is the one that breaks."""
        if call not in self.counted:
            return False
        self.calls += 1
        if self.mode == "full":
            hit = call == "xWrite" and self.at <= self.calls <= self.full_until
        elif self.mode == "read-only":
            hit = call != "xSync" and self.at <= self.calls
        else:
            hit = self.calls == self.at and self.mode != "none"
        if hit:
            self.struck = self.struck or call
            self.off = self.mode == "power-cut"
        return hit

    def has_power(self) -> bool:
        """Whether a call can do anything. Without power it fails, or at the very end goes nowhere."""
        if self.off and not self.over:
            raise apsw.IOError("there is no power")
        return not self.off

    def settle(self) -> None:
        """After a power cut: leave on disk what a disk would have kept."""
        if not self.off:
            return
        for name, shadow in self.files.items():
            content = bytearray(shadow.synced)
            for change in () if self.keep_nothing else shadow.pending:
                for part in self._kept(change):
                    apply_change(content, part)
            Path(name).write_bytes(content)
            Path(name + "-shm").unlink(missing_ok=True)

    def _kept(self, change: Change) -> Iterator[Change]:
        """A part of a change: nothing, all of it, or some of its sectors."""
        fate, (place, data) = self.chance.random(), change
        if data is None or fate < 0.6:
            if fate < 0.4:
                yield change
            return
        for start in range(0, len(data), SECTOR):
            if self.chance.random() < 0.5:
                yield place + start, data[start : start + SECTOR]


class FailingFile(apsw.VFSFile):
    def __init__(self, disk: Disk, base: str, name: Any, flags: list[int]) -> None:
        super().__init__(base, name, flags)
        self.disk = disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        if path not in disk.files:
            # What was there before this disk was watched has long been synced.
            disk.files[path] = Shadow(Path(path).read_bytes() if Path(path).exists() else b"")
        self.shadow = disk.files[path]

    def xWrite(self, data: Any, offset: int) -> None:
        disk = self.disk
        if not disk.has_power():
            return
        content = bytes(data)
        struck = disk.strikes("xWrite")
        if struck and disk.mode == "full":
            raise apsw.FullError("no space is left")
        if struck and disk.mode == "read-only":
            raise apsw.ReadOnlyError("the file system was made read-only")
        if struck and disk.mode == "torn":
            content = content[: disk.chance.randrange(len(content))]
        if not struck or disk.mode in ("torn", "power-cut"):
            # The write in which the power goes may have reached the disk, or a part of it.
            self.shadow.pending.append((offset, content))
        if not struck or disk.mode == "torn":
            super().xWrite(content, offset)
        if struck:
            raise apsw.IOError("the write failed")

    def xSync(self, flags: int) -> None:
        if not self.disk.has_power():
            return
        if self.disk.strikes("xSync"):
            if self.disk.mode == "lost-sync":
                self._forget_pending()
            raise apsw.IOError("the sync failed")
        super().xSync(flags)
        self.shadow.sync()

    def xTruncate(self, newsize: int) -> None:
        if not self.disk.has_power():
            return
        if self.disk.strikes("xTruncate"):
            raise apsw.IOError("the truncation failed")
        self.shadow.pending.append((newsize, None))
        super().xTruncate(newsize)

    def _forget_pending(self) -> None:
        """A sync that fails may leave the pages of the cache clean and lost: back to what was synced."""
        self.shadow.pending.clear()
        super().xTruncate(len(self.shadow.synced))
        if self.shadow.synced:
            super().xWrite(bytes(self.shadow.synced), 0)


class UnreadableFile(FailingFile):
    def xRead(self, amount: int, offset: int) -> bytes:
        if self.disk.has_power() and self.disk.strikes("xRead"):
            raise apsw.IOError("the read failed")
        return super().xRead(amount, offset)


class FailingDisk(apsw.VFS):
    def __init__(self, disk: Disk, of: type[FailingFile]) -> None:
        self.disk = disk
        self.of = of
        self.base = "unix"
        super().__init__("failing", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        if name is None:
            return apsw.VFSFile(self.base, name, flags)
        return self.of(self.disk, self.base, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        if not self.disk.off:
            super().xDelete(filename, syncdir)
            self.disk.files.pop(filename, None)


@contextmanager
def failing(disk: Disk, reads: bool = False) -> Iterator[None]:
    """Every database that is opened inside the block lies on this disk; with `reads`, they are counted."""
    layer = FailingDisk(disk, UnreadableFile if reads else FailingFile)
    disk.counted = READING if reads else CHANGING
    try:
        yield
    finally:
        layer.unregister()
