"""edit: replace one passage of a file that occurs exactly once, for owners only (AMB-35)."""

from __future__ import annotations

import asyncio
from typing import Any

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
from openclaw.engine.tools.workspace.rooted import Root, Written, shown
from openclaw.engine.tools.workspace.write import MAX_FILE_BYTES, file_bytes
from openclaw.errors import InvalidRequest


class EditArguments(Arguments, frozen=True):
    path: str
    old_text: str
    new_text: str


class EditTool:
    def __init__(self, locks: WriteLocks, access: Access = NO_SANDBOX) -> None:
        self._access = access
        self._locks = locks

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_arguments(arguments, EditArguments)
        workspace = await self._access.enter("edit", context, writes=True)
        done, line = await asyncio.to_thread(self._edit, workspace, asked)
        details = {"path": asked.path, "bytes": done.size, "line": line}
        text = f"changed {shown(asked.path)} at line {line} ({done.size} bytes)"
        return ToolOutcome((TextBlock(text),), details=details)

    def _edit(self, workspace: str, asked: EditArguments) -> tuple[Written, int]:
        with self._locks.of(workspace), Root(workspace) as root:
            found = root.read(asked.path, MAX_FILE_BYTES + 1)
            if len(found.data) > MAX_FILE_BYTES:
                raise InvalidRequest(f"{shown(asked.path)} is larger than {MAX_FILE_BYTES} bytes; use exec")
            try:
                text = found.data.decode()
            except UnicodeDecodeError:
                raise InvalidRequest(f"{shown(asked.path)} is not UTF-8 text; use exec")
            at = find_once(text, asked.old_text, asked.new_text)
            after = text[:at] + asked.new_text + text[at + len(asked.old_text) :]
            # Checked on its own: the file may well hold such a sentence elsewhere.
            file_bytes(asked.new_text)
            written = root.write(asked.path, after.encode(), unchanged=found.facts)
        return written, text.count("\n", 0, at) + 1


def find_once(text: str, old: str, new: str) -> int:
    """Where `old` stands in `text`. Raises InvalidRequest unless there is exactly one such place."""
    if not old:
        raise InvalidRequest("oldText is empty; use write to make a file")
    if old == new:
        raise InvalidRequest("oldText and newText are the same; nothing to change")
    at = text.find(old)
    if at < 0:
        hint = ""
        if "\r\n" in text and "\r\n" not in old and old in text.replace("\r\n", "\n"):
            hint = "; the lines of this file end with \\r\\n"
        raise InvalidRequest(f"oldText occurs 0 times; read the file and copy the passage exactly{hint}")
    if text.find(old, at + 1) >= 0:
        count = max(text.count(old), 2)
        raise InvalidRequest(f"oldText occurs {count} times; add lines around it until it occurs once")
    return at


_SPEC = object_spec(
    "edit",
    "Replace one passage of a file in your workspace. oldText must occur exactly once, letter for letter.",
    {
        "path": {"type": "string", "description": "relative to the workspace"},
        "oldText": {"type": "string"},
        "newText": {"type": "string"},
    },
    ("path", "oldText", "newText"),
    parallel=False,
)
