"""Files below one directory, and nothing above it (DB-19).

Every path is walked part by part with open directory descriptors and without
following links, so that nobody can swap a directory between a check and its use.
A link is read and walked in the same way: it may lead to another place inside,
never outside. Only regular files are opened; devices, pipes and sockets are
refused before they are touched.

Everything here blocks, so it is called on a worker thread. This room knows
nothing of agents or of who may do what.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ELOOP, ENAMETOOLONG, ENOENT, ENOSPC, ENOTDIR, EROFS
from io import BufferedReader
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from msgspec import Struct

from openclaw.errors import Forbidden, InvalidRequest, Unavailable

MAX_PATH_CHARS = 1024
MAX_DEPTH = 64
MAX_LINKS = 40
MAX_ENTRIES = 10_000
TEMP_PREFIX = ".openclaw-"
_SHOWN_CHARS = 120
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe that was put there at the last moment would wait for ever.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Kind = Literal["file", "directory", "link", "other"]


class MissingFile(InvalidRequest):
    """There is no such file in the workspace."""


class Entry(Struct, frozen=True):
    """One name in a directory. `size` is 0 for all but files."""

    name: str
    kind: Kind
    size: int = 0


class Listing(Struct, frozen=True):
    """The names of a directory in alphabetical order; `complete` is False when there were too many."""

    entries: tuple[Entry, ...]
    complete: bool


class FileFacts(Struct, frozen=True):
    """What tells one state of a file from another."""

    size: int
    mtime_ns: int
    inode: int


class Content(Struct, frozen=True):
    """The first bytes of a file, and the facts of the whole of it."""

    data: bytes
    facts: FileFacts


class Written(Struct, frozen=True):
    created: bool
    size: int


class _Spot(Struct, frozen=True):
    """Where a path leads: a name in an open directory; no name for the directory itself."""

    directory: int
    name: str
    facts: os.stat_result | None


def shown(path: str) -> str:
    """A path as an error message names it: on one line, and short."""
    text = path.encode("utf-8", "backslashreplace").decode()
    text = "".join(character if character.isprintable() else "?" for character in text[:_SHOWN_CHARS])
    return f"{text}…" if len(path) > _SHOWN_CHARS else text


def check_path(path: str) -> tuple[str, ...]:
    """The parts of a path below the root. Refuses whatever does not belong in one, and says what does."""
    if len(path) > MAX_PATH_CHARS:
        raise InvalidRequest(f"the path is longer than {MAX_PATH_CHARS} characters; use a shorter one")
    if any(character < " " or character == "\x7f" for character in path):
        raise InvalidRequest("the path holds a control character; use a plain file name")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("the path holds half of a surrogate pair; use a plain file name")
    if path.startswith(("/", "~")):
        raise Forbidden(f"{shown(path)}: use a path relative to the workspace, such as notes/today.md")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise Forbidden(f"{shown(path)}: `..` is not allowed; name the file from the top of the workspace")
    if len(parts) > MAX_DEPTH:
        raise InvalidRequest(f"the path is deeper than {MAX_DEPTH} directories; use a shorter one")
    return parts


class Root:
    """An open root directory: `with Root(path) as root:`. Not for several threads at once."""

    def __init__(self, path: str, *, create: bool = False) -> None:
        """Open the directory; the configured path itself may be a link. `create` makes it when missing."""
        if not path:
            raise InvalidRequest("this agent has no workspace; set agents.defaults.workspace")
        try:
            if create:
                Path(path).mkdir(0o700, parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise InvalidRequest(f"the workspace {shown(path)} is not there yet; write a file to make it")
        except OSError as error:
            raise Unavailable(f"the workspace {shown(path)} cannot be opened: {error.strerror}")
        self._real = os.path.realpath(path)
        self._names = {tuple(_split(path)), tuple(_split(self._real))}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    # -- reading -------------------------------------------------------------------------------

    @contextmanager
    def opened(self, path: str) -> Iterator[tuple[BufferedReader, FileFacts]]:
        """A regular file, open for reading."""
        with _Walk(self._fd, self._names, path) as spot, _plain_errors(path):
            if spot.facts is None:
                raise MissingFile(f"{shown(path)} does not exist")
            _refuse_all_but_files(path, spot.facts)
            descriptor = os.open(spot.name, _READ, dir_fd=spot.directory)
            with os.fdopen(descriptor, "rb") as file:
                facts = os.fstat(descriptor)
                _refuse_all_but_files(path, facts)
                yield file, _facts(facts)

    def read(self, path: str, max_bytes: int) -> Content:
        """The first `max_bytes` of a regular file."""
        with self.opened(path) as (file, facts):
            return Content(file.read(max_bytes), facts)

    def stat(self, path: str) -> FileFacts | None:
        """The facts of a regular file without opening it; None when it is missing or no file."""
        try:
            with _Walk(self._fd, self._names, path) as spot:
                found = spot.facts
        except MissingFile:
            return None
        return _facts(found) if found is not None and stat.S_ISREG(found.st_mode) else None

    def list(self, path: str) -> Listing:
        """What a directory holds. Names are given as they are; links are not followed."""
        with _Walk(self._fd, self._names, path, directory=True) as spot, _plain_errors(path):
            # scandir moves the position of the descriptor that it is given, and closes a copy of its own.
            with os.scandir(spot.directory) as found:
                items = list(islice(found, MAX_ENTRIES + 1))
            entries = sorted((_entry(item) for item in items[:MAX_ENTRIES]), key=lambda entry: entry.name)
            return Listing(tuple(entries), len(items) <= MAX_ENTRIES)

    def absolute(self, path: str) -> str:
        """The real path of a directory below the root, for a process that starts in it."""
        with _Walk(self._fd, self._names, path, directory=True) as spot:
            found = os.fstat(spot.directory)
            target = os.path.realpath("/".join((self._real, *check_path(path))))
            if not os.path.samestat(found, Path(target).stat()):
                raise Unavailable(f"{shown(path)} changed while it was looked up; try again")
            return target

    def where(self, path: str = "", read: FileFacts | None = None) -> str:
        """The real path of the root, or of a file below it that was `read` a moment ago."""
        real = os.path.realpath("/".join((self._real, *check_path(path))))
        with _plain_errors(path):
            if read is not None and Path(real).stat().st_ino != read.inode:
                raise Unavailable(f"{shown(path)} changed while it was looked up; try again")
        return real

    # -- writing -------------------------------------------------------------------------------

    def write(self, path: str, data: bytes, *, unchanged: FileFacts | None = None) -> Written:
        """Put a whole file in place at once: readers see the old bytes or the new ones, also after a crash.

        Missing directories are made; the mode of a file that is replaced is kept. With
        `unchanged`, a file that is no longer in that state is left alone.
        """
        with _Walk(self._fd, self._names, path, make_parents=True) as spot, _plain_errors(path):
            if not spot.name:
                raise InvalidRequest(f"{shown(path)} is a directory; name a file")
            if spot.facts is not None:
                _refuse_all_but_files(path, spot.facts)
            if unchanged is not None and (spot.facts is None or _facts(spot.facts) != unchanged):
                raise InvalidRequest(f"{shown(path)} was changed meanwhile; read it again")
            _replace(spot, data)
            return Written(spot.facts is None, len(data))


class _Walk:
    """The way down to one path. Holds its directories open until it is left."""

    def __init__(
        self, root: int, names: set[tuple[str, ...]], path: str, *,
        directory: bool = False, make_parents: bool = False,
    ) -> None:  # fmt: skip
        self._root = root
        self._names = names
        self._path = path
        self._directory = directory
        self._make = make_parents
        self._open: list[int] = []
        self._links = 0

    def __enter__(self) -> _Spot:
        try:
            with _plain_errors(self._path):
                return self._go(list(reversed(check_path(self._path))))
        except BaseException:
            self._close()
            raise

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        while self._open:
            os.close(self._open.pop())

    @property
    def _here(self) -> int:
        return self._open[-1] if self._open else self._root

    def _go(self, ahead: list[str]) -> _Spot:
        while ahead:
            part = ahead.pop()
            if part == "..":  # of a link; one in the path itself was refused
                if not self._open:
                    raise self._outside()
                os.close(self._open.pop())
                continue
            facts = self._look(part)
            if facts is not None and stat.S_ISLNK(facts.st_mode):
                ahead += self._follow(part)
            elif ahead or self._directory or (facts is not None and stat.S_ISDIR(facts.st_mode)):
                self._enter(part, facts)
            else:
                return _Spot(self._here, part, facts)
        return _Spot(self._here, "", os.fstat(self._here))

    def _look(self, part: str) -> os.stat_result | None:
        try:
            return os.stat(part, dir_fd=self._here, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _enter(self, part: str, facts: os.stat_result | None) -> None:
        if facts is None:
            if not self._make:
                raise MissingFile(f"{shown(self._path)} does not exist")
            with suppress(FileExistsError):  # somebody else was faster
                os.mkdir(part, 0o755, dir_fd=self._here)
        if len(self._open) >= MAX_DEPTH:
            raise InvalidRequest(f"{shown(self._path)} leads deeper than {MAX_DEPTH} directories")
        self._open.append(os.open(part, _DIRECTORY, dir_fd=self._here))

    def _follow(self, part: str) -> list[str]:
        """The parts that a link stands for, last one first."""
        self._links += 1
        if self._links > MAX_LINKS:
            raise InvalidRequest(f"{shown(self._path)} goes through too many links; name the file itself")
        target = os.readlink(part, dir_fd=self._here)
        parts = _split(target)
        if target.startswith("/"):
            inside = next((name for name in self._names if tuple(parts[: len(name)]) == name), None)
            if inside is None:
                raise self._outside()
            parts = parts[len(inside) :]
            self._close()
        return parts[::-1]

    def _outside(self) -> Forbidden:
        return Forbidden(f"{shown(self._path)} is a link that leads out of the workspace")


def _split(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _facts(found: os.stat_result) -> FileFacts:
    return FileFacts(found.st_size, found.st_mtime_ns, found.st_ino)


def _entry(item: os.DirEntry[str]) -> Entry:
    try:
        if item.is_symlink():
            return Entry(item.name, "link")
        if item.is_dir(follow_symlinks=False):
            return Entry(item.name, "directory")
        if item.is_file(follow_symlinks=False):
            return Entry(item.name, "file", item.stat(follow_symlinks=False).st_size)
    except FileNotFoundError:
        pass  # it went away while the directory was read
    return Entry(item.name, "other")


def _refuse_all_but_files(path: str, facts: os.stat_result) -> None:
    if stat.S_ISDIR(facts.st_mode):
        raise InvalidRequest(f"{shown(path)} is a directory; name a file")
    if not stat.S_ISREG(facts.st_mode):
        raise Forbidden(f"{shown(path)} is a device, a pipe or a socket; only files can be used")


def _replace(spot: _Spot, data: bytes) -> None:
    mode = 0o666 if spot.facts is None else stat.S_IMODE(spot.facts.st_mode) & 0o777
    temp = f"{TEMP_PREFIX}{secrets.token_hex(8)}.tmp"
    descriptor = os.open(temp, _CREATE, mode, dir_fd=spot.directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if spot.facts is not None:
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.rename(temp, spot.name, src_dir_fd=spot.directory, dst_dir_fd=spot.directory)
    except BaseException:
        os.unlink(temp, dir_fd=spot.directory)
        raise
    os.fsync(spot.directory)


@contextmanager
def _plain_errors(path: str) -> Iterator[None]:
    """What the system says, in words that tell a model what to do."""
    try:
        yield
    except OSError as error:
        name, code = shown(path), error.errno
        if code == ENOENT:
            raise MissingFile(f"{name} does not exist")
        if code == ENOTDIR:
            raise InvalidRequest(f"{name}: a part of this path is a file, not a directory")
        if code == ELOOP:
            raise Forbidden(f"{name} was replaced by a link while it was opened")
        if code == ENAMETOOLONG:
            raise InvalidRequest(f"{name}: a name in this path is too long")
        if code == EROFS:
            raise Unavailable(f"{name}: the workspace is on a read-only disk")
        if code == ENOSPC:
            raise Unavailable(f"{name}: the disk is full; nothing was changed")
        raise Unavailable(f"{name}: {error.strerror or error}")
