"""Helpers from beginning to end: started, waited for, announced, steered, stopped; through the loop."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from openclaw.app import Gateway
from openclaw.domain.entry import DeliveryContext, SessionEntry
from openclaw.engine.children import Children
from openclaw.engine.turns import Incoming
from openclaw.store.records import SessionSeed, UserInput
from openclaw.store.spawns import Spawns
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:main"
USAGE = {"prompt_tokens": 1200, "completion_tokens": 30, "total_tokens": 1230}


def call(name: str, call_id: str = "call_1", **arguments: Any) -> FakeCall:
    return FakeCall(name, (json.dumps(arguments),), call_id)


def last_said(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else json.dumps(content)


def is_child(body: dict[str, Any]) -> bool:
    return str(body["messages"][0]["content"]).startswith("You are a helper")


def has(body: dict[str, Any], text: str) -> bool:
    return text in json.dumps(body["messages"])


class Play:
    """Answers by role: what a helper says to its task, to the announce turn, and what the parent says."""

    def __init__(self, house: House, *parent: FakeReply) -> None:
        self.parent = list(parent)
        self.task = FakeReply(texts=("the sheep are 42",), usage=USAGE)
        self.announcement = FakeReply(texts=("Status: failed\nResult: 42 sheep\nNotes: one is black",))
        self.children: list[dict[str, Any]] = []
        self.parents: list[dict[str, Any]] = []
        house.model.decide = self.decide

    def decide(self, body: dict[str, Any]) -> FakeReply | None:
        if is_child(body):
            self.children.append(body)
            return self.announcement if "Your task has ended" in last_said(body) else self.task
        self.parents.append(body)
        return self.parent.pop(0) if self.parent else FakeReply(texts=("nothing more",))


def held(reply: FakeReply) -> FakeReply:
    """The same reply, once the model may speak: see `at_rest`."""
    return msgspec.structs.replace(reply, hang_after=-1)


async def at_rest(house: House, client: WireClient, run_id: str = "run-1") -> None:
    """Let the helpers speak when the turn of their parent is over; what ends earlier is told in that turn."""
    await client.ended(run_id)
    house.model.release()


async def until(check: Any) -> None:
    async with asyncio.timeout(60):
        while True:
            if await check():
                return
            await asyncio.sleep(0.01)


def results(body: dict[str, Any]) -> list[Any]:
    return [json.loads(m["content"]) for m in body["messages"] if m["role"] == "tool"]


@pytest.mark.spec(
    "SPAWN-1", "SPAWN-3", "SPAWN-4", "SPAWN-5", "SPAWN-19", "ANN-1", "ANN-3", "ANN-4", "ANN-5", "ANN-6",
    "ANN-8", "ANN-9", "YIELD-1", "YIELD-2",
)  # fmt: skip
async def test_a_helper_does_its_task_and_its_result_wakes_the_parent(
    house: House, client: WireClient
) -> None:
    play = Play(
        house,
        FakeReply(calls=(call("sessions_spawn", task="count the sheep", label="counting"),)),
        FakeReply(calls=(call("sessions_yield", "call_2", message="waiting for the count"),)),
        FakeReply(texts=("There are 42 sheep.",)),
    )
    play.task = held(play.task)
    await client.call("chat.send", {"sessionKey": KEY, "message": "how many?", "idempotencyKey": "run-1"})
    await at_rest(house, client)
    told = await client.wait_for(
        lambda e: e["event"] == "chat" and e["payload"].get("state") == "final"
        and "42 sheep" in json.dumps(e["payload"].get("message") or "")
    )  # fmt: skip
    assert told["payload"]["sessionKey"] == KEY
    accepted = results(play.parents[1])[0]
    assert accepted["status"] == "accepted"
    assert accepted["childSessionKey"].startswith("agent:main:subagent:")
    first = play.children[0]
    assert first["messages"][-1]["content"].endswith("[Subagent Task]\n\ncount the sheep")
    assert "[Inter-session message" in first["messages"][-1]["content"]
    assert "count the sheep" not in first["messages"][0]["content"]
    block = last_said(play.parents[2])
    assert "[Inter-session message sourceSession=" in block
    lines = block.splitlines()
    assert "Status: success" in lines
    assert "Result: 42 sheep" in lines
    assert "Notes: one is black" in lines
    stats = next(line for line in lines if line.startswith("Stats: runtime "))
    assert f"sessionKey {accepted['childSessionKey']}" in stats
    assert "in 1.2k" in stats
    yielded = results(play.parents[2])[1]
    assert yielded == {"status": "yielded", "message": "waiting for the count", "pending": 1}
    history = await client.call("chat.history", {"sessionKey": KEY})
    shown = json.dumps([m for m in history["messages"] if m["role"] != "toolResult"])
    assert "Stats: runtime" not in shown
    assert "Your task has ended" not in json.dumps(
        (await client.call("chat.history", {"sessionKey": accepted["childSessionKey"]}))["messages"]
    )


@pytest.mark.spec("ANN-2", "ANN-8")
@pytest.mark.parametrize("waits", [True, False])
async def test_a_silent_helper_wakes_only_a_parent_that_waits(
    house: House, client: WireClient, waits: bool
) -> None:
    after = FakeReply(calls=(call("sessions_yield", "call_2"),)) if waits else FakeReply(texts=("started",))
    play = Play(
        house,
        FakeReply(calls=(call("sessions_spawn", task="be quiet"),)),
        after,
        FakeReply(texts=("I heard.",)),
    )
    play.task = held(play.task)
    play.announcement = FakeReply(texts=(" ANNOUNCE_SKIP " if waits else "NO_REPLY",))
    await client.call("chat.send", {"sessionKey": KEY, "message": "go", "idempotencyKey": "run-1"})
    await at_rest(house, client)

    async def settled() -> bool:
        row = (await client.call("sessions.list", {"spawnedBy": KEY}))["sessions"]
        return bool(row) and len(play.children) == 2 and row[0].get("status") == "done"

    await until(settled)
    await asyncio.sleep(0.2)
    if waits:
        await until(lambda: _true(len(play.parents) == 3))
        assert last_said(play.parents[2]).endswith("Status: success")
    else:
        assert len(play.parents) == 2


async def _true(value: bool) -> bool:
    return value


@pytest.mark.spec("ANN-4")
async def test_a_helper_that_fails_says_so_and_announces_nothing_itself(
    house: House, client: WireClient
) -> None:
    play = Play(
        house,
        FakeReply(calls=(call("sessions_spawn", task="fail"),)),
        FakeReply(calls=(call("sessions_yield", "call_2"),)),
        FakeReply(texts=("It failed.",)),
    )
    play.task = held(FakeReply(status=401, body={"error": {"message": "no key"}}))
    await client.call("chat.send", {"sessionKey": KEY, "message": "go", "idempotencyKey": "run-1"})
    await at_rest(house, client)
    await until(lambda: _true(len(play.parents) == 3))
    block = last_said(play.parents[2])
    assert "Status: error: fake/one" in block
    assert "Result: (no output)" in block
    assert len(play.children) == 1


@pytest.mark.spec("SPAWN-12")
async def test_the_limits_are_counted_where_children_are_made(house: House) -> None:
    house.config["agents"]["defaults"]["subagents"] = {"maxChildrenPerAgent": 2}
    calls = tuple(call("sessions_spawn", f"call_{n}", task=f"task {n}") for n in range(6))
    async with house.gateway() as gateway, client_of(gateway) as client:
        play = Play(house, FakeReply(calls=calls), FakeReply(texts=("done",)))
        play.task = FakeReply(texts=("slow",), hang_after=0)
        await client.say(KEY, "go", "run-1")
        statuses = [result["status"] for result in results(play.parents[1])]
        assert statuses == ["accepted", "accepted", *["forbidden"] * 4]
        refused = results(play.parents[1])[2]
        assert "2 of 2" in refused["error"]
        rows = (await client.call("sessions.list", {"spawnedBy": KEY}))["sessions"]
        assert len(rows) == 2


@pytest.mark.spec("SPAWN-9", "SPAWN-10", "SPAWN-12")
async def test_a_leaf_has_no_session_tools_and_cannot_spawn(house: House, client: WireClient) -> None:
    play = Play(house, FakeReply(calls=(call("sessions_spawn", task="x"),)), FakeReply(texts=("ok",)))
    play.task = FakeReply(calls=(call("sessions_spawn", "call_9", task="deeper"),))
    await client.say(KEY, "go", "run-1")
    await until(lambda: _true(len(play.children) >= 2))
    offered = {tool["function"]["name"] for tool in play.children[0]["tools"]}
    assert "exec" in offered
    assert not offered & {
        "sessions_spawn",
        "sessions_list",
        "sessions_history",
        "sessions_send",
        "subagents",
        "session_status",
    }
    assert "there is no tool" in json.dumps(play.children[1]["messages"])


@pytest.mark.spec("SPAWN-2", "SPAWN-6", "SPAWN-7", "SPAWN-15", "TOOL-7")
@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ({"task": "x", "agentId": "bob"}, "forbidden", "may not be spawned"),
        ({"task": "x", "model": "nope"}, "error", "Unknown model"),
        ({"task": "x", "channel": "telegram"}, "error", "does not write to channels"),
        ({"task": "x", "runtime": "acp"}, "error", "ACP"),
        ({"task": "x", "thread": True}, "error", "thread"),
        ({"task": "x", "sandbox": "require"}, "forbidden", "sandbox"),
        ({"task": "x", "taskName": "all"}, "error", "taskName"),
        ({"label": "x"}, "error", "task"),
        ({"task": 5}, "error", "task"),
        ({"task": "y" * 300_000}, "error", "longer"),
    ],
)  # fmt: skip
async def test_what_cannot_be_spawned_is_said(
    house: House, client: WireClient, arguments: dict[str, Any], status: str, words: str
) -> None:
    play = Play(house, FakeReply(calls=(call("sessions_spawn", **arguments),)), FakeReply(texts=("ok",)))
    await client.say(KEY, "go", "run-1")
    (result,) = results(play.parents[1])
    assert (result["status"], words in result["error"]) == (status, True), result
    assert (await client.call("sessions.list", {"spawnedBy": KEY}))["sessions"] == []


@pytest.mark.spec("SPAWN-8")
async def test_a_fork_knows_the_conversation_without_a_copy(house: House, gateway: Gateway) -> None:
    async with client_of(gateway) as client:
        play = Play(
            house,
            FakeReply(texts=("noted",)),
            FakeReply(calls=(call("sessions_spawn", task="what is the word?", context="fork"),)),
            FakeReply(texts=("ok",)),
        )
        await client.say(KEY, "the word is abracadabra", "run-1")
        await client.say(KEY, "go", "run-2")
        await until(lambda: _true(bool(play.children)))
        assert has(play.children[0], "abracadabra")
        child = (await client.call("sessions.list", {"spawnedBy": KEY}))["sessions"][0]["key"]
        history = await client.call("chat.history", {"sessionKey": child})
        assert "abracadabra" not in json.dumps(history["messages"])


@pytest.mark.spec("SUB-1", "SUB-3", "SUB-4", "SUB-5")
async def test_a_helper_is_listed_steered_and_killed(house: House, client: WireClient) -> None:
    hanging = FakeReply(texts=("slow",), hang_after=0)
    play = Play(
        house,
        FakeReply(calls=(call("sessions_spawn", task="slow work", label="slow", taskName="slowly"),)),
        FakeReply(calls=(call("subagents", "call_2"),)),
        FakeReply(calls=(call("subagents", "call_3", action="steer", target="slowly", message="faster"),)),
        FakeReply(calls=(call("subagents", "call_4", action="kill", target="last"),)),
        FakeReply(texts=("stopped it",)),
    )
    play.task = hanging
    await client.say(KEY, "go", "run-1")
    listed, steered, killed = (results(play.parents[n])[-1] for n in (2, 3, 4))
    assert (listed["status"], listed["total"], listed["active"][0]["label"]) == ("ok", 1, "slow")
    assert steered["status"] == "accepted"
    assert (killed["status"], killed["cascadeKilled"]) == ("ok", 0)
    assert "Status: killed" in last_said(play.parents[4])  # steered into the turn that stopped it
    assert all("Your task has ended" not in last_said(body) for body in play.children)


@pytest.mark.spec("ANN-7", "ROUTE-2")
async def test_the_result_goes_where_the_request_came_from(house: House, gateway: Gateway) -> None:
    route = DeliveryContext("telegram", "42")
    store, turns, clock = gateway.services.store, gateway.services.turns, gateway.services.clock
    play = Play(
        house,
        FakeReply(calls=(call("sessions_spawn", task="count"),)),
        FakeReply(calls=(call("sessions_yield", "call_2"),)),
        FakeReply(texts=("There are 42.",)),
    )
    play.task = held(play.task)
    seed = SessionSeed(KEY, "main", "main")
    await store.edit_session(seed, lambda e: _routed(e, route), session_id="w-1", now_ms=clock.now_ms())
    body = UserInput("how many?", clock.now_ms(), route=route, deliver=True)
    await turns.accept(Incoming("run-1", seed, "channel", "42", body))
    assert await turns.wait("run-1", 60) is not None
    house.model.release()
    await until(lambda: _true(len(play.parents) == 3))

    async def delivered() -> bool:
        return bool(await store.deliveries_due("telegram", now_ms=clock.now_ms()))

    await until(delivered)
    due = await store.deliveries_due("telegram", now_ms=clock.now_ms())
    assert [one.body for one in due] == [b'{"text":"There are 42."}']


def _routed(entry: SessionEntry, route: DeliveryContext) -> SessionEntry:
    return msgspec.structs.replace(entry, delivery_context=route)


@pytest.mark.spec("REST-4", "ANN-8")
async def test_a_finished_helper_is_announced_after_a_restart(house: House) -> None:
    play = Play(
        house, FakeReply(calls=(call("sessions_spawn", task="count"),)), FakeReply(texts=("started",))
    )
    play.announcement = FakeReply(texts=("slow",), hang_after=0)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(KEY, "go", "run-1")
        await until(lambda: _true(len(play.children) == 2))
        gateway.services.workers._draining = True  # as a kill would: the announce turn is cut off
    play.announcement = FakeReply(texts=("Result: forty-two",))
    play.parent = [FakeReply(texts=("It is forty-two.",))]
    async with house.gateway() as gateway, client_of(gateway) as client:
        await until(lambda: _true(any("forty-two" in last_said(body) for body in play.parents)))
        blocks = [body for body in play.parents if "[Sub-agent finished" in last_said(body)]
        assert len(blocks) == 1


@pytest.mark.spec("ANN-11", "REST-5", "REST-4")
async def test_a_finished_helper_leaves_the_lists_in_time_and_a_lost_one_is_told(house: House) -> None:
    clock = MovableClock()
    play = Play(
        house,
        FakeReply(
            calls=(call("sessions_spawn", task="count"), call("sessions_spawn", "call_2", task="get lost"))
        ),
        FakeReply(texts=("started",)),
    )  # fmt: skip
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        await client.say(KEY, "go", "run-1")
        await until(lambda: _true(sum("Your task has ended" in last_said(b) for b in play.children) == 2))

        async def settled() -> bool:
            return await spawns.count_active(KEY) == 0

        spawns = Spawns(gateway.services.store._database)
        await until(settled)
        children = Children(spawns, gateway.services.settings, clock, gateway.services.workers.wake)
        rows = (await client.call("sessions.list", {"spawnedBy": KEY}))["sessions"]
        assert len(rows) == 2
        assert await children.sweep() == (0, 0)
        clock.move(61 * 60)
        assert await children.sweep() == (2, 0)
        assert (await client.call("sessions.list", {"spawnedBy": KEY}))["sessions"] == []
        assert await children.sweep() == (0, 0)
        play.parent = [
            FakeReply(calls=(call("sessions_spawn", "call_3", task="vanish"),)),
            FakeReply(texts=("ok",)),
        ]
        play.task = FakeReply(texts=("slow",), hang_after=0)
        await client.say(KEY, "again", "run-2")
        child = (await client.call("sessions.list", {"spawnedBy": KEY}))["sessions"][0]["key"]
        await gateway.services.turns.abort(child, reason="test")
        await until(settled)
        await until(lambda: _true(any("Status: killed" in last_said(body) for body in play.parents)))


async def test_what_helpers_spend_is_charged_to_the_tree(house: House) -> None:
    house.config["agents"]["defaults"]["budget"] = {"perTreeUsd": 2.4}
    house.config["tools"] = {"allow": ["sessions_spawn", "sessions_yield"]}
    house.config["models"]["providers"]["fake"]["models"][0] |= {
        "cost": {"input": 1000, "output": 2000}, "maxTokens": 200,
    }  # fmt: skip
    dear = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}  # two dollars
    async with house.gateway() as gateway, client_of(gateway) as client:
        play = Play(
            house,
            FakeReply(calls=(call("sessions_spawn", task="spend"),), usage=dear),
            FakeReply(texts=("started",), usage=dear),
        )
        refused = await client.say(KEY, "go", "run-1")
        assert "Spending limit reached for this session and its helpers" in refused["errorMessage"]

        async def settled() -> bool:
            return await Spawns(gateway.services.store._database).count_active(KEY) == 0

        await until(settled)
        assert play.children == []  # the parent has spent two dollars, and the next call may cost half a one
