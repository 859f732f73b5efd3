"""Views of an exported transcript: exact, without secrets, or to read; whole or in bounded pages (CLI-11).

A page carries a cursor with everything that the next one needs, so nobody has to
remember a reader. The end is fixed by the first page: what is said meanwhile is not
part of the export. Nothing here decides who may read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from openclaw.domain import transcript_text
from openclaw.errors import InvalidRequest
from openclaw.store.export import START, Export, Position, transcript_gone
from openclaw.store.records import Window

Format = Literal["jsonl", "markdown", "html"]
PAGE_BYTES = 512 * 1024
PIECE_PAGES = 8  # a piece of at most so many pages goes as a whole: cutting it means rendering it again
RENDER_BYTES = 64 * 1024  # of a transcript, rendered at once on a thread: the event loop must not stand still


class View(Struct, frozen=True):
    """How an export looks. JSONL is exact unless `redact`; what is for reading shows no secret (TRX-11)."""

    format: Format = "jsonl"
    redact: bool = False

    @property
    def exact(self) -> bool:
        return self.format == "jsonl" and not self.redact


class Cursor(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where the next page begins: a window, its fixed end, a position, and bytes of the next piece sent."""

    window_no: int
    until_seq: int
    position: Position
    offset: int = 0


class ExportPage(Struct, frozen=True):
    """Some bytes of an export. `cursor` is None after the last ones."""

    data: bytes
    cursor: str | None
    seq: int
    last_seq: int


_decode_cursor = msgspec.json.Decoder(Cursor).decode


def read_cursor(text: str) -> Cursor:
    try:
        return _decode_cursor(text.encode("utf-8", "replace"))
    except msgspec.DecodeError:
        raise InvalidRequest("cursor is not one of this gateway; begin again without one") from None


async def whole(
    export: Export, window: Window, view: View, *, cwd: str, secrets: frozenset[str]
) -> AsyncIterator[bytes]:
    """All bytes of an export, piece by piece."""
    if head := _head(view, window):
        yield head
    async for _, shown in _shown(export.steps(window, cwd=cwd), view, secrets):
        yield shown
    if end := _end(view):
        yield end


async def page(
    export: Export,
    window: Window,
    view: View,
    cursor: Cursor | None,
    *,
    cwd: str,
    secrets: frozenset[str],
    limit: int = PAGE_BYTES,
) -> ExportPage:
    """The next bytes: `limit` of them, or more to end a piece. Joined, the pages are what `whole` gives.

    Raises Unavailable when the transcript was removed since the first page.
    """
    if cursor is None:
        cursor = Cursor(window.window_no, await export.last_seq(window.window_no), START)
        parts = [_head(view, window)]
    else:
        parts = [b""]
    at, offset, until = cursor.position, cursor.offset, cursor.until_seq
    room = limit
    steps = export.steps(window, cwd=cwd, start=at, until_seq=until)
    async for after, shown in _shown(steps, view, secrets):
        part = shown[offset : offset + PIECE_PAGES * limit]
        parts.append(part)
        room -= len(part)
        if offset + len(part) < len(shown):
            return _page(parts, Cursor(window.window_no, until, at, offset + len(part)), at)
        at, offset = after, 0
        if room <= 0:
            return _page(parts, Cursor(window.window_no, until, at), at)
    if at.seq < until:
        raise transcript_gone()
    parts.append(_end(view))
    return ExportPage(b"".join(parts), None, max(at.seq, 0), until)


def _page(parts: list[bytes], cursor: Cursor, at: Position) -> ExportPage:
    text = msgspec.json.encode(cursor).decode()
    return ExportPage(b"".join(parts), text, max(at.seq, 0), cursor.until_seq)


def _head(view: View, window: Window) -> bytes:
    names = (window.session_key, window.session_id)
    if view.format == "markdown":
        return transcript_text.markdown_head(*names).encode()
    return transcript_text.html_head(*names).encode() if view.format == "html" else b""


def _end(view: View) -> bytes:
    return transcript_text.HTML_END.encode() if view.format == "html" else b""


async def _shown(
    steps: AsyncIterator[tuple[Position, bytes]], view: View, secrets: frozenset[str]
) -> AsyncIterator[tuple[Position, bytes]]:
    """The pieces as the view has them, rendered some at a time."""
    if view.exact:
        async for step in steps:
            yield step
        return
    waiting: list[tuple[Position, bytes]] = []
    size = 0
    async for at, piece in steps:
        waiting.append((at, piece))
        size += len(piece)
        if size >= RENDER_BYTES:
            for step in await asyncio.to_thread(_render_all, waiting, view, secrets):
                yield step
            waiting, size = [], 0
    for step in await asyncio.to_thread(_render_all, waiting, view, secrets):
        yield step


def _render_all(
    steps: list[tuple[Position, bytes]], view: View, secrets: frozenset[str]
) -> list[tuple[Position, bytes]]:
    return [(at, _render(piece, view, secrets)) for at, piece in steps]


def _render(piece: bytes, view: View, secrets: frozenset[str]) -> bytes:
    records = (transcript_text.redacted(record, secrets) for record in transcript_text.objects_of(piece))
    return b"".join(_render_record(record, view.format) for record in records)


def _render_record(record: dict[str, Any], form: Format) -> bytes:
    if form == "jsonl":
        return transcript_text.line_of(record)
    return (transcript_text.markdown_of if form == "markdown" else transcript_text.html_of)(record).encode()
