"""chat.send in detail: the order of its checks, stopping by a word, and where a message was meant for."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.app import Gateway
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

OK = FakeReply(texts=("fine",))
HANGING = FakeReply(texts=("never",), hang_after=0)
Json = dict[str, Any]


async def send(client: WireClient, message: str, run_id: str, **more: Any) -> Json:
    return await client.call(
        "chat.send", {"sessionKey": "proj", "message": message, "idempotencyKey": run_id, **more}
    )


@pytest.mark.spec("RPC-12")
async def test_the_order_of_the_checks(house: House, client: WireClient) -> None:
    """Each request breaks one rule and all later ones: the first broken rule is the one that is told."""
    house.model.script(OK)
    await client.call("sessions.patch", {"key": "proj", "sendPolicy": "deny"})
    with pytest.raises(RefusedError, match="must have required property 'idempotencyKey'"):
        await client.call("chat.send", {"sessionKey": "agent:nobody:x", "message": " "})
    with pytest.raises(RefusedError, match="message must not be empty"):
        await client.call(
            "chat.send", {"sessionKey": "agent:nobody:x", "message": " ", "idempotencyKey": "k"}
        )
    with pytest.raises(RefusedError, match='unknown agent id "nobody"; configured: bob, main'):
        await client.call(
            "chat.send", {"sessionKey": "agent:nobody:x", "message": "m", "idempotencyKey": "k"}
        )
    with pytest.raises(RefusedError, match="send blocked by session policy"):
        await send(client, "m", "k")
    stopped = await send(client, "stop", "k-stop")  # a stop is heard also where nothing may be sent
    assert (stopped["ok"], stopped["aborted"], stopped["runIds"]) == (True, False, [])
    await client.call("sessions.patch", {"key": "proj", "sendPolicy": None})
    assert (await send(client, "m", "k"))["status"] == "started"
    await client.ended("k")
    assert await send(client, "m", "k") == {"runId": "k", "status": "ok"}
    assert len(house.model.requests) == 1


@pytest.mark.spec("RPC-12", "CMD-6")
async def test_a_word_that_means_stop_is_answered_with_what_it_stops(
    house: House, client: WireClient
) -> None:
    house.model.script(HANGING)
    await send(client, "go", "run-1")
    await house.model.wait_for_requests(1, 60)
    await send(client, "later", "run-2", queueMode="followup")
    answer = await send(client, "Stop!", "run-3")
    assert (answer["runId"], answer["ok"], answer["aborted"]) == ("run-3", True, True)
    assert sorted(answer["runIds"]) == ["run-1", "run-2"]
    for run_id in ("run-1", "run-2"):
        assert (await client.ended(run_id))["state"] == "aborted"
    assert (await client.ended("run-3"))["state"] == "final"
    assert len(house.model.requests) == 1


@pytest.mark.spec("RPC-12")
async def test_words_can_be_kept_from_being_commands(house: House, client: WireClient) -> None:
    house.model.script(OK, OK)
    answer = await send(client, "stop", "run-1", suppressCommandInterpretation=True)
    assert answer["status"] == "started" and "aborted" not in answer
    assert (await client.ended("run-1"))["message"]["content"][0]["text"] == "fine"
    await send(client, "/new", "run-2", suppressCommandInterpretation=True)
    assert (await client.ended("run-2"))["state"] == "final"
    said = [message["content"] for message in house.model.requests[1].body["messages"][-3:]]
    assert "stop" in str(said[0]) and "/new" in str(said[2])


@pytest.mark.spec("RPC-12")
async def test_the_place_of_a_message_that_begins_at_once_is_told(house: House, client: WireClient) -> None:
    house.model.script(OK, HANGING)
    first = await send(client, "one", "run-1")
    await client.ended("run-1")
    history = await client.call("chat.history", {"sessionKey": "proj"})
    assert history["messages"][0]["__openclaw"]["seq"] == first["messageSeq"]
    assert (await send(client, "two", "run-2"))["messageSeq"] > first["messageSeq"]
    await house.model.wait_for_requests(2, 60)
    waiting = await send(client, "three", "run-3", queueMode="followup")
    assert "messageSeq" not in waiting  # it stands nowhere yet
    assert await send(client, "two", "run-2") == {"runId": "run-2", "status": "in_flight"}
    await client.call("chat.abort", {"sessionKey": "proj"})


@pytest.mark.spec("RPC-12")
async def test_a_message_for_a_conversation_that_was_reset_is_refused(
    house: House, client: WireClient
) -> None:
    house.model.script(OK, OK, OK)
    await client.say("proj", "one", "run-1")
    history = await client.call("chat.history", {"sessionKey": "proj"})
    leaf = history["messages"][-1]["__openclaw"]["id"]
    await client.say("proj", "two", "run-2", expectedLeafEntryId=leaf, sessionId=history["sessionId"])
    # Others wrote in between: it is still the same branch.
    await client.say("proj", "three", "run-3", expectedLeafEntryId=leaf, sessionId=history["sessionId"])
    await client.call("sessions.reset", {"key": "proj"})
    with pytest.raises(RefusedError) as refused:
        await send(client, "four", "run-4", expectedLeafEntryId=leaf)
    assert refused.value.error["details"]["reason"] == "session-changed"
    assert len(house.model.requests) == 3
    other = (await client.call("sessions.create", {"key": "other"}))["sessionId"]
    with pytest.raises(RefusedError, match="does not belong to session agent:main:proj"):
        await send(client, "five", "run-5", sessionId=other)


@pytest.mark.spec("RPC-15", "KEY-3")
async def test_agent_finds_the_session_of_a_person(house: House) -> None:
    house.model.script(*[OK] * 4)
    to = {"message": "hi", "to": "+15550001"}
    async with house.gateway() as gateway, client_of(gateway) as client:
        accepted = await client.call("agent", {**to, "idempotencyKey": "k1"})
        assert accepted["sessionKey"] == "agent:main:main"
        bob = await client.call("agent", {**to, "idempotencyKey": "k2", "agentId": "bob"})
        assert (bob["sessionKey"], bob["agentId"]) == ("agent:bob:main", "bob")
        await client.ended("k1")
        await client.ended("k2")
    house.config["session"] = {"dmScope": "per-channel-peer"}
    async with house.gateway() as gateway, client_of(gateway) as client:
        with pytest.raises(RefusedError, match="`to` needs a channel"):
            await client.call("agent", {**to, "idempotencyKey": "k3"})
        person = await client.call("agent", {**to, "idempotencyKey": "k4", "channel": "whatsapp"})
        assert person["sessionKey"] == "agent:main:whatsapp:dm:+15550001"
        await client.ended("k4")


@pytest.mark.spec("RPC-17", "RPC-16")
async def test_waiting_answers_from_what_is_known(house: House, gateway: Gateway, client: WireClient) -> None:
    house.model.script(OK, HANGING)
    await client.say("proj", "one", "run-1")
    async with client_of(gateway) as another:
        done = await another.call("agent.wait", {"runId": "run-1", "timeoutMs": 0})
    assert (done["status"], done["stopReason"]) == ("ok", "stop")
    assert done["endedAt"] >= done["startedAt"] > 0
    assert done["terminalReply"] == {"disposition": "visible", "text": "fine"}
    await send(client, "two", "run-2")
    late = await client.call("agent.wait", {"runId": "run-2", "timeoutMs": 10})
    assert late == {"runId": "run-2", "status": "timeout"}
    await client.call("chat.abort", {"sessionKey": "proj", "runId": "run-2"})
    aborted = await client.call("agent.wait", {"runId": "run-2"})
    assert (aborted["status"], aborted["stopReason"]) == ("error", "rpc")
    unknown = await client.call("agent.wait", {"runId": "nope", "timeoutMs": 10})
    assert unknown == {"runId": "nope", "status": "timeout"}
