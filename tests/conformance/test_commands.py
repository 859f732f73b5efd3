"""Commands in the store: one commit each, answered once, settled after a crash, never in a context."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from openclaw.domain.context import rebuild_context
from openclaw.domain.entry import DeliveryContext, SessionEntry
from openclaw.domain.origin import InboundContext
from openclaw.domain.policy import SendPolicy, SendRule
from openclaw.domain.transcript import CustomRecord
from openclaw.engine.contexts import record_of
from openclaw.errors import IdempotencyConflict, InvalidRequest
from openclaw.store import failpoints
from openclaw.store.commands import (
    AnsweredCommand,
    CommandAnswer,
    CommandStore,
    SeenCommand,
    TakenCommand,
    UsageTotals,
)
from openclaw.store.conversations import ConversationRef
from openclaw.store.database import Database
from openclaw.store.inbox import ExternalId, Inbound, Known
from openclaw.store.records import DeliveryDraft, EntryDraft, UsageRow
from openclaw.store.store import Store
from tests.conformance.making import (
    DAY,
    DONE,
    MAIN,
    NOON,
    RESETS,
    begin,
    create,
    present,
    queue,
    say,
    seed,
    select,
    turn,
)

KEY = MAIN.session_key
ROUTE = DeliveryContext(channel="telegram", to="42")
TELEGRAM = ExternalId("telegram", "default", "42", "m1")


def shown(role: str, text: str) -> EntryDraft:
    body = msgspec.json.encode({"customType": "openclaw.command", "data": {"role": role, "content": text}})
    return EntryDraft("custom", body, role, run_id="c1")


def answer(text: str = "fine", **fields: Any) -> CommandAnswer:
    made = CommandAnswer(text, (shown("user", "/status"), shown("assistant", text)))
    return replace(made, **fields)


def delivery(key: str = "c1:reply") -> DeliveryDraft:
    return DeliveryDraft(key, ROUTE, b'{"text":"fine"}', NOON + 1000)


def loud(entry: SessionEntry) -> SessionEntry:
    return replace(entry, verbose_level="full")


@pytest.fixture
def commands(database: Database) -> CommandStore:
    return CommandStore(database)


async def handle(commands: CommandStore, run_id: str = "c1", text: str = "/status", **fields: Any) -> Any:
    new = say(run_id, text, external=fields.pop("external", None), send_policy=fields.pop("policy", None))
    given = {"session_id": f"{run_id}-window", "now_ms": NOON, **fields}
    return await commands.handle(
        replace(new, inbound=given.pop("inbound", None)), given.pop("answer", answer()), **given
    )


@pytest.mark.spec("DB-15", "QUE-9")
async def test_effect_record_answer_and_delivery_are_one_commit(
    store: Store, commands: CommandStore, database: Database
) -> None:
    done = await handle(commands, answer=answer(delivery=delivery()), edit=loud)
    assert isinstance(done, AnsweredCommand)
    assert (done.run_id, done.answer, done.created) == ("c1", "fine", True)
    row = await present(store)
    assert row.entry.verbose_level == "full"
    assert done.session == row
    assert await select(database, "SELECT state, consumed_by, principal, human FROM inbox") == [
        ("consumed", "c1", "operator", 1)
    ]
    run = await store.run("c1")
    assert run is not None
    assert (run.state, run.outcome, run.kind, run.started_at, run.ended_at) == (
        "ended",
        "ok",
        "command",
        NOON,
        NOON,
    )
    assert run.reply_seq is None
    assert await select(database, "SELECT idempotency_key, run_id, channel, target, state FROM outbox") == [
        ("c1:reply", "c1", "telegram", "42", "prepared")
    ]
    assert [entry.role for entry in done.entries] == ["user", "assistant"]
    assert await store.queued(KEY) == ()


@pytest.mark.spec("ROUTE-4")
async def test_the_same_message_again_gets_the_same_answer_and_does_nothing(
    store: Store, commands: CommandStore, database: Database
) -> None:
    await handle(commands, external=TELEGRAM, edit=loud)
    before = await present(store)

    def quiet(entry: SessionEntry) -> SessionEntry:
        return replace(entry, verbose_level="off")

    again = await handle(commands, answer=answer("other"), edit=quiet, now_ms=NOON + 5)
    assert again == SeenCommand("c1", KEY, "fine")
    by_platform = await handle(commands, "c2", external=TELEGRAM, answer=answer("other"), edit=quiet)
    assert by_platform == SeenCommand("c1", KEY, "fine")
    assert await present(store) == before
    assert await select(database, "SELECT count(*) FROM inbox") == [(1,)]
    assert await commands.seen(say("c1", "/status")) == SeenCommand("c1", KEY, "fine")
    assert await commands.seen(say("c9", "/status")) is None
    with pytest.raises(IdempotencyConflict):
        await handle(commands, text="/stop")
    with pytest.raises(IdempotencyConflict):
        await commands.seen(say("c1", "/stop"))


async def test_a_message_that_was_a_turn_is_not_answered_as_a_command(
    store: Store, commands: CommandStore
) -> None:
    await turn(store, "r1", "hello")
    assert await handle(commands, "r1", "hello") == SeenCommand("r1", KEY, None)
    assert await commands.answer_of("r1") is None
    assert await commands.answer_of("nothing") is None


async def test_history_shows_the_command_and_the_model_never_sees_it(
    store: Store, commands: CommandStore
) -> None:
    await turn(store, "r1", "hello")
    await handle(commands)
    await turn(store, "r2", "again")
    page = await store.history(KEY, 20)
    assert page is not None
    assert [(entry.type, entry.role) for entry in page.entries] == [
        ("message", "user"),
        ("message", "assistant"),
        ("custom", "user"),
        ("custom", "assistant"),
        ("message", "user"),
        ("message", "assistant"),
    ]
    said, answered = (entry for entry in page.entries if entry.type == "custom")
    records = [record_of(said, None), record_of(answered, said.entry_id)]
    assert all(isinstance(record, CustomRecord) for record in records)
    assert rebuild_context(records, answered.entry_id) == ()
    row = await present(store)
    assert (row.message_count, row.last_text) == (4, "re: again")


@pytest.mark.spec("LIFE-12", "SEND-9")
async def test_a_command_neither_refreshes_nor_rotates_nor_asks_the_send_policy(
    store: Store, commands: CommandStore
) -> None:
    await turn(store, "r1", "hello")
    before = await present(store)
    denied = SendPolicy(rules=(SendRule("deny"),))
    done = await handle(commands, now_ms=NOON + 3 * DAY, policy=denied)
    assert isinstance(done, AnsweredCommand)
    assert done.session.entry.session_id == before.entry.session_id
    assert done.session.entry.last_interaction_at == before.entry.last_interaction_at
    assert done.created is False


@pytest.mark.spec("ORG-3")
async def test_origin_and_route_are_kept(store: Store, commands: CommandStore) -> None:
    place = ConversationRef("telegram", "default", "direct", "42")
    context = InboundContext(
        source="channel", provider="telegram", from_="telegram:42", to="42", account_id="default"
    )
    await handle(commands, inbound=Inbound(context, place))
    await handle(commands, "c2", inbound=Inbound(context))
    assert await store.conversations_of(KEY) == (place,)
    row = await present(store)
    assert row.entry.delivery_context is not None
    assert row.entry.delivery_context.channel == "telegram"
    assert row.entry.last_interaction_at is None


@pytest.mark.spec("DB-15")
@pytest.mark.parametrize(
    "point", ["session.changed", "append.advanced", "append.entry_kept", "delivery.prepared"]
)
async def test_a_failure_on_the_way_leaves_nothing(
    store: Store, commands: CommandStore, database: Database, point: str
) -> None:
    await create(store, MAIN)

    def fail(name: str) -> None:
        if name == point:
            raise InvalidRequest("planted")

    failpoints.watch(fail)
    try:
        with pytest.raises(InvalidRequest):
            await handle(commands, answer=answer(delivery=delivery()), edit=loud)
    finally:
        failpoints.watch(None)
    assert (await present(store)).entry.verbose_level is None
    for table in ("inbox", "runs", "outbox", "entries"):
        assert await select(database, f"SELECT count(*) FROM {table}") == [(0,)], table
    assert isinstance(await handle(commands), AnsweredCommand)


async def test_undoing_a_reset_is_part_of_the_commit(store: Store, commands: CommandStore) -> None:
    await turn(store, "r1", "hello")
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON)
    done = await handle(commands, undo_reset=True)
    assert isinstance(done, AnsweredCommand)
    assert done.session.entry.session_id == "r1-window"
    assert [entry.seq for entry in done.entries] == [3, 4]
    with pytest.raises(InvalidRequest):
        await handle(commands, "c2", undo_reset=True)
    assert await commands.answer_of("c2") is None


# -- taken first, answered later ---------------------------------------------------------------


@pytest.mark.spec("QUE-9")
async def test_a_long_command_is_taken_then_answered_once(store: Store, commands: CommandStore) -> None:
    taken = await commands.take(say("c1", "/compact"), session_id="w", now_ms=NOON, edit=loud)
    assert isinstance(taken, TakenCommand)
    assert (taken.created, taken.cancelled, taken.active) == (True, (), ())
    assert taken.session.entry.verbose_level == "full"
    assert await store.run("c1") is None
    known = await store.input_state("c1")
    assert known == Known("c1", KEY, "consumed", "")
    assert await store.queued(KEY) == ()
    again = await commands.take(say("c1", "/compact"), session_id="w2", now_ms=NOON)
    assert again == SeenCommand("c1", KEY, None)
    ((run_id, key, body),) = await commands.unanswered()
    assert (run_id, key, body.content) == ("c1", KEY, "/compact")

    done = await commands.answer("c1", answer("smaller"), now_ms=NOON + 9, edit=loud)
    assert done is not None
    assert (done.answer, [entry.seq for entry in done.entries]) == ("smaller", [1, 2])
    run = await store.run("c1")
    assert run is not None
    assert (run.started_at, run.ended_at, run.outcome, run.error) == (NOON, NOON + 9, "ok", None)
    assert await commands.answer("c1", answer("twice"), now_ms=NOON) is None
    assert await commands.answer("nobody", answer(), now_ms=NOON) is None
    assert await commands.answer_of("c1") == "smaller"
    assert await commands.seen(say("c1", "/compact")) == SeenCommand("c1", KEY, "smaller")
    assert await commands.unanswered() == ()
    assert await store.input_state("c1") == Known("c1", KEY, "consumed", "c1")


@pytest.mark.spec("REST-2")
async def test_an_interrupted_command_is_settled_as_such(store: Store, commands: CommandStore) -> None:
    await commands.take(say("c1", "/compact"), session_id="w", now_ms=NOON)
    await commands.answer("c1", answer("cut off", interrupted=True), now_ms=NOON + 1)
    run = await store.run("c1")
    assert run is not None
    assert (run.outcome, run.stop_reason, run.error) == ("interrupted", "error", "cut off")


@pytest.mark.spec("CMD-16")
async def test_an_answer_without_entries_is_kept_for_repeats_only(
    store: Store, commands: CommandStore, database: Database
) -> None:
    await commands.take(say("c1", "/btw why"), session_id="w", now_ms=NOON)
    done = await commands.answer("c1", answer("because", entries=(), delivery=delivery()), now_ms=NOON)
    assert done is not None
    assert done.entries == ()
    assert (await present(store)).last_seq == 0
    run = await store.run("c1")
    assert run is not None
    assert run.reply_seq is None
    assert await commands.answer_of("c1") == "because"
    assert await select(database, "SELECT count(*) FROM outbox") == [(1,)]


async def test_a_deleted_session_is_not_answered_into(store: Store, commands: CommandStore) -> None:
    await commands.take(say("c1", "/compact"), session_id="w", now_ms=NOON)
    await store.delete_session(KEY, now_ms=NOON)
    assert await commands.answer("c1", answer(), now_ms=NOON) is None


@pytest.mark.spec("CMD-12")
async def test_a_note_answers_a_shortcut_and_leaves_the_message_free(
    store: Store, commands: CommandStore, database: Database
) -> None:
    new = say("r1", "hello")
    one = CommandAnswer("fine", (shown("assistant", "fine"),), delivery("r1:inline:reply"))
    noted = await commands.note(new, one, session_id="w", now_ms=NOON)
    assert noted is not None
    assert (noted.created, [entry.role for entry in noted.entries]) == (True, ["assistant"])
    assert await select(database, "SELECT count(*) FROM outbox") == [(1,)]
    await queue(store, "r1", "hello")
    assert await commands.note(new, one, session_id="w", now_ms=NOON) is None
    bare = await commands.note(say("r2", "x"), CommandAnswer("fine"), session_id="w", now_ms=NOON)
    assert bare is not None
    assert bare.entries == ()


# -- stopping ----------------------------------------------------------------------------------


@pytest.mark.spec("CMD-5", "CMD-6", "QUE-7")
async def test_taking_a_stop_cancels_what_waits_in_the_whole_tree(
    store: Store, commands: CommandStore
) -> None:
    child, grandchild = seed("subagent:a"), seed("subagent:b")
    await begin(store, "r1")
    await queue(store, "w1", "later")
    await create(store, child, spawned_by=KEY)
    await begin(store, "r2", to=child)
    await queue(store, "w2", to=child)
    await create(store, grandchild, spawned_by=child.session_key)
    await queue(store, "w3", to=grandchild)
    thread = seed("discord:channel:1:thread:2", parent_session_key=KEY)
    await create(store, thread)
    await queue(store, "w4", to=thread)
    await queue(store, "w5", to=seed("other"))

    taken = await commands.take(say("c1", "/stop"), session_id="w", now_ms=NOON, cancel=True)
    assert isinstance(taken, TakenCommand)
    assert [(row.session_key, run_id) for row, run_id in taken.cancelled] == [
        (KEY, "w1"),
        (child.session_key, "w2"),
        (grandchild.session_key, "w3"),
    ]
    assert [run.run_id for run in taken.active] == ["r1", "r2"]
    for key in (KEY, child.session_key, grandchild.session_key):
        assert await store.queued(key) == ()
    assert len(await store.queued(thread.session_key)) == 1
    assert len(await store.queued("agent:main:other")) == 1


@pytest.mark.spec("CMD-6")
async def test_descendants_are_found_at_any_depth_and_in_circles(
    store: Store, commands: CommandStore
) -> None:
    keys = [f"subagent:{number}" for number in range(12)]
    parent = KEY
    await create(store, MAIN, spawned_by=f"agent:main:{keys[-1]}")
    for key in keys:
        await create(store, seed(key), spawned_by=parent)
        parent = f"agent:main:{key}"
    await begin(store, "r1", to=seed(keys[3]))
    found = await commands.descendants(KEY)
    assert [row.session_key for row, _ in found] == [f"agent:main:{key}" for key in keys]
    assert [run.run_id for _, run in found if run is not None] == ["r1"]
    assert [row.session_key for row in await commands.children(KEY)] == ["agent:main:subagent:0"]
    assert await commands.descendants("agent:main:nobody") == ()


# -- usage -------------------------------------------------------------------------------------


@pytest.mark.spec("CMD-11")
async def test_usage_adds_up_and_names_calls_without_a_price(store: Store, commands: CommandStore) -> None:
    assert await commands.usage(KEY) == UsageTotals(0, 0, 0, None, 0)
    active = await begin(store, "r1")
    calls = (
        UsageRow("a", "p", "m", 10, 2, cost_usd=0.5),
        UsageRow("b", "p", "m", 5, 1),
        UsageRow("c", "p", "m"),
    )
    await store.finish(active.run, (), DONE, calls, now_ms=NOON)
    assert await commands.usage(KEY) == UsageTotals(3, 15, 3, 0.5, 2)


@pytest.mark.spec("QUE-9")
async def test_a_command_does_not_disturb_a_run(store: Store, commands: CommandStore) -> None:
    active = await begin(store, "r1", "hello")
    assert isinstance(await handle(commands), AnsweredCommand)
    finished = await store.finish(active.run, (), DONE, now_ms=NOON)
    assert finished.more_waiting is False
    taken = await store.accept(say("r2", "more"), RESETS, session_id="w", now_ms=NOON)
    assert not isinstance(taken, Known)
    assert taken.admission.rotation is None
