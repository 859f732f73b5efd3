"""The long works on a store, one at a time: maintenance, erasing, backup; and reading a transcript out.

The gateway and the offline commands do them through this one door. It holds what the
works need from the configuration as functions, so that a reload counts from the next
work on. Who may ask, and when maintenance is due, is decided elsewhere.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct

from openclaw.config.views import Retention
from openclaw.domain.keys import KeySettings
from openclaw.errors import InvalidRequest
from openclaw.store import rendering
from openclaw.store.archiving import ArchivePlace, Archives
from openclaw.store.database import Database, Transaction
from openclaw.store.dmscope import DirectSessions
from openclaw.store.erasing import LIVE_REWRITE_BYTES, Erasing, Quiesce, Receipt
from openclaw.store.export import Export
from openclaw.store.maintenance import Maintenance, MaintenanceReport
from openclaw.store.manifest import Manifest, Progress
from openclaw.store.purging import Pace
from openclaw.store.rendering import ExportPage, View
from openclaw.store.tombstones import Person

NO_FILE = (
    "store.url names a PostgreSQL database, which openclaw does not copy. Back it up with pg_dump, "
    "for example: pg_dump --format=custom --file=openclaw.dump DATABASE_URL"
)

Copy = Callable[[Path, int, Progress], Awaitable[Manifest]]


class Ground(Struct, frozen=True):
    """What upkeep reads of its surroundings. `copy` is None where the database is not a file."""

    retention: Callable[[], Retention]
    archive_place: Callable[[str], ArchivePlace]
    workspace: Callable[[str], str]
    secrets: Callable[[], frozenset[str]]
    keys: Callable[[], KeySettings]
    default_agent: Callable[[], str]
    shown_store: str
    copy: Copy | None
    used_bytes: Callable[[Transaction], int] | None = None
    dm_scope: Callable[[], str] = lambda: "main"


class CleanupRequest(Struct, frozen=True):
    """A clean-up as it is asked for. Without `enforce` the configured mode decides (MAINT-5)."""

    dry_run: bool = False
    enforce: bool = False
    active_key: str | None = None
    agent_id: str | None = None
    # Archive direct sessions that dmScope "main" has left behind.
    fix_dm_scope: bool = False


class StoreCleanup(Struct, frozen=True, rename="camel"):
    """One agent's part (CLI-8). A row without its transcript cannot exist here, so none is missing."""

    agent_id: str
    store_path: str
    before_count: int
    after_count: int
    pruned: int
    capped: int
    missing: int = 0
    dm_scope_retired: int = 0


class CleanupExample(Struct, frozen=True, rename="camel"):
    key: str
    action: str
    reason: str


class Cleanup(Struct, frozen=True, rename="camel"):
    """What a clean-up did or, when not `applied`, would do."""

    mode: str
    dry_run: bool
    applied: bool
    stores: tuple[StoreCleanup, ...]
    archived: int
    deleted: int
    purged: int
    archives_written: int
    archives_dropped: int
    held_back: int
    used_bytes: int | None
    over_budget: bool
    reasons: dict[str, int]
    examples: tuple[CleanupExample, ...]


class ExportAsked(Struct, frozen=True):
    """Which session, how it shall look, and where to go on."""

    key: str
    agent_id: str | None = None
    view: View = View()
    cursor: str | None = None


class ExportAnswer(Struct, frozen=True):
    """A page, and what it is of."""

    session_key: str
    session_id: str
    agent_id: str
    page: ExportPage


async def _nothing_runs(_session_key: str, _whole: bool) -> None:
    """Without an engine there is nothing to stop."""


def _nothing_cached() -> None:
    """Without an engine nothing is remembered."""


