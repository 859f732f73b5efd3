"""Families of sessions: who asked whom for help, as the rows of sessions tell it.

Reads only, from columns and indexes; no transcript is opened. Who may look is asked at the door.
"""

from __future__ import annotations

from msgspec import Struct

from openclaw.store.database import Database, Row, Transaction
from openclaw.store.records import SessionRow, session_from_columns
from openclaw.store.runs import STATUS
from openclaw.store.statements import load_statements

SQL = load_statements("families.sql")
# Helpers of helpers are few; a longer line is cut, and a circle ends here.
MOST_DEPTH = 20
# Up to so many helpers are found through their indexes; where there are more, the newest are never far.
FEW = 5000


class FamilyQuery(Struct, frozen=True):
    """`key`: only the family of this session. Archived sessions count when `archived` says so.

    Of all families the newest `limit` helpers are taken, and those above them in addition; of one family
    the oldest `limit` sessions.
    """

    key: str | None = None
    archived: bool = False
    limit: int = 1000


class Member(Struct, frozen=True):
    """A session, and of a helper what became of its task, once that has ended.

    The row tells of the latest run, which is another one as soon as the helper has announced its result.
    """

    row: SessionRow
    task_status: str | None = None
    task_runtime_ms: int | None = None


class Family(Struct, frozen=True):
    """Oldest first; `more` when helpers were left out."""

    members: tuple[Member, ...]
    more: bool


class Families:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, query: FamilyQuery) -> Family:
        """Sessions with helpers and their helpers, at any depth; with a key, one family, or nobody."""
        return await self._database.read(lambda tx: _read(tx, query))


def _read(tx: Transaction, query: FamilyQuery) -> Family:
    archived = int(query.archived)
    if query.key is None:
        counted = tx.row(SQL["helper_count"], (FEW + 1,))
        assert counted is not None
        newest, rest = ("helpers", "has_more") if counted[0] <= FEW else ("many_helpers", "many_more")
        found = tx.rows(SQL[newest], (archived, query.limit, MOST_DEPTH))
        more = tx.row(SQL[rest], (archived, query.limit)) is not None
        return Family(tuple(map(_member, found)), more)
    line = tx.rows(SQL["above"], (query.key, MOST_DEPTH))
    if not line:
        return Family((), False)
    top = line[-1][0]
    found = tx.rows(SQL["below"], (top, MOST_DEPTH, archived, query.limit + 1))
    return Family(tuple(map(_member, found[: query.limit])), len(found) > query.limit)


def _member(found: Row) -> Member:
    *columns, outcome, runtime_ms = found
    return Member(session_from_columns(tuple(columns)), STATUS.get(outcome), runtime_ms)
