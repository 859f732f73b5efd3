"""Bindings of places to sessions on every database: one per place, used, ended, gone with their session."""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec
import pytest

from openclaw.domain.bindings import HOUR_MS, Binding, BindingTerms, BoundPlace
from openclaw.store import bindings
from openclaw.store.bindings import Bindings
from openclaw.store.database import Database, Transaction
from openclaw.store.erasing import Erasing
from openclaw.store.purging import Pace
from openclaw.store.spawns import Spawns
from openclaw.store.store import Store
from openclaw.store.tombstones import Person
from tests.conformance.making import MAIN, NOON, create, seed
from tests.conformance.test_spawns import child, settle, spawn, spawned

THREAD = BoundPlace("pigeon", "default", "Flock", "T1")
CHAT = BoundPlace("pigeon", "default", "101")
DAY = 24 * HOUR_MS
TERMS = BindingTerms()
OTHER = seed("other")


def to(session_key: str = MAIN.session_key, place: BoundPlace = THREAD, at: int = NOON) -> Binding:
    return Binding(place, session_key, "focus", at, at)


async def bind(database: Database, *made: Binding) -> None:
    for one in made:
        await database.write(partial(_bind, one))


def _bind(one: Binding, tx: Transaction) -> None:
    bindings.bind(tx, one)


async def session_at(rows: Bindings, place: BoundPlace = THREAD, at: int = NOON) -> str | None:
    found = await rows.bound(place, TERMS, at)
    return None if found is None else found.session.session_key


@pytest.fixture
def rows(database: Database) -> Bindings:
    return Bindings(database)


@pytest.mark.spec("BIND-1")
async def test_a_place_belongs_to_one_session_byte_by_byte(
    store: Store, database: Database, rows: Bindings
) -> None:
    await create(store, MAIN)
    await create(store, OTHER)
    await bind(database, to())
    assert await session_at(rows) == MAIN.session_key
    changes = (
        {"thread_id": "t1"},
        {"thread_id": ""},
        {"to": "flock"},
        {"account_id": "b"},
        {"channel": "p"},
    )
    near = [msgspec.structs.replace(THREAD, **change) for change in changes]
    assert [await session_at(rows, place) for place in near] == [None] * 5
    await bind(database, to(OTHER.session_key, at=NOON + 5))
    assert await session_at(rows) == OTHER.session_key
    assert await rows.of_session(MAIN.session_key) == ()
    [kept] = await rows.of_session(OTHER.session_key)
    assert kept == to(OTHER.session_key, at=NOON + 5)


@pytest.mark.spec("BIND-1")
async def test_whoever_binds_last_has_the_place_however_many_try(
    store: Store, database: Database, rows: Bindings
) -> None:
    seeds = [seed(f"s{number}") for number in range(8)]
    for one in seeds:
        await create(store, one)
    await asyncio.gather(*(bind(database, to(one.session_key)) for one in seeds))
    assert await session_at(rows) in {one.session_key for one in seeds}
    counts = [len(await rows.of_session(one.session_key)) for one in seeds]
    assert sum(counts) == 1


@pytest.mark.spec("BIND-2")
async def test_use_puts_the_end_off_and_never_back(store: Store, database: Database, rows: Bindings) -> None:
    await create(store, MAIN)
    await bind(database, to())
    assert await session_at(rows, at=NOON + DAY - 1) == MAIN.session_key
    assert await session_at(rows, at=NOON + DAY) is None
    await database.write(lambda tx: bindings.use(tx, THREAD, NOON + HOUR_MS))
    await database.write(lambda tx: bindings.use(tx, THREAD, NOON + 1))
    assert await session_at(rows, at=NOON + DAY + HOUR_MS - 1) == MAIN.session_key
    assert await session_at(rows, at=NOON + DAY + HOUR_MS) is None
    await database.write(lambda tx: bindings.set_terms(tx, THREAD, 0, 2 * DAY))
    assert await session_at(rows, at=NOON + 2 * DAY - 1) == MAIN.session_key
    assert await session_at(rows, at=NOON + 2 * DAY) is None


@pytest.mark.spec("BIND-2")
async def test_what_has_ended_is_taken_away_unless_it_was_used_meanwhile(
    store: Store, database: Database, rows: Bindings
) -> None:
    await create(store, MAIN)
    await bind(database, to(), to(place=CHAT, at=NOON + HOUR_MS))
    assert await rows.lapse(TERMS, NOON + DAY - 1) == ()
    assert await rows.lapse(msgspec.structs.replace(TERMS, enabled=False), NOON + 9 * DAY) == ()
    assert [one.place for one in await rows.lapse(TERMS, NOON + DAY)] == [THREAD]
    assert [one.place for one in await rows.of_session(MAIN.session_key)] == [CHAT]
    assert await database.write(lambda tx: bindings.unbind(tx, CHAT)) == MAIN.session_key
    assert await database.write(lambda tx: bindings.unbind(tx, CHAT)) is None
    assert await rows.lapse(TERMS, NOON + 9 * DAY) == ()


@pytest.mark.spec("BIND-1")
async def test_a_binding_goes_with_its_session(store: Store, database: Database, rows: Bindings) -> None:
    await create(store, MAIN)
    await create(store, OTHER)
    await bind(database, to(), to(OTHER.session_key, CHAT))
    await Erasing(database, pace=Pace(rest_s=0.0)).erase_session(MAIN.session_key, now_ms=NOON)
    assert await session_at(rows) is None
    assert await session_at(rows, CHAT) == OTHER.session_key
    them = Person(peer_id="101", channel="pigeon")
    await Erasing(database, pace=Pace(rest_s=0.0)).erase_person(them, now_ms=NOON)
    assert await rows.of_session(OTHER.session_key) == ()


async def test_an_archived_session_is_not_spoken_to(store: Store, database: Database, rows: Bindings) -> None:
    await create(store, MAIN, archived_at=NOON)
    await bind(database, to())
    assert await session_at(rows) is None


@pytest.mark.spec("BIND-1", "ANN-11")
async def test_a_helper_in_a_thread_is_not_put_away_while_it_is_bound(
    store: Store, database: Database, rows: Bindings
) -> None:
    await create(store, MAIN)
    [row] = await spawned(database, 1)
    await bind(database, to(row.child_key), to(place=CHAT))
    assert await settle(database, row)
    spawns = Spawns(database)
    assert await spawns.to_archive("main", NOON + DAY) == ()
    found = await rows.of_family(MAIN.session_key)
    assert [one.session_key for one in found] == [MAIN.session_key, row.child_key]
    assert await rows.of_family(row.child_key) == (to(row.child_key),)
    await database.write(lambda tx: bindings.unbind_session(tx, row.child_key))
    assert await spawns.to_archive("main", NOON + DAY) == (row.child_key,)
    assert await spawn(database, child(1)) is not None
