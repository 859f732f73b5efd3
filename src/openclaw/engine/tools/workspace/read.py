"""read: a file of the workspace, by lines; an image as an image."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, BinaryIO

import msgspec
from msgspec import Meta

from openclaw.domain.attachments import CHAT_LIMITS, IMAGE_TYPES, image_block, sniff
from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.tools.workspace.access import NO_SANDBOX, Access, Arguments, object_spec, read_arguments
from openclaw.engine.tools.workspace.rooted import Root, shown
from openclaw.errors import InvalidRequest

DEFAULT_LINES = 2000
MAX_LINES = 5000
MAX_TEXT_BYTES = 50_000
MAX_LINE_BYTES = 8_000
MAX_SKIPPED_BYTES = 64 << 20
_SNIFF_BYTES = 8192


class ReadArguments(Arguments, frozen=True):
    path: str
    offset: Annotated[int, Meta(ge=1)] = 1
    limit: Annotated[int, Meta(ge=1, le=MAX_LINES)] = DEFAULT_LINES


class Page(msgspec.Struct, frozen=True):
    """Some lines of a file: from `first` on, `count` of them. `complete`: the file ends here."""

    text: str
    first: int
    count: int
    cut_lines: int
    complete: bool


class ReadTool:
    def __init__(self, access: Access = NO_SANDBOX) -> None:
        self._access = access

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_arguments(arguments, ReadArguments)
        workspace = await self._access.enter("read", context)
        return await asyncio.to_thread(_read, workspace, asked)


def _read(workspace: str, asked: ReadArguments) -> ToolOutcome:
    with Root(workspace) as root, root.opened(asked.path) as (file, facts):
        start = file.peek(_SNIFF_BYTES)[:_SNIFF_BYTES]
        if sniff(start) in IMAGE_TYPES:
            return _image(asked.path, file.read(CHAT_LIMITS.image_bytes + 1))
        if b"\x00" in start:
            raise InvalidRequest(
                f"{shown(asked.path)} is not text ({facts.size} bytes); use exec to look at it"
            )
        page = read_page(file, asked.offset, asked.limit)
    if page.count == 0 and asked.offset > 1:
        raise InvalidRequest(f"{shown(asked.path)} has fewer than {asked.offset} lines")
    details = {
        "path": asked.path, "bytes": facts.size, "firstLine": page.first, "lines": page.count,
        "truncated": not page.complete,
    }  # fmt: skip
    return ToolOutcome((TextBlock(_with_footer(page)),), details=details)


def _image(path: str, data: bytes) -> ToolOutcome:
    block = image_block(data)
    if block is None:
        raise InvalidRequest(f"{shown(path)} changed while it was read; try again")
    note = TextBlock(f"{shown(path)}: {block.mime_type}, {len(data)} bytes")
    return ToolOutcome((note, block), details={"path": path, "bytes": len(data), "mimeType": block.mime_type})


def read_page(file: BinaryIO, offset: int, limit: int) -> Page:
    """Lines `offset` to `offset + limit - 1`, in bounded memory whatever the file looks like."""
    skipped = 0
    for _ in range(1, offset):
        line, length = _next_line(file)
        skipped += length
        if not line:
            return Page("", offset, 0, 0, True)
        if skipped > MAX_SKIPPED_BYTES:
            raise InvalidRequest(f"line {offset} is too far into the file; find the place with grep or exec")
    kept: list[bytes] = []
    room, cut_lines, complete = MAX_TEXT_BYTES, 0, False
    while len(kept) < limit:
        line, length = _next_line(file)
        if not line:
            complete = True
            break
        if kept and room < len(line):
            break
        room -= len(line)
        kept.append(line)
        cut_lines += length > len(line)
    if not complete:
        complete = not file.read(1) and len(kept) == limit
    return Page(b"".join(kept).decode("utf-8", "replace"), offset, len(kept), cut_lines, complete)


def _next_line(file: BinaryIO) -> tuple[bytes, int]:
    """The start of the next line, and how long the whole line was."""
    line = file.readline(MAX_LINE_BYTES)
    length, piece = len(line), line
    while piece and not piece.endswith(b"\n"):
        piece = file.readline(MAX_LINE_BYTES)
        length += len(piece)
        if length > MAX_SKIPPED_BYTES:
            raise InvalidRequest(
                f"a line is longer than {MAX_SKIPPED_BYTES} bytes; use exec to look at the file"
            )
    return (line, length) if length == len(line) else (line + b"\n", length + 1)


def _with_footer(page: Page) -> str:
    notes = []
    if page.cut_lines:
        notes.append(f"[{page.cut_lines} long lines were cut at {MAX_LINE_BYTES} bytes]")
    if not page.complete:
        after = page.first + page.count
        notes.append(f"[lines {page.first} to {after - 1}; go on with offset {after}]")
    if not notes:
        return page.text or "(the file is empty)"
    separator = "" if page.text.endswith("\n") else "\n"
    return f"{page.text}{separator}" + "\n".join(notes)


_SPEC = object_spec(
    "read",
    "Read a file of your workspace. Text comes by lines, from offset (1 is the first) up to limit lines; "
    "PNG, JPEG, GIF and WebP files come as images. To send a file of the workspace to the person in a chat, "
    "put a line of its own into your reply: MEDIA:<path relative to the workspace>.",
    {
        "path": {"type": "string", "description": "relative to the workspace"},
        "offset": {"type": "integer", "minimum": 1},
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LINES},
    },
    ("path",),
)
