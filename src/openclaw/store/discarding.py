"""The last part of maintenance: deleted windows become archive files and then go for good (DB-17, MAINT-2).

A window is written to its file first; the transaction that gives it up notes the
file and judges the window once more. What could not be archived stays, and is tried
again by the next run. Emptying what was given up is `purging`'s work.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct

from openclaw.config.views import Retention
from openclaw.store import archiving, purging, removals, sessions
from openclaw.store.archiving import ArchiveFailed, ArchiveFile, Archives
from openclaw.store.database import Database, Transaction
from openclaw.store.purging import Pace, Purged
from openclaw.store.retention import (
    PAGE_ROWS,
    START,
    DeletedWindow,
    Place,
    Question,
    cut_of,
    deleted_windows,
    place_of,
)

log = logging.getLogger("openclaw.store")
GROUP = 25  # files that are written before the rows of their windows are given up
MOST_PASSES = 10  # a window goes after those that are based on it; chains of them are short


class Discarding:
    """Archives and purges. Without `archives` nothing is written, for stores that are thrown away."""

    def __init__(
        self, database: Database, limits: Retention, pace: Pace, archives: Archives | None = None
    ) -> None:
        self._database = database
        self._limits = limits
        self._pace = pace
        self._archives = archives

    async def count_due(self, ask: Question) -> int:
        counted, after = 0, START
        while True:
            page = await self._database.read(partial(deleted_windows, after=after, ask=ask))
            counted += sum(window.due for window in page)
            if len(page) < PAGE_ROWS:
                return counted
            after = place_of(page[-1])

    async def purge(self, *, now_ms: int, undo_ends: bool = False) -> Purged:
        """Remove for good what was deleted and can no longer be taken back."""
        ask = Question(self._limits, now_ms, undo_ends=undo_ends)
        done = Purged()
        for _ in range(MOST_PASSES):
            given_up = await self._give_up_due(ask)
            done = done.plus(given_up)
            if not given_up.marked:
                break
        return done.plus(await purging.purge_marked(self._database, now_ms=now_ms, pace=self._pace))

    async def _give_up_due(self, ask: Question) -> Purged:
        """Once through all deleted windows, oldest deletion first."""
        done, after = Purged(), START
        while True:
            page = await self._database.read(partial(deleted_windows, after=after, ask=ask))
            due = [window for window in page if window.due]
            for start in range(0, len(due), GROUP):
                done = done.plus(await self._give_up_group(due[start : start + GROUP], ask))
            if len(page) < PAGE_ROWS:
                return done
            after = place_of(page[-1])

    async def _give_up_group(self, group: list[DeletedWindow], ask: Question) -> Purged:
        files, held_back = await self._write_files(group, ask.now_ms)
        going = [window for window in group if window.window_no not in held_back]
        marked: set[int] = set()
        while going:
            part = await self._pace.slice(
                self._database, partial(_give_up, going=tuple(going), files=files, ask=ask, pace=self._pace)
            )
            marked.update(part.marked)
            going = going[part.handled :]
        unused = [file for number, file in files.items() if number not in marked]
        if unused:
            await self._drop(unused)  # taken back in the meantime: it lives on
        return Purged(marked=len(marked), archives=len(files) - len(unused), held_back=len(held_back))

    async def _write_files(
        self, group: list[DeletedWindow], now_ms: int
    ) -> tuple[dict[int, ArchiveFile], set[int]]:
        """Files of the windows that hold anything, and the windows that have to stay for want of one."""
        files: dict[int, ArchiveFile] = {}
        held_back: set[int] = set()
        if self._archives is None:
            return files, held_back
        for gone in group:
            if not gone.holds_words:
                continue
            window = await self._database.read(partial(sessions.window_by_no, window_no=gone.window_no))
            reset = gone.end_reason not in (None, "deleted")
            cause: archiving.Cause = "reset" if reset else "deleted"
            at_ms = gone.ended_at if reset and gone.ended_at is not None else gone.deleted_at
            try:
                files[gone.window_no] = await self._archives.write(window, cause, at_ms, now_ms=now_ms)
            except ArchiveFailed as error:
                held_back.add(gone.window_no)
                log.warning("maintenance: %s", error)
        return files, held_back

    # -- archive files -------------------------------------------------------------------------

    async def drop_old_archives(self, *, now_ms: int) -> int:
        """Remove files that have been kept for `resetArchiveRetention`; how many."""
        cut = cut_of(now_ms, self._limits.reset_archive_ms)
        removed = 0
        while dropped := await self._drop_page(cut):
            removed += dropped
        return removed

    async def drop_oldest_archives(self, need_bytes: int, *, now_ms: int) -> int:
        """For want of space: the oldest files, as many as it takes; how many (MAINT-2)."""
        removed = 0
        while need_bytes > 0:
            page = await self._database.read(partial(archiving.written_before, at_ms=now_ms))
            taken: list[ArchiveFile] = []
            for file in page:
                if need_bytes > 0:
                    taken.append(file)
                    need_bytes -= file.size
            if not (dropped := await self._drop(taken)):
                break
            removed += dropped
        return removed

    async def _drop_page(self, at_ms: int) -> int:
        return await self._drop(await self._database.read(partial(archiving.written_before, at_ms=at_ms)))

    async def _drop(self, files: Sequence[ArchiveFile]) -> int:
        if not files:
            return 0
        try:
            return await archiving.remove(self._database, files)
        except OSError as error:
            log.warning("maintenance: an archive file cannot be removed: %s", error)
            return 0


class _GivenUp(Struct, frozen=True):
    """How many windows of a list were looked at, and which of them are given up now."""

    handled: int
    marked: tuple[int, ...]


def _give_up(
    tx: Transaction,
    going: tuple[DeletedWindow, ...],
    files: Mapping[int, ArchiveFile],
    ask: Question,
    pace: Pace,
) -> _GivenUp:
    """Judge the windows again and mark them: from here on nothing brings them back."""
    ending = pace.until()
    first = going[0]
    before: Place = (first.deleted_at, first.window_no - 1)
    still_due = {window.window_no for window in deleted_windows(tx, before, ask) if window.due}
    marked: list[int] = []
    for handled, window in enumerate(going):
        if marked and time.perf_counter() > ending:
            return _GivenUp(handled, tuple(marked))
        if window.window_no not in still_due or not purging.mark(tx, window.window_no, ask.now_ms):
            continue
        marked.append(window.window_no)
        if window.window_no in files:
            archiving.note(tx, files[window.window_no])
        if window.removal_no is not None:
            removals.settle_purged(tx, window.removal_no)
        else:
            removals.note_purge(tx, window.session_key, window.session_id, ask.now_ms)
    return _GivenUp(len(going), tuple(marked))
