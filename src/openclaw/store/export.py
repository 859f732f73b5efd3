"""Exporting one window of a session as JSON Lines: imported lines exactly, the rest as version 3 (DB-4).

Reads in pages, so that memory does not grow with the transcript. It writes no file
and decides nothing about what a reader may see; surfaces ask for a view of these lines.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from msgspec import Struct

from openclaw.domain.jsonl import header_line, record_line
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


class Export:
    """Reads windows out of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def window_of(self, session_key: str) -> Window | None:
        """The current window of a key."""

        def query(tx: Transaction) -> Window | None:
            row = sessions.find(tx, session_key)
            return None if row is None else sessions.window_by_no(tx, row.window_no)

        return await self._database.read(query)

    async def window_by_id(self, session_id: str) -> Window | None:
        """A window by the id of its session, also one from before a reset."""
        return await self._database.read(lambda tx: sessions.window(tx, session_id))

    async def source_of(self, window_no: int) -> Source | None:
        found = await self._database.read(lambda tx: tx.row(SQL["get_source"], (window_no,)))
        return None if found is None else Source(*found)

    async def lines(self, window: Window, *, cwd: str, imported_only: bool = False) -> AsyncIterator[bytes]:
        """The bytes of the transcript, piece by piece; joined, they are the file.

        A piece ends a line, unless the imported file did not. With `imported_only` it stops where the
        file stopped; cwd is for the header of a window that has none from a file.
        """
        source = await self.source_of(window.window_no)
        header = header_line(window.session_id, window.started_at, cwd) if source is None else source.header
        ended = True
        async for seq, piece in self._pieces(window, source, header):
            if imported_only and source is not None and seq > source.last_seq:
                return
            if not ended:
                yield b"\n"
            yield piece
            ended = piece.endswith(b"\n")

    async def _pieces(
        self, window: Window, source: Source | None, header: bytes
    ) -> AsyncIterator[tuple[int, bytes]]:
        """Pieces that are not empty, each with the number of the entry that it belongs to."""
        if header:
            yield 0, header
        last_seq = 0
        tail_after = -1 if source is None or not source.tail else source.last_seq
        while True:
            if last_seq == tail_after and source is not None:
                yield last_seq, source.tail
            limit = PAGE if last_seq >= tail_after else min(PAGE, tail_after - last_seq)
            page = await self._page(window.window_no, last_seq, limit)
            for seq, entry_id, parent_id, type_, created_at, body, line in page:
                yield seq, line or record_line(type_, entry_id, parent_id, created_at, body)
                last_seq = seq
            if not page:
                return

    async def _page(self, window_no: int, after_seq: int, limit: int) -> list[Row]:
        bounds = (entry_no_of(window_no, after_seq), entry_range(window_no)[1], limit)
        return await self._database.read(lambda tx: tx.rows(SQL["export_page"], bounds))
