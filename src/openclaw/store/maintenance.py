"""Keeping the store small: what is old or too much is archived, what machines made is removed (MAINT-1..8).

One statement judges a session, for the preview and for the enforcement alike, and
the enforcement asks it again in the transaction that acts (PITFALLS A7). A person's
conversation is only ever archived. A session that a machine made is deleted softly,
can be taken back for a while, and is purged after that. Each removal leaves a row
that says why. There is no reaper: cron runs are judged here too (MAINT-7).

This room decides nothing about when it runs, and it never runs on the way of a message.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from openclaw.config.views import Retention
from openclaw.errors import InvalidRequest
from openclaw.store import purging, sessions
from openclaw.store.database import Database, Transaction
from openclaw.store.purging import Pace, Purged
from openclaw.store.records import SessionRow, session_from_columns, session_to_columns
from openclaw.store.retention import (
    PAGE_ROWS,
    SQL,
    START,
    Examined,
    Leg,
    Place,
    Question,
    cap_excess,
    deleted_windows,
    examine,
    place_of,
)

UNDO_MS = 24 * 3600 * 1000
EXAMPLES = 20


class Planned(Struct, frozen=True):
    session_key: str
    action: Literal["archive", "delete"]
    reason: str


class MaintenancePlan(Struct, frozen=True):
    """What enforcement would do now. In mode `warn` this is all that happens (MAINT-5)."""

    mode: Literal["enforce", "warn"]
    archive: int = 0
    delete: int = 0
    purge: int = 0
    reasons: dict[str, int] = {}
    examples: tuple[Planned, ...] = ()
    used_bytes: int | None = None
    over_budget: bool = False
    legs: tuple[Leg, ...] = ()
    in_use: str | None = None


class SliceDone(Struct, frozen=True):
    """What one slice did, and the legs that are left."""

    archived: int
    deleted: int
    legs: tuple[Leg, ...]


class MaintenanceReport(Struct, frozen=True):
    plan: MaintenancePlan
    archived: int = 0
    deleted: int = 0
    purged: Purged = Purged()

    def plus(self, done: SliceDone) -> MaintenanceReport:
        return replace(self, archived=self.archived + done.archived, deleted=self.deleted + done.deleted)


class RemovalRow(Struct, frozen=True):
    """The audit row of one removal."""

    removal_no: int
    session_key: str
    session_id: str
    agent_id: str
    kind: str
    state: str
    reason: str
    at: int
    undo_until: int | None


class Maintenance:
    """The verbs of maintenance over one database. 0 and None in the limits mean "no limit"."""

    def __init__(
        self,
        database: Database,
        limits: Retention,
        *,
        pace: Pace | None = None,
        undo_ms: int = UNDO_MS,
        used_bytes: Callable[[Transaction], int] | None = None,
    ) -> None:
        self._database = database
        self._limits = limits
        self._pace = pace or Pace()
        self._undo_ms = undo_ms
        self._used_bytes = used_bytes

    # -- preview -------------------------------------------------------------------------------

    async def plan(self, *, now_ms: int, in_use: str | None = None) -> MaintenancePlan:
        """What is due now. Reads only, a page at a time. `in_use` is the one session never touched."""
        ask = Question(self._limits, now_ms, in_use)
        taken: list[Examined] = []
        legs: list[Leg] = []
        for agent_id, count in await self._database.read(lambda tx: tx.rows(SQL["agents"])):
            aged = [seen async for seen in self._walk(Leg("age", agent_id), ask)]
            left = count - sum(1 for seen in aged if not seen.archived)
            cap = Leg("cap", agent_id, cap_excess(left, self._limits.max_entries))
            excess = [seen async for seen in self._walk(cap, ask)]
            legs += [leg for leg, found in ((Leg("age", agent_id), aged), (cap, excess)) if found]
            taken += aged + excess
        used = await self._used()
        actions = Counter(seen.action for seen in taken)
        return MaintenancePlan(
            mode=self._limits.mode,
            archive=actions["archive"],
            delete=actions["delete"],
            purge=await self._count_due(ask),
            reasons=dict(Counter(str(seen.reason) for seen in taken)),
            examples=tuple(
                Planned(seen.session_key, seen.action, str(seen.reason)) for seen in taken[:EXAMPLES]
            ),
            used_bytes=used,
            over_budget=_over(used, self._limits.max_disk_bytes),
            legs=tuple(legs),
            in_use=in_use,
        )

    async def _walk(self, leg: Leg, ask: Question) -> AsyncIterator[Examined]:
        """The sessions that a leg takes, while it may take any."""
        while leg.left > 0:
            page = await self._database.read(partial(examine, leg=leg, ask=ask))
            for seen in page:
                if leg.wants(seen):
                    yield seen
                leg = leg.past(seen)
            if len(page) < PAGE_ROWS:
                return

    async def _count_due(self, ask: Question) -> int:
        counted, after = 0, START
        while True:
            page = await self._database.read(partial(deleted_windows, after=after, ask=ask))
            counted += sum(window.due for window in page)
            if len(page) < PAGE_ROWS:
                return counted
            after = place_of(page[-1])

    # -- enforcement ---------------------------------------------------------------------------

    async def run(self, *, now_ms: int, in_use: str | None = None) -> MaintenanceReport:
        """Do all that is due, slice by slice, people's work first. In mode `warn`: only report."""
        plan = await self.plan(now_ms=now_ms, in_use=in_use)
        report, legs = MaintenanceReport(plan), plan.legs
        if plan.mode == "warn":
            return report
        while legs:
            done = await self.run_slice(legs, now_ms=now_ms, in_use=in_use)
            report, legs = report.plus(done), done.legs
        report = replace(report, purged=await self.purge(now_ms=now_ms))
        if _over(await self._used(), self._limits.max_disk_bytes):
            report = await self._make_room(report, now_ms, in_use)
        return report

    async def run_slice(self, legs: tuple[Leg, ...], *, now_ms: int, in_use: str | None = None) -> SliceDone:
        """Act on the next page of the first leg: at most 200 rows, and until the pace says stop."""
        ask = Question(self._limits, now_ms, in_use)
        leg, rest = legs[0], legs[1:]
        page = await self._database.read(lambda tx: examine(tx, leg, ask))
        if any(leg.wants(seen) for seen in page):
            return await self._pace.slice(self._database, lambda tx: self._act(tx, leg, rest, ask))
        if len(page) < PAGE_ROWS:
            return SliceDone(0, 0, rest)
        return SliceDone(0, 0, (leg.past(page[-1]), *rest))

    def _act(self, tx: Transaction, leg: Leg, rest: tuple[Leg, ...], ask: Question) -> SliceDone:
        """Judge the page again, now inside the transaction that acts, and act until the time is up."""
        ending = self._pace.until()
        page = examine(tx, leg, ask)
        archived: Counter[tuple[str, str]] = Counter()
        deleted, ended = 0, len(page) < PAGE_ROWS
        for seen in page:
            if leg.wants(seen):
                if (archived or deleted) and time.perf_counter() > ending:
                    ended = False
                    break
                if seen.action == "archive":
                    _archive(tx, seen, ask.now_ms)
                    archived[seen.agent_id, seen.kind] += 1
                else:
                    _delete(tx, seen, ask.now_ms, ask.now_ms + self._undo_ms)
                    deleted += 1
            leg = leg.past(seen)
        for (agent_id, kind), number in archived.items():
            tx.run(SQL["uncount"], (number, agent_id, kind, 0))
            tx.run(SQL["count"], (agent_id, kind, 1, number))
        return SliceDone(archived.total(), deleted, rest if ended or leg.left <= 0 else (leg, *rest))

    # -- purging -------------------------------------------------------------------------------

    async def purge(self, *, now_ms: int, undo_ends: bool = False) -> Purged:
        """Remove for good what was deleted and can no longer be taken back."""
        ask, after = Question(self._limits, now_ms, undo_ends=undo_ends), START
        while True:
            page = await self._database.read(partial(deleted_windows, after=after, ask=ask))
            if any(window.due for window in page):
                unit = partial(_give_up, after=after, ask=ask, pace=self._pace)
                if not await self._pace.slice(self._database, unit):
                    continue
            if len(page) < PAGE_ROWS:
                return await purging.purge_marked(self._database, now_ms=now_ms, pace=self._pace)
            after = place_of(page[-1])

    async def _make_room(
        self, report: MaintenanceReport, now_ms: int, in_use: str | None
    ) -> MaintenanceReport:
        """Past the disk budget: what is deleted goes first, then the oldest that machines made (MAINT-2)."""
        goal = self._limits.high_water_bytes or self._limits.max_disk_bytes
        agents = await self._database.read(lambda tx: tx.rows(SQL["agents"]))
        legs = tuple(Leg("disk", agent_id) for agent_id, _ in agents)
        while True:
            purged = await self.purge(now_ms=now_ms, undo_ends=True)
            report = replace(report, purged=report.purged.plus(purged))
            if not legs or not _over(await self._used(), goal):
                return report
            done = await self.run_slice(legs, now_ms=now_ms, in_use=in_use)
            report, legs = report.plus(done), done.legs

    async def _used(self) -> int | None:
        return None if self._used_bytes is None else await self._database.read(self._used_bytes)

    # -- taking back ---------------------------------------------------------------------------

    async def restore(self, session_key: str, *, now_ms: int) -> SessionRow:
        """Take a deletion by maintenance back, transcript and all, while its undo window lasts."""
        return await self._database.write(lambda tx: _restore(tx, session_key, now_ms))

    async def removals_of(self, session_key: str) -> tuple[RemovalRow, ...]:
        """Why and when a session was archived or removed, oldest first."""
        return await self._database.read(
            lambda tx: tuple(RemovalRow(*row) for row in tx.rows(SQL["removals_of"], (session_key,)))
        )


