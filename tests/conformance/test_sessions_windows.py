"""Windows: a reset starts the next one and erases nothing, an undo points back, a delete removes one key."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openclaw.domain.entry import DeliveryContext, Origin
from openclaw.domain.resets import carry_over, carry_over_cron_run
from openclaw.domain.searchtext import query_terms
from openclaw.errors import InvalidRequest, SessionNotFound
from openclaw.store import search, sessions
from openclaw.store.database import ConstraintViolated
from openclaw.store.inbox import Known
from openclaw.store.runs import RunEnd
from openclaw.store.sessions import RotationReason
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from openclaw.store.transcript import salt_of
from tests.conformance.making import (
    DAY,
    MAIN,
    NOON,
    begin,
    create,
    note,
    present,
    queue,
    seed,
    select,
    texts,
    turn,
)

KEY = MAIN.session_key
SETTINGS: dict[str, Any] = {
    "thinking_level": "high",
    "verbose_level": "full",
    "elevated_level": "ask",
    "exec_host": "sandbox",
    "queue_mode": "collect",
    "queue_cap": 7,
    "send_policy": "allow",
    "group_activation": "always",
    "label": "work",
    "display_name": "Work",
    "subject": "plans",
    "origin": Origin(label="me"),
    "delivery_context": DeliveryContext(channel="telegram", to="42"),
    "provider_override": "openai",
    "model_override": "gpt-x",
    "model_override_source": "user",
    "pinned_at": NOON,
    "compaction_count": 3,
    "skills_snapshot": {"a": 1},
}


async def used_session(store: Store) -> None:
    """A session with settings and one counted turn."""
    await create(store, MAIN, **SETTINGS)
    active = await begin(store, "run-1", "old words")
    end = RunEnd("ok", "stop", None, 100, 30, 20, 5, 200_000, "openai", "gpt-x")
    await store.finish(active.run, (note("old answer", "assistant"),), end, now_ms=NOON + 5)


async def all_entries(database: SqliteDatabase) -> list[tuple[Any, ...]]:
    return await select(database, "SELECT * FROM entries ORDER BY window_no, seq")


# -- rotate ----------------------------------------------------------------------------------------


@pytest.mark.spec("LIFE-21", "LIFE-22", "TRX-1")
@pytest.mark.parametrize("reason", ["new", "reset"])
async def test_an_explicit_reset_keeps_what_a_person_set(
    store: Store, database: SqliteDatabase, reason: RotationReason
) -> None:
    await used_session(store)
    before, said = await present(store), await all_entries(database)
    row, rotation = await store.reset_session(KEY, reason, session_id="second", now_ms=NOON + 10)
    assert (rotation.reason, rotation.previous_session_id, rotation.session_id) == (
        reason, before.entry.session_id, "second",
    )  # fmt: skip
    assert row == await present(store)
    expected = carry_over(before.entry, session_id="second", now_ms=NOON + 10, explicit=True)
    assert row.entry == expected
    dropped = ("compaction_count", "skills_snapshot")
    kept = {name: getattr(row.entry, name) for name in SETTINGS if name not in dropped}
    assert kept == {name: value for name, value in SETTINGS.items() if name not in dropped}
    assert (row.entry.compaction_count, row.entry.skills_snapshot) == (0, None)
    assert (row.entry.system_sent, row.entry.status, row.entry.model) == (False, None, None)
    assert (row.entry.input_tokens, row.entry.output_tokens, row.entry.total_tokens) == (0, 0, 0)
    assert (row.entry.session_started_at, row.entry.created_at) == (NOON + 10, NOON)
    assert (row.last_seq, row.message_count, row.read_seq) == (0, 0, 0)
    assert (row.first_text, row.last_text) == (None, None)
    assert row.id_salt == salt_of("second") != before.id_salt
    assert row.version == before.version + 1
    assert await all_entries(database) == said


@pytest.mark.spec("LIFE-21", "LOOP-7")
@pytest.mark.parametrize("reason", ["daily", "idle", "deleted"])
async def test_an_expiry_keeps_identity_and_route_but_no_toggles(
    store: Store, reason: RotationReason
) -> None:
    await used_session(store)
    before = await present(store)
    row, _ = await store.reset_session(KEY, reason, session_id="second", now_ms=NOON + DAY)
    assert row.entry == carry_over(before.entry, session_id="second", now_ms=NOON + DAY, explicit=False)
    assert (row.entry.thinking_level, row.entry.queue_mode, row.entry.exec_host) == (None, None, None)
    assert (row.entry.label, row.entry.group_activation, row.entry.pinned_at) == ("work", "always", NOON)
    assert row.entry.delivery_context == SETTINGS["delivery_context"]
    (current, ended) = await store.windows_of(KEY)
    assert (ended.ended_at, ended.end_reason, current.reason) == (NOON + DAY, reason, reason)


@pytest.mark.spec("AUTO-3", "LIFE-20")
async def test_a_fresh_cron_run_carries_toggles_but_no_route(store: Store) -> None:
    await used_session(store)
    before = await present(store)
    row, rotation = await store.reset_session(KEY, "cron", session_id="second", now_ms=NOON + 10)
    assert rotation.session_id == row.entry.session_id == "second"
    assert row.entry == carry_over_cron_run(before.entry, session_id="second", now_ms=NOON + 10)
    assert (row.entry.thinking_level, row.entry.label, row.entry.model_override) == ("high", "work", "gpt-x")
    assert (row.entry.delivery_context, row.entry.send_policy, row.entry.queue_mode) == (None, None, None)


@pytest.mark.spec("LIFE-22")
async def test_windows_form_a_chain(store: Store) -> None:
    await turn(store, "run-1")
    reasons: tuple[RotationReason, ...] = ("reset", "daily", "idle")
    for n, reason in enumerate(reasons, 1):
        await store.reset_session(KEY, reason, session_id=f"id-{n}", now_ms=NOON + n)
    chain = await store.windows_of(KEY)
    assert [window.session_id for window in chain] == ["id-3", "id-2", "id-1", "run-1-window"]
    assert [window.previous_no for window in chain] == [
        *(window.window_no for window in chain[1:]), None,
    ]  # fmt: skip
    assert [window.reason for window in chain] == ["idle", "daily", "reset", "created"]
    assert [window.end_reason for window in chain] == [None, "idle", "daily", "reset"]
    assert [window.ended_at for window in chain] == [None, NOON + 3, NOON + 2, NOON + 1]
    assert [window.started_at for window in chain] == [NOON + 3, NOON + 2, NOON + 1, NOON]
    assert [window.id_salt for window in chain] == [salt_of(window.session_id) for window in chain]
    assert {(window.base_no, window.base_seq, window.session_key) for window in chain} == {(None, 0, KEY)}
    assert await store.windows_of("agent:main:other") == ()


@pytest.mark.spec("LIFE-22")
async def test_a_reset_cancels_what_waits_in_this_session(store: Store) -> None:
    await queue(store, "run-1")
    await queue(store, "run-2", to=seed("other"))
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON + 1)
    assert await store.queued(KEY) == ()
    assert await store.input_state("run-1") == Known("run-1", KEY, "cancelled", None)
    assert len(await store.queued("agent:main:other")) == 1


async def test_a_reset_that_fails_changes_nothing(store: Store) -> None:
    await queue(store, "run-1")
    before = await present(store)
    with pytest.raises(ConstraintViolated):
        await store.reset_session(KEY, "reset", session_id=before.entry.session_id, now_ms=NOON + 1)
    assert await present(store) == before
    assert len(await store.queued(KEY)) == 1
    assert [window.ended_at for window in await store.windows_of(KEY)] == [None]


# -- undo ------------------------------------------------------------------------------------------


@pytest.mark.spec("TRX-1", "TRX-4")
async def test_an_undone_reset_brings_the_earlier_window_back(store: Store, database: SqliteDatabase) -> None:
    await turn(store, "run-1", "one")
    await turn(store, "run-2", "two", at=NOON + 1)
    before = await present(store)
    page = await store.history(KEY, 10)
    assert page is not None
    await store.reset_session(KEY, "daily", session_id="second", now_ms=NOON + 2)
    await turn(store, "run-3", "in between", at=NOON + 3)
    said = await all_entries(database)
    row = await store.undo_reset(KEY, now_ms=NOON + 4)
    assert row == await present(store)
    assert (row.window_no, row.id_salt, row.entry.session_id) == (
        before.window_no, before.id_salt, before.entry.session_id,
    )  # fmt: skip
    assert (row.last_seq, row.message_count, row.read_seq) == (4, 4, before.read_seq)
    assert row.entry.session_started_at == before.entry.session_started_at
    # Going back is an act of a person: the next message must not find the window stale again.
    assert row.entry.last_interaction_at == NOON + 4
    again = await store.history(KEY, 10)
    assert again is not None
    assert again.entries == page.entries
    assert await all_entries(database) == said
    (undone, current) = await store.windows_of(KEY)
    assert (undone.end_reason, undone.ended_at) == ("undone", NOON + 4)
    assert (current.end_reason, current.ended_at) == (None, None)
    assert await store.session_by_id("second") == row
    later = await turn(store, "run-4", "three", at=NOON + 5)
    assert [(entry.seq, entry.parent_seq) for entry in later.entries] == [(6, 5)]
    ids = {entry.entry_id for entry in await store.context(row.window_no)}
    assert len(ids) == 6


async def test_a_session_can_be_reset_again_after_an_undo(store: Store) -> None:
    await turn(store, "run-1", "one")
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON + 1)
    await store.undo_reset(KEY, now_ms=NOON + 2)
    row, rotation = await store.reset_session(KEY, "reset", session_id="third", now_ms=NOON + 3)
    assert rotation.previous_session_id == "run-1-window"
    assert row.last_seq == 0
    back = await store.undo_reset(KEY, now_ms=NOON + 4)
    assert back.entry.session_id == "run-1-window"
    assert back.message_count == 2
    with pytest.raises(InvalidRequest, match="has no earlier window to go back to"):
        await store.undo_reset(KEY, now_ms=NOON + 5)
    assert await present(store) == back


async def test_an_undo_counts_only_what_people_see(store: Store) -> None:
    await create(store, MAIN)
    hidden = msgspec.structs.replace(note("for the model"), audience="model")
    custom = msgspec.structs.replace(note("state"), type="custom")
    await store.append(KEY, (note("seen"), hidden, custom, note("seen too")), now_ms=NOON)
    before = await present(store)
    assert (before.last_seq, before.message_count) == (4, 2)
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON)
    back = await store.undo_reset(KEY, now_ms=NOON)
    assert (back.last_seq, back.message_count) == (4, 2)


async def test_an_empty_window_can_come_back(store: Store) -> None:
    await create(store, MAIN)
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON)
    back = await store.undo_reset(KEY, now_ms=NOON)
    assert (back.last_seq, back.message_count, back.read_seq) == (0, 0, 0)
    (entry,) = await store.append(KEY, (note("first"),), now_ms=NOON)
    assert (entry.seq, entry.parent_seq) == (1, None)


# -- delete ----------------------------------------------------------------------------------------


@pytest.mark.spec("ENT-1", "LIFE-19", "LIFE-24")
async def test_a_deleted_session_is_recreated_on_demand_and_others_survive(
    store: Store, database: SqliteDatabase
) -> None:
    await turn(store, "run-1", "to be forgotten")
    await turn(store, "run-2", "stays", to=seed("other"))
    await queue(store, "run-3")
    other, old = await present(store, "agent:main:other"), await present(store)
    said = await all_entries(database)
    assert await store.delete_session(KEY, now_ms=NOON + 5)
    assert await store.session(KEY) is None
    assert await store.session_by_id("run-1-window") is None
    assert await store.input_state("run-3") == Known("run-3", KEY, "cancelled", None)
    assert await present(store, "agent:main:other") == other
    with pytest.raises(SessionNotFound):
        await store.append(KEY, (note("nobody home"),), now_ms=NOON)
    # The transcript is not erased: its window says what happened and leads to the entries.
    (window,) = await store.windows_of(KEY)
    assert (window.session_id, window.end_reason, window.ended_at) == ("run-1-window", "deleted", NOON + 5)
    assert texts(await store.context(window.window_no)) == ["to be forgotten", "re: to be forgotten"]
    assert await all_entries(database) == said
    again = await turn(store, "run-4", "hello", at=NOON + 6)
    assert again.session.window_no != old.window_no
    assert again.session.entry.session_id == "run-4-window"
    assert (again.session.message_count, again.session.entry.created_at) == (2, NOON + 6)
    # The new session does not answer to the id of the deleted one; its window still does.
    assert await store.session_by_id("run-1-window") is None
    assert await store.session_by_id("run-4-window") == again.session
    assert await database.read(lambda tx: sessions.window(tx, "run-1-window")) == window
    assert await database.read(lambda tx: sessions.window(tx, "nobody")) is None
    assert not await store.delete_session("agent:main:none", now_ms=NOON)


@pytest.mark.spec("SRCH-3", "LIFE-24")
async def test_what_was_deleted_is_not_found_again_when_the_key_comes_back(
    store: Store, database: SqliteDatabase
) -> None:
    await turn(store, "run-1", "secret plans")
    await store.reset_session(KEY, "daily", session_id="second", now_ms=NOON + 1)
    await turn(store, "run-2", "secret budget", at=NOON + 2)
    await turn(store, "run-3", "secret garden", to=seed("other"))
    assert len(await store.search(query_terms("secret"))) == 6
    assert await store.delete_session(KEY, now_ms=NOON + 3)
    assert len(await store.search(query_terms("secret"))) == 2
    await turn(store, "run-4", "hello", at=NOON + 4)
    for _ in range(2):  # before and after the words are folded into the index
        hits = await store.search(query_terms("secret"))
        assert {hit.session_key for hit in hits} == {"agent:main:other"}
        assert len(await store.search(query_terms("hello"))) == 2
        await database.write(search.fold)


async def test_every_life_of_a_key_is_forgotten_once(store: Store, database: SqliteDatabase) -> None:
    await turn(store, "run-1")
    await store.delete_session(KEY, now_ms=NOON + 1)
    await turn(store, "run-2", to=seed("other"))
    await turn(store, "run-3")
    await store.delete_session(KEY, now_ms=NOON + 2)
    gone = await select(database, "SELECT session_id, deleted_at FROM windows ORDER BY window_no")
    assert gone == [("run-1-window", NOON + 1), ("run-2-window", None), ("run-3-window", NOON + 2)]


async def test_a_deleted_label_is_free(store: Store) -> None:
    await create(store, MAIN, label="work")
    await store.delete_session(KEY, now_ms=NOON)
    assert (await create(store, seed("other"), label="work")).entry.label == "work"
