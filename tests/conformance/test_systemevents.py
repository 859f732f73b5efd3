"""System events: kept in order, bounded, told once, gone with the window they were meant for."""

from __future__ import annotations

import json

import msgspec
import pytest

from openclaw.domain.policy import SendPolicy
from openclaw.domain.systemevents import MAX_WAITING
from openclaw.domain.transcript import Provenance
from openclaw.errors import SendDenied
from openclaw.store import systemevents
from openclaw.store.claiming import Chosen, Claims
from openclaw.store.database import Database
from openclaw.store.erasing import Erasing
from openclaw.store.inbox import NewInput
from openclaw.store.records import StoredEntry, UserInput
from openclaw.store.runs import RunPlan
from openclaw.store.store import Accepted, Store
from openclaw.store.waking import SystemEvents, count_waiting
from tests.conformance.making import (
    DAY,
    DONE,
    MAIN,
    NOON,
    PLAN,
    RESETS,
    begin,
    draft_inputs,
    queue,
    say,
    seed,
    turn,
)

KEY = MAIN.session_key


def wake_input(run_id: str = "wake:1", to: object = MAIN) -> NewInput:
    body = UserInput("look", NOON, provenance=Provenance(kind="internal_system"), hidden_prompt=True)
    return msgspec.structs.replace(say(run_id), seed=to, source="system", principal="system", body=body)


def told(entries: tuple[StoredEntry, ...]) -> list[str]:
    """The lines of the notes among these entries that tell an event."""
    notes = [json.loads(entry.body) for entry in entries if entry.type == "custom_message"]
    return [line for note in notes for line in note["content"].split("\n")[2:]]


async def texts(events: SystemEvents, key: str = KEY) -> list[str]:
    return [event.text for event in await events.waiting(key)]


@pytest.fixture
def events(database: Database) -> SystemEvents:
    return SystemEvents(database)


@pytest.mark.spec("CLI-7", "TRX-14")
async def test_events_are_told_in_front_of_the_next_turn_and_only_there(
    store: Store, events: SystemEvents
) -> None:
    await events.add(KEY, "the backup is done", now_ms=NOON)
    await events.add(KEY, "the disk is nearly full", now_ms=NOON + 60_000)
    await events.add("agent:main:other", "not for you", now_ms=NOON)
    claimed = await begin(store, "run-1", "hello")
    assert told(claimed.entries) == [
        "- 2026-11-15 12:00 UTC: the backup is done",
        "- 2026-11-15 12:01 UTC: the disk is nearly full",
    ]
    note, said = claimed.entries
    assert (note.audience, note.provenance, note.role, note.run_id) == (
        "model", "internal_system", None, "run-1",
    )  # fmt: skip
    assert json.loads(note.body)["display"] is False
    assert said.role == "user"
    assert await texts(events) == []
    assert await texts(events, "agent:main:other") == ["not for you"]
    await store.finish(claimed.run, (), DONE, now_ms=NOON)
    assert told((await begin(store, "run-2")).entries) == []


@pytest.mark.spec("CLI-7")
async def test_the_same_event_twice_in_a_row_is_one(events: SystemEvents) -> None:
    assert not (await events.add(KEY, "it rains", now_ms=NOON)).repeated
    assert (await events.add(KEY, "it rains", now_ms=NOON + 1)).repeated
    assert not (await events.add(KEY, "the sun", now_ms=NOON + 2)).repeated
    assert not (await events.add(KEY, "it rains", now_ms=NOON + 3)).repeated
    assert await texts(events) == ["it rains", "the sun", "it rains"]
    assert [event.at_ms for event in await events.waiting(KEY)] == [NOON, NOON + 2, NOON + 3]


@pytest.mark.spec("CLI-7")
async def test_past_the_limit_the_oldest_makes_room_and_the_note_says_so(
    store: Store, events: SystemEvents
) -> None:
    for number in range(MAX_WAITING):
        assert (await events.add(KEY, f"event {number}", now_ms=NOON)).dropped == 0
    assert (await events.add(KEY, "one more", now_ms=NOON)).dropped == 1
    assert (await events.add(KEY, "and another", now_ms=NOON)).dropped == 1
    waiting = await events.waiting(KEY)
    assert [event.text for event in waiting] == [
        *(f"event {number}" for number in range(2, MAX_WAITING)), "one more", "and another",
    ]  # fmt: skip
    assert [event.missed for event in waiting] == [2, *([0] * (MAX_WAITING - 1))]
    first, *lines = told((await begin(store, "run-1")).entries)
    assert first == "(2 older events had to make room and cannot be shown.)"
    assert len(lines) == MAX_WAITING


@pytest.mark.parametrize("reason", ["new", "reset"])
@pytest.mark.spec("LIFE-22")
async def test_a_reset_discards_what_waited_for_the_old_session(
    store: Store, events: SystemEvents, reason: str
) -> None:
    await turn(store, "run-1")
    await events.add(KEY, "for the old one", now_ms=NOON)
    await events.add("agent:main:other", "stays", now_ms=NOON)
    taken = await store.accept(
        say("run-2", "hi", reset=reason), RESETS, session_id="w2", now_ms=NOON, start=PLAN,
        draft_inputs=draft_inputs,
    )  # fmt: skip
    assert isinstance(taken, Accepted) and taken.claimed is not None
    assert taken.admission.rotation is not None
    assert told(taken.claimed.entries) == []
    assert await texts(events) == []
    assert await texts(events, "agent:main:other") == ["stays"]


