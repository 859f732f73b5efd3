"""A run that has begun, as a value: what was claimed, and what an interrupted one goes on with."""

from __future__ import annotations

from msgspec import Struct

from openclaw.store.records import QueuedInput, RunRow, SessionRow, StoredEntry


class StartedRun(Struct, frozen=True):
    """`entries` came with the claim. `opened`: why the window began, when this is its first turn."""

    run: RunRow
    session: SessionRow
    inputs: tuple[QueuedInput, ...]
    entries: tuple[StoredEntry, ...] = ()
    opened: str | None = None
