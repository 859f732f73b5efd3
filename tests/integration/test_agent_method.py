"""agent and agent.wait: two answers to one request, and waiting that survives a reconnect."""

from __future__ import annotations

import asyncio

import pytest

from openclaw.app import Gateway
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

OK = FakeReply(texts=("done",), usage={"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6})


@pytest.mark.spec("RPC-15", "RPC-4")
async def test_agent_answers_twice(house: House, client: WireClient) -> None:
    house.model.script(OK)
    request = await client.post("agent", {"message": "hello", "idempotencyKey": "run-1"})
    accepted = await client.answer(request)
    assert {**accepted, "acceptedAt": 0} == {
        "runId": "run-1",
        "sessionKey": "agent:main:main",
        "agentId": "main",
        "status": "accepted",
        "acceptedAt": 0,
    }
    finished = await client.answer(request)
    assert (finished["status"], finished["summary"]) == ("ok", "completed")
    assert finished["result"]["payloads"] == [{"text": "done", "mediaUrl": None}]
    assert finished["result"]["meta"]["agentMeta"]["model"] == "one"


@pytest.mark.spec("RPC-15")
async def test_agent_by_key_by_id_and_by_agent(house: House, client: WireClient) -> None:
    house.model.script(OK, OK, OK)
    first = await client.post("agent", {"message": "a", "idempotencyKey": "r1", "sessionKey": "proj"})
    assert (await client.answer(first))["sessionKey"] == "agent:main:proj"
    await client.answer(first)
    row = (await client.call("sessions.describe", {"key": "proj"}))["session"]
    by_id = await client.post(
        "agent", {"message": "b", "idempotencyKey": "r2", "sessionId": row["sessionId"]}
    )
    assert (await client.answer(by_id))["sessionKey"] == "agent:main:proj"
    by_agent = await client.post("agent", {"message": "c", "idempotencyKey": "r3", "agentId": "bob"})
    assert (await client.answer(by_agent))["sessionKey"] == "agent:bob:main"
    with pytest.raises(RefusedError, match="No session found"):
        await client.call("agent", {"message": "d", "idempotencyKey": "r4", "sessionId": "nope"})
    with pytest.raises(RefusedError, match="unknown agent id"):
        await client.call("agent", {"message": "d", "idempotencyKey": "r5", "agentId": "nobody"})


@pytest.mark.spec("RPC-16")
async def test_a_wait_survives_a_reconnect(house: House, gateway: Gateway) -> None:
    house.model.script(FakeReply(texts=("late",), hang_after=0))
    async with client_of(gateway) as first:
        await first.call("agent", {"message": "go", "idempotencyKey": "run-1"})
        await first.post("agent.wait", {"runId": "run-1"})
    await house.model.wait_for_requests(1)
    async with client_of(gateway) as second:
        waiting = asyncio.create_task(second.call("agent.wait", {"runId": "run-1", "timeoutMs": 60_000}))
        house.model.release()
        answer = await waiting
    assert answer["status"] == "ok"
    assert answer["terminalReply"] == {"disposition": "visible", "text": "late"}


@pytest.mark.spec("RPC-17")
async def test_a_finished_run_answers_at_once_and_an_unknown_one_times_out(
    house: House, client: WireClient
) -> None:
    house.model.script(OK)
    await client.say("agent:main:main", "hi", "run-1")
    waited = await client.call("agent.wait", {"runId": "run-1", "timeoutMs": 0})
    assert waited["status"] == "ok"
    assert waited["startedAt"] <= waited["endedAt"]
    assert waited["stopReason"] == "stop"
    assert await client.call("agent.wait", {"runId": "nobody", "timeoutMs": 30}) == {
        "runId": "nobody",
        "status": "timeout",
    }


@pytest.mark.spec("RPC-17", "LOOP-5")
async def test_a_wait_that_times_out_stops_nothing(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("late",), hang_after=0))
    await client.call("agent", {"message": "go", "idempotencyKey": "run-1"})
    assert (await client.call("agent.wait", {"runId": "run-1", "timeoutMs": 20}))["status"] == "timeout"
    house.model.release()
    assert (await client.ended("run-1"))["state"] == "final"


@pytest.mark.spec("LOOP-5")
async def test_a_run_past_its_time_is_stopped_and_says_so(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("never",), hang_after=0))
    await client.call(
        "chat.send",
        {"sessionKey": "slow", "message": "go", "idempotencyKey": "run-1", "timeoutMs": 900},
    )
    ended = await client.ended("run-1")
    assert (ended["state"], ended["errorKind"]) == ("error", "timeout")
    assert "timed out" in ended["errorMessage"]
    await house.model.wait_for_disconnects(1)
    row = (await client.call("sessions.describe", {"key": "slow"}))["session"]
    assert row["status"] == "timeout"
