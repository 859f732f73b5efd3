"""Everybody at once: eight callers mix the verbs on few sessions, and afterwards the rows still agree."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress

import msgspec
import pytest

from openclaw.domain.entry import SessionEntry
from openclaw.domain.searchtext import query_terms
from openclaw.errors import InvalidRequest, StoreBusy, VersionConflict
from openclaw.store.database import Database, Priority, Result, Unit
from openclaw.store.records import RunRow
from openclaw.store.runs import RunLost
from openclaw.store.sessions import ListQuery
from openclaw.store.store import Accepted, Store
from tests.conformance.conftest import DRIVERS, open_postgres
from tests.conformance.making import DONE, NOON, PLAN, RESETS, create, draft_inputs, note, say, seed, select

CALLERS = 8
STEPS = 25
SESSIONS = tuple(seed(name) for name in ("one", "two", "three"))


def one_more(entry: SessionEntry) -> SessionEntry:
    return msgspec.structs.replace(entry, spawn_depth=(entry.spawn_depth or 0) + 1)


class Caller:
    """One caller with a will of its own. Losing a race is normal; every other failure is not."""

    def __init__(self, store: Store, number: int) -> None:
        self._store = store
        self._number = number
        self._random = random.Random(number)
        self.lost: Counter[str] = Counter()
        self.known: set[str] = set()
        self.edits = 0

    async def act(self) -> None:
        verbs = (self._talk, self._talk, self._queue, self._work, self._edit, self._reset, self._look)
        for step in range(STEPS):
            verb = self._random.choice(verbs)
            try:
                await verb(f"run-{self._number}-{step}", self._random.choice(SESSIONS).session_key)
            except (RunLost, VersionConflict, InvalidRequest) as error:
                self.lost[type(error).__name__] += 1

    async def _talk(self, run_id: str, key: str) -> None:
        """Accept, and if the session was idle, run the turn to its end."""
        taken = await self._store.accept(
            say(run_id, f"said by {run_id}", to=seed(key.rpartition(":")[2])),
            RESETS, session_id=f"{run_id}-window", now_ms=NOON, start=PLAN, draft_inputs=draft_inputs,
        )  # fmt: skip
        assert isinstance(taken, Accepted)
        self.known.add(run_id)
        if taken.claimed is not None:
            await self._finish(taken.claimed.run)

    async def _queue(self, run_id: str, key: str) -> None:
        new = say(run_id, f"said by {run_id}", to=seed(key.rpartition(":")[2]))
        one, other = await asyncio.gather(
            self._store.accept(new, RESETS, session_id=f"{run_id}-window", now_ms=NOON),
            self._store.accept(new, RESETS, session_id=f"{run_id}-window2", now_ms=NOON),
        )
        self.known.add(run_id)
        assert isinstance(one, Accepted) != isinstance(other, Accepted), "the same input was taken twice"

    async def _work(self, _: str, key: str) -> None:
        waiting = await self._store.queued(key)
        admissions = tuple(item.admission for item in waiting[:3])
        claimed = await self._store.claim(key, admissions, PLAN, draft_inputs, now_ms=NOON)
        if claimed is not None:
            try:
                await self._store.step(claimed.run, (note("working", "assistant", "-"),), (), now_ms=NOON)
                late = tuple(item.admission for item in await self._store.queued(key))
                await self._store.absorb(claimed.run, late[:1], draft_inputs, now_ms=NOON)
            finally:
                await self._finish(claimed.run)
        elif waiting and self._random.random() < 0.3:
            await self._store.cancel(key, waiting[-1].run_id)

    async def _finish(self, run: RunRow) -> None:
        finished = await self._store.finish(run, (note("done", "assistant", "-"),), DONE, now_ms=NOON)
        assert finished.run.state == "ended"

    async def _edit(self, run_id: str, key: str) -> None:
        made = seed(key.rpartition(":")[2])
        await self._store.edit_session(made, one_more, session_id=run_id, now_ms=NOON)
        self.edits += 1

    async def _reset(self, run_id: str, key: str) -> None:
        if self._random.random() < 0.3:
            await self._store.reset_session(key, "reset", session_id=f"{run_id}-reset", now_ms=NOON)

    async def _look(self, run_id: str, key: str) -> None:
        page = await self._store.history(key, 50)
        assert page is not None
        seqs = [entry.seq for entry in page.entries]
        assert seqs == list(range(page.session.last_seq - len(seqs) + 1, page.session.last_seq + 1))
        assert (await self._store.list_sessions(ListQuery())).total == len(SESSIONS)


class Patient:
    """A database whose callers try again when it was busy: nothing was stored then."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.read, self.close = database.read, database.close

    async def write(self, unit: Unit[Result], priority: Priority = Priority.USER) -> Result:
        for _ in range(20):
            with suppress(StoreBusy):
                return await self._database.write(unit, priority)
        raise AssertionError("busy all the time")


