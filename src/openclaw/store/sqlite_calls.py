"""The Transaction port over one SQLite connection.

No thread lives here, and nothing here decides in which order units run.
"""

from __future__ import annotations

import apsw

from openclaw.store.database import Row


class SqliteTransaction:
    """The Transaction port over one connection, used by one thread."""

    __slots__ = ("_cursor",)

    def __init__(self, connection: apsw.Connection) -> None:
        self._cursor = connection.cursor()

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        return self._cursor.execute(sql, params).fetchall()

    def row(self, sql: str, params: Row = ()) -> Row | None:
        found = self._cursor.execute(sql, params).fetchall()
        return found[0] if found else None

    def run(self, sql: str, params: Row = ()) -> None:
        self._cursor.execute(sql, params).fetchall()
