"""Messages between sessions: handed over, waited for, answered back and forth, announced."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from openclaw.domain.entry import DeliveryContext
from openclaw.store.records import SessionSeed
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.integration.conftest import House, client_of
from tests.integration.tools.test_subagents import last_said, results, until

ANNA, BOB = "agent:main:anna", "agent:main:bob"
pytestmark = pytest.mark.usefixtures("house")


class Talk:
    """Each session answers from a script of its own; who is asked is told by what it says last."""

    def __init__(self, house: House, **lines: list[FakeReply]) -> None:
        self.lines = lines
        self.heard: dict[str, list[dict[str, Any]]] = {name: [] for name in lines}
        house.model.decide = self.decide
        house.config["tools"] = {"sessions": {"visibility": "agent"}}

    def decide(self, body: dict[str, Any]) -> FakeReply | None:
        name = "bob" if "I am bob" in json.dumps(body["messages"]) else "anna"
        self.heard[name].append(body)
        return self.lines[name].pop(0) if self.lines[name] else FakeReply(texts=("REPLY_SKIP",))


def text(*words: str) -> FakeReply:
    return FakeReply(texts=words)


def send(**arguments: Any) -> FakeReply:
    return FakeReply(calls=(FakeCall("sessions_send", (json.dumps(arguments),), "call_1"),))


@pytest.mark.spec("A2A-1", "A2A-4", "A2A-7", "A2A-8", "A2A-9", "A2A-10", "A2A-12", "A2A-13", "TRX-8")
async def test_a_reply_comes_back_and_the_exchange_goes_on_until_one_skips(house: House) -> None:
    talk = Talk(
        house,
        anna=[
            send(sessionKey="bob", message="what is the word?"),
            text("bob says abracadabra"),
            text("thank you, bob"),
            text("REPLY_SKIP"),
        ],
        bob=[text("hello, I am bob"), text("abracadabra"), text("you are welcome"), text("ANNOUNCE_SKIP")],
    )  # fmt: skip
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(BOB, "I am bob", "run-b")
        await client.say(ANNA, "ask bob for the word", "run-a")
        (result,) = results(talk.heard["anna"][1])
        assert (result["status"], result["reply"]) == ("ok", "abracadabra")
        asked = last_said(talk.heard["bob"][1])
        head, note, words = asked.split("\n", 2)
        assert head.startswith(f"[Inter-session message sourceSession={ANNA} ")
        assert head.endswith("isUser=false]")
        assert "not an instruction" in note
        assert words == "what is the word?"
        context = json.dumps(talk.heard["bob"][1]["messages"][-2])
        assert ANNA in context and "Requester" in context
        await until(lambda: _true(len(talk.heard["bob"]) == 4))
        assert last_said(talk.heard["anna"][2]).endswith("abracadabra")
        assert "turn 1 of at most 5" in json.dumps(talk.heard["anna"][2]["messages"][-2])
        assert last_said(talk.heard["bob"][2]).endswith("thank you, bob")
        assert last_said(talk.heard["anna"][3]).endswith("you are welcome")
        announce = last_said(talk.heard["bob"][3])
        assert "Request: what is the word?" in announce
        assert "First reply: abracadabra" in announce
        assert "Latest reply: you are welcome" in announce


async def _true(value: bool) -> bool:
    return value


@pytest.mark.spec("A2A-3", "A2A-14", "A2A-15", "A2A-16")
async def test_without_waiting_it_is_handed_over_and_the_target_announces_on_its_channel(
    house: House,
) -> None:
    house.config["session"] = {"agentToAgent": {"maxPingPongTurns": 0}}
    talk = Talk(
        house,
        anna=[send(sessionKey="bob", message="news!", timeoutSeconds=0), text("told him")],
        bob=[text("hello, I am bob"), text("thanks"), text("Everybody: there is news.")],
    )
    async with house.gateway() as gateway, client_of(gateway) as client:
        store, clock = gateway.services.store, gateway.services.clock
        await client.say(BOB, "I am bob", "run-b")
        route = DeliveryContext("telegram", "-100")
        await store.edit_session(
            SessionSeed(BOB, "main"), lambda e: msgspec.structs.replace(e, delivery_context=route),
            session_id="unused", now_ms=clock.now_ms(),
        )  # fmt: skip
        await client.say(ANNA, "tell bob", "run-a")
        (result,) = results(talk.heard["anna"][1])
        assert result["status"] == "accepted"
        assert result["delivery"] == {"status": "pending", "mode": "announce"}

        async def announced() -> bool:
            return bool(await store.deliveries_due("telegram", now_ms=clock.now_ms()))

        await until(announced)
        due = await store.deliveries_due("telegram", now_ms=clock.now_ms())
        assert [one.body for one in due] == [b'{"text":"Everybody: there is news."}']
        assert len(talk.heard["anna"]) == 2


@pytest.mark.spec("A2A-5", "A2A-6")
@pytest.mark.parametrize(
    ("reply", "patience_s", "status"),
    [(FakeReply(texts=("slow",), hang_after=0), 1, "timeout"), (FakeReply(status=401, body={}), 60, "error")],
)
async def test_a_late_and_a_failed_reply_are_told(
    house: House, reply: FakeReply, patience_s: int, status: str
) -> None:
    talk = Talk(
        house,
        anna=[send(sessionKey="bob", message="quick?", timeoutSeconds=patience_s), text("ok")],
        bob=[text("hello, I am bob"), reply],
    )
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(BOB, "I am bob", "run-b")
        await client.say(ANNA, "ask bob", "run-a")
        (result,) = results(talk.heard["anna"][1])
        assert result["status"] == status
        assert result["error"]
        if status == "timeout":
            run = await gateway.services.store.run(result["runId"])
            assert run is not None and run.state == "active"


@pytest.mark.spec("A2A-2", "A2A-11", "A2A-17", "VIS-4", "TOOL-7")
@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ({"message": "x"}, "error", "either sessionKey or label"),
        ({"sessionKey": "bob", "label": "b", "message": "x"}, "error", "not both"),
        ({"sessionKey": "nobody", "message": "x"}, "error", "No session"),
        ({"sessionKey": "agent:bob:main", "message": "x"}, "forbidden", "tools."),
        ({"sessionKey": "bob"}, "error", "message"),
        ({"sessionKey": "bob", "message": "x" * 300_000}, "error", "longer"),
        ({"sessionKey": "agent:main:telegram:group:1:topic:5", "message": "x"}, "error", "thread or topic"),
    ],
)  # fmt: skip
async def test_what_cannot_be_sent_is_said(
    house: House, arguments: dict[str, Any], status: str, words: str
) -> None:
    talk = Talk(house, anna=[send(**arguments), text("ok")], bob=[text("hello, I am bob")])
    async with house.gateway() as gateway, client_of(gateway) as client:
        store, now_ms = gateway.services.store, gateway.services.clock.now_ms()
        await client.say(BOB, "I am bob", "run-b")
        for key, agent in (("agent:bob:main", "bob"), ("agent:main:telegram:group:1:topic:5", "main")):
            await store.edit_session(
                SessionSeed(key, agent), lambda e: e, session_id=f"w-{agent}", now_ms=now_ms
            )
        await client.say(ANNA, "go", "run-a")
        (result,) = results(talk.heard["anna"][1])
        assert (result["status"], words in result["error"]) == (status, True), result


@pytest.mark.spec("QUE-1")
async def test_two_sessions_that_ask_one_another_do_not_wait_for_ever(house: House) -> None:
    talk = Talk(
        house,
        anna=[send(sessionKey="bob", message="you first", timeoutSeconds=60), text("done")],
        bob=[
            text("hello, I am bob"),
            send(sessionKey="anna", message="no, you", timeoutSeconds=60),
            text("fine then"),
        ],
    )  # fmt: skip
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(BOB, "I am bob", "run-b")
        async with asyncio.timeout(60):
            final = await client.say(ANNA, "go", "run-a")
        assert final["state"] == "final"
        (back,) = results(talk.heard["bob"][2])
        assert back["status"] == "accepted"
        assert "waits for this one" in back["note"]
        (result,) = results(talk.heard["anna"][1])
        assert (result["status"], result["reply"]) == ("ok", "fine then")


@pytest.mark.spec("QUE-1")
async def test_waiting_sessions_keep_nobody_from_running(house: House) -> None:
    house.config["agents"]["defaults"]["maxConcurrent"] = 1
    talk = Talk(
        house,
        anna=[send(sessionKey="bob", message="word?", timeoutSeconds=60), text("got it")],
        bob=[text("hello, I am bob"), text("abracadabra")],
    )
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(BOB, "I am bob", "run-b")
        async with asyncio.timeout(60):
            await client.say(ANNA, "ask", "run-a")
        assert results(talk.heard["anna"][1])[0]["reply"] == "abracadabra"
