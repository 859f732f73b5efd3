"""The questions of maintenance: which sessions are due, which deleted windows, and how many are too many.

One predicate, in SQL, is asked by the preview and by the enforcement. Nothing here
changes a row; `maintenance` acts on the answers.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from openclaw.config.views import Retention
from openclaw.store.database import Transaction
from openclaw.store.statements import load_statements

SQL = load_statements("maintenance.sql")
PAGE_ROWS = 200
STRICT_CAP = 49  # up to here a cap is exact; above it there is slack, so that work comes in batches (MAINT-2)
OFF = -1
FIRST, LAST = -(1 << 62), 1 << 62

Reason = Literal["age", "cron", "cap", "disk"]
Rule = Literal["age", "cap", "disk"]


class Examined(Struct, frozen=True):
    """A session as the predicate saw it. `reason` is None when it stays."""

    session_no: int
    session_key: str
    session_id: str
    agent_id: str
    kind: str
    version: int
    updated_at: int
    archived: int
    machine_made: int
    reason: Reason | None

    @property
    def action(self) -> Literal["archive", "delete"]:
        """Only what a machine made is ever deleted (MAINT-1)."""
        return "delete" if self.machine_made else "archive"


class Leg(Struct, frozen=True):
    """One walk through an agent's sessions, oldest first: its rule, how many it may take, how far it came."""

    rule: Rule
    agent_id: str
    left: int = LAST
    after_updated_at: int = FIRST
    after_session_no: int = 0

    def wants(self, seen: Examined) -> bool:
        if self.rule == "age":
            return seen.reason in ("age", "cron")
        return seen.reason == self.rule and self.left > 0

    def past(self, seen: Examined) -> Leg:
        left = self.left - 1 if self.wants(seen) else self.left
        return replace(self, left=left, after_updated_at=seen.updated_at, after_session_no=seen.session_no)


class Question(Struct, frozen=True):
    """The limits at one moment, and the one session that is never touched."""

    limits: Retention
    now_ms: int
    in_use: str | None = None
    undo_ends: bool = False  # space is so short that what is deleted cannot wait to be taken back


def examine(tx: Transaction, leg: Leg, ask: Question) -> tuple[Examined, ...]:
    """The next page of an agent's sessions, judged."""
    cron = cut_of(ask.now_ms, ask.limits.cron_session_ms)
    age = cut_of(ask.now_ms, ask.limits.prune_after_ms)
    newest = max(cron, age) if leg.rule == "age" else LAST
    rows = tx.rows(
        SQL["examine"],
        (
            leg.agent_id, newest, leg.after_updated_at, leg.after_session_no, cron, age,
            int(leg.rule == "cap"), int(leg.rule == "disk"), ask.in_use,
        ),
    )  # fmt: skip
    return tuple(Examined(*row) for row in rows)


class DeletedWindow(Struct, frozen=True):
    """A window whose key was deleted. `due`: it can go for good; `holds_words`: it is not empty."""

    window_no: int
    session_key: str
    session_id: str
    deleted_at: int
    ended_at: int | None
    end_reason: str | None
    removal_no: int | None
    holds_words: int
    due: int


Place = tuple[int, int]
START: Place = (FIRST, 0)


def deleted_windows(tx: Transaction, after: Place, ask: Question) -> tuple[DeletedWindow, ...]:
    """The next page of deleted windows, in the order of their deletion, judged."""
    kept = cut_of(ask.now_ms, ask.limits.reset_archive_ms)
    rows = tx.rows(SQL["deleted_windows"], (kept, LAST if ask.undo_ends else ask.now_ms, *after))
    return tuple(DeletedWindow(*row) for row in rows)


def place_of(window: DeletedWindow) -> Place:
    return window.deleted_at, window.window_no


def sqlite_used_bytes(tx: Transaction) -> int:
    """Bytes of the database that hold something; free pages do not count, they are used again."""
    found = tx.row(SQL["used_bytes"])
    assert found is not None
    return int(found[0])


def cap_excess(count: int, cap: int | None) -> int:
    """How many sessions are too many: none inside the slack, down to the cap beyond it (MAINT-2)."""
    if cap is None or cap <= 0:
        return 0
    slack = 0 if cap <= STRICT_CAP else max(25, cap // 10)
    return count - cap if count > cap + slack else 0


def cut_of(now_ms: int, limit_ms: int | None) -> int:
    """Everything before this is too old; with no limit, nothing is."""
    return OFF if limit_ms is None or limit_ms <= 0 else max(now_ms - limit_ms, OFF)