def _over(used: int | None, limit: int | None) -> bool:
    return used is not None and limit is not None and used > limit


def _give_up(tx: Transaction, after: Place, ask: Question, pace: Pace) -> bool:
    """Mark windows of a page: from here on nothing brings them back. False when the time did not suffice."""
    ending, given_up = pace.until(), 0
    for window in deleted_windows(tx, after, ask):
        if not window.due:
            continue
        if given_up and time.perf_counter() > ending:
            return False
        given_up += 1
        if window.removal_no is not None:
            tx.run(SQL["mark_deleted"], (ask.now_ms, window.session_key, window.deleted_at))
            tx.run(SQL["settle"], ("purged", window.removal_no))
        elif purging.mark(tx, window.window_no, ask.now_ms):
            _record(tx, (window.session_key, window.session_id, "", ""), "purged", "deleted", ask.now_ms)
    return True


def _archive(tx: Transaction, seen: Examined, now_ms: int) -> None:
    tx.run(SQL["archive"], (now_ms, seen.session_no, seen.version))
    who = (seen.session_key, seen.session_id, seen.agent_id, seen.kind)
    _record(tx, who, "archived", str(seen.reason), now_ms)


def _delete(tx: Transaction, seen: Examined, now_ms: int, undo_until: int) -> None:
    columns = tx.row(sessions.SQL["get_by_key"], (seen.session_key,))
    assert columns is not None
    sessions.delete(tx, session_from_columns(columns), now_ms)
    who = (seen.session_key, seen.session_id, seen.agent_id, seen.kind)
    saved = msgspec.msgpack.encode(columns)
    _record(tx, who, "deleted", str(seen.reason), now_ms, undo_until, saved)


