"""Sessions: found by key, id and label; every change is one read-modify-write against the version."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from openclaw.domain.entry import SessionEntry
from openclaw.errors import InvalidRequest, LabelInUse, SessionNotFound, VersionConflict
from openclaw.store import sessions
from openclaw.store.database import ConstraintViolated
from openclaw.store.records import SessionSeed
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import DONE, MAIN, NOON, begin, create, note, present, queue, seed, select, turn

KEY = MAIN.session_key


# -- create and find -------------------------------------------------------------------------------


@pytest.mark.spec("ENT-1", "DB-13")
async def test_a_session_is_created_with_its_first_window(store: Store) -> None:
    group = SessionSeed(
        "agent:work:discord:group:g1", "work", "group", "group", "group", "discord", "agent:work:main",
        "agent:work:boss",
    )  # fmt: skip
    row, created = await store.edit_session(group, lambda entry: entry, session_id="id-1", now_ms=NOON)
    assert created
    assert (row.session_key, row.agent_id, row.kind, row.session_type) == (
        group.session_key, "work", "group", "group",
    )  # fmt: skip
    assert (row.version, row.last_seq, row.message_count, row.read_seq) == (1, 0, 0, 0)
    assert (row.first_text, row.last_text) == (None, None)
    assert row.entry == SessionEntry(
        session_id="id-1",
        updated_at=NOON,
        created_at=NOON,
        session_started_at=NOON,
        chat_type="group",
        channel="discord",
        parent_session_key="agent:work:main",
        spawned_by="agent:work:boss",
    )
    assert await present(store, group.session_key) == row
    (window,) = await store.windows_of(group.session_key)
    assert (window.window_no, window.session_id, window.session_key) == (
        row.window_no, "id-1", group.session_key,
    )  # fmt: skip
    assert (window.previous_no, window.reason, window.started_at) == (None, "created", NOON)
    assert (window.ended_at, window.end_reason) == (None, None)


@pytest.mark.spec("ENT-11")
async def test_an_unknown_chat_type_in_a_seed_is_unset(store: Store) -> None:
    row = await create(store, seed("odd", chat_type="forum"))
    assert row.entry.chat_type is None
    assert (await create(store, seed("even", chat_type="channel"))).entry.chat_type == "channel"


@pytest.mark.spec("ENT-1")
async def test_what_is_there_is_not_created_again(store: Store) -> None:
    first = await create(store, MAIN)
    row, created = await store.edit_session(MAIN, lambda entry: entry, session_id="another", now_ms=NOON + 9)
    assert not created
    assert row == first
    assert await store.session("agent:main:nobody") is None
    assert await store.history("agent:main:nobody", 10) is None


async def test_a_session_id_belongs_to_one_window(store: Store) -> None:
    await create(store, MAIN)
    with pytest.raises(ConstraintViolated, match=r"windows\.session_id"):
        await store.edit_session(seed("other"), lambda entry: entry, session_id=f"{KEY}-window", now_ms=NOON)
    assert await store.session("agent:main:other") is None


async def test_a_session_is_found_by_its_current_and_by_an_earlier_id(store: Store) -> None:
    await create(store, MAIN)
    await create(store, seed("other"))
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON + 1)
    await store.reset_session(KEY, "reset", session_id="third", now_ms=NOON + 2)
    row = await present(store)
    for session_id in (f"{KEY}-window", "second", "third"):
        assert await store.session_by_id(session_id) == row
    assert await store.session_by_id("fourth") is None
    assert row.entry.session_id == "third"


async def test_children_are_found_by_either_link(store: Store) -> None:
    await create(store, MAIN)
    await create(store, seed("a", spawned_by=KEY))
    await create(store, seed("b", parent_session_key=KEY))
    await create(store, seed("c", spawned_by="agent:main:other"))
    assert await store.children_of(KEY) == ("agent:main:b", "agent:main:a")
    assert await store.children_of("agent:main:a") == ()


# -- labels ----------------------------------------------------------------------------------------


@pytest.mark.spec("ENT-7")
async def test_a_label_is_unique_inside_an_agent(store: Store) -> None:
    row = await create(store, MAIN, label="work")
    other = await create(store, seed("other"), label="play")
    with pytest.raises(LabelInUse, match="label already in use: work") as caught:
        await create(store, seed("other"), label="work", thinking_level="high")
    assert caught.value.code == "INVALID_REQUEST"
    assert await present(store, "agent:main:other") == other
    # Keeping one's own label is no conflict, and a label that was given up is free again.
    kept = await create(store, MAIN, label="work", thinking_level="low")
    assert (kept.entry.label, kept.version) == ("work", row.version + 1)
    await create(store, MAIN, label=None)
    assert (await create(store, seed("other"), label="work")).entry.label == "work"
    assert await store.session_by_label("play") is None


@pytest.mark.spec("ENT-7")
async def test_the_database_says_the_same_about_labels(store: Store, database: SqliteDatabase) -> None:
    await create(store, MAIN, label="work")
    await create(store, seed("other"))
    with pytest.raises(ConstraintViolated, match=r"sessions\.agent_id, sessions\.label"):
        await database.write(
            lambda tx: tx.run("UPDATE sessions SET label = 'work' WHERE session_key = 'agent:main:other'")
        )


async def test_two_agents_may_use_one_label_but_then_the_agent_must_be_named(store: Store) -> None:
    mine = await create(store, MAIN, label="work")
    yours = await create(store, seed("main", agent_id="two"), label="work")
    with pytest.raises(
        InvalidRequest, match="several agents have a session labelled 'work'; name the agentId"
    ):
        await store.session_by_label("work")
    assert await store.session_by_label("work", "main") == mine
    assert await store.session_by_label("work", "two") == yours
    assert await store.session_by_label("work", "three") is None
    assert await store.session_by_label("nothing") is None


# -- change ----------------------------------------------------------------------------------------


@pytest.mark.spec("DB-14")
async def test_concurrent_edits_lose_no_field(store: Store) -> None:
    await create(store, MAIN)
    names = [
        "thinking_level", "verbose_level", "trace_level", "exec_host", "exec_security", "exec_ask",
        "exec_node", "tts_auto", "provider_override", "model_override", "auth_profile_override",
        "display_name", "subject", "space", "group_id", "group_channel",
    ]  # fmt: skip
    edits: list[dict[str, Any]] = [{name: f"value of {name}"} for name in names] + [
        {name: f"later {name}"} for name in names
    ]
    assert len(edits) == 32
    rows = await asyncio.gather(*(create(store, MAIN, **edit) for edit in edits))
    row = await present(store)
    for name in names:
        assert getattr(row.entry, name) == f"later {name}"
    assert sorted(changed.version for changed in rows) == list(range(2, 34))
    assert row.version == 33


@pytest.mark.spec("DB-14")
async def test_concurrent_edits_of_one_field_all_count(store: Store) -> None:
    await create(store, MAIN, queue_cap=0)

    def add(entry: SessionEntry) -> SessionEntry:
        return msgspec.structs.replace(entry, queue_cap=(entry.queue_cap or 0) + 1)

    await asyncio.gather(*(store.edit_session(MAIN, add, session_id="x", now_ms=NOON + n) for n in range(32)))
    row = await present(store)
    assert row.entry.queue_cap == 32
    assert row.entry.updated_at == NOON + 31


async def test_an_edit_that_changes_nothing_writes_nothing(store: Store) -> None:
    row = await create(store, MAIN, label="work")
    same = await create(store, MAIN, at=NOON + 99, label="work")
    assert same == row
    assert (await present(store)).version == row.version


async def test_time_never_runs_backwards_in_a_row(store: Store) -> None:
    await create(store, MAIN, at=NOON)
    early = await create(store, MAIN, at=NOON - 1000, label="work")
    assert early.entry.updated_at == NOON
    late = await create(store, MAIN, at=NOON + 1, label="play")
    assert late.entry.updated_at == NOON + 1
    assert late.entry.created_at == NOON


async def test_an_edit_that_raises_changes_nothing(store: Store) -> None:
    def refuse(entry: SessionEntry) -> SessionEntry:
        raise InvalidRequest("not like this")

    with pytest.raises(InvalidRequest, match="not like this"):
        await store.edit_session(MAIN, refuse, session_id="x", now_ms=NOON)
    assert await store.session(KEY) is None
    assert await store.windows_of(KEY) == ()


@pytest.mark.spec("DB-14")
async def test_a_stale_row_cannot_be_written(store: Store, database: SqliteDatabase) -> None:
    stale = await create(store, MAIN)
    fresh = await create(store, MAIN, label="work")
    changed = msgspec.structs.replace(stale.entry, subject="lost")
    with pytest.raises(VersionConflict, match="changed in the meantime") as caught:
        await database.write(lambda tx: sessions.change(tx, stale, changed, now_ms=NOON))
    assert (caught.value.code, caught.value.retryable) == ("CONFLICT", True)
    with pytest.raises(VersionConflict, match="changed in the meantime"):
        await database.write(lambda tx: sessions.delete(tx, stale, NOON))
    assert await present(store) == fresh
    assert [window.end_reason for window in await store.windows_of(KEY)] == [None]


async def test_every_verb_moves_the_version(store: Store) -> None:
    versions = [(await create(store, MAIN)).version]

    async def look() -> None:
        versions.append((await present(store)).version)

    await queue(store, "run-1")
    await look()
    await store.append(KEY, (note("aside"),), now_ms=NOON)
    await look()
    await store.mark_read(KEY, 1)
    await look()
    await store.cancel(KEY)
    claimed = await begin(store, "run-2")
    await look()
    await store.finish(claimed.run, (), DONE, now_ms=NOON)
    await look()
    await store.reset_session(KEY, "reset", session_id="x", now_ms=NOON)
    await look()
    assert versions == sorted(set(versions))


@pytest.mark.spec("DB-14")
async def test_an_edit_meant_for_another_window_is_refused(store: Store) -> None:
    row = await create(store, MAIN)
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON + 1)

    def rename(entry: SessionEntry) -> SessionEntry:
        return msgspec.structs.replace(entry, display_name="late")

    with pytest.raises(VersionConflict, match=r"Session agent:main:main changed\. Retry\."):
        await store.edit_session(
            MAIN, rename, session_id="x", now_ms=NOON, expected_session_id=row.entry.session_id
        )
    assert (await present(store)).entry.display_name is None
    changed, created = await store.edit_session(
        MAIN, rename, session_id="x", now_ms=NOON, expected_session_id="second"
    )
    assert (changed.entry.display_name, created) == ("late", False)
    # A session that is not there yet cannot be the expected one either.
    with pytest.raises(VersionConflict):
        await store.edit_session(
            seed("new"), rename, session_id="x", now_ms=NOON, expected_session_id="second"
        )
    assert await store.session("agent:main:new") is None


async def test_reading_marks_one_session(store: Store, database: SqliteDatabase) -> None:
    await turn(store, "run-1")
    await turn(store, "run-2", to=seed("other"))
    assert (await present(store)).read_seq == 0
    await store.mark_read(KEY, 2)
    await store.mark_read("agent:main:nobody", 2)
    assert (await present(store)).read_seq == 2
    assert (await present(store, "agent:main:other")).read_seq == 0
    assert await select(database, "SELECT count(*) FROM sessions") == [(2,)]


async def test_a_missing_session_is_named(store: Store) -> None:
    for write in (
        store.reset_session("agent:main:gone", "reset", session_id="x", now_ms=NOON),
        store.undo_reset("agent:main:gone", now_ms=NOON),
        store.append("agent:main:gone", (note("x"),), now_ms=NOON),
    ):
        with pytest.raises(SessionNotFound, match="session not found: agent:main:gone"):
            await write
    assert not await store.delete_session("agent:main:gone", now_ms=NOON)
