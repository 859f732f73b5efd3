"""Sessions that start anew, seen from outside: greeting, model, queue, notices, threads, removed keys."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.domain.resets import SessionEnd, SessionStart
from openclaw.engine.notices import Notice
from openclaw.engine.turns import Incoming
from openclaw.store.records import SessionSeed, UserInput
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:proj"
OK = FakeReply(texts=("fine",))
HANGING = FakeReply(texts=("slow",), hang_after=0)


async def describe(client: WireClient, key: str = KEY) -> dict[str, Any]:
    row: dict[str, Any] = (await client.call("sessions.describe", {"key": key}))["session"]
    return row


def said(house: House, number: int) -> list[str]:
    """What people said in a request, without the gateway's notes."""
    messages = house.model.requests[number].body["messages"]
    spoken = [message["content"] for message in messages if message["role"] == "user"]
    return [text for text in spoken if not text.startswith("[Gateway note]")]


@pytest.mark.spec("LIFE-17", "LIFE-13", "TRX-14", "CMD-7")
@pytest.mark.parametrize("word", ["/new", "/reset", "/NEW", "/Reset "])
async def test_a_reset_alone_is_greeted_once_and_the_person_sees_it(
    house: House, client: WireClient, word: str
) -> None:
    house.model.script(OK, FakeReply(texts=("Hello again. What shall we do?",)))
    await client.say(KEY, "old words", "run-1")
    before = await describe(client)
    final = await client.say(KEY, word, "run-2")
    assert (final["state"], final["message"]["content"][0]["text"]) == (
        "final",
        "Hello again. What shall we do?",
    )
    assert len(house.model.requests) == 2
    assert (await describe(client))["sessionId"] != before["sessionId"]
    history = await client.call("chat.history", {"sessionKey": KEY})
    assert [message["role"] for message in history["messages"]] == ["user", "assistant"]
    assert history["messages"][0]["content"].strip() == word.strip()
    assert "Greet them" not in str(history["messages"])


