"""Helpers in detail: what they begin with, how they are named, stopped and put away."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from openclaw.domain.entry import DeliveryContext, SessionEntry
from openclaw.engine.children import Children
from openclaw.store.records import SessionSeed
from openclaw.store.spawns import Spawns
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of
from tests.integration.tools.test_subagents import (
    KEY,
    USAGE,
    Play,
    at_rest,
    call,
    held,
    is_child,
    last_said,
    results,
    until,
)

HANGING = FakeReply(texts=("slow",), hang_after=0)


async def _true(value: bool) -> bool:
    return value


def spawn(call_id: str = "call_1", **arguments: Any) -> FakeReply:
    return FakeReply(calls=(call("sessions_spawn", call_id, **{"task": "work", **arguments}),))


OK = FakeReply(texts=("ok",))


@pytest.mark.spec("SPAWN-2", "SPAWN-13", "SPAWN-19")
async def test_what_a_helper_begins_with(house: House) -> None:
    house.config["agents"]["defaults"]["subagents"] = {"model": "fake/two", "thinking": "low"}
    workspace = house.home / "state" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "AGENTS.md").write_text("House rule: be brief.")
    (workspace / "SOUL.md").write_text("Secret soul.")
    async with house.gateway() as gateway, client_of(gateway) as client:
        play = Play(
            house,
            spawn(),
            spawn("call_2", model="fake/one", thinking="high", label="second"),
            OK,
        )
        await client.say(KEY, "go", "run-1")
        await until(lambda: _true(len([b for b in play.children if "[Subagent Task]" in last_said(b)]) == 2))
        models = {body["model"] for body in play.children}
        assert models == {"one", "two"}
        system = play.children[0]["messages"][0]["content"]
        assert "House rule: be brief." in system
        assert "Secret soul." not in system
        assert "Secret soul." in play.parents[0]["messages"][0]["content"]
        rows = (await client.call("sessions.list", {"spawnedBy": KEY}))["sessions"]
        assert {row.get("thinkingLevel") for row in rows} == {"low", "high"}
        assert "second" in {row.get("displayName") for row in rows}


@pytest.mark.spec("SPAWN-9")
async def test_an_orchestrator_may_start_helpers_and_a_leaf_below_it_may_not(house: House) -> None:
    house.config["agents"]["defaults"]["subagents"] = {"maxSpawnDepth": 2}
    async with house.gateway() as gateway, client_of(gateway) as client:
        seen: list[dict[str, Any]] = []

        def decide(body: dict[str, Any]) -> FakeReply:
            seen.append(body)
            said = last_said(body)
            if not is_child(body):
                return spawn(task="lead") if len(seen) == 1 else OK
            if said.endswith("lead"):
                return spawn("call_2", task="leaf work")
            return OK

        house.model.decide = decide
        await client.say(KEY, "go", "run-1")
        await until(lambda: _true(any(last_said(body).endswith("leaf work") for body in seen)))
        lead = next(body for body in seen if last_said(body).endswith("lead"))
        leaf = next(body for body in seen if last_said(body).endswith("leaf work"))
        offered = [{tool["function"]["name"] for tool in body["tools"]} for body in (lead, leaf)]
        assert {"sessions_spawn", "subagents", "sessions_list", "sessions_history"} <= offered[0]
        assert not offered[1] & {"sessions_spawn", "subagents", "sessions_list", "sessions_history"}


@pytest.mark.spec("SPAWN-15", "SPAWN-8")
async def test_a_conversation_that_is_too_long_is_not_handed_on(house: House) -> None:
    house.config["models"]["providers"]["fake"]["models"][0]["contextWindow"] = 1_000_000
    large = {"prompt_tokens": 150_000, "completion_tokens": 5, "total_tokens": 150_005}
    async with house.gateway() as gateway, client_of(gateway) as client:
        play = Play(house, FakeReply(texts=("long",), usage=large), spawn(context="fork"), OK)
        await client.say(KEY, "the word is abracadabra", "run-1")
        await client.say(KEY, "go", "run-2")
        accepted = next(result for body in play.parents for result in _spawned(body))
        assert accepted["status"] == "accepted"
        assert "too long to be handed on" in accepted["note"]
        await until(lambda: _true(bool(play.children)))
        assert "abracadabra" not in json.dumps(play.children[0]["messages"])


def _spawned(body: dict[str, Any]) -> list[dict[str, Any]]:
    told = [m["content"] for m in body["messages"] if m["role"] == "tool"]
    return [json.loads(text) for text in told if "childSessionKey" in text]


@pytest.mark.spec("ANN-11")
async def test_cleanup_delete_archives_at_once_and_zero_minutes_never_do(house: House) -> None:
    house.config["agents"]["defaults"]["subagents"] = {"archiveAfterMinutes": 0}
    clock = MovableClock()
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        play = Play(house, spawn(cleanup="delete", label="gone"), spawn("call_2", label="kept"), OK)
        await client.say(KEY, "go", "run-1")
        registry = Spawns(gateway.services.store._database)

        async def settled() -> bool:
            return len(play.children) == 4 and await registry.count_active(KEY) == 0

        await until(settled)
        names = [
            row["displayName"] for row in (await client.call("sessions.list", {"spawnedBy": KEY}))["sessions"]
        ]
        assert names == ["kept"]
        clock.move(30 * 24 * 3600)
        children = Children(registry, gateway.services.settings, clock, gateway.services.workers.wake)
        assert await children.sweep() == (0, 0)
        gone = [row for row in await registry.of_parent(KEY, settled_since=0) if row.body.label == "gone"]
        history = await client.call("chat.history", {"sessionKey": gone[0].child_key})
        assert history["messages"] != []


@pytest.mark.spec("YIELD-2")
async def test_a_yield_ends_the_turn_whatever_else_was_called(house: House, client: WireClient) -> None:
    calls = (call("sessions_yield", "call_1"), call("exec", "call_2", command="touch made.txt"))
    play = Play(house, FakeReply(calls=calls), FakeReply(texts=("woken",)))
    await client.call("chat.send", {"sessionKey": KEY, "message": "wait for them", "idempotencyKey": "run-1"})
    await client.ended("run-1")
    waited = await client.call("agent.wait", {"runId": "run-1", "timeoutMs": 60_000})
    assert (waited["status"], waited.get("yielded"), waited["stopReason"]) == ("ok", True, "yielded"), waited
    assert len(play.parents) == 1
    assert not list(house.home.rglob("made.txt"))
    final = await client.say(KEY, "wake up", "run-2")
    assert final["message"]["content"][0]["text"] == "woken"
    told = [m["content"] for m in play.parents[1]["messages"] if m["role"] == "tool"]
    assert json.loads(told[0])["pending"] == 0
    assert told[1].startswith("Skipped:")


@pytest.mark.spec("SUB-1", "SUB-3", "SUB-4")
async def test_all_helpers_are_stopped_and_only_the_own_ones(house: House, client: WireClient) -> None:
    play = Play(
        house,
        FakeReply(
            calls=tuple(call("sessions_spawn", f"c{n}", task="x", label=f"helper {n}") for n in range(3))
        ),
        FakeReply(calls=(call("subagents", "k0", action="kill", target="helper"),)),
        FakeReply(calls=(call("subagents", "k1", action="kill", target="helper 1"),)),
        FakeReply(calls=(call("subagents", "k2", action="kill", target="all"),)),
        FakeReply(calls=(call("subagents", "k3"),)),
        OK,
    )  # fmt: skip
    play.task = HANGING
    await client.say(KEY, "go", "run-1")
    answers = [results(body)[-1] for body in play.parents[2:]]
    ambiguous, one, rest, listed = answers
    assert ambiguous["status"] == "error" and "several helpers" in ambiguous["error"]
    assert one["status"] == "ok"
    assert (rest["status"], rest["killed"]) == ("ok", 2)
    assert (listed["total"], listed["active"]) == (3, [])
    assert {row["status"] for row in listed["recent"]} == {"killed"}


@pytest.mark.spec("SUB-2", "SUB-4")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"action": "steer", "target": "last", "message": "x" * 4001}, "message"),
        ({"recentMinutes": 0}, "recentMinutes"),
        ({"recentMinutes": 1441}, "recentMinutes"),
        ({"action": "dance"}, "action"),
        ({"action": "kill"}, "target"),
        ({"action": "steer", "target": "last"}, "no helpers"),
    ],
)
async def test_what_cannot_be_asked_of_helpers_is_said(
    house: House, client: WireClient, arguments: dict[str, Any], words: str
) -> None:
    play = Play(house, FakeReply(calls=(call("subagents", **arguments),)), OK)
    await client.say(KEY, "go", "run-1")
    (result,) = results(play.parents[1])
    assert result["status"] == "error"
    assert words in result["error"]


@pytest.mark.spec("SUB-4", "SUB-5")
async def test_a_steered_helper_starts_anew_and_announces_as_before(
    house: House, client: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody knows how long the two calls take; the second is to come too soon.
    monkeypatch.setattr("openclaw.engine.tools.sessions.subagents.STEER_EVERY_MS", 600_000)
    steer = {"action": "steer", "target": "1", "message": "now hurry"}
    play = Play(
        house,
        spawn(label="slow"),
        FakeReply(calls=(call("subagents", "s1", **steer),)),
        FakeReply(calls=(call("subagents", "s2", **steer),)),
        FakeReply(calls=(call("sessions_yield", "y1"),)),
        FakeReply(texts=("heard it",)),
    )
    play.task = HANGING
    await client.call("chat.send", {"sessionKey": KEY, "message": "go", "idempotencyKey": "run-1"})
    await until(lambda: _true(len(play.parents) >= 4))
    play.task = FakeReply(texts=("done in a hurry",), usage=USAGE)
    house.model.release()
    again = results(play.parents[3])[-1]
    assert again["status"] == "error" and "two seconds" in again["error"]
    await until(lambda: _true(len(play.parents) == 5))
    assert "Status: success" in last_said(play.parents[4])
    steered = [body for body in play.children if "now hurry" in last_said(body)]
    assert len(steered) == 1
    assert "[Inter-session message" in last_said(steered[0])


@pytest.mark.spec("ANN-5", "ANN-6")
async def test_the_stats_name_the_cost_where_prices_are_known(house: House, client: WireClient) -> None:
    play = Play(house, spawn(), FakeReply(calls=(call("sessions_yield", "y1"),)), OK)
    dear = {"prompt_tokens": 40_000, "completion_tokens": 9000, "total_tokens": 49_000}
    play.task = held(FakeReply(texts=("x",), usage=dear))
    await client.call("chat.send", {"sessionKey": KEY, "message": "go", "idempotencyKey": "run-1"})
    await at_rest(house, client)
    await until(lambda: _true(len(play.parents) == 3))
    stats = next(line for line in last_said(play.parents[2]).splitlines() if line.startswith("Stats: "))
    assert "est $0.06" in stats
    assert "transcript openclaw sessions export agent:main:subagent:" in stats


@pytest.mark.spec("ANN-8")
async def test_a_requester_whose_turn_fails_still_delivers_the_result(house: House) -> None:
    async with house.gateway() as gateway, client_of(gateway) as client:
        store, clock = gateway.services.store, gateway.services.clock

        def routed(entry: SessionEntry) -> SessionEntry:
            return msgspec.structs.replace(entry, delivery_context=DeliveryContext("telegram", "42"))

        await store.edit_session(
            SessionSeed(KEY, "main", "main"), routed, session_id="w", now_ms=clock.now_ms()
        )
        play = Play(house, spawn(), OK, FakeReply(status=401, body={"error": {"message": "no key"}}))
        play.task = held(play.task)
        await client.say(KEY, "go", "run-1")
        house.model.release()
        await until(lambda: _true(len(play.parents) == 3))

        async def delivered() -> bool:
            return bool(await store.deliveries_due("telegram", now_ms=clock.now_ms()))

        await until(delivered)
        (due,) = await store.deliveries_due("telegram", now_ms=clock.now_ms())
        assert b"Result: 42 sheep" in due.body
