"""What waits behind a busy session: cancelled by its id, kept apart by where its answer goes."""

from __future__ import annotations

import asyncio
import json

import pytest

from openclaw.app import Gateway
from openclaw.domain.entry import DeliveryContext
from openclaw.engine.turns import Incoming
from openclaw.store.records import SessionSeed, UserInput
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:proj"
SEED = SessionSeed(KEY, "main")
OK = FakeReply(texts=("fine",))
HANGING = FakeReply(texts=("slow",), hang_after=0)


async def send(client: WireClient, text: str, run_id: str, **extra: object) -> None:
    await client.call("chat.send", {"sessionKey": KEY, "message": text, "idempotencyKey": run_id, **extra})


def said(house: House, number: int) -> list[str]:
    """What people said in a request, without the gateway's notes."""
    messages = house.model.requests[number].body["messages"]
    spoken = [message["content"] for message in messages if message["role"] == "user"]
    return [text for text in spoken if not text.startswith("[Gateway note]")]


def gated(number: int) -> FakeCall:
    """A call of a tool that runs until the test opens its gate."""
    command = f"until [ -e gate{number} ]; do sleep 0.02; done; echo through gate {number}"
    return FakeCall("exec", (json.dumps({"command": command}),), f"call_{number}")


def open_gate(house: House, number: int) -> None:
    workspace = house.home / "state" / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / f"gate{number}").touch()


@pytest.mark.spec("QUE-6")
async def test_a_waiting_message_is_cancelled_by_its_own_id(house: House, client: WireClient) -> None:
    house.model.script(HANGING, OK)
    await send(client, "one", "run-1")
    await house.model.wait_for_requests(1, 60)
    await send(client, "two", "run-2", queueMode="followup")
    await send(client, "three", "run-3", queueMode="followup")
    answer = await client.call("chat.abort", {"sessionKey": KEY, "runId": "run-2"})
    assert answer == {"ok": True, "aborted": True, "runIds": ["run-2"]}
    assert (await client.ended("run-2"))["state"] == "aborted"
    again = await client.call("chat.abort", {"sessionKey": KEY, "runId": "run-2"})
    assert again == {"ok": True, "aborted": False, "runIds": []}
    house.model.release()
    assert (await client.ended("run-1"))["state"] == "final"
    assert (await client.ended("run-3"))["state"] == "final"
    assert said(house, 1) == ["one", "three"]
    history = await client.call("chat.history", {"sessionKey": KEY})
    assert "two" not in [message["content"] for message in history["messages"]]


