"""Taking a reset back gives the session back as it was, with what was told about it since."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from openclaw.domain.entry import DeliveryContext, SessionEntry
from openclaw.domain.resets import KEPT_ON_EXPIRY
from openclaw.store import purging, sessions
from openclaw.store.records import SessionRow
from openclaw.store.runs import RunEnd
from openclaw.store.sessions import RotationReason
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.entries import ENTRIES, FIELDS, example_of
from tests.conformance.making import (
    DAY,
    DONE,
    MAIN,
    NOON,
    begin,
    create,
    execute,
    in_memory,
    note,
    present,
    seed,
    select,
    turn,
)

KEY = MAIN.session_key
REASONS: list[RotationReason] = ["new", "reset", "daily", "idle", "cron"]
# An undo is activity of its own, and the list of windows is never shortened.
OWN = ("updated_at", "last_interaction_at", "usage_family_session_ids")


async def change(store: Store, at: int, **fields: Any) -> SessionRow:
    row, _ = await store.edit_session(
        MAIN, lambda entry: replace(entry, **fields), session_id="unused", now_ms=at
    )
    return row


def without_own(row: SessionRow) -> dict[str, Any]:
    entry: dict[str, Any] = msgspec.structs.asdict(row.entry)
    for name in OWN:
        entry.pop(name)
    return {**msgspec.structs.asdict(row), "version": 0, "entry": entry}


def fit(entry: SessionEntry) -> SessionEntry:
    """A row that a store can have: no run that is not there, and a label that is a name."""
    status = None if entry.status == "running" else entry.status
    return replace(entry, status=status, last_run_id=None, label=entry.label or None)


@pytest.mark.spec("LIFE-21")
@settings(max_examples=150, deadline=None)
@given(ENTRIES.map(fit), st.sampled_from(REASONS), st.booleans(), st.integers(0, 3))
def test_a_reset_and_its_undo_leave_the_session_as_it_was(
    entry: SessionEntry, reason: RotationReason, talked: bool, read: int
) -> None:
    async def play(store: Store, database: SqliteDatabase) -> None:
        await create(store, MAIN)
        await store.append(KEY, (note("first words"), note("last words", "assistant")), now_ms=NOON)
        await store.mark_read(KEY, read)
        await change(store, NOON, **{name: getattr(entry, name) for name in FIELDS})
        before = await present(store)
        await store.reset_session(KEY, reason, session_id="second", now_ms=NOON + 1)
        if talked:
            await store.append(KEY, (note("in between"),), now_ms=NOON + 2)
        back = await store.undo_reset(KEY, now_ms=NOON + 3)
        assert back == await present(store)
        assert without_own(back) == without_own(before)
        assert (back.first_text, back.last_text) == ("first words", "last words")
        assert back.version > before.version
        assert back.entry.last_interaction_at == NOON + 3
        assert await select(database, "SELECT saved FROM windows WHERE session_id <> 'second'") == [(None,)]

    in_memory(play)


@pytest.mark.spec("LIFE-21", "ORG-2")
@pytest.mark.parametrize("reason", REASONS)
async def test_what_was_named_since_then_stays(store: Store, reason: RotationReason) -> None:
    route, newer = DeliveryContext("telegram", "1"), DeliveryContext("signal", "2")
    await create(store, MAIN, label="old", subject="plans", delivery_context=route, thinking_level="high")
    await store.reset_session(KEY, reason, session_id="second", now_ms=NOON + 1)
    await change(store, NOON + 2, label="new", delivery_context=newer, thinking_level="low", archived_at=7)
    back = await store.undo_reset(KEY, now_ms=NOON + 3)
    assert (back.entry.label, back.entry.delivery_context) == ("new", newer)
    assert (back.entry.subject, back.entry.thinking_level, back.entry.archived_at) == ("plans", "high", 7)
    assert back.entry.usage_family_session_ids == (f"{KEY}-window", "second")
    assert back == await present(store)


@pytest.mark.spec("LIFE-21")
@pytest.mark.parametrize("reason", ["reset", "daily", "cron"])
def test_each_field_alone(reason: RotationReason) -> None:
    """A field changed after the reset is newer news about the session, or a setting of the window left."""

    async def play(store: Store, database: SqliteDatabase) -> None:
        await create(store, MAIN)
        for number, name in enumerate(sorted(set(FIELDS) - {*OWN, "status", "last_run_id"})):
            before = await present(store)
            await store.reset_session(KEY, reason, session_id=f"w{number}", now_ms=NOON)
            changed = await change(store, NOON, **{name: example_of(name)})
            back = await store.undo_reset(KEY, now_ms=NOON)
            wanted = changed if name in KEPT_ON_EXPIRY else before
            assert getattr(back.entry, name) == getattr(wanted.entry, name), name

    in_memory(play)


async def test_a_window_without_a_saved_session_is_counted(store: Store, database: SqliteDatabase) -> None:
    await create(store, MAIN, label="mine")
    hidden = replace(note("for the model"), audience="model")
    await store.append(KEY, (note("one"), hidden, note("two")), now_ms=NOON)
    await store.reset_session(KEY, "daily", session_id="second", now_ms=NOON + DAY)
    await execute(database, "UPDATE windows SET saved = NULL")
    await change(store, NOON + DAY, thinking_level="low")
    back = await store.undo_reset(KEY, now_ms=NOON + DAY + 1)
    assert (back.last_seq, back.message_count, back.read_seq) == (3, 2, 3)
    assert (back.first_text, back.last_text) == (None, None)
    assert (back.entry.session_id, back.entry.session_started_at) == (f"{KEY}-window", NOON)
    assert (back.entry.label, back.entry.thinking_level) == ("mine", "low")
    (entry,) = await store.append(KEY, (note("three"),), now_ms=NOON + DAY + 2)
    assert (entry.seq, entry.parent_seq) == (4, 3)


async def test_what_is_saved_goes_with_what_it_tells_of(store: Store, database: SqliteDatabase) -> None:
    """A purge or an erase must not leave the words of a session behind in its windows."""
    for number, name in enumerate(("a", "b", "c")):
        await turn(store, f"run-{name}", "secret words", to=seed(name))
        await store.reset_session(f"agent:main:{name}", "reset", session_id=f"w{number}", now_ms=NOON)
    saved = "SELECT session_key, saved FROM windows WHERE saved IS NOT NULL ORDER BY session_key"
    assert [b"secret words" in bytes(blob) for _, blob in await select(database, saved)] == [True] * 3
    ((number,),) = await select(database, "SELECT window_no FROM windows WHERE session_id = 'run-a-window'")
    assert await database.write(lambda tx: purging.mark(tx, number, NOON))
    await database.write(lambda tx: sessions.forget_saved(tx, "agent:main:b"))
    assert [key for key, _ in await select(database, saved)] == ["agent:main:c"]


# -- runs ------------------------------------------------------------------------------------------


async def test_a_run_that_goes_on_in_the_window_goes_on_in_the_session(store: Store) -> None:
    active = await begin(store, "run-1", "go")
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON + 1)
    assert (await present(store)).entry.status is None
    back = await store.undo_reset(KEY, now_ms=NOON + 2)
    assert (back.entry.status, back.entry.last_run_id) == ("running", "run-1")
    done = await store.finish(active.run, (note("answer", "assistant"),), DONE, now_ms=NOON + 3)
    assert ([entry.seq for entry in done.entries], done.session.entry.status) == ([2], "done")


@pytest.mark.parametrize(
    ("outcome", "status"), [("ok", "done"), ("aborted", "killed"), ("timeout", "timeout")]
)
async def test_a_run_that_ended_meanwhile_is_told(store: Store, outcome: Any, status: str) -> None:
    active = await begin(store, "run-1", "go")
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON + 1)
    await store.finish(active.run, (), RunEnd(outcome, "stop"), now_ms=NOON + 20)
    entry = (await store.undo_reset(KEY, now_ms=NOON + 30)).entry
    assert (entry.status, entry.ended_at, entry.runtime_ms) == (status, NOON + 20, 20)
    assert (entry.aborted_last_run, entry.system_sent) == (outcome == "aborted", True)
    assert (await begin(store, "run-2", "more", at=NOON + 31)).entries[0].seq == 2


async def test_a_run_of_the_window_that_is_left_is_not_told(store: Store, database: SqliteDatabase) -> None:
    await turn(store, "run-1")
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON + 1)
    active = await begin(store, "run-2", "in between", at=NOON + 2)
    back = await store.undo_reset(KEY, now_ms=NOON + 3)
    assert (back.entry.status, back.entry.last_run_id) == ("done", "run-1")
    done = await store.finish(active.run, (note("late", "assistant"),), DONE, now_ms=NOON + 4)
    assert (done.entries, done.session.entry.status) == ((), "done")
    # Without anything saved no other window's run is taken for this one's.
    await store.reset_session(KEY, "reset", session_id="third", now_ms=NOON + 5)
    await begin(store, "run-3", "again", at=NOON + 6)
    await execute(database, "UPDATE windows SET saved = NULL")
    assert (await store.undo_reset(KEY, now_ms=NOON + 7)).entry.status is None


async def test_a_run_that_is_not_known_any_more_is_no_run(store: Store, database: SqliteDatabase) -> None:
    await begin(store, "run-1", "go")
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON + 1)
    await execute(database, "DELETE FROM runs")
    assert (await store.undo_reset(KEY, now_ms=NOON + 2)).entry.status is None
