"""Taking transcripts away for good, a slice at a time: index, entries, large bodies, inputs, runs.

A window is marked first and emptied later, so that a purge goes on where a crash or
a stop left it. Who may be purged is not decided here: maintenance and erasing mark.
Every slice is a short unit of the lowest priority, with a rest after it, so that
people who write meanwhile do not notice (PITFALLS A6).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from openclaw.domain.searchtext import index_text, searchable_text
from openclaw.store.database import Database, Priority, Result, Transaction, Unit
from openclaw.store.statements import load_statements
from openclaw.store.transcript import entry_range

SQL = load_statements("purging.sql")
SLICE_ROWS = 200
UNINDEX_ROWS = 4  # that the index forgets at once; each of their words costs it a page
SWEEP_ROWS = 4000  # of the list of indexed entries, read at once; the reading is off the writer

_decode: Any = msgspec.json.Decoder().decode


class Pace(Struct, frozen=True):
    """How much of the writer a long work may take: the time of a slice, and the rest after it."""

    slice_s: float = 0.005
    rest_s: float = 0.02

    async def slice(self, database: Database, unit: Unit[Result]) -> Result:
        done = await database.write(unit, Priority.BACKGROUND)
        await asyncio.sleep(self.rest_s)
        return done

    def until(self) -> float:
        """When the slice that begins now should end, for `time.perf_counter`."""
        return time.perf_counter() + self.slice_s


class Purged(Struct, frozen=True):
    """What was removed. `marked` windows were given up, `archives` written; `held_back` ones have to wait."""

    windows: int = 0
    entries: int = 0
    indexed: int = 0
    blobs: int = 0
    inputs: int = 0
    runs: int = 0
    marked: int = 0
    archives: int = 0
    held_back: int = 0

    def plus(self, other: Purged) -> Purged:
        ours, theirs = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return Purged(*(mine + more for mine, more in zip(ours, theirs, strict=True)))


def mark(tx: Transaction, window_no: int, now_ms: int) -> bool:
    """Give a window up. From here on it cannot be taken back. False when it was given up before."""
    return tx.row(SQL["mark"], (now_ms, window_no)) is not None


def words_of(body: bytes) -> str:
    """The words under which a message was indexed: the index forgets an entry only by its own words."""
    try:
        message = _decode(body)
    except msgspec.DecodeError:
        return ""
    return index_text(searchable_text(message)) if isinstance(message, dict) else ""


# -- units -----------------------------------------------------------------------------------------


def forget_pending(tx: Transaction) -> int:
    """Words of marked windows that have not reached the index yet; they are few."""
    return len(tx.rows(SQL["forget_pending"]))


def indexed_between(tx: Transaction, after: int, last: int) -> tuple[int, ...]:
    """Which entries of marked windows the index knows under the numbers after..last."""
    return tuple(row[0] for row in tx.rows(SQL["indexed_between"], (after, last)))


def unindex(tx: Transaction, found: Sequence[int], ending: float) -> int:
    """Remove entries from the index by their numbers, a few at least, until `ending`; how many it were.

    Without the statement in between, all of the index's work would fall into the
    commit, where no clock is looked at: ten times the time of the slice.
    """
    handled = 0
    while handled < len(found) and (not handled or time.perf_counter() < ending):
        part = found[handled : handled + UNINDEX_ROWS]
        for search_no in part:
            unindex_one(tx, search_no)
        tx.run(SQL["unindex_now"])
        handled += len(part)
    return handled


def unindex_one(tx: Transaction, search_no: int) -> None:
    said = tx.row(SQL["said_at"], (search_no,))
    words = words_of(said[0]) if said is not None else ""
    if words:
        tx.run(SQL["unindex_words"], (search_no, words))
    tx.run(SQL["unindex_row"], (search_no,))


def empty_some(tx: Transaction, now_ms: int, ending: float) -> Purged | None:
    """Remove up to 200 entries of marked windows, until `ending`. None when no window is marked."""
    purged = Purged()
    while True:
        marked = tx.row(SQL["next_marked"])
        if marked is None:
            return purged if purged.windows else None
        window_no, session_key = marked
        limit = SLICE_ROWS - purged.entries
        purged = purged.plus(_empty(tx, window_no, session_key, limit, now_ms, ending))
        if purged.entries >= SLICE_ROWS or purged.windows >= SLICE_ROWS or time.perf_counter() > ending:
            return purged


def _empty(
    tx: Transaction, window_no: int, session_key: str, limit: int, now_ms: int, ending: float
) -> Purged:
    """Remove entries of one window, at least one if there is one; the window counts when it is empty."""
    found = tx.rows(SQL["first_entries"], (*entry_range(window_no), limit))
    purged = Purged()
    for entry_no, run_id, blob_hash in found:
        if purged.entries and time.perf_counter() > ending:
            return purged
        tx.run(SQL["remove_entry"], (entry_no,))
        blobs = release_blob(tx, blob_hash)
        inputs = 0 if run_id is None else len(tx.rows(SQL["remove_input"], (run_id, session_key)))
        runs = 0 if run_id is None else len(tx.rows(SQL["remove_run"], (run_id, session_key)))
        purged = purged.plus(Purged(entries=1, blobs=blobs, inputs=inputs, runs=runs))
    if len(found) == limit:
        return purged
    for name in ("forget_source", "forget_ids"):
        tx.run(SQL[name], (window_no,))
    tx.run(SQL["finish"], (now_ms, window_no))
    tx.run(SQL["unlink_places"], (session_key,))
    return purged.plus(Purged(windows=1))


def release_blob(tx: Transaction, blob_hash: str | None) -> int:
    """One entry less refers to a body; 1 when that was the last one and the body is gone."""
    if blob_hash is None:
        return 0
    tx.run(SQL["release_blob"], (blob_hash,))
    return len(tx.rows(SQL["remove_blob"], (blob_hash,)))


# -- the whole work --------------------------------------------------------------------------------


async def purge_marked(database: Database, *, now_ms: int, pace: Pace) -> Purged:
    """Empty every marked window: its words first, while its messages can still tell them."""
    if await database.read(lambda tx: tx.row(SQL["next_marked"])) is None:
        return Purged()
    purged = Purged(indexed=await pace.slice(database, forget_pending))
    purged = purged.plus(Purged(indexed=await _unindex_marked(database, pace)))
    while True:
        part = await pace.slice(database, lambda tx: empty_some(tx, now_ms, pace.until()))
        if part is None:
            return purged
        purged = purged.plus(part)


async def _unindex_marked(database: Database, pace: Pace) -> int:
    """Look once through the list of what is indexed: sorting it by window would cost every message."""
    counted = await database.read(lambda tx: tx.row(SQL["last_indexed"]))
    last = counted[0] if counted else 0
    removed = 0
    for after in range(0, last, SWEEP_ROWS):
        found = await database.read(_between(after, after + SWEEP_ROWS))
        while found:
            handled = await pace.slice(database, unindexing(found[:SLICE_ROWS], pace))
            removed += handled
            found = found[handled:]
    return removed


def _between(after: int, last: int) -> Unit[tuple[int, ...]]:
    return lambda tx: indexed_between(tx, after, last)


def unindexing(found: Sequence[int], pace: Pace) -> Unit[int]:
    return lambda tx: unindex(tx, found, pace.until())
