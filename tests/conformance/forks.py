"""Forks for tests: make one, talk in it, and read what its model would read."""

from __future__ import annotations

from openclaw.store import forking
from openclaw.store.database import Database
from openclaw.store.forking import Forked
from openclaw.store.records import SessionSeed, StoredEntry
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, create, note, present, seed

KEY = MAIN.session_key
THREAD = seed("main:thread:1", session_type="thread", parent_session_key=KEY)


async def fork(
    store: Store, database: Database, parent_key: str, child: SessionSeed, at_seq: int | None = None
) -> Forked:
    row = await create(store, child)
    return await database.write(lambda tx: forking.fork_window(tx, parent_key, row, NOON, at_seq=at_seq))


async def talk(store: Store, key: str, *said: str) -> None:
    await store.append(key, tuple(note(text) for text in said), now_ms=NOON)


async def context(store: Store, key: str, after_seq: int = 0) -> tuple[StoredEntry, ...]:
    return await store.context((await present(store, key)).window_no, after_seq=after_seq)


def is_one_line(entries: tuple[StoredEntry, ...]) -> bool:
    """Dense, each entry after the one before it, no id twice: what a model's context is built from."""
    chain = [(entry.seq, entry.parent_seq) for entry in entries]
    return chain == [(seq, seq - 1 or None) for seq in range(1, len(entries) + 1)] and len(
        {entry.entry_id for entry in entries}
    ) == len(entries)
