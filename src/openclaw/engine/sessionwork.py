"""What operators do to a whole session: reset it, delete it, take that back, compact it.

Each work stops what runs, changes the rows in one commit, and tells who listens. While
it goes on no turn of the session begins; what arrives meanwhile waits. Whether the
caller may is decided by those who call.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from msgspec import Struct

from openclaw.domain.resets import SessionEnd, SessionStart, rotation_events
from openclaw.engine import events, subagents
from openclaw.engine.compaction import CompactionResult, NotCompacted
from openclaw.engine.events import EventSink
from openclaw.engine.ports import Clock, Ids
from openclaw.engine.trimming import Trimmer, TrimResult
from openclaw.engine.turns import Turns
from openclaw.engine.workers import STOP_WITHIN_S, Workers
from openclaw.errors import SessionNotFound, Unavailable
from openclaw.store.archiving import ArchiveFailed, ArchiveFile, Archives, Cause
from openclaw.store.commands import CommandStore
from openclaw.store.database import Transaction
from openclaw.store.endings import DeleteDone, Endings, Guard, ResetDone, ResetReason, RestoreDone
from openclaw.store.records import SessionRow, SessionSeed, Window
from openclaw.store.spawns import Spawns
from openclaw.store.store import Store

log = logging.getLogger("openclaw.sessions")
_LOOK_S = 0.02


class Ground(Struct, frozen=True):
    """What session works stand on. `compact` summarises a session that nobody runs."""

    store: Store
    endings: Endings
    commands: CommandStore
    spawns: Spawns
    archives: Archives
    turns: Turns
    workers: Workers
    trimmer: Trimmer
    compact: Callable[[SessionRow, str], Awaitable[CompactionResult]]
    clock: Clock
    ids: Ids
    emit: EventSink


class Deleted(Struct, frozen=True):
    """Whether a session was there to be deleted, and the archive files of its transcripts."""

    deleted: bool
    archived: tuple[str, ...] = ()


class SessionWork:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    # -- reset ---------------------------------------------------------------------------------

    async def reset(self, seed: SessionSeed, reason: ResetReason, guard: Guard) -> SessionRow:
        """Begin a new window. The run is stopped first, and what waited is cancelled (LIFE-12, LIFE-22).

        Helpers of the session go on: what they find out comes into the new window (ANN-8).
        """
        ground, key = self._ground, seed.session_key
        async with ground.workers.held(key):
            await self._check(key, guard, "reset")
            await self._stop(key, "reset")
            done = await ground.endings.reset(
                seed, reason, guard, session_id=ground.ids.uuid(), now_ms=ground.clock.now_ms()
            )
        self._tell_reset(done, reason)
        return done.session

    def _tell_reset(self, done: ResetDone, reason: ResetReason) -> None:
        session, emit = done.session, self._ground.emit
        notices = rotation_events(
            session.session_key,
            previous_id=done.rotation.previous_session_id if done.rotation else None,
            session_id=session.entry.session_id,
            reason=reason if done.rotation else "first",
        )
        self._tell_cancelled(session, done.cancelled, "reset")
        emit(events.WindowsChanged(session, notices))
        previous = {"previousSessionId": done.rotation.previous_session_id} if done.rotation else {}
        emit(events.SessionChanged(session, reason, previous))

    # -- delete --------------------------------------------------------------------------------

    async def delete(self, session_key: str, guard: Guard, *, archive: bool = True) -> Deleted:
        """Delete one session, after its work and its helpers were stopped (RPC-8, LIFE-24).

        With `archive` its transcripts are written to files before; if that fails, nothing is deleted.
        """
        ground = self._ground
        async with ground.workers.held(session_key):
            if await self._check(session_key, guard, "delete") is None:
                return Deleted(False)
            await ground.turns.abort(session_key, reason="deleted")
            await self._stop(session_key, "deleted")
            await self._stop_helpers(session_key)
            now_ms = ground.clock.now_ms()
            files = await self._archive(session_key, now_ms) if archive else ()
            try:
                done = await ground.endings.delete(session_key, guard, files, now_ms=now_ms)
            except BaseException:
                await ground.endings.forget_files(files)
                raise
        if done is None:
            return Deleted(False)
        self._tell_deleted(done)
        return Deleted(True, tuple(file.path for file in files))

    async def _archive(self, session_key: str, now_ms: int) -> tuple[ArchiveFile, ...]:
        """Archives under the names that a purge gives them, so that it finds its files written (DB-17)."""
        files = []
        for window in await self._ground.endings.windows_with_words(session_key):
            cause, at_ms = _cause_of(window, now_ms)
            try:
                files.append(await self._ground.archives.write(window, cause, at_ms, now_ms=now_ms))
            except ArchiveFailed as error:
                await self._ground.endings.forget_files(files)
                raise Unavailable(f"nothing was deleted: {error.message}") from error
        return tuple(files)

    def _tell_deleted(self, done: DeleteDone) -> None:
        session, emit = done.session, self._ground.emit
        self._tell_cancelled(session, done.cancelled, "deleted")
        end = SessionEnd(session.session_key, session.entry.session_id, "deleted")
        emit(events.WindowsChanged(session, (end,)))
        emit(events.SessionChanged(session, "delete"))

    async def _stop_helpers(self, session_key: str) -> None:
        """Stop everything below a session, whoever is nearer first, and settle it, the deepest first.

        If the session is a helper itself, whoever asked for it hears that it was stopped.
        """
        ground = self._ground
        for row, _run in await ground.commands.descendants(session_key):
            await ground.turns.abort(row.session_key, reason="kill")
        below = [row.session_key for row, _run in await ground.commands.descendants(session_key)]
        for child_key in reversed(below):
            await ground.turns.abort(child_key, reason="kill")
        woken: list[str] = []
        now_ms = ground.clock.now_ms()

        def unit(tx: Transaction) -> None:
            woken.clear()
            for child_key in reversed(below):
                subagents.close(tx, child_key, now_ms, woken, tell=False)
            subagents.close(tx, session_key, now_ms, woken, tell=True)

        await ground.spawns.write(unit)
        for key in woken:
            ground.workers.wake(key)

    # -- restore -------------------------------------------------------------------------------

    async def restore(self, session_key: str, guard: Guard) -> RestoreDone:
        """Take the last reset or the deletion of a session back."""
        ground = self._ground
        async with ground.workers.held(session_key):
            if await self._check(session_key, guard, "restore") is not None:
                await self._stop(session_key, "restore")
            done = await ground.endings.restore(session_key, guard, now_ms=ground.clock.now_ms())
        if done.stale:
            await self._forget_stale(done.stale)
        session = done.session
        self._tell_cancelled(session, done.cancelled, "restore")
        start = SessionStart(session.session_key, session.entry.session_id, done.left_session_id)
        ground.emit(events.WindowsChanged(session, (start,)))
        ground.emit(events.SessionChanged(session, "restore"))
        return done

    async def _forget_stale(self, files: tuple[ArchiveFile, ...]) -> None:
        try:
            await self._ground.endings.forget_files(files)
        except OSError as error:
            log.warning("an archive of a restored session cannot be removed: %s", error)

    # -- compact -------------------------------------------------------------------------------

    async def compact(self, session_key: str, instructions: str = "") -> CompactionResult:
        """Interrupt the run, then summarise what is older; or say why not (RPC-9)."""
        ground = self._ground
        async with ground.workers.held(session_key):
            await self._stop(session_key, "compact")
            session = await ground.store.session(session_key)
            if session is None:
                return NotCompacted("too_short", "no session")
            return await ground.compact(session, instructions)

    async def trim(self, session_key: str, keep: int) -> TrimResult:
        """Interrupt the run, then keep only the last messages in the context, after archiving all (RPC-9)."""
        ground = self._ground
        async with ground.workers.held(session_key):
            await self._stop(session_key, "compact")
            session = await ground.store.session(session_key)
            if session is None:
                raise SessionNotFound(f"session not found: {session_key}")
            return await ground.trimmer.trim(session, keep)

    # -- shared --------------------------------------------------------------------------------

    async def _stop(self, session_key: str, reason: str) -> None:
        """Stop the run; one that is writing its end already is let finish."""
        workers, waited_s = self._ground.workers, 0.0
        await workers.abort(session_key, reason)
        while workers.active_run(session_key) is not None and waited_s < STOP_WITHIN_S:
            await self._ground.clock.sleep(_LOOK_S)
            waited_s += _LOOK_S

    async def _check(self, session_key: str, guard: Guard, before: str) -> SessionRow | None:
        """Refuse before anything is stopped; the commit checks once more."""
        row = await self._ground.store.session(session_key)
        if row is not None:
            guard.check(row, before)
        return row

    def _tell_cancelled(self, session: SessionRow, run_ids: tuple[str, ...], reason: str) -> None:
        for run_id in run_ids:
            self._ground.emit(events.InputCancelled(run_id, session.session_key, session.agent_id, reason))


def _cause_of(window: Window, now_ms: int) -> tuple[Cause, int]:
    if window.end_reason in (None, "deleted") or window.ended_at is None:
        return "deleted", now_ms
    return "reset", window.ended_at