@pytest.mark.spec("LIFE-22")
async def test_a_daily_rollover_loses_no_event(store: Store, events: SystemEvents) -> None:
    await turn(store, "run-1")
    await events.add(KEY, "from the night", now_ms=NOON + DAY // 2)
    claimed = await begin(store, "run-2", at=NOON + DAY)
    assert claimed.session.entry.session_id == "run-2-window"
    assert len(told(claimed.entries)) == 1


@pytest.mark.spec("LIFE-22")
async def test_a_deleted_session_takes_its_events_along(store: Store, events: SystemEvents) -> None:
    await turn(store, "run-1")
    await events.add(KEY, "too late", now_ms=NOON)
    assert await store.delete_session(KEY, now_ms=NOON)
    assert await texts(events) == []
    assert told((await begin(store, "run-2")).entries) == []


async def test_an_erased_key_keeps_no_event_even_if_it_never_was_a_session(
    database: Database, store: Store, events: SystemEvents
) -> None:
    await events.add("agent:main:nobody", "about somebody", now_ms=NOON)
    await turn(store, "run-1", to=seed("nobody"))
    await events.add("agent:main:nobody", "and again", now_ms=NOON)

    async def quiet(_key: str, _whole: bool) -> None:
        return None

    await Erasing(database, quiesce=quiet).erase_session("agent:main:nobody", now_ms=NOON)
    assert await texts(events, "agent:main:nobody") == []


@pytest.mark.spec("TRX-14")
async def test_a_turn_in_which_the_model_only_takes_notes_leaves_the_events_alone(
    store: Store, events: SystemEvents
) -> None:
    await turn(store, "run-1")
    await events.add(KEY, "still to tell", now_ms=NOON)
    flush = say("run-2", "take notes", source="system")
    flush = msgspec.structs.replace(flush, body=msgspec.structs.replace(flush.body, purpose="flush"))
    taken = await store.accept(
        flush, RESETS, session_id="w", now_ms=NOON, start=PLAN, draft_inputs=draft_inputs
    )
    assert isinstance(taken, Accepted) and taken.claimed is not None
    assert told(taken.claimed.entries) == []
    assert await texts(events) == ["still to tell"]


# -- waking ----------------------------------------------------------------------------------------


@pytest.mark.spec("CLI-7")
async def test_a_wake_keeps_the_event_and_queues_one_turn_for_all_that_come_meanwhile(
    database: Database, store: Store, events: SystemEvents
) -> None:
    woken = await events.wake(wake_input(), "first", RESETS, session_id="w1", now_ms=NOON)
    assert woken.admission is not None and woken.admission.created
    again = await events.wake(wake_input("wake:2"), "second", RESETS, session_id="w2", now_ms=NOON + 1)
    assert again.admission is None
    waiting = await store.queued(KEY)
    assert [item.run_id for item in waiting] == ["wake:1"]
    assert (waiting[0].principal, waiting[0].human) == ("system", False)
    assert await database.read(count_waiting) == 1
    claims = Claims(database)
    found = await claims.next(
        KEY, lambda _row, inputs: Chosen((inputs[0].admission,), RunPlan("turn", "main", "o")),
        draft_inputs, now_ms=NOON,
    )  # fmt: skip
    assert found.claimed is not None
    assert [line.partition("UTC: ")[2] for line in told(found.claimed.entries)] == ["first", "second"]
    # The turn has begun: what comes now needs another one.
    third = await events.wake(wake_input("wake:3"), "third", RESETS, session_id="w3", now_ms=NOON + 2)
    assert third.admission is not None and not third.admission.created
    assert await texts(events) == ["third"]


@pytest.mark.spec("CLI-7")
async def test_a_waiting_message_of_a_person_is_no_wake(store: Store, events: SystemEvents) -> None:
    await begin(store, "run-1")
    await queue(store, "wake:mine", "hello again")
    woken = await events.wake(wake_input(), "news", RESETS, session_id="w", now_ms=NOON)
    assert woken.admission is not None
    assert [item.run_id for item in await store.queued(KEY)] == ["wake:mine", "wake:1"]


@pytest.mark.spec("CLI-7", "SEND-5")
async def test_a_refused_wake_keeps_nothing(store: Store, events: SystemEvents) -> None:
    denied = msgspec.structs.replace(wake_input(), send_policy=SendPolicy(default="deny"))
    with pytest.raises(SendDenied):
        await events.wake(denied, "news", RESETS, session_id="w", now_ms=NOON)
    assert await texts(events) == []
    assert await store.session(KEY) is None


@pytest.mark.spec("LIFE-12")
async def test_a_wake_neither_rotates_nor_rejuvenates_a_session(store: Store, events: SystemEvents) -> None:
    await turn(store, "run-1")
    woken = await events.wake(wake_input(), "news", RESETS, session_id="w", now_ms=NOON + 3 * DAY)
    assert woken.admission is not None
    row = woken.admission.session
    assert woken.admission.rotation is None
    assert row.entry.session_id == "run-1-window"
    assert row.entry.last_interaction_at == NOON


async def test_a_draft_is_made_only_when_something_waits(database: Database) -> None:
    assert await database.write(lambda tx: systemevents.take(tx, KEY, "run-1")) == ()
