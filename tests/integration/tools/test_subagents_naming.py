"""Helpers by name, and what may be asked of whom: targets, parameters, leaves, a start that fails."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from openclaw.errors import Overloaded
from openclaw.store import inbox
from openclaw.store.spawns import Spawns
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of
from tests.integration.tools.test_subagents import KEY, Play, call, is_child, last_said, results, until
from tests.integration.tools.test_subagents_details import HANGING, OK, spawn


async def _true(value: bool) -> bool:
    return value


def listed(play: Play) -> list[dict[str, Any]]:
    answer = results(play.parents[-1])[-1]
    return [*answer["active"], *answer["recent"]]


@pytest.mark.spec("SUB-3", "SUB-4")
async def test_every_way_to_name_a_helper(house: House) -> None:
    house.config["agents"]["defaults"]["subagents"] = {"maxChildrenPerAgent": 20}
    names = [
        {"taskName": "count_sheep"}, {"taskName": "count_goats"}, {"label": "Paint the shed"},
        {"label": "Paint the barn"}, {"label": "twice"}, {"label": "twice"}, {"task": "by run"},
        {"task": "by key"}, {"task": "by number"}, {"task": "the last"},
    ]  # fmt: skip
    async with house.gateway() as gateway, client_of(gateway) as client:
        calls = tuple(
            call("sessions_spawn", f"c{n}", **{"task": f"task {n}", **name}) for n, name in enumerate(names)
        )
        play = Play(house, FakeReply(calls=calls), FakeReply(calls=(call("subagents", "list"),)), OK)
        play.task = HANGING
        await client.say(KEY, "go", "run-1")
        rows = {row.get("taskName") or row["label"] or row["task"]: row for row in listed(play)}
        assert {row["status"] for row in rows.values()} == {"active"}
        assert sorted(row["index"] for row in listed(play)) == list(range(1, 11))

        numbers = itertools.count()

        async def kill(target: str) -> dict[str, Any]:
            play.parent = [
                FakeReply(calls=(call("subagents", f"k{next(numbers)}", action="kill", target=target),)),
                OK,
            ]
            await client.say(KEY, "kill one", f"kill-{next(numbers)}")
            answer: dict[str, Any] = results(play.parents[-1])[-1]
            return answer

        for target in ("count", "Paint", "twice", "agent:main:subagent:"):
            assert "means several helpers" in (await kill(target))["error"], target
        for target in ("nobody", "count_sheep_", "99", "agent:main:main", "x" * 10_000, "\x00"):
            answer = await kill(target)
            wanted_words = "needs a target" if target == "\x00" else "no helper"
            assert (answer["status"], wanted_words in answer["error"]) == ("error", True), target
        number = str(rows["by number"]["index"])
        newest = max(rows.values(), key=lambda row: (row["startedAt"], row["runId"]))
        wanted = {
            number: rows["by number"], "count_sheep": rows["count_sheep"], "count_g": rows["count_goats"],
            "Paint the shed": rows["Paint the shed"], "Paint the b": rows["Paint the barn"],
            rows["by key"]["sessionKey"]: rows["by key"], rows["by run"]["runId"][:13]: rows["by run"],
        }  # fmt: skip
        for target, row in wanted.items():
            if row is newest:
                target = "last"
            killed = await kill(target)
            assert (killed["status"], killed.get("runId")) == ("ok", row["runId"]), (target, killed)
        again = await kill(rows["count_sheep"]["sessionKey"])
        assert (again["status"], "done already" in again["error"]) == ("error", True)


@pytest.mark.spec("SUB-4", "SPAWN-9")
@pytest.mark.parametrize("action", ["steer", "kill"])
async def test_a_leaf_that_was_given_the_tool_steers_and_stops_nobody(house: House, action: str) -> None:
    house.config["tools"] = {"subagents": {"tools": {"alsoAllow": ["subagents"]}}}
    async with house.gateway() as gateway, client_of(gateway) as client:
        play = Play(house, spawn(task="try"), OK)
        tries = [
            FakeReply(calls=(call("subagents", "t1", action=action, target="last", message="x"),)),
            FakeReply(calls=(call("subagents", "t2"),)),
            OK,
        ]
        decide = play.decide

        def by_turn(body: dict[str, Any]) -> FakeReply | None:
            if is_child(body) and tries and "Your task has ended" not in last_said(body):
                play.task = tries.pop(0)
            return decide(body)

        house.model.decide = by_turn
        await client.say(KEY, "go", "run-1")
        await until(lambda: _true(len(play.children) >= 3))
        forbidden, seen = results(play.children[2])
        assert (forbidden["status"], "lowest level" in forbidden["error"]) == ("forbidden", True)
        assert (seen["status"], seen["total"]) == ("ok", 0)
        assert gateway is not None


@pytest.mark.spec("SPAWN-15", "SPAWN-2", "BIND-3", "TOOL-7")
async def test_each_parameter_is_read_or_refused(house: House, client: WireClient) -> None:
    house_names = ("channel", "to", "target", "threadId", "replyTo", "transport")
    bad: list[tuple[dict[str, Any], str, str]] = [
        *(({name: "x"}, "error", f"{name}: a helper does not write to channels") for name in house_names),
        ({"mode": "session"}, "error", "needs thread: true"),
        ({"mode": "session", "thread": True}, "error", "no channel here can bind"),
        ({"thread": True}, "error", "no channel here can bind"),
        ({"mode": "forever"}, "error", "mode"),
        ({"runtime": "acp"}, "error", "native sub-agents are available"),
        ({"runtime": "acp", "context": "fork"}, "error", 'context "fork" needs the built-in runtime'),
        ({"runtime": "docker"}, "error", "runtime"),
        *(
            ({"taskName": name}, "error", "taskName")
            for name in ("last", "all", "Big", "9x", "", "a" * 65, "a b")
        ),
        ({"cleanup": "burn"}, "error", "cleanup"),
        ({"context": "copy"}, "error", "context"),
        ({"runTimeoutSeconds": -1}, "error", "runTimeoutSeconds"),
        ({"runTimeoutSeconds": "soon"}, "error", "runTimeoutSeconds"),
        ({"label": "x" * 201}, "error", "label"),
        ({"thinking": 5}, "error", "thinking"),
        ({"colour": "red"}, "error", "colour"),
        ({"task": ""}, "error", "task"),
        ({"agentId": "no such agent"}, "forbidden", "Allowed: main"),
    ]
    calls = tuple(
        call("sessions_spawn", f"c{n}", **{"task": "x", **arguments})
        for n, (arguments, _, _) in enumerate(bad)
    )
    play = Play(house, FakeReply(calls=calls), OK)
    await client.say(KEY, "go", "run-1")
    for result, (arguments, status, words) in zip(results(play.parents[1]), bad, strict=True):
        assert (result["status"], words in result["error"]) == (status, True), (arguments, result)
    assert (await client.call("sessions.list", {"spawnedBy": KEY}))["sessions"] == []
    longest = "a" + "b_9" * 21
    good = {"mode": "run", "taskName": longest, "thread": False, "label": None, "runTimeoutSeconds": 5.0}
    play.parent = [FakeReply(calls=(call("sessions_spawn", "g", task="x", **good),)), OK]
    await client.say(KEY, "go on", "run-2")
    assert results(play.parents[-1])[-1]["status"] == "accepted"


@pytest.mark.spec("BIND-3")
async def test_a_sandboxed_session_is_told_that_harnesses_are_not_for_it(house: House) -> None:
    house.config["agents"]["defaults"]["sandbox"] = {"mode": "all"}
    async with house.gateway() as gateway, client_of(gateway) as client:
        play = Play(house, spawn(runtime="acp"), OK)
        await client.say(KEY, "go", "run-1")
        (result,) = results(play.parents[1])
        assert result["status"] == "forbidden"
        assert "native sub-agent" in result["error"]
        assert await Spawns(gateway.services.store._database).count_active(KEY) == 0


@pytest.mark.spec("SPAWN-16")
async def test_a_helper_that_cannot_be_begun_leaves_nothing_behind(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.gateway() as gateway, client_of(gateway) as client:
        enqueue = inbox.enqueue

        def full(tx: Any, new: inbox.NewInput, now_ms: int) -> None:
            if new.body.purpose is None:
                raise Overloaded("the inbox of the helper is full")
            enqueue(tx, new, now_ms)

        monkeypatch.setattr(inbox, "enqueue", full)
        play = Play(house, spawn(task="cannot begin", label="never"), OK)
        await client.say(KEY, "go", "run-1")
        (result,) = results(play.parents[1])
        assert result["status"] == "error"
        assert result["error"] == "the inbox of the helper is full"
        child = result["childSessionKey"]
        assert child.startswith("agent:main:subagent:")
        assert await gateway.services.store.session(child) is None
        assert await Spawns(gateway.services.store._database).of_parent(KEY, settled_since=0) == ()
        rows = (await client.call("sessions.list", {}))["sessions"]
        assert [row["key"] for row in rows] == [KEY]
        history = json.dumps(await client.call("chat.history", {"sessionKey": KEY}))
        assert "childSessionKey" in history  # the answer itself was kept
        monkeypatch.undo()
        play.parent = [spawn("call_2"), OK]
        await client.say(KEY, "again", "run-2")
        assert results(play.parents[-1])[-1]["status"] == "accepted"
