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

from msgspec import Struct
from msgspec.structs import replace

from openclaw.config.views import Retention
from openclaw.store import archiving, removals
from openclaw.store.archiving import Archives
from openclaw.store.database import Database, Transaction
from openclaw.store.discarding import Discarding
from openclaw.store.purging import Pace, Purged
from openclaw.store.records import SessionRow
from openclaw.store.removals import RemovalRow
from openclaw.store.retention import (
    PAGE_ROWS,
    SQL,
    Examined,
    Leg,
    Question,
    cap_excess,
    examine,
)

UNDO_MS = 24 * 3600 * 1000
EXAMPLES = 20
DISK_PART = 50


class Planned(Struct, frozen=True):
    session_key: str
    action: Literal["archive", "delete"]
    reason: str


class AgentPlan(Struct, frozen=True):
    """One agent's part: sessions in its lists before, how many age and cap take, and how many leave them."""

    agent_id: str
    before: int
    pruned: int = 0
    capped: int = 0
    leaving: int = 0


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
    agents: tuple[AgentPlan, ...] = ()


class SliceDone(Struct, frozen=True):
    """What one slice did, and the legs that are left."""

    archived: int
    deleted: int
    legs: tuple[Leg, ...]


class MaintenanceReport(Struct, frozen=True):
    """What was done. `dropped` archive files were too old or too much."""

    plan: MaintenancePlan
    archived: int = 0
    deleted: int = 0
    purged: Purged = Purged()
    dropped: int = 0

    def plus(self, done: SliceDone) -> MaintenanceReport:
        return replace(self, archived=self.archived + done.archived, deleted=self.deleted + done.deleted)


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
        archives: Archives | None = None,
    ) -> None:
        self._database = database
        self._limits = limits
        self._pace = pace or Pace()
        self._undo_ms = undo_ms
        self._used_bytes = used_bytes
        self._discarding = Discarding(database, limits, self._pace, archives)

    # -- preview -------------------------------------------------------------------------------

    async def plan(
        self, *, now_ms: int, in_use: str | None = None, agent_id: str | None = None
    ) -> MaintenancePlan:
        """What is due now. Reads only, a page at a time. `in_use` is the one session never touched.

        With `agent_id`, only of that agent; what was deleted before is then left alone.
        """
        ask = Question(self._limits, now_ms, in_use)
        taken: list[Examined] = []
        legs: list[Leg] = []
        agents: list[AgentPlan] = []
        for name, count in await self._agents(agent_id):
            aged = [seen async for seen in self._walk(Leg("age", name), ask)]
            leaving = sum(1 for seen in aged if not seen.archived)
            cap = Leg("cap", name, cap_excess(count - leaving, self._limits.max_entries))
            excess = [seen async for seen in self._walk(cap, ask)]
            legs += [leg for leg, found in ((Leg("age", name), aged), (cap, excess)) if found]
            agents.append(AgentPlan(name, count, len(aged), len(excess), leaving + len(excess)))
            taken += aged + excess
        used = await self._used()
        actions = Counter(seen.action for seen in taken)
        return MaintenancePlan(
            mode=self._limits.mode,
            archive=actions["archive"],
            delete=actions["delete"],
            purge=await self._discarding.count_due(ask) if agent_id is None else 0,
            reasons=dict(Counter(str(seen.reason) for seen in taken)),
            examples=tuple(
                Planned(seen.session_key, seen.action, str(seen.reason)) for seen in taken[:EXAMPLES]
            ),
            used_bytes=used,
            over_budget=_over(used, self._limits.max_disk_bytes),
            legs=tuple(legs),
            in_use=in_use,
            agents=tuple(agents),
        )

    async def _agents(self, agent_id: str | None = None) -> list[tuple[str, int]]:
        """The agents that have sessions, or had some, and how many are in their lists."""
        rows = await self._database.read(lambda tx: tx.rows(SQL["agents"]))
        return [(name, int(count)) for name, count in rows if agent_id in (None, name)]

    async def counts(self) -> dict[str, int]:
        """How many sessions are in the lists of each agent."""
        return dict(await self._agents())

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

    # -- enforcement ---------------------------------------------------------------------------

    async def run(
        self,
        *,
        now_ms: int,
        in_use: str | None = None,
        agent_id: str | None = None,
        enforce: bool = False,
    ) -> MaintenanceReport:
        """Do all that is due, slice by slice, people's work first.

        In mode `warn` it only reports, unless `enforce` is asked for.
        """
        plan = await self.plan(now_ms=now_ms, in_use=in_use, agent_id=agent_id)
        report, legs = MaintenanceReport(plan), plan.legs
        if plan.mode == "warn" and not enforce:
            return report
        while legs:
            done = await self.run_slice(legs, now_ms=now_ms, in_use=in_use)
            report, legs = report.plus(done), done.legs
        if agent_id is not None:
            return report
        report = replace(
            report,
            purged=await self.purge(now_ms=now_ms),
            dropped=await self._discarding.drop_old_archives(now_ms=now_ms),
        )
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
                    removals.archive(tx, seen, ask.now_ms)
                    archived[seen.agent_id, seen.kind] += 1
                else:
                    removals.delete(tx, seen, ask.now_ms, ask.now_ms + self._undo_ms)
                    deleted += 1
            leg = leg.past(seen)
        for (agent_id, kind), number in archived.items():
            tx.run(SQL["uncount"], (number, agent_id, kind, 0))
            tx.run(SQL["count"], (agent_id, kind, 1, number))
        return SliceDone(archived.total(), deleted, rest if ended or leg.left <= 0 else (leg, *rest))

    # -- purging -------------------------------------------------------------------------------

    async def purge(self, *, now_ms: int, undo_ends: bool = False) -> Purged:
        """Remove for good what was deleted and can no longer be taken back, after archiving it (DB-17)."""
        return await self._discarding.purge(now_ms=now_ms, undo_ends=undo_ends)

    async def _make_room(
        self, report: MaintenanceReport, now_ms: int, in_use: str | None
    ) -> MaintenanceReport:
        """Past the disk budget: archives go first, then what is deleted, then what machines made."""
        goal = self._limits.high_water_bytes or self._limits.max_disk_bytes or 0
        report = await self._make_room_in_archives(report, goal, now_ms)
        while _over(await self._used(), goal):
            purged = await self.purge(now_ms=now_ms, undo_ends=True)
            report = replace(report, purged=report.purged.plus(purged))
            report = await self._make_room_in_archives(report, goal, now_ms)
            oldest = await self._oldest_part(Question(self._limits, now_ms, in_use))
            if oldest is None or not _over(await self._used(), goal):
                break
            done = await self.run_slice((oldest,), now_ms=now_ms, in_use=in_use)
            report = report.plus(done)
            if not done.deleted:
                break  # what was due is in use again
        return report

    async def _make_room_in_archives(
        self, report: MaintenanceReport, goal: int, now_ms: int
    ) -> MaintenanceReport:
        need = (await self._used() or 0) - goal
        dropped = await self._discarding.drop_oldest_archives(need, now_ms=now_ms)
        return replace(report, dropped=report.dropped + dropped)

    async def _oldest_part(self, ask: Question) -> Leg | None:
        """The oldest sessions that may go for want of space, all of one agent; None when there are none.

        It ends where another agent has an older one, so that space is made from the far end.
        """
        ages: dict[str, list[int]] = {}
        for agent_id, _ in await self._agents():
            async for seen in self._walk(Leg("disk", agent_id), ask):
                ages.setdefault(agent_id, []).append(seen.updated_at)
                if len(ages[agent_id]) == DISK_PART:
                    break
        if not ages:
            return None
        first, *others = sorted(ages, key=lambda agent_id: ages[agent_id][0])
        bound = ages[others[0]][0] if others else ages[first][-1]
        return Leg("disk", first, max(1, sum(age <= bound for age in ages[first])))

    async def _used(self) -> int | None:
        """Bytes of the database and of the archive files."""
        measure = self._used_bytes
        if measure is None:
            return None
        return await self._database.read(lambda tx: measure(tx) + archiving.total_size(tx))

    # -- taking back ---------------------------------------------------------------------------

    async def restore(self, session_key: str, *, now_ms: int) -> SessionRow:
        """Take a deletion by maintenance back, transcript and all, while its undo window lasts."""
        return await self._database.write(lambda tx: removals.restore(tx, session_key, now_ms))

    async def removals_of(self, session_key: str) -> tuple[RemovalRow, ...]:
        """Why and when a session was archived or removed, oldest first."""
        return await self._database.read(lambda tx: removals.of_session(tx, session_key))


def _over(used: int | None, limit: int | None) -> bool:
    return used is not None and limit is not None and used > limit
