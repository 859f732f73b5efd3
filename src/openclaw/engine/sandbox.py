"""The folders of sandboxed sessions whose workspace is not for them, and when those folders go.

A folder is named by a digest of its owner: a session, an agent, or everybody
(`sandbox.scope`). Beside it lies a small file with the owner's name, so that the folder of a session that
exists no more can be told and taken away. What runs inside is none of this room's business.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from openclaw.engine.ports import Clock
from openclaw.errors import Unavailable

log = logging.getLogger("openclaw.sandbox")
FOLDER = "sandboxes"
INSIDE = "/workspace"  # where a sandboxed session finds its directory
GRACE_MS = 600_000  # a folder may be made while its session is
MOST_LOOKED_AT = 10_000
_NAME = ".owner"


class Scratch:
    """Folders below one directory, one for each owner."""

    def __init__(self, base: Path) -> None:
        self._base = base

    async def open(self, owner: str) -> str:
        """The folder of an owner, made when it is missing. Raises Unavailable when it cannot be."""
        return await asyncio.to_thread(self._open, owner)

    def _open(self, owner: str) -> str:
        folder = self._base / digest(owner)
        try:
            folder.mkdir(0o700, parents=True, exist_ok=True)
            note = folder.with_suffix(_NAME)
            if not note.exists():
                note.write_text(owner, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise Unavailable(f"a folder for the sandbox could not be made: {error.strerror or error}")
        return str(folder)

    async def tidy(self, exists: Callable[[str], Awaitable[bool]], clock: Clock) -> int:
        """Take away the folders of sessions that are gone; how many."""
        found = await asyncio.to_thread(self._owners, clock.now_ms() - GRACE_MS)
        removed = 0
        for folder, owner in found:
            if not await exists(owner):
                removed += await asyncio.to_thread(_remove, folder)
        return removed

    def _owners(self, made_before_ms: int) -> list[tuple[Path, str]]:
        found: list[tuple[Path, str]] = []
        with suppress(FileNotFoundError), os.scandir(self._base) as entries:
            for entry in entries:
                if not entry.name.endswith(_NAME) or len(found) >= MOST_LOOKED_AT:
                    continue
                with suppress(OSError):
                    owner = Path(entry.path).read_text(encoding="utf-8", errors="replace")
                    young = entry.stat().st_mtime_ns // 1_000_000 >= made_before_ms
                    if not young and not _is_shared(owner):
                        found.append((Path(entry.path).with_suffix(""), owner))
        return found


def digest(owner: str) -> str:
    """The name of a folder; a session key never becomes a path."""
    return hashlib.sha256(owner.encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _is_shared(owner: str) -> bool:
    """Whether the folder belongs to an agent or to everybody, and so outlives every session."""
    return owner == "shared" or (owner.startswith("agent:") and owner.count(":") == 1)


def _remove(folder: Path) -> bool:
    try:
        shutil.rmtree(folder)
        folder.with_suffix(_NAME).unlink(missing_ok=True)
    except FileNotFoundError:
        folder.with_suffix(_NAME).unlink(missing_ok=True)
    except OSError as error:
        log.warning("the folder of a sandbox could not be removed: %s", error)
        return False
    return True