@pytest.mark.spec("QUE-2")
async def test_collected_messages_for_different_places_are_turns_of_their_own(house: House) -> None:
    house.config["messages"] = {"queue": {"mode": "collect", "debounceMs": 20}}
    house.model.script(HANGING, OK, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await send(client, "one", "run-0")
        await house.model.wait_for_requests(1, 60)
        places = [("a", None), ("b", None), ("a", None), ("a", "9")]
        for number, (to, thread) in enumerate(places, start=1):
            route = DeliveryContext("telegram", to, None, thread)
            body = UserInput(f"to {to} {thread}", gateway.services.clock.now_ms(), route=route, deliver=True)
            await gateway.services.turns.accept(Incoming(f"run-{number}", SEED, "channel", "42", body))
        house.model.script(OK)
        house.model.release()
        for number in range(1, 5):
            await client.ended(f"run-{number}")
        turns = [said(house, number)[len(said(house, number - 1)) :] for number in (1, 2, 3)]
        assert turns == [["to a None", "to a None"], ["to b None"], ["to a 9"]]
        now_ms = gateway.services.clock.now_ms()
        due = await gateway.services.store.deliveries_due("telegram", now_ms=now_ms)
        assert [(one.target, one.thread_id) for one in due] == [("a", None), ("b", None), ("a", "9")]


@pytest.mark.spec("QUE-4", "CMD-10")
async def test_what_a_person_chose_for_the_queue_goes_before_the_configuration(house: House) -> None:
    house.config["messages"] = {"queue": {"mode": "followup"}}
    house.model.script(HANGING, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        final = await client.say(KEY, "/queue collect debounce:20ms", "cmd-1")
        assert "collect" in final["message"]["content"][0]["text"]
        await send(client, "one", "run-1")
        await house.model.wait_for_requests(1, 60)
        await send(client, "two", "run-2")
        await send(client, "three", "run-3")
        house.model.release()
        await client.ended("run-3")
        assert said(house, 1) == ["one", "two", "three"]
        assert len(house.model.requests) == 2


@pytest.mark.spec("QUE-5")
async def test_steered_messages_arrive_in_their_order_after_the_results(
    house: House, client: WireClient
) -> None:
    house.model.script(FakeReply(calls=(gated(1),)), OK)
    await send(client, "work", "run-1")
    await house.model.wait_for_requests(1, 60)
    for number in range(2, 5):
        await send(client, f"message {number}", f"run-{number}")
    open_gate(house, 1)
    for number in range(1, 5):
        assert (await client.ended(f"run-{number}"))["state"] == "final"
    assert len(house.model.requests) == 2
    messages = house.model.requests[1].body["messages"]
    assert messages[-4]["role"] == "tool" and "through gate 1" in messages[-4]["content"]
    assert [message["content"] for message in messages[-3:]] == ["message 2", "message 3", "message 4"]


@pytest.mark.spec("QUE-1")
async def test_the_caps_of_the_lanes_come_from_the_configuration(house: House) -> None:
    house.config["agents"]["defaults"] |= {"maxConcurrent": 2, "subagents": {"maxConcurrent": 3}}
    house.model.script(*[HANGING] * 12)
    async with house.gateway() as gateway:
        for lane, count in (("", 4), ("subagent:", 5), ("cron:", 3)):
            for number in range(count):
                await _write(gateway, f"agent:main:{lane}s{number}")
        await house.model.wait_for_requests(2 + 3 + 1, 60)
        await asyncio.sleep(0.1)
        active = [run.run.session_key for run in gateway.services.workers.active_runs()]
        assert sorted(active) == [
            "agent:main:cron:s0",
            "agent:main:s0",
            "agent:main:s1",
            "agent:main:subagent:s0",
            "agent:main:subagent:s1",
            "agent:main:subagent:s2",
        ]
        assert len(house.model.requests) == 6
        house.model.release()
        for key in ("agent:main:s3", "agent:main:subagent:s4", "agent:main:cron:s2"):
            run = await gateway.services.turns.wait(key, 60)
            assert run is not None and run.outcome == "ok"


async def _write(gateway: Gateway, key: str) -> None:
    body = UserInput("go", gateway.services.clock.now_ms())
    await gateway.services.turns.accept(Incoming(key, SessionSeed(key, "main"), "channel", "42", body))


@pytest.mark.spec("QUE-2")
@pytest.mark.parametrize(
    ("mode", "joined"), [("queue", [["two"], ["three"]]), ("steer-backlog", [["two", "three"], []])]
)
async def test_the_older_modes_join_the_run_one_by_one_or_all_together(
    house: House, mode: str, joined: list[list[str]]
) -> None:
    house.config["messages"] = {"queue": {"mode": mode}}
    house.model.script(FakeReply(calls=(gated(1),)), FakeReply(calls=(gated(2),)), OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await send(client, "one", "run-1")
        await house.model.wait_for_requests(1, 60)
        await send(client, "two", "run-2")
        await send(client, "three", "run-3")
        open_gate(house, 1)
        open_gate(house, 2)
        for number in (1, 2, 3):
            assert (await client.ended(f"run-{number}"))["state"] == "final"
    assert len(house.model.requests) == 3
    steps = [said(house, number) for number in range(3)]
    assert [steps[1][len(steps[0]) :], steps[2][len(steps[1]) :]] == joined
