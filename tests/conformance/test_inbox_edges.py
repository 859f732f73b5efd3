"""Edges of the inbox: activity, versions and bounds, exactly."""

from __future__ import annotations

import msgspec
import pytest

from openclaw.domain.lifecycle import TurnSource
from openclaw.domain.origin import InboundContext
from openclaw.errors import Overloaded
from openclaw.store import inbox
from openclaw.store.conversations import ConversationRef
from openclaw.store.inbox import Admission, Inbound
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Accepted, Store
from tests.conformance.making import (
    MAIN,
    NOON,
    PLAN,
    RESETS,
    draft_inputs,
    present,
    queue,
    say,
    seed,
)

KEY = MAIN.session_key
ALICE = Inbound(InboundContext(provider="telegram", chat_type="direct", from_="alice", to="alice"))


async def receive(store: Store, run_id: str, inbound: Inbound, at: int) -> Admission:
    new = msgspec.structs.replace(say(run_id, source="channel"), inbound=inbound)
    taken = await store.accept(new, RESETS, session_id=f"{run_id}-window", now_ms=at)
    assert isinstance(taken, Accepted)
    return taken.admission


@pytest.mark.spec("LIFE-12", "ORG-2")
async def test_a_message_refreshes_the_session_whether_or_not_it_tells_something_new(store: Store) -> None:
    for n, inbound in enumerate((ALICE, ALICE, msgspec.structs.replace(ALICE, dm_scope="per-peer"), None)):
        if inbound is None:
            await queue(store, f"run-{n}", at=NOON + n)
        else:
            await receive(store, f"run-{n}", inbound, NOON + n)
        entry = (await present(store)).entry
        assert (entry.last_interaction_at, entry.updated_at) == (NOON + n, NOON + n)


async def test_an_input_moves_the_version_once(store: Store) -> None:
    versions = []
    for n, inbound in enumerate((ALICE, ALICE, None)):
        if inbound is None:
            await queue(store, f"run-{n}", at=NOON + n)
        else:
            await receive(store, f"run-{n}", inbound, NOON + n)
        versions.append((await present(store)).version)
    # Created and described; then touched; then touched.
    assert versions == [2, 3, 4]


async def test_an_early_clock_never_makes_a_session_older(store: Store) -> None:
    await queue(store, "run-1", at=NOON)
    await queue(store, "run-2", at=NOON - 5)
    assert (await present(store)).entry.updated_at == NOON


async def test_what_arrival_did_is_told(store: Store) -> None:
    first = await queue(store, "run-1")
    assert (first.admission.created, first.admission.rotation, first.admission.run_id) == (
        True,
        None,
        "run-1",
    )
    assert first.admission.session.session_key == KEY
    second = await queue(store, "run-2")
    assert (second.admission.created, second.admission.rotation) == (False, None)
    assert second.admission.admission > first.admission.admission


@pytest.mark.parametrize("source", ["cli", "cron"])
async def test_the_session_is_told_as_the_commit_left_it(store: Store, source: TurnSource) -> None:
    created = await store.accept(say("run-1", source=source), RESETS, session_id="w1", now_ms=NOON)
    assert isinstance(created, Accepted)
    assert created.admission.session == await present(store)
    again = await store.accept(say("run-2", source=source), RESETS, session_id="w2", now_ms=NOON - 5)
    assert isinstance(again, Accepted)
    assert again.admission.session == await present(store)
    described = await receive(store, "run-3", ALICE, NOON + 1)
    assert described.session == await present(store)
    undescribed = await receive(store, "run-4", ALICE, NOON + 2)
    assert undescribed.session == await present(store)
    await store.cancel(KEY)
    started = await store.accept(
        say("run-5", source=source),
        RESETS,
        session_id="w5",
        now_ms=NOON + 3,
        start=PLAN,
        draft_inputs=draft_inputs,
    )
    assert isinstance(started, Accepted) and started.claimed is not None
    assert started.admission.session == started.claimed.session == await present(store)
    assert started.admission.session.entry.status == "running"


async def test_a_place_is_linked_even_when_the_entry_stays_as_it_is(store: Store) -> None:
    place = ConversationRef("telegram", "", "direct", "alice")
    await receive(store, "run-1", ALICE, NOON)
    assert await store.conversations_of(KEY) == ()
    await receive(store, "run-2", msgspec.structs.replace(ALICE, place=place), NOON + 1)
    assert await store.conversations_of(KEY) == (place,)


async def test_what_a_place_tells_newly_replaces_what_it_told_before(store: Store) -> None:
    old = ConversationRef("telegram", "", "direct", "alice", label="Alice", delivery_to="1")
    new = msgspec.structs.replace(old, label="Alice B.", delivery_to="2")
    for n, place in enumerate((old, new)):
        await receive(store, f"run-{n}", msgspec.structs.replace(ALICE, place=place), NOON + n)
    assert await store.conversations_of(KEY) == (new,)


async def test_bounds_of_what_is_read(store: Store, database: SqliteDatabase) -> None:
    for n in range(4):
        await queue(store, f"run-{n}", to=seed(f"s{n % 2}"))
    keys = ("agent:main:s0", "agent:main:s1")
    assert await database.read(inbox.sessions_waiting) == keys
    assert await database.read(lambda tx: inbox.sessions_waiting(tx, 1)) == keys[:1]
    few = await database.read(lambda tx: inbox.queued(tx, keys[0], 1))
    assert [item.run_id for item in few] == ["run-0"]
    assert inbox.MAX_QUEUED == 1000


async def test_a_full_queue_is_full_for_one_session_and_until_something_leaves(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "MAX_QUEUED", 2)
    await queue(store, "run-1")
    await queue(store, "run-2")
    before = await present(store)
    with pytest.raises(Overloaded, match="2 inputs already wait in agent:main:main; nothing was stored"):
        await queue(store, "run-3", at=NOON + 1)
    assert await present(store) == before
    await queue(store, "run-4", to=seed("other"))
    await store.cancel(KEY, "run-1")
    await queue(store, "run-3", at=NOON + 1)
