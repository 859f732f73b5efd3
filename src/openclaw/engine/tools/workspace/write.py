"""write: put a whole file into the workspace, for owners only (AMB-35)."""

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
from openclaw.errors import InvalidRequest

MAX_FILE_BYTES = 4 << 20
# The end of the sentence that masking adds. A text that holds it was read through a mask: written
# back, the file would lose the secret (PITFALLS B4).
_MASKED = "masked before this text was stored]"


class WriteArguments(Arguments, frozen=True):
    path: str
    content: str


class WriteTool:
    def __init__(self, locks: WriteLocks, access: Access = NO_SANDBOX) -> None:
        self._access = access
        self._locks = locks

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_arguments(arguments, WriteArguments)
        workspace = await self._access.enter("write", context, writes=True)
        done = await asyncio.to_thread(self._write, workspace, asked)
        verb = "made" if done.created else "replaced"
        details = {"path": asked.path, "bytes": done.size, "created": done.created}
        return ToolOutcome((TextBlock(f"{verb} {shown(asked.path)} ({done.size} bytes)"),), details=details)

    def _write(self, workspace: str, asked: WriteArguments) -> Written:
        data = file_bytes(asked.content)
        with self._locks.of(workspace), Root(workspace, create=True) as root:
            return root.write(asked.path, data)


def file_bytes(content: str) -> bytes:
    """Text as it goes into a file. Raises InvalidRequest for what must not get there."""
    if _MASKED in content:
        raise InvalidRequest(
            "the text holds secrets that were masked when it was read; change the other lines with edit"
        )
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("the text holds half of a surrogate pair; send valid Unicode text")
    if len(data) > MAX_FILE_BYTES:
        raise InvalidRequest(f"the text has {len(data)} bytes; a file may have {MAX_FILE_BYTES}, split it")
    return data


_SPEC = object_spec(
    "write",
    "Write a whole file into your workspace; missing directories are made, an existing file is replaced.",
    {
        "path": {"type": "string", "description": "relative to the workspace"},
        "content": {"type": "string"},
    },
    ("path", "content"),
    parallel=False,
)
