"""Archive files: a transcript as JSON Lines on disk, before its rows are purged or put away (DB-17).

A file is written beside its final name, synced, read back and compared, and only
then takes its name. Which windows go, and when a file is too old, is decided by
`discarding`. All file work happens on threads.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from openclaw.domain.jsonl import iso_of
from openclaw.errors import StoreError
from openclaw.store import purging
from openclaw.store.database import Database, Transaction
from openclaw.store.export import Export
from openclaw.store.records import Window
from openclaw.store.statements import load_statements

SQL = load_statements("archiving.sql")
BUFFER_BYTES = 1 << 20
_SAFE_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,180}")

Cause = Literal["reset", "deleted", "bak"]


class ArchivePlace(Struct, frozen=True):
    """Where the archives of a session go, and the working directory that their first line names."""

    folder: Path
    cwd: str


class ArchiveFile(Struct, frozen=True):
    """A file that was written and read back. `written_at` decides how long it is kept."""

    window_no: int
    session_key: str
    path: str
    size: int
    sha256: str
    written_at: int


class ArchiveFailed(StoreError):
    """An archive file could not be written, so nothing was purged."""


def archive_name(window: Window, cause: Cause, at_ms: int) -> str:
    """`<file>.reset.<ts>`, `.deleted.<ts>` or `.bak.<ts>`; the same moment gives the same name (DB-17)."""
    safe = _SAFE_ID.fullmatch(window.session_id) is not None
    stem = window.session_id if safe else f"window-{window.window_no}"
    return f"{stem}.jsonl.{cause}.{iso_of(at_ms).replace(':', '-')}"


class Archives:
    """Writes archive files. `place` answers for a session key."""

    def __init__(self, database: Database, place: Callable[[str], ArchivePlace]) -> None:
        self._database = database
        self._place = place

    async def write(self, window: Window, cause: Cause, at_ms: int, *, now_ms: int) -> ArchiveFile:
        """The transcript of a window as a file that was read back. Raises ArchiveFailed with the reason."""
        place = self._place(window.session_key)
        path = place.folder / archive_name(window, cause, at_ms)
        draft = path.with_name(f".{path.name}.writing")
        try:
            size, digest = await self._fill(draft, window, place.cwd)
            await asyncio.to_thread(_settle, draft, path, size, digest)
        except OSError as error:
            raise ArchiveFailed(
                f"cannot write the archive {path}: {error.strerror or error}. "
                "Make its folder writable or free some space; nothing was purged."
            ) from error
        return ArchiveFile(window.window_no, window.session_key, str(path), size, digest, now_ms)

    async def _fill(self, draft: Path, window: Window, cwd: str) -> tuple[int, str]:
        await asyncio.to_thread(_begin, draft)
        hashing, size, pieces, waiting = hashlib.sha256(), 0, list[bytes](), 0
        async for piece in Export(self._database).lines(window, cwd=cwd):
            pieces.append(piece)
            waiting += len(piece)
            if waiting >= BUFFER_BYTES:
                size += await asyncio.to_thread(_append, draft, pieces, hashing)
                pieces, waiting = [], 0
        size += await asyncio.to_thread(_append, draft, pieces, hashing)
        return size, hashing.hexdigest()


async def remove(database: Database, files: Sequence[ArchiveFile]) -> int:
    """Remove files, then what the store knows of them; how many. Raises OSError when a file cannot go."""
    await asyncio.to_thread(_unlink, [Path(file.path) for file in files])
    return await database.write(lambda tx: sum(forget(tx, file) for file in files))


# -- units -----------------------------------------------------------------------------------------


def note(tx: Transaction, file: ArchiveFile) -> None:
    tx.run(
        SQL["note_archive"],
        (file.window_no, file.session_key, file.path, file.size, file.sha256, file.written_at),
    )


def forget(tx: Transaction, file: ArchiveFile) -> int:
    """The file is gone: nothing else holds the places that its session was reached from."""
    forgotten = len(tx.rows(SQL["forget"], (file.window_no, file.path)))
    tx.run(purging.SQL["unlink_places"], (file.session_key,))
    return forgotten


def written_before(tx: Transaction, at_ms: int) -> tuple[ArchiveFile, ...]:
    """The oldest files, no younger than `at_ms`, a page of them."""
    return tuple(ArchiveFile(*row) for row in tx.rows(SQL["oldest"], (at_ms,)))


def of_session(tx: Transaction, session_key: str) -> tuple[ArchiveFile, ...]:
    return tuple(ArchiveFile(*row) for row in tx.rows(SQL["of_session"], (session_key,)))


def total_size(tx: Transaction) -> int:
    found = tx.row(SQL["total_size"])
    return int(found[0]) if found else 0


# -- on threads ------------------------------------------------------------------------------------


def _begin(draft: Path) -> None:
    draft.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))


def _append(draft: Path, pieces: list[bytes], hashing: hashlib._Hash) -> int:
    data = b"".join(pieces)
    hashing.update(data)
    with draft.open("ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return len(data)


def _settle(draft: Path, path: Path, size: int, digest: str) -> None:
    """Read back what was written; only the same bytes get the name."""
    with draft.open("rb") as file:
        read_back = hashlib.file_digest(file, "sha256").hexdigest()
    if draft.stat().st_size != size or read_back != digest:
        draft.unlink()
        raise ArchiveFailed(
            f"the archive {path} could not be read back as it was written; nothing was purged"
        )
    draft.replace(path)
    _sync_folder(path.parent)


def _unlink(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        if folder.is_dir():
            _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
