"""What the threads of the SQLite driver hand around: a unit with the future that waits for it, a transaction.

No thread lives here, and nothing here decides in which order units run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic

import apsw

from openclaw.store.database import Result, Row, Unit


class Call(Generic[Result]):
    """A unit on its way through a thread, and the future that waits for it.

    With `bare` the work gets the connection itself, outside any transaction.
    """

    __slots__ = ("background", "bare", "error", "future", "result", "unit")

    def __init__(
        self,
        unit: Unit[Result] | Callable[[apsw.Connection], Result],
        future: asyncio.Future[Result],
        background: bool = False,
        bare: bool = False,
    ) -> None:
        self.unit: Callable[[Any], Result] = unit
        self.future = future
        self.background = background
        self.bare = bare
        self.result: Result | None = None
        self.error: Exception | None = None


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


def settle(calls: Sequence[Call[Any]]) -> None:
    for call in calls:
        if call.future.done():
            continue
        if call.error is None:
            call.future.set_result(call.result)
        else:
            call.future.set_exception(call.error)
