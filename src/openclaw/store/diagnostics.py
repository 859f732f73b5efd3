"""The gateway's own life as rows: starts, stops, crashes, recoveries, refusals, watchdog, doctor (DB-1).

Few and short: the newest ones are kept, and a text is cut. The log tells more; this outlives it, and
tells a crash, which nobody could write down when it happened.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, cast

from msgspec import Struct

from openclaw.domain.doortext import clean_text, cut
from openclaw.store.database import Database, Row, Transaction
from openclaw.store.statements import load_statements

SQL = load_statements("diagnostics.sql")
KEPT = 500
MAX_DETAIL_CHARS = 1000
Kind = Literal["start", "stop", "crash", "recovery", "refused", "watchdog", "doctor"]


class Diagnostic(Struct, frozen=True):
    at: int
    kind: Kind
    detail: str


def note(tx: Transaction, kind: Kind, detail: str, now_ms: int) -> None:
    tx.run(SQL["add"], (now_ms, kind, cut(clean_text(detail), MAX_DETAIL_CHARS)))
    tx.run(SQL["trim"], (KEPT,))


def note_start(tx: Transaction, detail: str, now_ms: int) -> Diagnostic | None:
    """Note a start; the start before it, when nothing was noted to have ended that one."""
    row = tx.row(SQL["last_life"])
    before = None if row is None else _read(row)
    crashed = before if before is not None and before.kind == "start" else None
    if crashed is not None:
        began = datetime.fromtimestamp(crashed.at / 1000, UTC).isoformat(timespec="seconds")
        note(
            tx, "crash", f"the gateway that began at {began} did not stop in order: {crashed.detail}", now_ms
        )
    note(tx, "start", detail, now_ms)
    return crashed


def newest(tx: Transaction, limit: int) -> tuple[Diagnostic, ...]:
    """The last ones, oldest first."""
    return tuple(_read(row) for row in tx.rows(SQL["newest"], (limit,)))[::-1]


def _read(row: Row) -> Diagnostic:
    return Diagnostic(int(row[0]), cast(Kind, str(row[1])), str(row[2]))


class Diagnostics:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, kind: Kind, detail: str, *, now_ms: int) -> None:
        await self._database.write(lambda tx: note(tx, kind, detail, now_ms))

    async def note_start(self, detail: str, *, now_ms: int) -> Diagnostic | None:
        """See `note_start`; a crash and the start that found it are one commit."""
        return await self._database.write(lambda tx: note_start(tx, detail, now_ms))

    async def newest(self, limit: int = KEPT) -> tuple[Diagnostic, ...]:
        return await self._database.read(lambda tx: newest(tx, limit))
