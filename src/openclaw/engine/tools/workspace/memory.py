"""memory: notes that outlive a conversation, one file per day under `memory/` (FLUSH-5).

Adding a note is open to every turn that may write the workspace: the silent turn
before a compaction has no owner behind it, and it can only add lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.tools.workspace.access import (
    NO_SANDBOX,
    Access,
    Arguments,
    WriteLocks,
    object_spec,
    read_arguments,
)
from openclaw.engine.tools.workspace.rooted import Root
from openclaw.engine.tools.workspace.searching import Found, Search, check_pattern, search, show
from openclaw.engine.tools.workspace.write import file_bytes
from openclaw.errors import InvalidRequest

DIRECTORY = "memory"
MAX_DAY_BYTES = 256 << 10
MAX_NOTE_CHARS = 20_000
MAX_READ_BYTES = 50_000
MAX_HITS = 50


class MemoryArguments(Arguments, frozen=True):
    action: Literal["append", "read", "search"]
    text: str = ""
    date: str | None = None
    query: str = ""


class MemoryTool:
    """`zone` gives the time zone that decides which day it is."""

    def __init__(self, locks: WriteLocks, zone: Callable[[], ZoneInfo], access: Access = NO_SANDBOX) -> None:
        self._access = access
        self._locks = locks
        self._zone = zone

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_arguments(arguments, MemoryArguments)
        workspace = await self._access.enter("memory", context, writes=asked.action == "append")
        today = note_path(context.now_ms, self._zone())
        if asked.action == "append":
            return await asyncio.to_thread(self._append, workspace, today, asked.text)
        if asked.action == "read":
            path = today if asked.date is None else _path_of(asked.date)
            return await asyncio.to_thread(_read, workspace, path)
        return await asyncio.to_thread(_search, workspace, asked.query)

    def _append(self, workspace: str, path: str, text: str) -> ToolOutcome:
        note = text.strip()
        if not note:
            raise InvalidRequest("text is empty; say what to remember")
        if len(note) > MAX_NOTE_CHARS:
            raise InvalidRequest(f"text is longer than {MAX_NOTE_CHARS} characters; keep what matters")
        added = file_bytes(note)
        with self._locks.of(workspace), Root(workspace, create=True) as root:
            before = b""
            facts = root.stat(path)
            if facts is not None:
                before = root.read(path, MAX_DAY_BYTES + 1).data
            separator = b"" if not before or before.endswith(b"\n") else b"\n"
            after = b"".join((before, separator, added, b"\n"))
            if len(after) > MAX_DAY_BYTES:
                raise InvalidRequest(f"{path} is full ({MAX_DAY_BYTES} bytes); shorten it first")
            root.write(path, after, unchanged=facts)
        details = {"path": path, "bytes": len(after)}
        return ToolOutcome((TextBlock(f"noted in {path}"),), details=details)


def note_path(now_ms: int, zone: ZoneInfo) -> str:
    """The notes of the day that it is in `zone`."""
    day = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(zone).date()
    return f"{DIRECTORY}/{day.isoformat()}.md"


def _path_of(day: str) -> str:
    try:
        return f"{DIRECTORY}/{date.fromisoformat(day).isoformat()}.md"
    except ValueError:
        raise InvalidRequest("date must be of the form 2026-01-31")


def _read(workspace: str, path: str) -> ToolOutcome:
    with Root(workspace) as root:
        if root.stat(path) is None:
            days = _days(root)
            known = f"there are notes of {', '.join(days[-10:])}" if days else "there are no notes yet"
            return ToolOutcome(
                (TextBlock(f"no notes in {path}; {known}"),), details={"path": path, "bytes": 0}
            )
        found = root.read(path, MAX_READ_BYTES)
    text = found.data.decode("utf-8", "replace")
    if found.facts.size > len(found.data):
        text += f"\n[cut: use read with path {path} for the rest]"
    return ToolOutcome((TextBlock(text),), details={"path": path, "bytes": found.facts.size})


def _days(root: Root) -> list[str]:
    try:
        entries = root.list(DIRECTORY).entries
    except InvalidRequest:
        return []
    return [entry.name[:-3] for entry in entries if entry.kind == "file" and entry.name.endswith(".md")]


def _search(workspace: str, query: str) -> ToolOutcome:
    check_pattern(query)
    with Root(workspace) as root:
        missing = not _days(root)
    found = (
        Found() if missing else search(Search(workspace, query, DIRECTORY, ignore_case=True, limit=MAX_HITS))
    )
    details = {"matches": len(found.matches), "files": found.files, "truncated": bool(found.stopped)}
    return ToolOutcome((TextBlock(show(found)),), details=details)


_SPEC = object_spec(
    "memory",
    "Notes that outlive this conversation. append adds text to today's notes, read shows the notes of a "
    "date (today unless given), search finds lines in all notes.",
    {
        "action": {"type": "string", "enum": ["append", "read", "search"]},
        "text": {"type": "string", "description": "for append"},
        "date": {"type": "string", "description": "for read, such as 2026-01-31"},
        "query": {"type": "string", "description": "for search, plain text"},
    },
    ("action",),
    parallel=False,
)
