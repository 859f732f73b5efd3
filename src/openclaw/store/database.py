"""The driver port: what the Store needs from a database, and nothing more.

A unit of work is a plain synchronous function of a transaction. It has no side
effects, takes ids and time as arguments, and may be run again: the driver
batches units, and runs some a second time after a lost transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Protocol, TypeVar

from openclaw.errors import StoreError

Result = TypeVar("Result")
Row = tuple[Any, ...]


class Transaction(Protocol):
    """Statements inside one transaction. SQL comes from `statements`, never from concatenation."""

    def rows(self, sql: str, params: Row = ()) -> list[Row]: ...

    def row(self, sql: str, params: Row = ()) -> Row | None:
        """The first row, or None."""
        ...

    def run(self, sql: str, params: Row = ()) -> None:
        """A statement whose rows do not matter."""
        ...


Unit = Callable[[Transaction], Result]


class Priority(IntEnum):
    """USER work goes first; BACKGROUND units run one at a time when nobody else waits (PITFALLS A6)."""

    USER = 0
    BACKGROUND = 1


class Database(Protocol):
    async def write(self, unit: Unit[Result], priority: Priority = Priority.USER) -> Result:
        """Run a unit durably. Returns only after its commit has reached the disk."""
        ...

    async def read(self, query: Unit[Result]) -> Result:
        """Run a read on a consistent snapshot. Keep it to one page."""
        ...

    async def close(self) -> None: ...


class ConstraintViolated(StoreError):
    """A database constraint refused the change."""

    code = "CONSTRAINT"
