"""Exporting one window of a session as JSON Lines: imported lines exactly, the rest as version 3 (DB-4).

Reads in pages, so that memory does not grow with the transcript, and can go on from a
place where it stopped. It writes no file and decides nothing about what a reader may
see; `rendering` makes views of these lines.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from msgspec import Struct

from openclaw.domain.jsonl import header_line, record_line
from openclaw.domain.keys import (
    KeySettings,
    canonical_key,
    format_key,
    looks_like_session_id,
    strip_agent,
)
from openclaw.errors import InvalidSessionKey, SessionNotFound, Unavailable
from openclaw.store import sessions
from openclaw.store.database import Database, Row, Transaction
from openclaw.store.records import Window
from openclaw.store.statements import load_statements
from openclaw.store.transcript import entry_no_of, entry_range

SQL = load_statements("imports.sql")
PAGE = 200


class Source(Struct, frozen=True):
    """What an imported window keeps of its file beside the entries."""

    header: bytes
    tail: bytes
    last_seq: int


class Position(Struct, frozen=True, array_like=True):
    """How far an export came: the last entry, whether the imported tail is out, whether a line is open."""

    seq: int = -1
    tail_sent: bool = False
    open_line: bool = False


START = Position()


class Export:
    """Reads windows out of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_window(
        self, key: str, agent_id: str | None, *, default_agent: str, settings: KeySettings
    ) -> tuple[Window, str]:
        """The window that is meant by a key or a session id, and its agent. Raises SessionNotFound.

        An agent that was named wins over the one in the key (DB-4).
        """
        owner = agent_id or default_agent
        text = strip_agent(key) if agent_id is not None else key
        try:
            parsed = canonical_key(text, agent_id=owner, settings=settings)
            window = await self.window_of(format_key(parsed))
            owner = parsed.agent_id or owner
        except InvalidSessionKey:
            if not looks_like_session_id(key, settings):
                raise
            window = None
        if window is None and looks_like_session_id(key, settings):
            window = await self.window_by_id(key.strip())
        if window is None:
            raise SessionNotFound(f"no session {key[:80]!r}; see what there is with: openclaw sessions")
        return window, owner

    async def window_of(self, session_key: str) -> Window | None:
        """The current window of a key."""

        def query(tx: Transaction) -> Window | None:
            row = sessions.find(tx, session_key)
            return None if row is None else sessions.window_by_no(tx, row.window_no)

        return await self._database.read(query)

    async def window_by_id(self, session_id: str) -> Window | None:
        """A window by the id of its session, also one from before a reset."""
        return await self._database.read(lambda tx: sessions.window(tx, session_id))

    async def window_by_no(self, window_no: int) -> Window:
        return await self._database.read(lambda tx: sessions.window_by_no(tx, window_no))

    async def source_of(self, window_no: int) -> Source | None:
        found = await self._database.read(lambda tx: tx.row(SQL["get_source"], (window_no,)))
        return None if found is None else Source(*found)

    async def last_seq(self, window_no: int) -> int:
        """The number of the last entry; 0 when there is none."""
        found = await self._database.read(lambda tx: tx.row(SQL["last_seq"], entry_range(window_no)))
        return 0 if found is None else int(found[0])

    async def lines(self, window: Window, *, cwd: str, imported_only: bool = False) -> AsyncIterator[bytes]:
        """The bytes of the transcript, piece by piece; joined, they are the file.

        A piece ends a line, unless the imported file did not. With `imported_only` it stops where the
        file stopped; cwd is for the header of a window that has none from a file.
        """
        source = await self.source_of(window.window_no)
        last = source.last_seq if imported_only and source is not None else None
        async for _, piece in self.steps(window, cwd=cwd, until_seq=last):
            yield piece

    async def steps(
        self, window: Window, *, cwd: str, start: Position = START, until_seq: int | None = None
    ) -> AsyncIterator[tuple[Position, bytes]]:
        """Pieces that are not empty, each with the position after it; from `start` to entry `until_seq`."""
        source = await self.source_of(window.window_no)
        header = header_line(window.session_id, window.started_at, cwd) if source is None else source.header
        at = start
        if at.seq < 0:
            at = Position(0)
            if header:
                at, piece = _after(at, 0, header)
                yield at, piece
        tail_after = -1 if source is None or not source.tail else source.last_seq
        while True:
            if at.seq == tail_after and source is not None and not at.tail_sent:
                at, piece = _after(at, at.seq, source.tail, tail_sent=True)
                yield at, piece
            limit = PAGE if at.seq >= tail_after else min(PAGE, tail_after - at.seq)
            if until_seq is not None:
                limit = min(limit, until_seq - at.seq)
            page = await self._page(window.window_no, at.seq, limit) if limit > 0 else []
            for row in page:
                at, piece = _after(at, row[0], await self._line(window.window_no, row))
                yield at, piece
            if not page:
                return

    async def _page(self, window_no: int, after_seq: int, limit: int) -> list[Row]:
        bounds = (entry_no_of(window_no, after_seq), entry_range(window_no)[1], limit)
        return await self._database.read(lambda tx: tx.rows(SQL["export_page"], bounds))

    async def _line(self, window_no: int, row: Row) -> bytes:
        seq, entry_id, parent_id, type_, created_at, body, line = row
        if body is None:
            entry_no = entry_no_of(window_no, seq)
            found = await self._database.read(lambda tx: tx.row(SQL["export_large"], (entry_no,)))
            if found is None:
                raise transcript_gone()
            body, line = found
        return line or record_line(type_, entry_id, parent_id, created_at, body)


def transcript_gone() -> Unavailable:
    return Unavailable("the transcript was removed while it was read; what was written of it is not complete")


def _after(at: Position, seq: int, piece: bytes, tail_sent: bool = False) -> tuple[Position, bytes]:
    """The position after a piece, and the piece with the end of line that the one before it lacks."""
    ended = Position(seq, at.tail_sent or tail_sent, not piece.endswith(b"\n"))
    return ended, b"\n" + piece if at.open_line else piece
