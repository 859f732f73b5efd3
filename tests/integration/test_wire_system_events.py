"""wake and system-event over the wire: what a session is told before its next turn (CLI-7)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.domain.systemevents import NOTE_RULE, WAKE_PROMPT
from tests.e2e.gateway_process import GatewayProcess
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.fakes.ports import free_port
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import TOKEN, House, client_of

MAIN = "agent:main:main"
OK = FakeReply(texts=("Fine",))
Json = dict[str, Any]


def asked(model: FakeOpenAIServer, number: int) -> str:
    """What the model was told in its n-th request, as one text."""
    return "\n".join(str(message["content"]) for message in model.requests[number].body["messages"])


async def final_of_wake(client: WireClient, key: str = MAIN) -> Json:
    """The end of the next turn that nobody sent."""
    event = await client.wait_for(
        lambda event: (
            event["event"] == "chat"
            and event["payload"]["sessionKey"] == key
            and event["payload"]["runId"].startswith("wake:")
            and event["payload"]["state"] == "final"
        )
    )
    payload: Json = event["payload"]
    return payload


@pytest.mark.spec("CLI-7", "TRX-14")
async def test_a_system_event_stands_before_the_next_message_and_nobody_sees_it(
    house: House, client: WireClient
) -> None:
    house.model.script(OK, OK)
    assert await client.call("system-event", {"text": " The backup is done. "}) == {
        "ok": True,
        "sessionKey": MAIN,
    }
    assert (await client.call("status"))["queuedSystemEvents"] == ["The backup is done."]
    assert house.model.requests == []
    await client.say("main", "What is new?", "run-1")
    told = asked(house.model, 0)
    assert told.index(NOTE_RULE) < told.index("UTC: The backup is done.") < told.index("What is new?")
    assert (await client.call("status"))["queuedSystemEvents"] == []
    history = await client.call("chat.history", {"sessionKey": "main"})
    assert "backup" not in str(history["messages"])
    await client.say("main", "And now?", "run-2")
    assert asked(house.model, 1).count("The backup is done.") == 1  # replayed where it stood, not told again


@pytest.mark.spec("CLI-7")
async def test_a_wake_now_begins_a_turn_that_shows_only_its_answer(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("The oven is off.",)))
    answer = await client.call("wake", {"mode": "now", "text": "The oven was left on."})
    assert answer == {"ok": True, "sessionKey": MAIN}
    final = await final_of_wake(client)
    assert final["message"]["content"][0]["text"] == "The oven is off."
    told = asked(house.model, 0)
    assert told.index("UTC: The oven was left on.") < told.index(WAKE_PROMPT)
    shown = (await client.call("chat.history", {"sessionKey": "main"}))["messages"]
    assert [message["role"] for message in shown] == ["assistant"]
    described = await client.call("sessions.describe", {"key": "main"})
    assert described["session"].get("lastInteractionAt") is None  # nobody spoke (LIFE-12)


@pytest.mark.spec("CLI-7")
async def test_a_wake_for_the_next_turn_starts_nothing(house: House, client: WireClient) -> None:
    house.model.script(OK)
    await client.call("wake", {"mode": "next-heartbeat", "text": "No hurry."})
    assert (await client.call("sessions.describe", {"key": "main"}))["session"] is None
    await client.say("main", "hello", "run-1")
    assert "UTC: No hurry." in asked(house.model, 0)
    assert len(house.model.requests) == 1


@pytest.mark.spec("CLI-7")
async def test_wakes_during_a_turn_get_one_turn_together_afterwards(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("Long",), hang_after=0), FakeReply(texts=("Both",)))
    await client.call("chat.send", {"sessionKey": "main", "message": "work", "idempotencyKey": "run-1"})
    await house.model.wait_for_requests(1, 60)
    await client.call("wake", {"mode": "now", "text": "one"})
    await client.call("wake", {"mode": "now", "text": "two"})
    house.model.release()
    await client.ended("run-1")
    final = await final_of_wake(client)
    assert final["message"]["content"][0]["text"] == "Both"
    assert "UTC: one" in asked(house.model, 1) and "UTC: two" in asked(house.model, 1)
    assert "UTC: one" not in asked(house.model, 0)
    assert len(house.model.requests) == 2


@pytest.mark.spec("CLI-7")
async def test_the_key_is_typed_and_an_unknown_agent_is_refused_by_name(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    waking = gateway.services.about.waking
    event = {"text": "for the project"}
    assert (await client.call("system-event", {**event, "sessionKey": "Proj1"}))["sessionKey"] == (
        "agent:main:proj1"
    )
    answer = await client.call("wake", {"mode": "next-heartbeat", **event, "agentId": "bob"})
    assert answer["sessionKey"] == "agent:bob:main"
    assert [one.text for one in await waking.waiting("agent:bob:main")] == ["for the project"]
    for params in ({"sessionKey": "agent:nobody:main"}, {"agentId": "nobody"}):
        with pytest.raises(RefusedError) as refused:
            await client.call("wake", {"mode": "now", **event, **params})
        assert refused.value.error["code"] == "INVALID_REQUEST"
        assert refused.value.error["message"] == 'unknown agent id "nobody"; configured: bob, main'
    assert house.model.requests == []


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("wake", {"text": "x"}, "must have required property 'mode'"),
        ("wake", {"mode": "later", "text": "x"}, "at /mode"),
        ("wake", {"mode": "now", "text": "  "}, "text is empty"),
        ("system-event", {"text": "x" * 8193}, "longer than 8192 characters"),
        ("system-event", {"text": "a\x00b"}, "NUL"),
        ("system-event", {"text": "x", "sessionKey": "agent:main"}, "key"),
        ("system-event", {"text": "x", "colour": 1}, "unexpected property 'colour'"),
    ],
)
@pytest.mark.spec("CLI-7")
async def test_a_malformed_event_is_refused_and_nothing_is_kept(
    client: WireClient, method: str, params: Json, said: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        await client.call(method, params)
    assert refused.value.error["code"] == "INVALID_REQUEST"
    assert said in refused.value.error["message"]
    assert (await client.call("status"))["queuedSystemEvents"] == []


@pytest.mark.spec("TRX-11")
async def test_a_secret_in_an_event_is_masked_before_it_is_kept(house: House, client: WireClient) -> None:
    house.model.script(OK)
    await client.call("system-event", {"text": f"the token is {TOKEN}"})
    queued = (await client.call("status"))["queuedSystemEvents"]
    assert TOKEN not in queued[0] and "masked" in queued[0]
    await client.say("main", "hello", "run-1")
    assert TOKEN not in asked(house.model, 0)


@pytest.mark.spec("LIFE-22")
async def test_a_reset_discards_events_and_the_turn_they_asked_for(house: House, client: WireClient) -> None:
    house.model.script(OK, OK)
    await client.say("main", "hello", "run-1")
    await client.call("system-event", {"text": "stale news"})
    await client.say("main", "/new and hello", "run-2")
    assert "stale news" not in asked(house.model, 1)
    assert (await client.call("status"))["queuedSystemEvents"] == []


@pytest.mark.spec("LIFE-22")
async def test_a_reset_over_the_wire_discards_events_and_a_wake_that_waits(
    house: House, client: WireClient
) -> None:
    house.model.script(FakeReply(texts=("Long",), hang_after=0), OK)
    await client.call("chat.send", {"sessionKey": "main", "message": "work", "idempotencyKey": "run-1"})
    await house.model.wait_for_requests(1, 60)
    await client.call("wake", {"mode": "now", "text": "stale news"})
    await client.call("sessions.reset", {"key": "main"})
    house.model.release()
    assert (await client.call("status"))["queuedSystemEvents"] == []
    await client.say("main", "hello", "run-2")
    assert "stale news" not in asked(house.model, 1)
    assert len(house.model.requests) == 2


@pytest.mark.spec("RPC-3")
async def test_who_may_only_read_may_not_report_events(gateway: Gateway) -> None:
    async with client_of(gateway, scopes=("operator.read",)) as reader:
        for method, params in (("wake", {"mode": "now", "text": "x"}), ("system-event", {"text": "x"})):
            with pytest.raises(RefusedError) as refused:
                await reader.call(method, params)
            assert refused.value.error["details"]["missingScope"] == "operator.write"
        assert await reader.call("last-heartbeat") is None


@pytest.mark.spec("CLI-7", "LIFE-22")
async def test_events_and_wakes_survive_a_restart(house: House) -> None:
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("system-event", {"text": "from before"})
    house.model.script(OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        assert (await client.call("status"))["queuedSystemEvents"] == ["from before"]
        await client.say("main", "hello", "run-1")
    assert "UTC: from before" in asked(house.model, 0)


@pytest.mark.spec("CLI-7")
async def test_a_killed_gateway_tells_the_event_and_runs_its_turn_when_it_comes_back(tmp_path: Path) -> None:
    async with FakeOpenAIServer() as model:
        model.script(FakeReply(texts=("lost",), hang_after=0))
        process = GatewayProcess(tmp_path, model.base_url, free_port())
        await process.start()
        try:
            async with process.client() as client:
                await client.call("wake", {"mode": "now", "text": "the house is cold"})
                await client.call("system-event", {"text": "it is winter", "sessionKey": "other"})
                await model.wait_for_requests(1, 60)
            await asyncio.to_thread(process.kill)
            model.release()
            model.script(FakeReply(texts=("Heating.",)), FakeReply(texts=("Yes.",)))
            await process.start()
            async with process.client() as client:
                await model.wait_for_requests(2, 60)
                assert "UTC: the house is cold" in asked(model, 1)
                assert asked(model, 1).count("the house is cold") == 1
                await client.say("other", "hello", "run-1")
                assert "UTC: it is winter" in asked(model, 2)
        finally:
            await asyncio.to_thread(process.kill)
