"""Sessions that work together, where the requirements go beyond one plain exchange or one plain helper."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from openclaw.domain.entry import DeliveryContext, SessionEntry
from openclaw.store.records import SessionSeed
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of
from tests.integration.tools.test_sessions_send import ANNA, BOB, Talk, send, text
from tests.integration.tools.test_subagents import KEY, Play, call, last_said, results, until

ALL_TOOLS = {
    "sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "sessions_yield", "subagents",
    "session_status", "agents_list",
}  # fmt: skip


async def truth(value: bool) -> bool:
    return value


def texts(*lines: str) -> list[FakeReply]:
    return [text(line) for line in lines]


def spawn(**arguments: Any) -> FakeReply:
    return FakeReply(calls=(call("sessions_spawn", **arguments),))


def waiting() -> FakeReply:
    return FakeReply(calls=(call("sessions_yield", "call_2"),))


@pytest.mark.spec("TOOL-1", "TOOL-2")
async def test_an_agent_is_offered_every_session_tool(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("fine",)))
    await client.say(KEY, "hello", "run-1")
    tools = {tool["function"]["name"]: tool["function"] for tool in house.model.requests[0].body["tools"]}
    assert set(tools) >= ALL_TOOLS
    assert {name for name in tools if name.startswith("session")} - ALL_TOOLS == {"sessions_search"}
    assert tools["sessions_send"]["parameters"]["required"] == ["message"]
    assert tools["sessions_spawn"]["parameters"]["required"] == ["task"]


# -- messages --------------------------------------------------------------------------------------


@pytest.mark.spec("A2A-9", "A2A-12", "TRX-8")
async def test_every_message_of_an_exchange_is_marked_and_the_exchange_ends_at_its_limit(
    house: House,
) -> None:
    house.config["session"] = {"agentToAgent": {"maxPingPongTurns": 2}}
    talk = Talk(
        house,
        anna=[send(sessionKey="bob", message="word?"), *texts("I have it", "tell me more", "never")],
        bob=texts("hello, I am bob", "abracadabra", "no more", "ANNOUNCE_SKIP", "never"),
    )
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(BOB, "I am bob", "run-b")
        await client.say(ANNA, "ask bob", "run-a")
        await until(lambda: truth(len(talk.heard["bob"]) == 4))

        async def quiet() -> bool:
            unfinished = await gateway.services.store.unfinished()
            return not unfinished.runs and not unfinished.waiting

        await until(quiet)
        assert len(talk.heard["anna"]) == 3, "one reply of each side after the first, then the announcement"
        assert len(talk.heard["bob"]) == 4
        for body, source in (
            (talk.heard["bob"][1], ANNA),
            (talk.heard["anna"][2], BOB),
            (talk.heard["bob"][2], ANNA),
        ):
            assert last_said(body).startswith(f"[Inter-session message sourceSession={source} ")
            assert "isUser=false]" in last_said(body).splitlines()[0]
        for key, source in ((BOB, ANNA), (ANNA, BOB)):
            rows = (await client.call("chat.history", {"sessionKey": key, "limit": 100}))["messages"]
            origins = [row["provenance"] for row in rows if row["role"] == "user" and "provenance" in row]
            assert origins
            for origin in origins:
                assert (origin["kind"], origin["sourceTool"]) == ("inter_session", "sessions_send")
                assert origin["sourceSessionKey"] == source


@pytest.mark.spec("A2A-11")
@pytest.mark.parametrize(
    "key", ["agent:main:discord:channel:1:thread:9", "agent:main:telegram:group:1:topic:5"]
)
async def test_a_thread_is_no_target_and_its_channel_is_pointed_at(house: House, key: str) -> None:
    talk = Talk(house, anna=[send(sessionKey=key, message="x"), text("ok")], bob=[])
    async with house.gateway() as gateway, client_of(gateway) as client:
        now_ms = gateway.services.clock.now_ms()
        await gateway.services.store.edit_session(
            SessionSeed(key, "main"), lambda entry: entry, session_id="w-t", now_ms=now_ms
        )
        await client.say(ANNA, "go", "run-a")
        (result,) = results(talk.heard["anna"][1])
        assert result["status"] == "error"
        assert "use the key of the channel or group" in result["error"]
        assert await gateway.services.store.queued(key) == ()


@pytest.mark.spec("A2A-14", "TOOL-6")
@pytest.mark.parametrize(
    ("words", "told"),
    [("ANNOUNCE_SKIP", []), (" ANNOUNCE_SKIP\n", []), ("It is said.", [b'{"text":"It is said."}'])],
)
async def test_a_target_named_by_its_id_announces_or_stays_silent(
    house: House, words: str, told: list[bytes]
) -> None:
    house.config["session"] = {"agentToAgent": {"maxPingPongTurns": 0}}
    talk = Talk(house, anna=[], bob=[text("hello, I am bob"), text("thanks"), text(words)])
    async with house.gateway() as gateway, client_of(gateway) as client:
        store, clock = gateway.services.store, gateway.services.clock
        await client.say(BOB, "I am bob", "run-b")
        await store.edit_session(SessionSeed(BOB, "main"), routed, session_id="unused", now_ms=clock.now_ms())
        session_id = (await client.call("sessions.describe", {"key": BOB}))["session"]["sessionId"]
        talk.lines["anna"] = [send(sessionKey=session_id, message="news!"), text("told him")]
        await client.say(ANNA, "tell bob", "run-a")
        assert results(talk.heard["anna"][1])[0]["reply"] == "thanks"
        await until(lambda: truth(len(talk.heard["bob"]) == 3))

        async def quiet() -> bool:
            unfinished = await store.unfinished()
            return not unfinished.runs and not unfinished.waiting

        await until(quiet)
        due = await store.deliveries_due("telegram", now_ms=clock.now_ms())
        assert [one.body for one in due] == told


def routed(entry: SessionEntry) -> SessionEntry:
    return replace(entry, delivery_context=DeliveryContext("telegram", "-100"))


# -- helpers ---------------------------------------------------------------------------------------


@pytest.mark.spec("SPAWN-18", "ANN-4")
async def test_a_helper_past_its_time_is_stopped_and_its_session_stays(
    house: House, client: WireClient
) -> None:
    play = Play(house, spawn(task="slow", runTimeoutSeconds=1), waiting(), text("too slow"))
    play.task = FakeReply(texts=("never",), hang_after=0)
    await client.call("chat.send", {"sessionKey": KEY, "message": "go", "idempotencyKey": "run-1"})
    # Its time may be over before the parent waits; then the parent hears of it in its own turn.
    await until(lambda: truth(any("Status: timeout" in last_said(body) for body in play.parents)))
    assert len(play.children) == 1, "it is not asked for an announcement"
    rows = (await client.call("sessions.list", {"spawnedBy": KEY}))["sessions"]
    assert [row["status"] for row in rows] == ["timeout"]


@pytest.mark.spec("SPAWN-6", "SPAWN-7", "SPAWN-13")
@pytest.mark.parametrize(
    ("asked", "model"), [({"model": "fake/one"}, "one"), ({}, "two")], ids=["of the call", "of the agent"]
)
async def test_an_allowed_agent_helps_with_the_model_that_is_meant_for_it(
    house: House, asked: dict[str, str], model: str
) -> None:
    main, bob = house.config["agents"]["list"]
    main["subagents"] = {"allowAgents": ["bob"]}
    bob["subagents"] = {"model": "fake/two", "thinking": "off"}
    play = Play(house, spawn(task="help", agentId="bob", **asked), text("started"))
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(KEY, "go", "run-1")
        accepted = results(play.parents[1])[0]
        assert accepted["childSessionKey"].startswith("agent:bob:subagent:")
        await until(lambda: truth(bool(play.children)))
    assert play.children[0]["model"] == model


@pytest.mark.spec("SPAWN-14")
async def test_a_helper_is_never_freer_than_a_sandboxed_parent(house: House) -> None:
    house.config["agents"]["list"] = [
        {"id": "main", "default": True, "sandbox": {"mode": "all"}, "subagents": {"allowAgents": ["*"]}},
        {"id": "bob"},
    ]
    play = Play(house, spawn(task="get out", agentId="bob"), text("ok"))
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(KEY, "go", "run-1")
        (result,) = results(play.parents[1])
        assert result["status"] == "forbidden"
        assert "sandbox" in result["error"]
        assert (await client.call("sessions.list", {"spawnedBy": KEY}))["sessions"] == []
        assert "subagent" not in json.dumps(await client.call("sessions.list"))


@pytest.mark.spec("REST-4", "REST-2", "ANN-8")
async def test_a_helper_that_a_restart_cut_off_goes_on_and_its_parent_is_told_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openclaw.app.gateway.DRAIN_S", 0.05)
    play = Play(house, spawn(task="count the sheep"), waiting(), text("There are 42."))
    play.task = FakeReply(texts=("never",), hang_after=0)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("chat.send", {"sessionKey": KEY, "message": "go", "idempotencyKey": "run-1"})
        await client.ended("run-1")
        await until(lambda: truth(bool(play.children)))
        child = results(play.parents[1])[0]["childSessionKey"]
    play.task = text("the sheep are 42")
    async with house.gateway() as gateway, client_of(gateway) as client:
        await until(lambda: truth(len(play.parents) == 3))
        assert "Status: success" in last_said(play.parents[2])
        assert "Result: 42 sheep" in last_said(play.parents[2])

        async def quiet() -> bool:
            unfinished = await gateway.services.store.unfinished()
            return not unfinished.runs and not unfinished.waiting

        await until(quiet)
        history = await client.call("chat.history", {"sessionKey": child})
        assert [row["role"] for row in history["messages"]] == ["user", "assistant"]
        rows = (await client.call("sessions.list", {"spawnedBy": KEY}))["sessions"]
        assert [(row["key"], row["status"]) for row in rows] == [(child, "done")]
    async with house.gateway() as gateway:
        unfinished = await gateway.services.store.unfinished()
        assert (unfinished.runs, unfinished.waiting) == ((), ())
    assert sum("[Sub-agent finished" in last_said(body) for body in play.parents) == 1
