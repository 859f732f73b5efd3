"""From a message to an answer: what is read, what is refused, what is stored, what is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from openclaw.domain.commands import OPERATOR, CommandCaller
from openclaw.domain.commandtable import COMMANDS
from openclaw.domain.directives import Asked
from openclaw.domain.entry import DeliveryContext
from openclaw.domain.policy import SendPolicy, SendRule
from openclaw.domain.transcript import Provenance, TextBlock
from openclaw.engine.commands.handling import INTERRUPTED
from openclaw.engine.commands.ports import CompactionReport, Handled, Ignored, NotACommand, PassOn
from openclaw.engine.commands.record import DELIVERY_TTL_MS, message_of
from openclaw.engine.commands.table import BACKGROUND, HANDLERS, TAKEN_FIRST
from openclaw.engine.events import MessageStored
from openclaw.errors import IdempotencyConflict, StoreFull
from openclaw.store.inbox import ExternalId
from openclaw.store.sqlite import SqliteDatabase
from tests.conformance.making import NOON, RESETS, begin, say, select
from tests.unit.engine.commands.house import KEY, House, decoded

FRIEND = CommandCaller(authorised=True)
STRANGER = CommandCaller()


@pytest.mark.spec("CMD-11")
def test_every_command_has_a_handler() -> None:
    assert HANDLERS.keys() == {command.name for command in COMMANDS} - {"new"}
    assert BACKGROUND < TAKEN_FIRST < HANDLERS.keys()


@pytest.mark.spec("CMD-13", "LIFE-14")
async def test_strangers_are_ignored_and_their_words_are_text(house: House, database: SqliteDatabase) -> None:
    assert await house.read(say("c1", "/status"), STRANGER) == Ignored()
    assert await house.read(say("c1", "/send off"), FRIEND) == Ignored()
    assert await house.read(say("c1", "so /status now"), STRANGER) == NotACommand()
    assert await house.read(say("c1", "/new"), OPERATOR) == NotACommand()
    assert await select(database, "SELECT count(*) FROM inbox") == [(0,)]
    assert house.events == []
    assert isinstance(await house.read(say("c1", "/status"), FRIEND), Handled)


@pytest.mark.spec("CMD-13")
@pytest.mark.parametrize(
    "source", ["inter_session", "announce", "heartbeat", "cron", "exec", "system", "hook"]
)
async def test_only_people_give_commands(house: House, source: Any) -> None:
    assert await house.read(say("c1", "/send off", source=source)) == NotACommand()


@pytest.mark.spec("CMD-13")
async def test_text_of_others_is_data(house: House) -> None:
    new = say("c1", "/status")
    for changed in (
        replace(new.body, provenance=Provenance("inter_session")),
        replace(new.body, hidden_prompt=True),
        replace(new.body, content=(TextBlock("/status"),)),
    ):
        assert await house.read(replace(new, body=changed)) == NotACommand()
    own = replace(new.body, provenance=Provenance("external_user"))
    assert isinstance(await house.read(replace(new, body=own)), Handled)


@pytest.mark.spec("CMD-12")
async def test_text_commands_can_be_switched_off_for_channels(house: House) -> None:
    house.rules = replace(house.rules, text=False)
    assert await house.read(say("c1", "/status", source="channel")) == NotACommand()
    for source in ("webchat", "cli", "api"):
        assert isinstance(await house.read(say(f"c-{source}", "/status", source=source)), Handled)


@pytest.mark.spec("QUE-9", "DB-15")
async def test_an_answer_is_on_disk_before_it_is_told(house: House, database: SqliteDatabase) -> None:
    await begin(house.store, "r1")
    outcome = await house.commands().read(say("c1", "/think high"), OPERATOR)
    assert outcome == Handled("c1", KEY, NOON, "Thinking set to high for this session.")
    assert house.events == []
    assert await select(database, "SELECT state, consumed_by FROM inbox WHERE run_id = 'c1'") == [
        ("consumed", "c1")
    ]
    await asyncio.sleep(0)
    said, told, replied = house.events
    assert isinstance(said, MessageStored) and isinstance(replied, MessageStored)
    assert told.text == "Thinking set to high for this session."
    assert (told.scope.run_id, told.scope.session_key, told.created, told.interrupted) == (
        "c1",
        KEY,
        False,
        False,
    )
    assert told.entries == (said.entry, replied.entry)
    assert message_of(said.entry) == {
        "role": "user", "content": "/think high", "timestamp": NOON, "excludeFromContext": True,
    }  # fmt: skip
    shown = message_of(replied.entry)
    assert shown is not None
    assert shown["content"] == [{"type": "text", "text": told.text}]
    assert (shown["role"], shown["provider"], shown["model"]) == ("assistant", "openclaw", "gateway-injected")
    run = await house.store.active_run(KEY)
    assert run is not None and run.run_id == "r1"


@pytest.mark.spec("CMD-16")
async def test_commands_stay_out_of_the_context(house: House) -> None:
    claimed = await begin(house.store, "r1", "hello")
    before = await house.context(claimed.session)
    assert len(before) == 1
    await house.ask("/status")
    await house.ask("/verbose on")
    row = await house.row()
    assert row.last_seq == claimed.session.last_seq + 4
    assert await house.context(row) == before


async def test_the_same_message_is_carried_out_once(house: House) -> None:
    place = ExternalId("telegram", "default", "42", "m1")
    first = await house.read(say("c1", "/queue collect", external=place))
    assert isinstance(first, Handled) and not first.duplicate
    await house.ask("/queue followup")
    again = await house.read(say("c1", "/queue collect", external=place))
    other_key = await house.read(say("c2", "/queue collect", external=place))
    for repeat in (again, other_key):
        assert isinstance(repeat, Handled)
        assert (repeat.run_id, repeat.text, repeat.duplicate) == ("c1", first.text, True)
    assert (await house.entry()).queue_mode == "followup"
    assert len(house.answers()) == 2
    with pytest.raises(IdempotencyConflict):
        await house.read(say("c1", "/queue steer"))


@pytest.mark.spec("ROUTE-2")
async def test_the_answer_goes_where_the_message_came_from(house: House, database: SqliteDatabase) -> None:
    new = say("c1", "/status", source="channel")
    route = DeliveryContext(channel="telegram", to="42", thread_id="7")
    await house.read(replace(new, body=replace(new.body, route=route, deliver=True)))
    (found,) = await select(
        database, "SELECT idempotency_key, channel, target, thread_id, body, expires_at, run_id FROM outbox"
    )
    assert found[:4] == ("c1:reply", "telegram", "42", "7")
    assert decoded(found[4]) == {"text": house.answers()[0].text}
    assert found[5:] == (NOON + DELIVERY_TTL_MS, "c1")
    for changed in (
        replace(new.body, route=route),
        replace(new.body, deliver=True),
        replace(new.body, route=DeliveryContext(channel="telegram"), deliver=True),
        replace(new.body, route=DeliveryContext(to="42"), deliver=True),
    ):
        await house.read(replace(new, run_id=house.ids.uuid(), body=changed))
    assert await select(database, "SELECT count(*) FROM outbox") == [(1,)]


@pytest.mark.spec("SEND-9", "SEND-4", "CMD-8")
async def test_commands_work_where_sending_is_denied(house: House) -> None:
    denied = SendPolicy(rules=(SendRule("deny"),))
    house.settings = replace(house.settings, send_policy=denied)
    new = say("c1", "/send on", send_policy=denied)
    outcome = await house.read(new)
    assert isinstance(outcome, Handled)
    assert outcome.text == "Sending is on for this session."
    assert (await house.entry()).send_policy == "allow"


@pytest.mark.spec("CMD-10", "CMD-12")
async def test_directives_inside_a_message_hold_for_it_alone(house: House) -> None:
    await house.ask("/think low")
    outcome = await house.read(say("r1", "/think high /model opus write /queue interrupt /verbose on a poem"))
    assert isinstance(outcome, PassOn)
    assert outcome.body.content == "write a poem"
    assert (outcome.body.thinking, outcome.body.model) == ("high", "anthropic/claude-opus-4")
    assert outcome.body.queue_mode == "interrupt"
    assert outcome.directives == (
        Asked("think", "high"),
        Asked("model", "opus"),
        Asked("queue", "interrupt"),
        Asked("verbose", "on"),
    )
    entry = await house.entry()
    assert (entry.thinking_level, entry.model_override, entry.queue_mode) == ("low", None, None)
    assert entry.verbose_level is None
    default = await house.read(say("r2", "go /think default /queue cap:5"))
    assert isinstance(default, PassOn)
    assert (default.body.thinking, default.body.queue_mode) == (None, None)
    alias = await house.read(say("r3", "go /queue Steer+Backlog cap:5"))
    assert isinstance(alias, PassOn)
    assert alias.body.queue_mode == "steer-backlog"
    cleared = await house.read(say("r4", "go /queue default"))
    assert isinstance(cleared, PassOn)
    assert (cleared.body.content, cleared.body.queue_mode) == ("go", None)


@pytest.mark.spec("CMD-12")
async def test_a_shortcut_inside_a_message_is_answered_and_the_rest_goes_on(
    house: House, database: SqliteDatabase
) -> None:
    outcome = await house.read(say("r1", "hello /whoami there"))
    assert isinstance(outcome, PassOn)
    assert (outcome.body.content, outcome.directives) == ("hello there", ())
    (told,) = house.answers()
    assert told.text.startswith("You are operator on this gateway, an owner.")
    assert told.scope.run_id == "r1:inline"
    assert [entry.role for entry in told.entries] == ["assistant"]
    new = replace(say("r1"), body=outcome.body)
    await house.store.accept(new, RESETS, session_id="w", now_ms=NOON)
    again = await house.read(say("r1", "hello /whoami there"))
    assert again == outcome
    assert len(house.answers()) == 1
    assert await select(database, "SELECT count(*) FROM inbox") == [(1,)]


@pytest.mark.spec("CMD-10")
async def test_several_directives_alone_last_together(house: House) -> None:
    text = await house.ask("/think high /verbose full /reasoning stream /elevated ask")
    entry = await house.entry()
    assert (entry.thinking_level, entry.verbose_level) == ("high", "full")
    assert (entry.reasoning_level, entry.elevated_level) == ("stream", "ask")
    assert len(text.splitlines()) == 4


# -- what takes its time, and what goes wrong --------------------------------------------------


@pytest.mark.spec("COMP-1", "DB-15")
async def test_a_long_command_is_accepted_at_once_and_answered_later(house: House) -> None:
    gate = asyncio.Event()

    async def compact(session_key: str, instructions: str | None) -> CompactionReport:
        await gate.wait()
        return CompactionReport(True, f"done: {instructions}")

    house.give(compact=compact)
    outcome = await house.read(say("c1", "/compact keep names"))
    assert outcome == Handled("c1", KEY, NOON, None)
    again = await house.read(say("c1", "/compact keep names"))
    assert again == Handled("c1", KEY, NOON, None, duplicate=True)
    assert house.answers() == []
    gate.set()
    await house.settled()
    (told,) = house.answers()
    assert (told.text, told.created) == ("done: keep names", True)
    repeat = await house.read(say("c1", "/compact keep names"))
    assert isinstance(repeat, Handled) and repeat.text == "done: keep names"


@pytest.mark.spec("REST-2")
async def test_a_command_that_a_crash_cut_off_is_settled_visibly(house: House) -> None:
    await house.kept.take(say("c1", "/compact"), session_id="w", now_ms=NOON)
    assert await house.commands().recover() == 1
    await asyncio.sleep(0)
    (told,) = house.answers()
    assert (told.text, told.interrupted) == (INTERRUPTED, True)
    run = await house.store.run("c1")
    assert run is not None and run.outcome == "interrupted"
    assert await house.commands().recover() == 0
    assert await house.kept.unanswered() == ()


@pytest.mark.spec("REST-2")
async def test_a_session_that_is_gone_gets_no_answer(house: House) -> None:
    await house.kept.take(say("c1", "/compact"), session_id="w", now_ms=NOON)
    await house.store.delete_session(KEY, now_ms=NOON)
    await house.commands().recover()
    assert house.answers() == []

    async def compact(session_key: str, instructions: str | None) -> CompactionReport:
        await house.store.delete_session(KEY, now_ms=NOON)
        return CompactionReport(True, "done")

    house.give(compact=compact)
    await house.read(say("c2", "/compact"))
    await house.settled()
    assert house.answers() == []


async def test_a_failure_is_told_and_nothing_else_breaks(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(session_key: str, path: str | None) -> str:
        raise ZeroDivisionError

    async def full(session_key: str, path: str | None) -> str:
        raise StoreFull()

    house.give(export=broken)
    await house.ask("/verbose on")
    assert (
        await house.ask("/export-session")
        == "/export-session failed inside the gateway; its log has the details."
    )
    assert "ZeroDivisionError" in caplog.text
    house.give(export=full)
    assert await house.ask("/export-session") == StoreFull.default_message()


@pytest.mark.spec("REST-2")
@pytest.mark.parametrize("error", [StoreFull(), ZeroDivisionError()])
async def test_a_background_command_whose_answer_cannot_be_kept_is_settled_later(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    async def compact(session_key: str, instructions: str | None) -> CompactionReport:
        return CompactionReport(True, "done")

    async def refuse(*_args: object, **_named: object) -> None:
        raise error

    house.give(compact=compact)
    monkeypatch.setattr(house.kept, "answer", refuse)
    for run_id in ("c1", "c2"):
        await house.read(say(run_id, "/compact"))
        await house.settled()
    assert caplog.text.count("has no answer") == 2
    monkeypatch.undo()
    again = await house.read(say("c1", "/compact"))
    assert again == Handled("c1", KEY, NOON, INTERRUPTED, duplicate=True)
    assert await house.commands().recover() == 1
    assert [(told.scope.run_id, told.interrupted) for told in house.answers()] == [("c1", True)]
    await asyncio.sleep(0)
    assert [told.scope.run_id for told in house.answers()] == ["c1", "c2"]


async def test_a_turn_with_the_same_key_is_not_taken_for_a_command(house: House) -> None:
    place = ExternalId("telegram", "default", "42", "m1")
    await house.store.accept(say("r1", "hello", external=place), RESETS, session_id="w", now_ms=NOON)
    edited = await house.read(say("c1", "/stop", external=place))
    assert edited == Handled("r1", KEY, NOON, None, duplicate=True)
    assert [item.run_id for item in await house.store.queued(KEY)] == ["r1"]


@pytest.mark.spec("CMD-11")
async def test_a_steered_message_goes_to_the_run(house: House) -> None:
    outcome = await house.read(say("r1", "/steer go left"))
    assert isinstance(outcome, PassOn)
    assert (outcome.body.content, outcome.body.queue_mode) == ("go left", "steer")
    told = await house.read(say("r2", "/tell look\nright"))
    assert isinstance(told, PassOn) and told.body.content == "look\nright"
    assert await house.ask("/steer") == "What shall it be told? Usage: /steer <message>"


async def test_two_of_the_same_at_once_are_one(house: House) -> None:
    first, second = await asyncio.gather(
        house.read(say("c1", "/verbose on")), house.read(say("c1", "/verbose on"))
    )
    assert isinstance(first, Handled) and isinstance(second, Handled)
    assert first.text == second.text
    assert sorted((first.duplicate, second.duplicate)) == [False, True]
    assert len(house.answers()) == 1


@pytest.mark.spec("DB-15")
async def test_what_cannot_be_stored_is_not_acknowledged(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_args: object, **_named: object) -> None:
        raise StoreFull()

    monkeypatch.setattr(house.kept, "handle", refuse)
    with pytest.raises(StoreFull):
        await house.read(say("c1", "/verbose on"))
    assert house.events == []


@pytest.mark.spec("CMD-16")
async def test_only_rows_of_commands_show_a_message(house: House) -> None:
    await begin(house.store, "r1")
    await house.ask("/status")
    page = await house.store.history(KEY, 10)
    assert page is not None
    message, said, replied = page.entries
    assert message_of(message) is None
    assert [(message_of(entry) or {}).get("role") for entry in (said, replied)] == ["user", "assistant"]
    for body in (b"[]", b"{}", b'{"customType":"other","data":{}}', b'{"customType":"openclaw.command"}'):
        assert message_of(replace(said, body=body)) is None
