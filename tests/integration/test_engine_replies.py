"""What people see of a turn, and what the model is told beside the words of its person."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from openclaw.domain.entry import DeliveryContext
from openclaw.domain.resets import SessionEnd, SessionStart
from openclaw.engine.notices import Notice
from openclaw.engine.turns import Incoming
from openclaw.store.records import SessionSeed, UserInput
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:main"
NOON = int(datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp() * 1000)
OK = FakeReply(texts=("fine",))
ROUTE = DeliveryContext("telegram", "42")
HOUR = 3600


def texts(client: WireClient, run_id: str) -> list[str]:
    return [
        event["payload"]["deltaText"]
        for event in client.of_run(run_id)
        if event["event"] == "chat" and event["payload"]["state"] == "delta"
    ]


@pytest.mark.spec("LOOP-3")
async def test_a_silent_reply_is_neither_streamed_nor_shown(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("NO", "_RE", "PLY"), delay_s=0.07), OK)
    final = await client.say(KEY, "just note it", "run-1")
    assert texts(client, "run-1") == []
    assert final["message"]["content"] == [{"type": "text", "text": ""}]
    history = await client.call("chat.history", {"sessionKey": KEY})
    assert [message["role"] for message in history["messages"]] == ["user"]
    await client.say(KEY, "what did you say?", "run-2")
    assert house.model.requests[1].body["messages"][3]["content"] == "NO_REPLY"


@pytest.mark.spec("LOOP-3")
async def test_a_token_beside_real_text_is_stripped(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("NO_REPLY\n", "Well, ", "one thing. ", "NO_REPLY"), delay_s=0.07))
    final = await client.say(KEY, "note it", "run-1")
    assert final["message"]["content"][0]["text"] == "Well, one thing."
    assert "".join(texts(client, "run-1")) == "Well, one thing."


@pytest.mark.spec("LOOP-3", "ROUTE-2", "SEND-5", "SEND-9")
@pytest.mark.parametrize(
    ("reply", "policy", "left"),
    [
        ("All done. NO_REPLY", None, [b'{"text":"All done."}']),
        ("no_reply", None, []),
        ("All done.", "deny", []),
        ("All done.", "allow", [b'{"text":"All done."}']),
    ],
)
async def test_what_leaves_through_the_outbox(
    house: House, reply: str, policy: str | None, left: list[bytes]
) -> None:
    house.model.script(FakeReply(texts=(reply,), hang_after=0))
    async with house.gateway() as gateway, client_of(gateway) as client:
        body = UserInput("hi", gateway.services.clock.now_ms(), route=ROUTE, deliver=True)
        await gateway.services.turns.accept(
            Incoming("run-1", SessionSeed(KEY, "main", "main"), "channel", "42", body)
        )
        await house.model.wait_for_requests(1)
        if policy:  # the person decides while the model writes
            await client.call("sessions.patch", {"key": KEY, "sendPolicy": policy})
        house.model.release()
        await gateway.services.turns.wait("run-1", 60)
        due = await gateway.services.store.deliveries_due("telegram", now_ms=gateway.services.clock.now_ms())
        assert [delivery.body for delivery in due] == left


# -- notes for the model ---------------------------------------------------------------------------


@pytest.mark.spec("LOOP-2", "TRX-14")
async def test_the_time_is_told_after_a_pause_and_replayed_unchanged(house: House) -> None:
    clock = MovableClock(NOON)
    house.model.script(OK, OK, OK)
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        await client.say(KEY, "first", "run-1")
        await client.say(KEY, "soon", "run-2")
        clock.move(2 * HOUR)
        await client.say(KEY, "later", "run-3")
        history = await client.call("chat.history", {"sessionKey": KEY})
    first, second, third = (request.body["messages"] for request in house.model.requests)
    assert first[1]["content"] == "[Gateway note]\nIt is Tuesday, 2026-03-10 12:00 (UTC)."
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert [message["content"] for message in second[-1:]] == ["soon"]
    assert [message["content"] for message in third[-2:]] == [
        "[Gateway note]\nIt is Tuesday, 2026-03-10 14:00 (UTC).",
        "later",
    ]
    assert not any("Gateway note" in str(message["content"]) for message in history["messages"])


@pytest.mark.spec("LOOP-4")
async def test_the_model_is_told_once_that_it_was_stopped(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("part", "ly"), hang_after=2), OK, OK)
    await client.call("chat.send", {"sessionKey": KEY, "message": "story", "idempotencyKey": "run-1"})
    await client.wait_for(lambda event: event["payload"].get("state") == "delta")
    await client.call("chat.abort", {"sessionKey": KEY})
    row = (await client.call("sessions.describe", {"key": KEY}))["session"]
    assert row["abortedLastRun"] is True
    await client.say(KEY, "go on", "run-2")
    note = house.model.requests[1].body["messages"][-2]["content"]
    assert note == "[Gateway note]\nThe previous turn was stopped before it had finished."
    row = (await client.call("sessions.describe", {"key": KEY}))["session"]
    assert row.get("abortedLastRun", False) is False
    await client.say(KEY, "and on", "run-3")
    assert [m["content"] for m in house.model.requests[2].body["messages"]].count(note) == 1


# -- resets ----------------------------------------------------------------------------------------


@pytest.mark.spec("LIFE-1", "LIFE-2", "LIFE-22")
async def test_a_daily_reset_is_told_in_the_first_reply_only(house: House) -> None:
    clock = MovableClock(NOON)
    house.model.script(OK, OK, OK)
    heard: list[Notice] = []

    async def hear(notice: Notice) -> None:
        heard.append(notice)

    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        gateway.notices.subscribe(hear)
        await client.say(KEY, "today", "run-1")
        before = (await client.call("sessions.describe", {"key": KEY}))["session"]["sessionId"]
        clock.move(24 * HOUR)
        final = await client.say(KEY, "tomorrow", "run-2")
        after = (await client.call("sessions.describe", {"key": KEY}))["session"]["sessionId"]
        shown = final["message"]["content"][0]["text"]
        assert shown.startswith("New session: the daily reset at 04:00 has passed.")
        assert shown.endswith("\n\nfine")
        assert "/undo reset" in shown
        history = await client.call("chat.history", {"sessionKey": KEY})
        assert history["messages"][-1]["content"] == [{"type": "text", "text": "fine"}]
        again = await client.say(KEY, "more", "run-3")
        assert again["message"]["content"][0]["text"] == "fine"
        await gateway.notices.drain()
    assert heard == [
        SessionStart(KEY, before),
        SessionEnd(KEY, before, "daily", after),
        SessionStart(KEY, after, before),
    ]


@pytest.mark.spec("DB-18")
async def test_session_end_is_awaited_when_the_gateway_stops(house: House) -> None:
    house.model.script(OK, OK)
    told: list[str] = []
    gateway = house.gateway()

    async def slow(notice: Notice) -> None:
        await gateway.services.clock.sleep(0.3)
        told.append(type(notice).__name__)

    async with gateway, client_of(gateway) as client:
        gateway.notices.subscribe(slow)
        await client.say(KEY, "one", "run-1")
        await client.say(KEY, "/new two", "run-2")
    assert told == ["SessionStart", "SessionEnd", "SessionStart"]