class Upkeep:
    """Long works over one database. `quiesce` stops the engine's runs, `forget` drops what it caches."""

    def __init__(
        self,
        database: Database,
        ground: Ground,
        *,
        quiesce: Quiesce = _nothing_runs,
        forget: Callable[[], None] = _nothing_cached,
        rewrite_bytes: int = LIVE_REWRITE_BYTES,
        pace: Pace | None = None,
    ) -> None:
        self._database = database
        self._ground = ground
        self._quiesce = quiesce
        self._forget = forget
        self._rewrite_bytes = rewrite_bytes
        self._pace = pace
        # A backup reads one moment for a long time, and an erase empties the log: they take turns.
        self._one_at_a_time = asyncio.Lock()

    # -- maintenance ---------------------------------------------------------------------------

    def _maintenance(self) -> Maintenance:
        ground = self._ground
        return Maintenance(
            self._database,
            ground.retention(),
            pace=self._pace,
            used_bytes=ground.used_bytes,
            archives=Archives(self._database, ground.archive_place),
        )

    async def maintain(self, *, now_ms: int) -> MaintenanceReport:
        """Do what is due; in mode `warn`, only say it (MAINT-5)."""
        async with self._one_at_a_time:
            return await self._maintenance().run(now_ms=now_ms)

    async def clean_up(self, asked: CleanupRequest, *, now_ms: int) -> Cleanup:
        """Maintenance on request, told agent by agent (CLI-8). What is refused has done nothing."""
        if asked.fix_dm_scope and self._ground.dm_scope() != "main":
            raise InvalidRequest(
                f'session.dmScope is "{self._ground.dm_scope()}", so direct sessions are in use; fixDmScope '
                'is for what is left behind after a return to "main"'
            )
        async with self._one_at_a_time:
            work = self._maintenance()
            key, agent_id = asked.active_key, asked.agent_id
            if asked.dry_run:
                report = MaintenanceReport(await work.plan(now_ms=now_ms, in_use=key, agent_id=agent_id))
            else:
                report = await work.run(now_ms=now_ms, in_use=key, agent_id=agent_id, enforce=asked.enforce)
            mode = "enforce" if asked.enforce else report.plan.mode
            retired: Counter[str] = Counter()
            if asked.fix_dm_scope:
                retired = await DirectSessions(self._database, self._ground.keys()).retire(
                    now_ms=now_ms, agent_id=agent_id, in_use=key, dry_run=asked.dry_run or mode != "enforce"
                )
            after = await work.counts()
        return self._told(report, after, mode, asked.dry_run, retired)

    def _told(
        self,
        report: MaintenanceReport,
        after: dict[str, int],
        mode: str,
        dry_run: bool,
        retired: Counter[str],
    ) -> Cleanup:
        plan, purged = report.plan, report.purged
        applied = mode == "enforce" and not dry_run
        stores = tuple(
            StoreCleanup(
                agent.agent_id,
                self._ground.shown_store,
                agent.before,
                after.get(agent.agent_id, 0)
                if applied
                else max(agent.before - agent.leaving - retired[agent.agent_id], 0),
                agent.pruned,
                agent.capped,
                dm_scope_retired=retired[agent.agent_id],
            )
            for agent in plan.agents
        )
        return Cleanup(
            mode=mode,
            dry_run=dry_run,
            applied=applied,
            stores=stores,
            archived=report.archived if applied else plan.archive,
            deleted=report.deleted if applied else plan.delete,
            purged=purged.windows if applied else plan.purge,
            archives_written=purged.archives,
            archives_dropped=report.dropped,
            held_back=purged.held_back,
            used_bytes=plan.used_bytes,
            over_budget=plan.over_budget,
            reasons=plan.reasons,
            examples=tuple(CleanupExample(one.session_key, one.action, one.reason) for one in plan.examples),
        )

    # -- erasing -------------------------------------------------------------------------------

    def _erasing(self) -> Erasing:
        return Erasing(
            self._database, pace=self._pace, quiesce=self._quiesce, rewrite_bytes=self._rewrite_bytes
        )

    async def erase_session(self, session_key: str, *, now_ms: int) -> Receipt:
        """Erase a session now, down to the bytes. Raises SessionNotFound."""
        async with self._one_at_a_time:
            try:
                return await self._erasing().erase_session(session_key, now_ms=now_ms)
            finally:
                self._forget()

    async def erase_person(self, person: Person, *, now_ms: int) -> Receipt:
        """Erase what a person said, wherever it is."""
        async with self._one_at_a_time:
            try:
                return await self._erasing().erase_person(person, now_ms=now_ms)
            finally:
                self._forget()

    # -- backup and export ---------------------------------------------------------------------

    async def back_up(self, folder: Path, progress: Progress, *, now_ms: int) -> Manifest:
        """Copy the store into a new folder while people write, and verify the copy (DB-20)."""
        if self._ground.copy is None:
            raise InvalidRequest(NO_FILE)
        async with self._one_at_a_time:
            return await self._ground.copy(folder, now_ms, progress)

    async def export_page(self, asked: ExportAsked, *, limit: int = rendering.PAGE_BYTES) -> ExportAnswer:
        """The next bytes of a transcript (CLI-11). Raises SessionNotFound."""
        export, ground = Export(self._database), self._ground
        cursor = None if asked.cursor is None else rendering.read_cursor(asked.cursor)
        window, agent_id = await export.find_window(
            asked.key, asked.agent_id, default_agent=ground.default_agent(), settings=ground.keys()
        )
        if cursor is not None and cursor.window_no != window.window_no:
            window = await export.window_by_no(cursor.window_no)  # it was reset since the first page
        page = await rendering.page(
            export,
            window,
            asked.view,
            cursor,
            cwd=ground.workspace(agent_id),
            secrets=ground.secrets(),
            limit=limit,
        )
        return ExportAnswer(window.session_key, window.session_id, agent_id, page)