def _record(
    tx: Transaction,
    who: tuple[str, str, str, str],
    state: str,
    reason: str,
    now_ms: int,
    undo_until: int | None = None,
    saved: bytes | None = None,
) -> None:
    tx.run(SQL["record"], (*who, state, reason, now_ms, undo_until, saved))


def _restore(tx: Transaction, session_key: str, now_ms: int) -> SessionRow:
    removed = tx.row(SQL["undoable"], (session_key,))
    if removed is None:
        raise InvalidRequest(f"no removal of {session_key} can be taken back")
    if sessions.find(tx, session_key) is not None:
        raise InvalidRequest(
            f"{session_key} exists again; rename or delete it before taking the old one back"
        )
    removal_no, deleted_at, saved = removed
    row = session_from_columns(tuple(msgspec.msgpack.decode(saved)))
    entry = replace(row.entry, updated_at=now_ms)
    if entry.label is not None and sessions.find_by_label(tx, entry.label, row.agent_id) is not None:
        entry = replace(entry, label=None)  # somebody else has the name now
    row = replace(row, version=row.version + 1, entry=entry)
    inserted = tx.row(sessions.SQL["insert_session"], (None, *session_to_columns(row)))
    assert inserted is not None
    tx.run(sessions.SQL["count"], (row.agent_id, row.kind, int(entry.archived_at is not None)))
    tx.run(SQL["remember_windows"], (session_key, deleted_at))
    tx.run(sessions.SQL["reopen_window"], (row.window_no,))
    tx.run(SQL["settle"], ("restored", removal_no))
    return replace(row, session_no=inserted[0])