async def play(database: Database) -> list[Caller]:
    store = Store(database)
    for made in SESSIONS:
        await create(store, made)
    callers = [Caller(store, number) for number in range(CALLERS)]
    await asyncio.gather(*(caller.act() for caller in callers))
    return callers


async def check(database: Database, callers: list[Caller]) -> None:
    """What must hold whoever won which race."""
    windows = await select(
        database, "SELECT window_no, count(*), min(seq), max(seq) FROM entries GROUP BY window_no"
    )
    assert all(count == last and first == 1 for _, count, first, last in windows), "a hole in a transcript"
    last_of = {window_no: last for window_no, _, _, last in windows}
    for window_no, last_seq in await select(database, "SELECT window_no, last_seq FROM sessions"):
        assert last_of.get(window_no, 0) == last_seq
    assert await select(database, "SELECT count(*) FROM runs WHERE state = 'active'") == [(0,)]
    # Every input that was accepted is there once, and stands in a transcript exactly if it was consumed.
    inputs: dict[str, str] = dict(await select(database, "SELECT run_id, state FROM inbox"))
    assert inputs.keys() == set().union(*(caller.known for caller in callers))
    said = Counter(row[0] for row in await select(database, "SELECT run_id FROM entries WHERE role = 'user'"))
    assert said == Counter(run_id for run_id, state in inputs.items() if state == "consumed")
    runs = {row[0] for row in await select(database, "SELECT run_id FROM runs")}
    consumers = await select(database, "SELECT DISTINCT consumed_by FROM inbox WHERE state = 'consumed'")
    assert {row[0] for row in consumers} == runs
    # Every edit counts (resets keep the field), the counters agree, and search finds what was said.
    store = Store(database)
    rows = (await store.list_sessions(ListQuery())).rows
    assert sum(row.entry.spawn_depth or 0 for row in rows) == sum(caller.edits for caller in callers)
    assert await select(database, "SELECT sum(sessions) FROM counters") == [(len(SESSIONS),)]
    for run_id in said:
        # Each part of the handle is a word; all of them in a row are the handle.
        (hit,) = await store.search(query_terms(run_id))
        assert hit.role == "user"


@pytest.mark.spec("DB-14", "QUE-1", "TRX-1")
async def test_eight_callers_leave_the_rows_in_agreement(database: Database) -> None:
    callers = await play(database)
    await check(database, callers)
    assert sum(len(caller.known) for caller in callers) > 50
    assert sum(caller.edits for caller in callers) > 10


@pytest.mark.spec("DB-14", "QUE-1", "TRX-1")
@pytest.mark.parametrize("driver", [name for name in DRIVERS if name == "postgres"])
async def test_units_that_run_at_the_same_time_leave_the_rows_in_agreement(driver: str) -> None:
    """Several transactions at once. A caller that is told that the store was busy asks again."""
    database = Patient(await open_postgres(writers=4))
    try:
        await check(database, await play(database))
    finally:
        await database.close()
