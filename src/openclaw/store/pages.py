"""What clients read of a conversation: a page of it, what came since, and sessions by a short id.

Each answer is one read of one moment, bounded in rows whatever the transcript holds.
What a client is shown of an entry is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from openclaw.errors import InvalidRequest
from openclaw.store import inbox, runs, sessions, transcript
from openclaw.store.database import Database, Transaction
from openclaw.store.records import QueuedInput, RunRow, SessionRow, StoredEntry
from openclaw.store.statements import load_statements
from openclaw.store.transcript import LAST, entry_no_of, entry_range

SQL = load_statements("pages.sql")
MOST_PENDING = 100
FIND_ENTRIES = 20_000
LEAST_SHORT_ID = 4
MOST_COMPACTIONS = 100


class PageAsked(Struct, frozen=True):
    """Which part of which conversation. Without `session_id` the current window of the key."""

    session_key: str
    limit: int
    offset: int = 0
    session_id: str | None = None
    around: str | None = None
    pending_before: int | None = None
    run_ids: tuple[str, ...] = ()


class Waiting(Struct, frozen=True):
    """Inputs that wait, oldest first, and how many there are in all."""

    items: tuple[QueuedInput, ...]
    total: int


class CompactionSeen(Struct, frozen=True):
    """Where the context of a conversation was made smaller, for a line across it."""

    seq: int
    entry_id: str
    at_ms: int
    tokens_before: int | None


class WindowSeen(Struct, frozen=True):
    """One conversation of a session. `first_id` is its first message, if it has one."""

    session_id: str
    reason: str
    started_at: int
    ended_at: int | None
    first_id: str | None


class Page(Struct, frozen=True):
    """Entries for people, oldest first. `offset` newer ones follow; `more`: there are older ones."""

    session: SessionRow
    session_id: str
    entries: tuple[StoredEntry, ...]
    offset: int
    more: bool
    waiting: Waiting
    active_run: RunRow | None
    compactions: tuple[CompactionSeen, ...] = ()


class Since(Struct, frozen=True):
    """What came after a place in a transcript; all of it."""

    session: SessionRow
    entries: tuple[StoredEntry, ...]
    waiting: Waiting
    active_run: RunRow | None
    compactions: tuple[CompactionSeen, ...] = ()


class Pages:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, asked: PageAsked) -> Page | None:
        """A page of a conversation. None when there is no such session.

        InvalidRequest when `session_id` or `around` names nothing of it.
        """
        return await self._database.read(lambda tx: _page(tx, asked))

    async def message(
        self, session_key: str, entry_id: str, session_id: str | None = None
    ) -> StoredEntry | None:
        """One entry of a conversation by its id, looked for among the newest. None when it is not there.

        InvalidRequest when `session_id` names no conversation of this session.
        """
        asked = PageAsked(session_key, 1, session_id=session_id)
        return await self._database.read(lambda tx: _message(tx, asked, entry_id))

    async def since(self, session_key: str, session_id: str, seq: int, limit: int) -> Since | None:
        """What came after `seq` of this window. None when it is not the current one any more, when it
        does not reach so far, or when more than `limit` messages came: then the client starts over.
        """
        return await self._database.read(lambda tx: _since(tx, session_key, session_id, seq, limit))

    async def trail(self, session_key: str, limit: int) -> tuple[WindowSeen, ...]:
        """The conversations of a session that resets led from one to the next, the current one first.

        What was taken back or deleted does not belong to it. Empty when there is no such session.
        """
        return await self._database.read(lambda tx: _trail(tx, session_key, limit))

    async def holds(self, session_key: str, entry_id: str) -> bool:
        """Whether an entry stands in the current window of a session."""

        def query(tx: Transaction) -> bool:
            row = sessions.find(tx, session_key)
            return row is not None and _seq_of(tx, row.window_no, entry_id) is not None

        return await self._database.read(query)

    async def by_short_id(self, short_id: str) -> SessionRow | None:
        """The session whose id begins so. InvalidRequest when several do."""
        return await self._database.read(lambda tx: _by_short_id(tx, short_id))


def _message(tx: Transaction, asked: PageAsked, entry_id: str) -> StoredEntry | None:
    session = sessions.find(tx, asked.session_key)
    if session is None:
        return None
    window_no, _ = _window(tx, session, asked)
    seq = _seq_of(tx, window_no, entry_id)
    return None if seq is None else transcript.entry_at(tx, window_no, seq)


def _page(tx: Transaction, asked: PageAsked) -> Page | None:
    session = sessions.find(tx, asked.session_key)
    if session is None:
        return None
    window_no, session_id = _window(tx, session, asked)
    offset, before = _place(tx, window_no, asked)
    entries = transcript.tail(tx, window_no, asked.limit + 1, before_seq=before, people_only=True)
    return Page(
        session,
        session_id,
        entries[-asked.limit :],
        offset,
        len(entries) > asked.limit,
        _waiting(tx, asked.session_key, asked.pending_before, asked.run_ids),
        runs.active_of(tx, asked.session_key),
        _compactions(tx, window_no, entries[-asked.limit].seq if len(entries) > asked.limit else 0, before),
    )


def _window(tx: Transaction, session: SessionRow, asked: PageAsked) -> tuple[int, str]:
    """The conversation that is asked for: the current one, or an earlier one of the same session."""
    if asked.session_id in (None, session.entry.session_id):
        return session.window_no, session.entry.session_id
    window = sessions.window(tx, asked.session_id or "")
    if window is None or window.session_key != asked.session_key:
        raise InvalidRequest(f"No session found: {asked.session_id}")
    return window.window_no, window.session_id


def _place(tx: Transaction, window_no: int, asked: PageAsked) -> tuple[int, int]:
    """How many messages follow the page, and the number that its entries come before."""
    first, last = entry_range(window_no)
    if asked.around is not None:
        seq = _seq_of(tx, window_no, asked.around)
        if seq is None:
            raise InvalidRequest(f"message not found: {asked.around}")
        newer = tx.rows(SQL["people_after"], (entry_no_of(window_no, seq), last, (asked.limit - 1) // 2))
        end = newer[-1][0] if newer else seq
        counted = tx.row(SQL["count_after"], (entry_no_of(window_no, end), last))
        return int(counted[0]) if counted else 0, end + 1
    if asked.offset == 0:
        return 0, LAST
    found = tx.row(SQL["seq_at_offset"], (first, last, asked.offset - 1))
    return asked.offset, 0 if found is None else int(found[0])


def _seq_of(tx: Transaction, window_no: int, entry_id: str) -> int | None:
    found = tx.row(SQL["place_of"], (*entry_range(window_no), FIND_ENTRIES, entry_id))
    return None if found is None else int(found[0])


def _waiting(tx: Transaction, session_key: str, before: int | None, run_ids: Sequence[str] = ()) -> Waiting:
    """The newest inputs that wait before a place, and those that are asked for by name."""
    newest = inbox.queued_before(tx, session_key, LAST if before is None else before, MOST_PENDING)
    items = {item.admission: item for item in newest}
    for run_id in run_ids:
        known = inbox.known(tx, run_id)
        if known is not None and known.state == "queued" and known.session_key == session_key:
            found = inbox.get(tx, run_id)
            if found is not None:
                items[found.admission] = found
    return Waiting(tuple(items[number] for number in sorted(items)), inbox.count_queued(tx, session_key))


def _since(tx: Transaction, session_key: str, session_id: str, seq: int, limit: int) -> Since | None:
    session = sessions.find(tx, session_key)
    if session is None or session.entry.session_id != session_id or not 0 <= seq <= session.last_seq:
        return None
    _, last = entry_range(session.window_no)
    rows = tx.rows(SQL["people_after"], (entry_no_of(session.window_no, seq), last, limit + 1))
    if len(rows) > limit:
        return None
    return Since(
        session,
        tuple(StoredEntry(*row) for row in rows),
        _waiting(tx, session_key, None),
        runs.active_of(tx, session_key),
        _compactions(tx, session.window_no, seq, LAST),
    )


def _compactions(
    tx: Transaction, window_no: int, after_seq: int, before_seq: int
) -> tuple[CompactionSeen, ...]:
    last = min(entry_no_of(window_no, before_seq), entry_range(window_no)[1])
    found = tx.rows(SQL["compactions_between"], (entry_no_of(window_no, after_seq), last, MOST_COMPACTIONS))
    return tuple(CompactionSeen(seq, entry_id, at_ms, _tokens(body)) for seq, entry_id, at_ms, body in found)


def _tokens(body: bytes) -> int | None:
    """How large the context was; an imported compaction may say anything."""
    told = msgspec.json.decode(body)
    size = told.get("tokensBefore") if isinstance(told, dict) else None
    return size if isinstance(size, int) and not isinstance(size, bool) else None


def _trail(tx: Transaction, session_key: str, limit: int) -> tuple[WindowSeen, ...]:
    session = sessions.find(tx, session_key)
    number = None if session is None else session.window_no
    trail: list[WindowSeen] = []
    while number is not None and len(trail) < limit:
        window = sessions.window_by_no(tx, number)
        if window.session_key != session_key:
            break
        first = tx.row(SQL["first_for_people"], entry_range(number))
        trail.append(
            WindowSeen(
                window.session_id,
                window.reason,
                window.started_at,
                window.ended_at,
                None if first is None else str(first[0]),
            )
        )
        number = window.previous_no
    return tuple(trail)


def _by_short_id(tx: Transaction, short_id: str) -> SessionRow | None:
    if len(short_id) < LEAST_SHORT_ID:
        raise InvalidRequest(f"shortId must have at least {LEAST_SHORT_ID} characters of a session id")
    found = tx.rows(SQL["by_short_id"], (short_id, f"{short_id}\U0010ffff"))
    if len(found) > 1:
        raise InvalidRequest(f"several sessions have an id that begins with {short_id}; give more of it")
    return sessions.find(tx, found[0][0]) if found else None