@pytest.mark.spec("LIFE-15", "LIFE-16")
@pytest.mark.parametrize(
    ("text", "model", "body"),
    [
        ("/new fake/two what now?", "two", "what now?"),
        ("/new quick what now?", "two", "what now?"),
        ("/new fake two what now?", "two", "what now?"),
        ("/new fake what now?", "one", "what now?"),
        ("/new claude-sonet-9 what now?", "claude-sonnet-9", "what now?"),
        ("/new what now?", "one", "what now?"),
    ],
    ids=["reference", "alias", "provider and model", "provider", "misspelled", "no model"],
)
async def test_the_word_after_new_chooses_the_model(house: House, text: str, model: str, body: str) -> None:
    house.config["models"]["providers"]["fake"]["models"].append({"id": "claude-sonnet-9"})
    house.config["agents"]["defaults"]["models"] = {
        "fake/one": {},
        "fake/two": {"alias": "quick"},
        "fake/claude-sonnet-9": {},
    }
    house.model.script(OK, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(KEY, text, "run-1")
        await client.say(KEY, "and on", "run-2")
    assert [request.body["model"] for request in house.model.requests] == [model, model]
    assert said(house, 1) == [body, "and on"]


@pytest.mark.spec("LIFE-22", "LIFE-12")
async def test_a_reset_stops_the_run_keeps_no_queue_and_is_announced(house: House) -> None:
    house.model.script(HANGING, OK, OK)
    heard: list[Notice] = []

    async def hear(notice: Notice) -> None:
        heard.append(notice)

    async with house.gateway() as gateway, client_of(gateway) as client:
        gateway.notices.subscribe(hear)
        await client.call("chat.send", {"sessionKey": KEY, "message": "one", "idempotencyKey": "run-1"})
        await house.model.wait_for_requests(1, 60)
        before = (await describe(client))["sessionId"]
        waiting = {"sessionKey": KEY, "message": "two", "idempotencyKey": "run-2", "queueMode": "followup"}
        await client.call("chat.send", waiting)
        assert (await client.say(KEY, "/reset start over", "run-3"))["state"] == "final"
        first = await client.ended("run-1")
        assert (first["state"], first["stopReason"]) == ("aborted", "reset")
        await house.model.wait_for_disconnects(1, 60)
        after = (await describe(client))["sessionId"]
        waited = await gateway.services.store.input_state("run-2")
        assert waited is not None and waited.state == "cancelled"
        assert said(house, 1) == ["start over"]
        assert len(house.model.requests) == 2
        await gateway.notices.drain()
    assert heard == [
        SessionStart(KEY, before),
        SessionEnd(KEY, before, "reset", after),
        SessionStart(KEY, after, before),
    ]


@pytest.mark.spec("LIFE-23")
async def test_a_thread_begins_with_what_its_parent_knew(house: House, gateway: Gateway) -> None:
    house.model.script(OK, OK, OK, OK)
    turns, clock = gateway.services.turns, gateway.services.clock
    thread = SessionSeed(
        "agent:main:telegram:group:7:topic:9",
        "main",
        "group",
        session_type="thread",
        channel="telegram",
        parent_session_key=KEY,
    )

    async def write(run_id: str, text: str) -> None:
        body = UserInput(text, clock.now_ms())
        await turns.accept(Incoming(run_id, thread, "channel", "42", body))
        run = await turns.wait(run_id, 60)
        assert run is not None and run.outcome == "ok"

    async with client_of(gateway) as client:
        await client.say(KEY, "the parent's words", "run-1")
        await write("run-2", "in the thread")
        await client.say(KEY, "later in the parent", "run-3")
        await write("run-4", "again in the thread")
        assert said(house, 1) == ["the parent's words", "in the thread"]
        assert said(house, 2) == ["the parent's words", "later in the parent"]
        assert said(house, 3) == ["the parent's words", "in the thread", "again in the thread"]
        assert (await describe(client, thread.session_key))["forkedFromParent"] is True


@pytest.mark.spec("LIFE-19")
async def test_a_removed_key_is_made_again_by_the_next_message(house: House, gateway: Gateway) -> None:
    house.model.script(OK, OK, OK)
    async with client_of(gateway) as client:
        await client.say(KEY, "old words", "run-1")
        await client.say("agent:main:other", "other words", "run-2")
        before = await describe(client)
        now_ms = gateway.services.clock.now_ms()
        await gateway.services.store.delete_session(KEY, now_ms=now_ms)
        assert (await client.call("sessions.describe", {"key": KEY}))["session"] is None
        await client.say(KEY, "new words", "run-3")
        assert (await describe(client))["sessionId"] != before["sessionId"]
        assert said(house, 2) == ["new words"]
        history = await client.call("chat.history", {"sessionKey": KEY})
        assert "old words" not in str(history["messages"])
        other = await client.call("chat.history", {"sessionKey": "agent:main:other"})
        assert "other words" in str(other["messages"])


@pytest.mark.spec("LIFE-3", "LIFE-4", "LIFE-12")
async def test_only_messages_of_people_keep_a_session_fresh(house: House) -> None:
    house.config["session"] = {"reset": {"mode": "daily", "atHour": 4, "idleMinutes": 60}}
    clock = MovableClock(1_773_144_000_000)  # 2026-03-10 12:00 UTC
    house.model.script(OK, OK, OK)
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        await client.say(KEY, "one", "run-1")
        before = (await describe(client))["sessionId"]
        clock.move(50 * 60)
        await client.call("sessions.patch", {"key": KEY, "label": "Touched"})
        await client.call("chat.inject", {"sessionKey": KEY, "message": "a note"})
        await client.call("sessions.list")
        await client.say(KEY, "/status", "cmd-1")
        assert (await describe(client))["sessionId"] == before
        clock.move(11 * 60)
        final = await client.say(KEY, "two", "run-2")
        after = (await describe(client))["sessionId"]
        assert after != before
        assert "60 minutes" in final["message"]["content"][0]["text"]
        assert said(house, 1) == ["two"]
        clock.move(59 * 60)
        await client.say(KEY, "three", "run-3")
        assert (await describe(client))["sessionId"] == after
        assert said(house, 2) == ["two", "three"]
