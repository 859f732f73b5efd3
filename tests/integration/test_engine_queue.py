"""Messages that arrive while a session is busy: each mode, the cap, and what becomes of what is dropped."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from openclaw.app import Gateway
from openclaw.domain.entry import SessionEntry
from openclaw.engine.turns import Incoming
from openclaw.store.records import SessionSeed, UserInput
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of
from tests.integration.test_spec_queue import gated, open_gate

KEY = "agent:main:proj"
OK = FakeReply(texts=("fine",))
HANGING = FakeReply(texts=("slow",), hang_after=0)


async def send(client: WireClient, text: str, run_id: str) -> None:
    await client.call("chat.send", {"sessionKey": KEY, "message": text, "idempotencyKey": run_id})


def said(house: House, number: int) -> list[str]:
    """What people said in a request, without the gateway's notes."""
    messages = house.model.requests[number].body["messages"]
    spoken = [message["content"] for message in messages if message["role"] == "user"]
    return [text for text in spoken if not text.startswith("[Gateway note]")]


def notes(house: House, number: int) -> str:
    return "\n".join(
        message["content"]
        for message in house.model.requests[number].body["messages"]
        if str(message["content"]).startswith("[Gateway note]")
    )


def queue(house: House, **settings: object) -> None:
    house.config["messages"] = {"queue": settings}


@pytest.mark.spec("QUE-2")
async def test_followup_runs_one_turn_per_message(house: House) -> None:
    queue(house, mode="followup")
    house.model.script(HANGING, OK, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await send(client, "one", "run-1")
        await house.model.wait_for_requests(1)
        await send(client, "two", "run-2")
        await send(client, "three", "run-3")
        house.model.release()
        await client.ended("run-3")
        assert [said(house, number) for number in range(3)] == [
            ["one"],
            ["one", "two"],
            ["one", "two", "three"],
        ]


@pytest.mark.spec("QUE-2")
async def test_collect_makes_one_turn_of_what_came_meanwhile(house: House) -> None:
    queue(house, mode="collect", debounceMs=50)
    house.model.script(HANGING, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await send(client, "one", "run-1")
        await house.model.wait_for_requests(1)
        await send(client, "two", "run-2")
        await send(client, "three", "run-3")
        house.model.release()
        await client.ended("run-2")
        await client.ended("run-3")
        assert len(house.model.requests) == 2
        assert said(house, 1) == ["one", "two", "three"]


@pytest.mark.spec("QUE-2", "QUE-4")
async def test_interrupt_stops_the_run_for_the_newer_message(house: House) -> None:
    queue(house, mode="followup", byChannel={"webchat": "interrupt"})
    house.model.script(HANGING, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("sessions.patch", {"key": KEY, "label": "x"})
        await gateway.services.store.edit_session(
            SessionSeed(KEY, "main"),
            _with_channel,
            session_id="unused",
            now_ms=gateway.services.clock.now_ms(),
        )
        await send(client, "one", "run-1")
        await house.model.wait_for_requests(1)
        await send(client, "no, this", "run-2")
        first, second = await client.ended("run-1"), await client.ended("run-2")
        assert (first["state"], first["stopReason"]) == ("aborted", "interrupt")
        assert second["state"] == "final"
        assert said(house, 1)[-1] == "no, this"
        await house.model.wait_for_disconnects(1)


def _with_channel(entry: SessionEntry) -> SessionEntry:
    return msgspec.structs.replace(entry, channel="webchat")


@pytest.mark.spec("QUE-3")
async def test_the_cap_drops_the_oldest_and_the_model_hears_of_them(house: House) -> None:
    queue(house, mode="followup", cap=2)
    house.model.script(HANGING, OK, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await send(client, "one", "run-1")
        await house.model.wait_for_requests(1)
        for number in range(2, 7):
            await send(client, f"message {number}", f"run-{number}")
        dropped = [await client.ended(f"run-{number}") for number in (2, 3, 4)]
        assert {(event["state"], event["stopReason"]) for event in dropped} == {("aborted", "dropped")}
        house.model.release()
        await client.ended("run-6")
        assert said(house, 2) == ["one", "message 5", "message 6"]
        told = notes(house, 2)
        for number in (2, 3, 4):
            assert f"- message {number}" in told
        assert "- message 5" not in told


@pytest.mark.spec("QUE-3")
async def test_drop_new_refuses_the_newest_and_stores_nothing(house: House) -> None:
    queue(house, mode="followup", cap=1, drop="new")
    house.model.script(HANGING, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await send(client, "one", "run-1")
        await house.model.wait_for_requests(1)
        await send(client, "two", "run-2")
        with pytest.raises(RefusedError, match="queue of this session is full"):
            await send(client, "three", "run-3")
        house.model.release()
        await client.ended("run-2")
        assert said(house, 1) == ["one", "two"]


@pytest.mark.spec("QUE-3")
async def test_drop_old_forgets_the_oldest(house: House) -> None:
    queue(house, mode="followup", cap=1, drop="old")
    house.model.script(HANGING, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await send(client, "one", "run-1")
        await house.model.wait_for_requests(1)
        await send(client, "two", "run-2")
        await send(client, "three", "run-3")
        house.model.release()
        await client.ended("run-3")
        assert said(house, 1) == ["one", "three"]
        assert "two" not in notes(house, 1)


@pytest.mark.spec("QUE-8")
async def test_an_input_past_its_time_is_settled_and_not_run(house: House, gateway: Gateway) -> None:
    queue(house, mode="followup")
    house.model.script(HANGING, OK)
    turns, clock = gateway.services.turns, gateway.services.clock
    seed = SessionSeed(KEY, "main")
    async with client_of(gateway) as client:
        await send(client, "one", "run-1")
        await house.model.wait_for_requests(1)
        body = UserInput("too late", clock.now_ms(), queue_mode="followup")
        await turns.accept(Incoming("run-2", seed, "channel", "42", body, expires_at=clock.now_ms() + 1))
        await asyncio.sleep(0.01)
        house.model.release()
        ended = await client.ended("run-2")
        assert (ended["state"], ended["stopReason"]) == ("aborted", "expired")
        assert len(house.model.requests) == 1


@pytest.mark.spec("QUE-5")
async def test_a_newer_message_keeps_later_calls_from_starting(house: House, client: WireClient) -> None:
    later = FakeCall("exec", ('{"command": "echo second > made.txt"}',), "call_2")
    house.model.script(FakeReply(calls=(gated(1), later)), OK)
    await send(client, "work", "run-1")
    await house.model.wait_for_requests(1)
    await send(client, "wait, do not", "run-2")
    open_gate(house, 1)
    await client.ended("run-1")
    messages = house.model.requests[1].body["messages"]
    results = [message["content"] for message in messages if message["role"] == "tool"]
    assert "through gate 1" in results[0]
    assert results[1].startswith("Skipped:")
    assert messages[-1]["content"] == "wait, do not"


@pytest.mark.spec("RPC-17", "QUE-3")
async def test_a_wait_for_what_was_dropped_is_answered_at_once(house: House) -> None:
    queue(house, mode="followup", cap=1, drop="old")
    house.model.script(HANGING, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await send(client, "one", "run-1")
        await house.model.wait_for_requests(1)
        await send(client, "two", "run-2")
        await send(client, "three", "run-3")
        waited = await client.call("agent.wait", {"runId": "run-2", "timeoutMs": 50_000})
        assert (waited["status"], waited["error"]) == ("error", "the input was cancelled before it ran")
        house.model.release()
        await client.ended("run-3")
