"""What session tools read: a session as another one may meet it, its tree, its newest messages.

Reads only, each bounded in rows and bytes whatever the transcript holds. Who may
see what is not decided here: rows come with the facts that the decision needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from openclaw.domain.visibility import TargetFacts
from openclaw.store.database import Database, Row, Transaction
from openclaw.store.records import SessionRow, StoredEntry, session_from_columns
from openclaw.store.statements import load_statements
from openclaw.store.transcript import LAST, entry_no_of, entry_range

SQL = load_statements("recall.sql")
# So many entries are looked at for one page, of whatever kind they are.
SCAN_ENTRIES = 5000
# So many entries are looked through for the id of a message.
FIND_ENTRIES = 20_000
MOST_CHILDREN = 50


class Met(Struct, frozen=True):
    """A session as its requester meets it. `owner` is the requester if the registry says that it owns it."""

    row: SessionRow
    window_no: int
    owner: str | None = None

    @property
    def facts(self) -> TargetFacts:
        """What the visibility of the session is decided by."""
        row = self.row
        return TargetFacts(
            session_key=row.session_key,
            agent_id=row.agent_id,
            spawned_by=row.entry.spawned_by,
            parent_session_key=row.entry.parent_session_key,
            registry_owner=self.owner,
            archived=row.entry.archived_at is not None,
        )


class Recalled(Struct, frozen=True):
    """The newest messages, oldest first.

    `more`: there are older ones. `cut`: the page ended before its limit, because of its size.
    """

    entries: tuple[StoredEntry, ...]
    more: bool
    cut: bool


class Recall:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def by_key(self, session_key: str, requester: str) -> Met | None:
        def query(tx: Transaction) -> Met | None:
            found = tx.row(SQL["by_key"], (requester, session_key))
            return None if found is None else _met(found)

        return await self._database.read(query)

    async def by_session_id(self, session_id: str, requester: str) -> Met | None:
        """The session whose current or earlier window has this id; `window_no` is that window."""

        def query(tx: Transaction) -> Met | None:
            found = tx.row(SQL["by_session_id"], (requester, session_id))
            return None if found is None else Met(session_from_columns(found[:-2]), found[-1], found[-2])

        return await self._database.read(query)

    async def tree(self, session_key: str, limit: int, offset: int = 0) -> tuple[Met, ...]:
        """A session and those that it spawned or owns, the newest first. Archived ones are left out."""

        def query(tx: Transaction) -> tuple[Met, ...]:
            return tuple(_met(found) for found in tx.rows(SQL["tree"], (session_key, limit, offset)))

        return await self._database.read(query)

    async def children(self, session_keys: Sequence[str]) -> tuple[tuple[Met, ...], ...]:
        """The newest children of each session, at most 50 each; no grandchildren."""

        def query(tx: Transaction) -> tuple[tuple[Met, ...], ...]:
            return tuple(_children(tx, session_key) for session_key in session_keys)

        return await self._database.read(query)

    async def newest(
        self,
        window_no: int,
        limit: int,
        *,
        max_bytes: int,
        offset: int = 0,
        include_tools: bool = False,
        before_seq: int = LAST,
    ) -> Recalled:
        """The newest messages for people of a window, without its newest `offset`; at least one if any.

        Results of tools do not count unless `include_tools`. Bodies are read up to `max_bytes` together.
        """
        return await self._database.read(
            lambda tx: _newest(tx, window_no, limit, max_bytes, offset, int(include_tools), before_seq)
        )

    async def just_after(
        self, window_no: int, entry_id: str, *, following: int, include_tools: bool = False
    ) -> int | None:
        """The number just behind an entry and so many messages that follow it; None when it is not there."""

        def query(tx: Transaction) -> int | None:
            first, last = entry_range(window_no)
            found = tx.row(SQL["place_of"], (first, last, FIND_ENTRIES, entry_id))
            if found is None:
                return None
            bounds = (entry_no_of(window_no, found[0]), last, int(include_tools), following)
            seqs = [found[0], *(row[0] for row in tx.rows(SQL["following"], bounds))]
            return int(seqs[-1]) + 1

        return await self._database.read(query)


def _met(found: Row) -> Met:
    row = session_from_columns(found[:-1])
    return Met(row, row.window_no, found[-1])


def _children(tx: Transaction, session_key: str) -> tuple[Met, ...]:
    found = tx.rows(SQL["tree"], (session_key, MOST_CHILDREN + 1, 0))
    met = (_met(row) for row in found)
    return tuple(one for one in met if one.row.session_key != session_key)[:MOST_CHILDREN]


def _newest(
    tx: Transaction,
    window_no: int,
    limit: int,
    max_bytes: int,
    offset: int,
    include_tools: int,
    before_seq: int,
) -> Recalled:
    first, last = entry_range(window_no)
    last = min(last, first + before_seq)
    sizes = tx.rows(SQL["sizes"], (first, last, SCAN_ENTRIES, include_tools, limit + 1, min(offset, LAST)))
    chosen: list[int] = []
    for seq, size in sizes[:limit]:
        max_bytes -= size
        if max_bytes < 0 and chosen:
            break
        chosen.append(seq)
    is_full = len(chosen) == limit
    is_scanned = len(sizes) > len(chosen) or tx.row(SQL["has_older"], (first, last, SCAN_ENTRIES)) is None
    more = len(sizes) > len(chosen) or not is_scanned
    if not chosen:
        return Recalled((), more, more)
    bounds = (entry_no_of(window_no, chosen[-1]), entry_no_of(window_no, chosen[0]), include_tools)
    entries = tuple(StoredEntry(*row) for row in tx.rows(SQL["bodies"], bounds))
    return Recalled(entries, more, more and not is_full)
