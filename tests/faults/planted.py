"""Bugs to plant: each breaks one promise of the store, so that a check can be seen to find it.

Applied through a monkeypatch, never left in. `found_by` names the check that must find it: the state machine,
or the campaign of this kind of fault, on the disk or on the way to a server.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import apsw
import pytest
from msgspec import Struct
from msgspec.structs import replace

from openclaw.store import budgets, inbox, runs, search, sessions, sqlite, sqlite_file, transcript
from openclaw.store.database import Transaction
from openclaw.store.store import Store


class Plant(Struct, frozen=True):
    found_by: str
    plant: Callable[[pytest.MonkeyPatch], None]
    # What the machine does more often, where the bug shows itself only after rare steps.
    often: tuple[str, ...] = ()


def _skip_consume(patch: pytest.MonkeyPatch) -> None:
    """An input that was taken up still waits."""
    # The parameters stay in their order: the only difference is that the input keeps its state.
    waiting = inbox.SQL["consume"].replace(
        "SET state = 'consumed', consumed_by = $1", "SET expires_at = CASE WHEN $1 = '' THEN 1 END"
    )
    assert waiting != inbox.SQL["consume"]
    patch.setitem(inbox.SQL, "consume", waiting)


def _no_sync(patch: pytest.MonkeyPatch) -> None:
    """Commits are not flushed to the disk."""
    connect = sqlite_file.connect_writer

    def connect_carelessly(database: str) -> apsw.Connection:
        connection = connect(database)
        connection.execute("PRAGMA synchronous = OFF").fetchall()
        return connection

    patch.setattr(sqlite, "connect_writer", connect_carelessly)


def _sync_only_sometimes(patch: pytest.MonkeyPatch) -> None:
    """Commits are flushed when the log is folded, not when they are acknowledged."""
    connect = sqlite_file.connect_writer

    def connect_carelessly(database: str) -> apsw.Connection:
        connection = connect(database)
        connection.execute("PRAGMA synchronous = NORMAL").fetchall()
        return connection

    patch.setattr(sqlite, "connect_writer", connect_carelessly)


def _believe_in_commits(patch: pytest.MonkeyPatch) -> None:
    """A commit that failed is acknowledged."""

    def commit(self: Any, transaction: Any, batch: Any) -> None:
        try:
            transaction.run("COMMIT")
        except apsw.Error:
            self._roll_back()

    patch.setattr(sqlite.SqliteDatabase, "_commit", commit)


def _no_search_row(patch: pytest.MonkeyPatch) -> None:
    """Every third message of a window is committed without its words."""
    add = search.add

    def forgetful(tx: Transaction, window_no: int, seq: int, words: str) -> None:
        if seq % 3:
            add(tx, window_no, seq, words)

    patch.setattr(search, "add", forgetful)


def _count_outside(patch: pytest.MonkeyPatch) -> None:
    """The place of an entry is read before the transaction that uses it."""
    append, readings = Store.append, list[asyncio.Event]()

    async def from_old_reading(self: Store, session_key: str, drafts: Any, *, now_ms: int) -> Any:
        # All that started together have read before the first of them writes: the race is always lost.
        mine = asyncio.Event()
        readings.append(mine)
        await asyncio.sleep(0)
        together = list(readings)
        row = await self.session(session_key)
        mine.set()
        for other in together:
            await other.wait()
        readings.remove(mine)
        if row is None:
            return await append(self, session_key, drafts, now_ms=now_ms)

        def unit(tx: Transaction) -> Any:
            tx.run("UPDATE sessions SET last_seq = $1 WHERE session_key = $2", (row.last_seq, session_key))
            return transcript.append(tx, session_key, drafts, now_ms)

        return await self._database.write(unit)

    patch.setattr(Store, "append", from_old_reading)


def _ignore_fence(patch: pytest.MonkeyPatch) -> None:
    """A former owner may go on writing."""
    for name in ("progress", "end_run"):
        patch.setitem(runs.SQL, name, runs.SQL[name].replace("AND fence =", "AND fence + 1000 >"))


def _claim_twice(patch: pytest.MonkeyPatch) -> None:
    """A claim does not look whether a run is active."""
    patch.setattr(runs, "active_of", lambda _tx, _key: None)


def _skip_label_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sessions, "find_by_label", lambda _tx, _label, _agent_id=None: None)


def _keep_counting(patch: pytest.MonkeyPatch) -> None:
    """The counters only ever grow."""
    patch.setitem(sessions.SQL, "uncount", sessions.SQL["uncount"].replace("sessions - 1", "sessions - 0"))


def _keep_last_seq(patch: pytest.MonkeyPatch) -> None:
    """A new window goes on counting where the old one ended."""
    change = sessions.change

    def forgetful(tx: Transaction, row: Any, entry: Any, *, now_ms: int, **columns: Any) -> Any:
        if columns.get("last_seq") == 0:
            columns["last_seq"] = row.last_seq
        return change(tx, row, entry, now_ms=now_ms, **columns)

    patch.setattr(sessions, "change", forgetful)


def _bill_twice(patch: pytest.MonkeyPatch) -> None:
    """A call that is told a second time is recorded a second time."""
    record = budgets.record_usage

    def again(tx: Transaction, payer: Any, usage: Any, now_ms: int) -> float | None:
        told = tuple(replace(row, call_id=f"{row.call_id} at {now_ms}") for row in usage)
        known = [tx.row("SELECT 1 FROM usage WHERE call_id = $1", (row.call_id,)) for row in usage]
        return record(tx, payer, told if any(known) else usage, now_ms)

    patch.setattr(runs, "record_usage", again)


def _ignore_version(patch: pytest.MonkeyPatch) -> None:
    """The last writer wins."""
    careless, count = re.subn(r"AND version = (\$\d+)", r"AND \1 > 0", sessions.SQL["replace_session"])
    assert count == 1
    patch.setitem(sessions.SQL, "replace_session", careless)


def _undo_one_by_one(patch: pytest.MonkeyPatch) -> None:
    """A reset cancels what waits, but not in the same step as the new window: it forgets the last one."""
    patch.setitem(
        inbox.SQL, "cancel_all",
        "UPDATE inbox SET state = 'cancelled' WHERE session_key = $1 AND state = 'queued' AND admission < "
        "(SELECT max(admission) FROM inbox) RETURNING run_id",
    )  # fmt: skip


def _drop_the_newest(patch: pytest.MonkeyPatch) -> None:
    """A full queue lets go of those who came last."""
    careless = inbox.SQL["drop_oldest"].replace("ORDER BY admission", "ORDER BY admission DESC")
    assert careless != inbox.SQL["drop_oldest"]
    patch.setitem(inbox.SQL, "drop_oldest", careless)


def _undo_to_nothing(patch: pytest.MonkeyPatch) -> None:
    """An undo counts the transcript, and does not bring back what the window left behind."""
    patch.setitem(sessions.SQL, "saved_in_window", "SELECT NULL FROM windows WHERE window_no = $1")


def _run_commits_again(patch: pytest.MonkeyPatch) -> None:
    """A commit without an answer counts as one that did not happen."""
    from openclaw.store import postgres

    def commit(_self: Any, transaction: Any) -> None:
        transaction.control("COMMIT")

    patch.setattr(postgres._Worker, "_commit", commit)


def _believe_in_lost_commits(patch: pytest.MonkeyPatch) -> None:
    """A commit without an answer counts as one that happened."""
    from openclaw.store import postgres

    commit = postgres._Worker._commit

    def hopeful(self: Any, transaction: Any) -> None:
        with suppress(postgres._OutcomeUnknown):
            commit(self, transaction)

    patch.setattr(postgres._Worker, "_commit", hopeful)


PLANTED = {
    "an input is not consumed": Plant("machine", _skip_consume),
    "no flush at all": Plant("power-cut", _no_sync),
    "no flush before the answer": Plant("power-cut", _sync_only_sometimes),
    "a failed commit is acknowledged": Plant("error", _believe_in_commits),
    "a message without its search row": Plant("machine", _no_search_row),
    "a sequence number from outside the transaction": Plant("machine", _count_outside),
    "the fence is ignored": Plant("machine", _ignore_fence),
    "two runs are claimed at once": Plant("machine", _claim_twice),
    "the label check is skipped": Plant("machine", _skip_label_check),
    "the counters are not decremented": Plant("machine", _keep_counting),
    "a rotation keeps the last sequence number": Plant("machine", _keep_last_seq),
    "usage is recorded twice": Plant("machine", _bill_twice),
    "the version is not compared": Plant("machine", _ignore_version),
    "a reset forgets to cancel an input": Plant("machine", _undo_one_by_one),
    "a full queue drops the newest": Plant("machine", _drop_the_newest),
    "an undo brings nothing back": Plant("machine", _undo_to_nothing, ("edit", "reset", "undo")),
    "a commit without an answer is run again": Plant("answer-lost", _run_commits_again),
    "a commit without an answer is acknowledged": Plant("request-lost", _believe_in_lost_commits),
}
