"""Messages between sessions in detail: when the exchange stops, who is told, what is checked first."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import msgspec
import pytest

from openclaw.app import Gateway
from openclaw.domain.entry import DeliveryContext
from openclaw.domain.exchange import MAX_HOPS
from openclaw.store.records import SessionSeed
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.integration.conftest import House, client_of
from tests.integration.tools.test_sessions_send import ANNA, BOB, Talk, send, text
from tests.integration.tools.test_subagents import Play, call, last_said, results, until

GROUP = "agent:main:telegram:group:-100abc"


async def _true(value: bool) -> bool:
    return value


async def make(gateway: Gateway, key: str, **fields: Any) -> None:
    now_ms = gateway.services.clock.now_ms()
    await gateway.services.store.edit_session(
        SessionSeed(key, key.split(":")[1]), lambda entry: msgspec.structs.replace(entry, **fields),
        session_id=f"w-{key}", now_ms=now_ms,
    )  # fmt: skip


async def quiet(gateway: Gateway, *keys: str) -> None:
    """Wait until nothing runs or waits in these sessions."""

    async def idle() -> bool:
        waiting = [await gateway.services.store.queued(key) for key in keys]
        return not any(waiting) and not any(gateway.services.workers.is_busy(key) for key in keys)

    await until(idle)


@pytest.mark.spec("A2A-13", "A2A-16")
@pytest.mark.parametrize("word", ["REPLY_SKIP", "ANNOUNCE_SKIP", "NO_REPLY", "  REPLY_SKIP\n"])
async def test_each_stop_word_ends_the_exchange(house: House, word: str) -> None:
    talk = Talk(
        house,
        anna=[send(sessionKey="bob", message="word?"), text("ok"), text(word)],
        bob=[text("hello, I am bob"), text("abracadabra"), text("ANNOUNCE_SKIP"), text("too much")],
    )
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(BOB, "I am bob", "run-b")
        await client.say(ANNA, "ask bob", "run-a")
        await until(lambda: _true(len(talk.heard["bob"]) == 3))
        await quiet(gateway, ANNA, BOB)
        assert len(talk.heard["anna"]) == 3
        assert "Latest reply: abracadabra" in last_said(talk.heard["bob"][2])
        (result,) = results(talk.heard["anna"][1])
        assert result["delivery"] == {"status": "skipped", "mode": "announce"}


@pytest.mark.spec("A2A-13")
@pytest.mark.parametrize("word", ["REPLY_SKIP", "NO_REPLY"])
async def test_without_a_first_reply_nothing_follows(house: House, word: str) -> None:
    talk = Talk(
        house,
        anna=[send(sessionKey="bob", message="word?"), text("ok"), text("not asked")],
        bob=[text("hello, I am bob"), text(word), text("not asked")],
    )
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(BOB, "I am bob", "run-b")
        await client.say(ANNA, "ask bob", "run-a")
        await quiet(gateway, ANNA, BOB)
        assert (len(talk.heard["anna"]), len(talk.heard["bob"])) == (2, 2)


@pytest.mark.spec("A2A-13", "KEY-18", "KEY-19", "QUE-1")
@pytest.mark.parametrize("name", ["current", "openclaw-tui", "anna", ANNA])
async def test_a_session_that_writes_to_itself_waits_for_nobody(house: House, name: str) -> None:
    talk = Talk(
        house,
        anna=[
            send(sessionKey=name, message="note to self", timeoutSeconds=60),
            text("I wrote to myself"),
            text("read it"),
            text("ANNOUNCE_SKIP"),
        ],
        bob=[],
    )  # fmt: skip
    async with house.gateway() as gateway, client_of(gateway) as client:
        async with asyncio.timeout(60):
            await client.say(ANNA, "go", "run-a")
        (result,) = results(talk.heard["anna"][1])
        assert (result["status"], result["sessionKey"]) == ("accepted", ANNA)
        assert "waits for this one" in result["note"]
        await until(lambda: _true(len(talk.heard["anna"]) == 4))
        await quiet(gateway, ANNA)
        assert last_said(talk.heard["anna"][2]).endswith("note to self")
        assert "First reply: read it" in last_said(talk.heard["anna"][3])  # no turn back in between
        rows = (await client.call("sessions.list", {}))["sessions"]
        assert [row["key"] for row in rows] == [ANNA]


@pytest.mark.spec("A2A-13", "KEY-18")
async def test_a_parent_that_writes_to_its_helper_gets_one_answer(house: House) -> None:
    house.config["tools"] = {"sessions": {"visibility": "tree"}}
    key = "agent:main:main"
    async with house.gateway() as gateway, client_of(gateway) as client:
        play = Play(
            house, FakeReply(calls=(call("sessions_spawn", task="be there"),)), FakeReply(texts=("ok",))
        )
        play.announcement = FakeReply(texts=("ANNOUNCE_SKIP",))
        await client.say(key, "go", "run-1")
        await until(lambda: _true(len(play.children) == 2))
        child = (await client.call("sessions.list", {"spawnedBy": key}))["sessions"][0]["key"]
        await quiet(gateway, key, child)
        play.task = FakeReply(texts=("still here",))
        play.parent = [send(sessionKey=child, message="are you there?"), FakeReply(texts=("it is",))]
        await client.say(key, "ask it", "run-2")
        await quiet(gateway, key, child)
        sent = results(play.parents[-1])[-1]
        assert (sent["status"], sent["reply"]) == ("ok", "still here")
        assert len(play.parents) == 4  # no turn back, no announcement


@pytest.mark.spec("A2A-15")
async def test_an_announcement_that_fails_changes_nothing_for_the_requester(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "openclaw")
    house.config["session"] = {"agentToAgent": {"maxPingPongTurns": 0}}
    talk = Talk(
        house,
        anna=[send(sessionKey=BOB, message="news"), text("told him")],
        bob=[
            text("hello, I am bob"),
            text("thanks"),
            FakeReply(status=401, body={"error": {"message": "no"}}),
        ],
    )
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(BOB, "I am bob", "run-b")
        await make(gateway, BOB, delivery_context=DeliveryContext("telegram", "42"))
        await client.say(ANNA, "tell bob", "run-a")
        await until(lambda: _true(len(talk.heard["bob"]) == 3))
        await quiet(gateway, ANNA, BOB)
        (result,) = results(talk.heard["anna"][1])
        assert (result["status"], result["reply"]) == ("ok", "thanks")
        store, now_ms = gateway.services.store, gateway.services.clock.now_ms()
        assert await store.deliveries_due("telegram", now_ms=now_ms) == ()
        assert len(talk.heard["anna"]) == 2
        assert any(f"announcement of {BOB}" in record.getMessage() for record in caplog.records)


@pytest.mark.spec("A2A-16", "KEY-20")
@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (None, DeliveryContext("telegram", "-100abc")),
        (DeliveryContext("telegram", "-100ABC", "work"), DeliveryContext("telegram", "-100ABC", "work")),
        (DeliveryContext("matrix", "elsewhere"), DeliveryContext("telegram", "-100abc")),
    ],
)
async def test_a_group_hears_of_it_in_the_group(
    house: House, stored: DeliveryContext | None, wanted: DeliveryContext
) -> None:
    house.config["session"] = {"agentToAgent": {"maxPingPongTurns": 0}}
    talk = Talk(
        house,
        anna=[send(sessionKey=GROUP, message="news"), text("told them")],
        bob=[text("hello, I am bob"), text("thanks"), text("Everybody: news.")],
    )
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(GROUP, "I am bob", "run-b")
        await make(gateway, GROUP, delivery_context=stored)
        await client.say(ANNA, "tell the group", "run-a")
        (result,) = results(talk.heard["anna"][1])
        assert result["delivery"] == {"status": "pending", "mode": "announce"}
        store = gateway.services.store

        async def announced() -> bool:
            return bool(await store.deliveries_due("telegram", now_ms=gateway.services.clock.now_ms()))

        await until(announced)
        (due,) = await store.deliveries_due("telegram", now_ms=gateway.services.clock.now_ms())
        route = DeliveryContext(due.channel, due.target, due.account_id, due.thread_id)
        assert (due.body, route) == (b'{"text":"Everybody: news."}', wanted)


TOPIC = "agent:main:telegram:group:1:topic:5"
FOREIGN_TOPIC = "agent:bob:telegram:group:1:topic:5"
DENY = {"rules": [{"action": "deny", "match": {"keyPrefix": "agent:main:telegram"}}], "default": "allow"}


@pytest.mark.spec("A2A-17")
@pytest.mark.parametrize(
    ("visibility", "target", "status", "words"),
    [
        ("agent", "agent:main:nobody:topic:1", "error", "No session"),  # nobody there, before anything else
        ("tree", TOPIC, "forbidden", "tools.sessions.visibility"),  # hidden, before it is a topic
        ("agent", FOREIGN_TOPIC, "forbidden", "tools.sessions.visibility"),
        ("all", FOREIGN_TOPIC, "forbidden", "tools.agentToAgent"),
        ("agent", TOPIC, "error", "thread or topic"),  # a topic, before sending is denied
        ("agent", "agent:main:telegram:group:1", "forbidden", "send"),
    ],
)  # fmt: skip
async def test_where_several_checks_fail_the_first_one_speaks(
    house: House, visibility: str, target: str, status: str, words: str
) -> None:
    house.config["session"] = {"sendPolicy": DENY}
    talk = Talk(house, anna=[send(sessionKey=target, message="x"), text("ok")], bob=[])
    house.config["tools"] = {"sessions": {"visibility": visibility}}
    async with house.gateway() as gateway, client_of(gateway) as client:
        for key in (TOPIC, FOREIGN_TOPIC, "agent:main:telegram:group:1"):
            await make(gateway, key)
        await client.say(ANNA, "go", "run-a")
        (result,) = results(talk.heard["anna"][1])
        assert (result["status"], words in result["error"]) == (status, True), result


@pytest.mark.spec("QUE-1")
async def test_who_has_waited_goes_on_before_those_who_came_later(house: House) -> None:
    house.config["agents"]["defaults"]["maxConcurrent"] = 1
    order: list[str] = []
    slow = FakeReply(texts=("abra", "cadabra"), hang_after=0)

    def decide(body: dict[str, Any]) -> FakeReply:
        said = json.dumps(body["messages"])
        name = "bob" if "I am bob" in said else "cyd" if "I am cyd" in said else "anna"
        order.append(name)
        if name == "anna" and len(results(body)) == 0:
            return send(sessionKey=BOB, message="word?", timeoutSeconds=60)
        first_cyd = name == "cyd" and order.count("cyd") == 1
        return slow if first_cyd or (name == "bob" and "word?" in said) else FakeReply(texts=("REPLY_SKIP",))

    house.model.decide = decide
    house.config["tools"] = {"sessions": {"visibility": "agent"}}
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(BOB, "I am bob", "run-b")
        await client.call("chat.send", {"sessionKey": ANNA, "message": "ask", "idempotencyKey": "run-a"})
        await until(lambda: _true(order == ["bob", "anna", "bob"]))
        for number in range(3):  # they stand in line while bob has the only place
            key = f"agent:main:cyd{number}"
            await client.call(
                "chat.send", {"sessionKey": key, "message": "I am cyd", "idempotencyKey": f"run-c{number}"}
            )
        line = gateway.services.workers.lanes.lane("main")._line
        await until(lambda: _true(len(line) == 3))
        house.model.release()
        house.model._release.clear()  # only what hangs by now
        # The first in line has the place that bob left; anna stands before the two others now.
        await until(lambda: _true(order[3:] == ["cyd"] and len(line) == 3))
        house.model.release()
        await until(lambda: _true(len(order) >= 7))
        assert order[3:7] == ["cyd", "anna", "cyd", "cyd"]


@pytest.mark.spec("QUE-1")
async def test_a_message_is_handed_on_so_often_and_no_further(house: House) -> None:
    house.config["session"] = {"agentToAgent": {"maxPingPongTurns": 0}}
    house.config["tools"] = {"sessions": {"visibility": "agent"}}
    answers: list[dict[str, Any]] = []

    def decide(body: dict[str, Any]) -> FakeReply:
        told = results(body)
        last = body["messages"][-1]
        if last["role"] == "tool":
            answers.append(told[-1])
            return FakeReply(texts=("NO_REPLY",))
        if not str(last["content"]).endswith("pass it on"):
            return FakeReply(texts=("ANNOUNCE_SKIP",))
        other = "bob" if len(answers) % 2 == 0 else "anna"
        arguments = json.dumps({"sessionKey": other, "message": "pass it on", "timeoutSeconds": 0})
        return FakeReply(calls=(FakeCall("sessions_send", (arguments,), f"call_{len(answers)}"),))

    house.model.decide = decide
    async with house.gateway() as gateway, client_of(gateway) as client:
        await make(gateway, BOB)
        await client.say(ANNA, "pass it on", "run-a")
        await until(lambda: _true(len(answers) == MAX_HOPS + 1))
        await quiet(gateway, ANNA, BOB)
        assert [answer["status"] for answer in answers] == ["accepted"] * MAX_HOPS + ["error"]
        assert f"through {MAX_HOPS} sessions" in answers[-1]["error"]
