"""The files of a workspace that go into the system prompt, and whether it can be written.

Read off the loop, masked and cut (LOOP-2, TRX-11), and not read again while they
stay the same: the prompt is asked for on every turn. This room gives texts and
facts; where they stand in the prompt is `engine.prompt`'s business.
"""

from __future__ import annotations

import asyncio
import os
import secrets as random_names
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from openclaw.engine.tools.results import settle_text
from openclaw.engine.tools.workspace.rooted import TEMP_PREFIX, FileFacts, Root
from openclaw.errors import OpenClawError

NAMES = ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md")
MAX_FILE_CHARS = 12_000
MAX_TOTAL_CHARS = 60_000
# A larger file is cut long before its end; its size in bytes then stands for its characters.
MAX_READ_BYTES = 128 << 10
_KEPT_WORKSPACES = 32
_SENTENCES_CHARS = 120
FileState = Literal["OK", "TRUNCATED", "MISSING"]


class InjectedFile(Struct, frozen=True):
    """One file as it stands in the prompt. `raw_chars` is its size before masking and cutting (CMD-4)."""

    name: str
    state: FileState
    raw_chars: int = 0
    injected_chars: int = 0
    text: str = ""


class RawText(Struct, frozen=True):
    """The beginning of a file, and how long the whole of it is."""

    text: str
    chars: int


class _Known(Struct, frozen=True):
    facts: tuple[FileFacts | None, ...]
    texts: tuple[RawText | None, ...]
    secrets: frozenset[str]
    files: tuple[InjectedFile, ...]


_NOTHING = (None,) * len(NAMES)


class WorkspaceFiles:
    """Remembers what it read, for the workspaces that were asked for last."""

    def __init__(self, secrets: Callable[[], frozenset[str]] = frozenset) -> None:
        self._secrets = secrets
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def load(self, workspace: str) -> tuple[InjectedFile, ...]:
        """The files of the prompt, in their fixed order. Never raises for a file or a missing workspace."""
        known, secrets = self._known.get(workspace), self._secrets()
        fresh = await asyncio.to_thread(self._look, workspace, known, secrets)
        self._known[workspace] = fresh
        self._known.move_to_end(workspace)
        while len(self._known) > _KEPT_WORKSPACES:
            self._known.popitem(last=False)
        return fresh.files

    def _look(self, workspace: str, known: _Known | None, secrets: frozenset[str]) -> _Known:
        try:
            with Root(workspace) as root:
                facts = tuple(_stat(root, name) for name in NAMES)
                if known is not None and known.facts == facts and known.secrets == secrets:
                    return known
                texts = tuple(_text(root, name, at, facts[at], known) for at, name in enumerate(NAMES))
        except OpenClawError:
            facts, texts = _NOTHING, _NOTHING
        return _Known(facts, texts, secrets, cut_files(texts, secrets))


def _stat(root: Root, name: str) -> FileFacts | None:
    try:
        return root.stat(name)
    except OpenClawError:
        return None  # a link that leads out, or a directory that may not be read


def _text(root: Root, name: str, at: int, facts: FileFacts | None, known: _Known | None) -> RawText | None:
    if facts is None:
        return None
    if known is not None and known.facts[at] == facts:
        return known.texts[at]
    try:
        found = root.read(name, MAX_READ_BYTES)
    except OpenClawError:
        return None  # it went away between the look and the reading
    text = found.data.decode("utf-8", "replace")
    is_whole = found.facts.size <= len(found.data)
    return RawText(text, len(text) if is_whole else found.facts.size)


def cut_files(texts: tuple[RawText | None, ...], secrets: frozenset[str]) -> tuple[InjectedFile, ...]:
    """Each file within its own limit and all of them within theirs; the first ones come first (LOOP-2)."""
    files: list[InjectedFile] = []
    room = MAX_TOTAL_CHARS
    for name, found in zip(NAMES, texts, strict=True):
        if found is None:
            files.append(InjectedFile(name, "MISSING"))
            continue
        text, was_cut = _within(found, min(MAX_FILE_CHARS, room), secrets)
        room -= len(text)
        state: FileState = "TRUNCATED" if was_cut else "OK"
        files.append(InjectedFile(name, state, found.chars, len(text), text))
    return tuple(files)


def _within(found: RawText, limit: int, secrets: frozenset[str]) -> tuple[str, bool]:
    settled = settle_text(found.text, limit, secrets, found.chars)
    if len(settled.text) <= limit and not settled.left_out:
        return settled.text, False
    # Room for the sentences about the cut and the masks, so that the limit holds with them.
    settled = settle_text(found.text, max(limit - _SENTENCES_CHARS, 0), secrets, found.chars)
    return (settled.text if len(settled.text) <= limit else ""), True


async def is_writable(workspace: str) -> bool:
    """Whether notes could be written there now (FLUSH-2). Tries it: permissions alone do not tell."""
    return await asyncio.to_thread(_try_to_write, workspace)


def _try_to_write(workspace: str) -> bool:
    if not workspace:
        return False
    directory = Path(workspace)
    if not directory.exists():
        parent = next((one for one in directory.parents if one.exists()), None)
        return parent is not None and parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
    probe = directory / f"{TEMP_PREFIX}{random_names.token_hex(8)}.tmp"
    try:
        probe.touch(0o600, exist_ok=False)
        probe.unlink()
    except OSError:
        return False
    return True
