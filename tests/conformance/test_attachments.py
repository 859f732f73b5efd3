"""Files of helpers on every database: with the helper they come, with the helper they go."""

from __future__ import annotations

import pytest

from openclaw.domain.spawnfiles import SpawnFile
from openclaw.errors import InvalidRequest
from openclaw.store import attachments, forking, sessions, spawns
from openclaw.store.attachments import Attachments
from openclaw.store.database import Database, Transaction
from openclaw.store.records import EntryDraft
from openclaw.store.spawns import NotBegun, SpawnRow, Spawns
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, begin, create, note, present, select
from tests.conformance.test_spawns import PARENT, child, spawn

FILES = (
    SpawnFile("in/a.txt", b"hello\x00\xff", "h1", "text/plain"),
    SpawnFile("b.bin", b"", "h2"),
)


@pytest.mark.spec("SPAWN-17")
async def test_files_are_rows_of_the_child_and_go_with_it(store: Store, database: Database) -> None:
    await create(store, MAIN)
    rows = [await spawn(database, child(number, files=FILES)) for number in (1, 2, 3)]
    keys = [row.child_key for row in rows if isinstance(row, SpawnRow)]
    kept = Attachments(database)
    assert await kept.children() == frozenset(keys)
    assert await kept.children(limit=1) == frozenset(keys[:1])
    assert await kept.of_child(keys[0]) == tuple(sorted(FILES, key=lambda file: file.path))
    assert await spawn(database, child(1, files=FILES), NOON + 5) == rows[0]  # the same call again
    await database.write(lambda tx: attachments.drop(tx, keys[0]))
    assert await kept.of_child(keys[0]) == ()
    await store.delete_session(keys[1], now_ms=NOON)
    assert await kept.children() == {keys[2]}
    assert await select(database, "SELECT count(*), sum(size) FROM attachments") == [(2, 7)]


@pytest.mark.spec("SPAWN-16", "SPAWN-17")
async def test_a_child_that_cannot_be_begun_leaves_nothing_and_the_step_goes_on(
    store: Store, database: Database
) -> None:
    claimed = await begin(store, "run-1")
    twice = (FILES[0], SpawnFile("c", b"x", "h3"))

    def effects(tx: Transaction) -> list[EntryDraft]:
        begun = spawns.begin(tx, child(1, parent="agent:main:nobody", fork=True, files=twice), NOON)
        assert isinstance(begun, NotBegun) and "agent:main:nobody" in begun.error
        good = spawns.begin(tx, child(2, files=FILES), NOON)
        assert isinstance(good, SpawnRow)
        return [note("told", "toolResult", "run-1")]

    kept = await store.step(claimed.run, (), (), now_ms=NOON, effects=effects)
    assert len(kept) == 1
    assert await store.session(child(1).seed.session_key) is None
    assert await store.queued(child(1).seed.session_key) == ()
    assert await Attachments(database).children() == {child(2).seed.session_key}
    assert await Spawns(database).of_call("run-1", "call-1") is None
    found = await Spawns(database).of_call("run-1", "call-2")
    assert found is not None and found.parent_key == PARENT


@pytest.mark.spec("SPAWN-8")
async def test_a_fork_ends_before_the_calls_that_are_still_open(store: Store, database: Database) -> None:
    claimed = await begin(store, "run-1")
    drafts = (note("I call a helper", "assistant", "run-1"), note("meanwhile", "assistant", "injected"))
    await store.step(claimed.run, drafts, (), now_ms=NOON)
    parent = await present(store, PARENT)
    made = await spawn(database, child(1, fork=True))
    assert isinstance(made, SpawnRow)
    assert (await present(store, made.child_key)).last_seq == parent.last_seq - 2
    other = await spawn(database, child(1, fork=True, run_id="command"))  # a person's command calls nothing
    assert isinstance(other, SpawnRow)
    assert (await present(store, other.child_key)).last_seq == parent.last_seq
    with pytest.raises(InvalidRequest):
        await database.write(lambda tx: _fork_again(tx, made.child_key))


def _fork_again(tx: Transaction, child_key: str) -> None:
    forking.fork_window(tx, PARENT, sessions.get(tx, child_key), NOON)
