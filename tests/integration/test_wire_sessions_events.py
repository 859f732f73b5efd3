"""What followers hear: why a session changed, what is cleared, how a run thinks and makes room."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from openclaw.app import Gateway
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:proj"
OK = FakeReply(texts=("fine",))
OVERFLOW = FakeReply(status=400, body={"error": {"code": "context_length_exceeded", "message": "too long"}})
NOON = int(datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp() * 1000)
Json = dict[str, Any]


def payloads(client: WireClient, event: str) -> list[Json]:
    return [one["payload"] for one in client.events if one["event"] == event]


async def until_reason(client: WireClient, reason: str) -> Json:
    found = await client.wait_for(
        lambda event: event["event"] == "sessions.changed" and event["payload"].get("reason") == reason
    )
    payload: Json = found["payload"]
    return payload


@pytest.mark.spec("RPC-10")
async def test_every_change_is_told_with_its_reason(house: House, client: WireClient) -> None:
    house.model.script(*[OK] * 4)
    await client.call("sessions.subscribe")
    await client.call("sessions.create", {"key": "proj"})
    await client.call("sessions.patch", {"key": "proj", "label": "Project"})
    await client.say("proj", "hello", "run-1")
    await client.say("proj", "/status", "run-2")
    await client.say("proj", "/new", "run-3")
    await client.say("proj", "one", "run-4")
    await client.call("sessions.reset", {"key": "proj", "reason": "reset"})
    await client.call("sessions.restore", {"key": "proj"})
    await client.call("sessions.compact", {"key": "proj", "maxLines": 1})
    await client.call("sessions.delete", {"key": "proj"})
    await until_reason(client, "delete")
    told = [one.get("reason") or one["phase"] for one in payloads(client, "sessions.changed")]
    assert told == [
        "create", "patch",
        "send", "start", "agent.input.settled", "end",
        "command",
        "new", "send", "start", "agent.input.settled", "end",
        "send", "start", "agent.input.settled", "end",
        "reset", "restore", "compact", "delete",
    ]  # fmt: skip
    for payload in payloads(client, "sessions.changed"):
        assert (payload["sessionKey"], payload["agentId"]) == (KEY, "main") and payload["ts"] > 0
        assert payload["session"]["key"] == KEY and payload["sessionId"] == payload["session"]["sessionId"]


@pytest.mark.spec("RPC-10", "LIFE-2")
async def test_a_daily_rollover_is_told_too(house: House) -> None:
    clock = MovableClock(NOON)
    house.model.script(OK, OK)
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        await client.say("proj", "today", "run-1")
        clock.move(24 * 3600)
        await client.call("sessions.subscribe")
        await client.say("proj", "tomorrow", "run-2")
        rolled = await until_reason(client, "daily")
        assert rolled["session"]["sessionId"] == (await until_reason(client, "send"))["sessionId"]


@pytest.mark.spec("RPC-10")
async def test_what_is_cleared_is_told_as_null(client: WireClient) -> None:
    await client.call("sessions.subscribe")
    given = {"label": "Project", "thinkingLevel": "low", "reasoningLevel": "on", "model": "fake/two"}
    await client.call("sessions.patch", {"key": "proj", **given})
    await client.call("sessions.patch", {"key": "proj", **dict.fromkeys(given)})
    await until_reason(client, "patch")
    before, after = payloads(client, "sessions.changed")
    assert (before["label"], before["thinkingLevel"], before["reasoningLevel"]) == ("Project", "low", "on")
    assert (before["modelOverride"], before["providerOverride"]) == ("two", "fake")
    for name in ("label", "displayName", "thinkingLevel", "reasoningLevel", "modelOverride", "archivedAt"):
        assert name in after and after[name] is None, name
        assert name not in after["session"]


@pytest.mark.spec("RPC-14")
async def test_thinking_reaches_only_those_who_ask(house: House, gateway: Gateway) -> None:
    house.model.script(FakeReply(thinking=("let ", "me ", "see"), texts=("done",), delay_s=0.07))
    async with client_of(gateway, caps=("thinking-events",)) as asking, client_of(gateway) as plain:
        await plain.say("proj", "think", "run-1")
        await asking.ended("run-1")
        thoughts = [one for one in payloads(asking, "agent") if one["stream"] == "thinking"]
        assert "".join(one["data"]["delta"] for one in thoughts) == "let me see"
        assert thoughts[-1]["data"]["text"] == "let me see"
        assert all(one["runId"] == "run-1" and one["sessionKey"] == KEY for one in thoughts)
        numbers = [one["seq"] for one in payloads(asking, "agent")]
        assert numbers == sorted(numbers)
        assert not [one for one in payloads(plain, "agent") if one["stream"] == "thinking"]
        streams = {one["stream"] for one in payloads(plain, "agent")}
        assert {"lifecycle", "assistant", "run_status"} <= streams


@pytest.mark.spec("LOOP-1", "COMP-4")
async def test_a_run_that_makes_room_says_so_in_its_stream(house: House, client: WireClient) -> None:
    long = "lorem ipsum dolor sit amet " * 900
    summary = FakeReply(texts=("They spoke of lorem ipsum and want to go on with it. " * 4,))
    house.model.script(*[FakeReply(texts=(long,))] * 3, OVERFLOW, summary, OK)
    for number in range(3):
        await client.say("proj", f"question {number}", f"run-{number}")
    await client.call("sessions.subscribe")
    assert (await client.say("proj", "go on", "run-9"))["state"] == "final"
    own = [one for one in payloads(client, "agent") if one["runId"] == "run-9"]
    told = [one["data"] for one in own if one["stream"] == "compaction"]
    assert [(one["phase"], one["trigger"]) for one in told] == [("start", "overflow"), ("end", "overflow")]
    assert told[1]["completed"] is True and "tokens" in told[1]["message"]
    phases = [one["phase"] for one in payloads(client, "chat") if one["state"] == "status"]
    assert {"preparing_context", "starting_model", "compacting"} <= set(phases)
    operations = payloads(client, "session.operation")
    assert [(one["phase"], one.get("completed")) for one in operations] == [("start", None), ("end", True)]
    assert (await until_reason(client, "compact"))["session"]["compactionCount"] == 1


@pytest.mark.spec("RPC-10")
async def test_what_a_helper_does_names_where_it_came_from(house: House, client: WireClient) -> None:
    spawn = FakeCall("sessions_spawn", (json.dumps({"task": "dig deep"}),))

    house.model.script(FakeReply(calls=(spawn,)), *[OK] * 5)
    await client.call("sessions.subscribe")
    await client.say("proj", "go", "run-1")
    message = await client.wait_for(
        lambda event: event["event"] == "session.message" and ":subagent:" in event["payload"]["sessionKey"]
    )
    assert message["payload"]["ancestorSessions"] == [{"key": KEY}]
    changed = next(one for one in payloads(client, "sessions.changed") if ":subagent:" in one["sessionKey"])
    assert changed["ancestorSessions"] == [{"key": KEY}]
    own = next(one for one in payloads(client, "sessions.changed") if one["sessionKey"] == KEY)
    assert "ancestorSessions" not in own
