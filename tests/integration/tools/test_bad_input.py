"""Whatever a model writes, the session tools answer with what to do: types, names, sizes, storms."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest

from openclaw.store.spawns import Spawns
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of
from tests.integration.tools.asking import add_session
from tests.integration.tools.test_subagents import KEY, Play, call, results
from tests.integration.tools.test_subagents_details import HANGING, OK

JUNK: tuple[Any, ...] = (
    5,
    True,
    1.5,
    [],
    ["main"],
    {},
    {"key": "main"},
    "",
    "\x00",
    "\ud800",
    "x" * 10_240,
    "mаin",
)
MOST_CALLS = 200
TOOLS = {
    "sessions_list": ("kinds", "limit", "search"),
    "sessions_history": ("sessionKey", "limit"),
    "sessions_search": ("query", "sessionKey"),
    "sessions_send": ("sessionKey", "label", "message", "timeoutSeconds"),
    "sessions_spawn": ("task", "agentId", "model", "thinking", "attachments", "attachAs"),
    "sessions_yield": ("message",),
    "subagents": ("action", "target", "message", "recentMinutes"),
    "session_status": ("sessionKey", "model"),
}
REQUIRED: dict[str, dict[str, Any]] = {
    "sessions_search": {"query": "x"}, "sessions_send": {"message": "x"}, "sessions_spawn": {"task": "x"},
}  # fmt: skip


@pytest.mark.spec("TOOL-6", "TOOL-7")
async def test_junk_in_any_parameter_is_an_answer(house: House) -> None:
    house.config["agents"]["defaults"]["subagents"] = {"maxChildrenPerAgent": 200}
    numbers = itertools.count()
    calls = [
        (tool, {**REQUIRED.get(tool, {}), name: junk})
        for tool, names in TOOLS.items()
        for name in names
        for junk in JUNK
        # A task and a message may be any text; a note of a yield ends the turn.
        if tool != "sessions_yield" and not (name in ("task", "message") and isinstance(junk, str) and junk)
    ]
    async with house.gateway() as gateway, client_of(gateway) as client:
        play = Play(house)
        play.task = HANGING
        answers = []
        for turn in range(0, len(calls), MOST_CALLS):
            some = calls[turn : turn + MOST_CALLS]
            made = tuple(
                FakeCall(tool, (json.dumps(arguments),), f"c{next(numbers)}") for tool, arguments in some
            )
            play.parent = [FakeReply(calls=made), OK]
            await client.say(f"agent:main:junk{turn}", "go", f"run-{turn}")
            answers += results(play.parents[-1])
        assert len(answers) == len(calls)
        for answer, (tool, arguments) in zip(answers, calls, strict=True):
            assert isinstance(answer, dict), (tool, arguments)
            if answer.get("status") in ("error", "forbidden"):
                assert 10 < len(answer["error"]) < 1000, (tool, arguments)
            assert "inside the gateway" not in json.dumps(answer), (tool, arguments)
        objects = [
            answer["status"]
            for answer, (tool, arguments) in zip(answers, calls, strict=True)
            if {"key": "main"} in arguments.values() and "attachAs" not in arguments
        ]
        assert set(objects) == {"error"} and len(objects) > 15
        assert gateway.services.workers.active_run(KEY) is None


@pytest.mark.spec("A2A-2", "TOOL-6", "TOOL-7")
async def test_a_label_that_several_have_and_ids_that_nobody_has(house: House) -> None:
    house.config["tools"] = {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}}
    ghost = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
    bad: list[tuple[str, dict[str, Any], str]] = [
        ("sessions_send", {"label": "work", "sessionKey": "main", "message": "x"}, "not both"),
        ("sessions_send", {"agentId": "main", "message": "x"}, "either sessionKey or label"),
        ("sessions_send", {"sessionKey": ghost, "message": "x"}, "No session"),
        ("sessions_send", {"label": "nobody is called so", "message": "x"}, "No session"),
        ("sessions_send", {"sessionKey": "agent:", "message": "x"}, "agent:"),
        ("sessions_history", {"sessionKey": ghost}, "No session"),
        ("session_status", {"sessionKey": ghost}, "No session"),
        ("sessions_search", {"query": "x", "sessionKey": ghost}, "No session"),
        ("sessions_history", {"sessionKey": ghost[:8]}, "No session"),  # a beginning is no id
    ]
    async with house.gateway() as gateway, client_of(gateway) as client:
        await add_session(gateway, "agent:main:one", "hi", label="work")
        await add_session(gateway, "agent:bob:one", "hi", label="work")
        play = Play(house, FakeReply(calls=tuple(
            call(tool, f"c{number}", **arguments) for number, (tool, arguments, _) in enumerate(bad)
        )), OK)  # fmt: skip
        await client.say(KEY, "go", "run-1")
        for answer, (tool, arguments, words) in zip(results(play.parents[1]), bad, strict=True):
            assert (answer["status"], words in answer["error"]) == ("error", True), (tool, arguments, answer)


@pytest.mark.spec("SPAWN-2", "TOOL-7")
@pytest.mark.parametrize("tool", ["sessions_spawn", "sessions_send"])
async def test_ten_megabytes_are_refused_at_once(house: House, client: WireClient, tool: str) -> None:
    house.model.script(OK)
    await client.say(KEY, "hello", "run-1")
    huge = "y" * 10_000_000
    arguments = {"task": huge} if tool == "sessions_spawn" else {"sessionKey": "main", "message": huge}
    answer = await client.call("tools.invoke", {"name": tool, "args": arguments, "sessionKey": KEY})
    assert answer["ok"] is False
    assert "longer than 200000 characters" in json.dumps(answer["error"])
    # Through a model it does not get as far: the turn ends, and says why.
    house.model.script(*[FakeReply(calls=(call(tool, "c1", **arguments),))] * 5)
    async with asyncio.timeout(60):
        ended = await client.say(KEY, "go", "run-2")
    assert ended["state"] == "error"
    assert len((await client.call("sessions.list", {}))["sessions"]) == 1


@pytest.mark.long
@pytest.mark.spec("SPAWN-12")
async def test_a_storm_of_10000_spawns_starts_as_many_as_it_may(house: House) -> None:
    await storm(house, 100, 100)


@pytest.mark.spec("SPAWN-12")
async def test_a_storm_of_spawns_starts_as_many_as_it_may(house: House) -> None:
    await storm(house, 4, 75)


async def storm(house: House, turns: int, together: int) -> None:
    house.config["agents"]["defaults"]["subagents"] = {"maxChildrenPerAgent": 7}
    async with house.gateway() as gateway, client_of(gateway) as client:
        play = Play(house)
        play.task = HANGING
        accepted = refused = 0
        for turn in range(turns):
            calls = tuple(call("sessions_spawn", f"c{turn}_{n}", task=f"{turn} {n}") for n in range(together))
            play.parent = [FakeReply(calls=calls), OK]
            await client.say(f"agent:main:storm{turn % 2}", "go", f"run-{turn}")
            told_back = [m["content"] for m in play.parents[-1]["messages"] if m["role"] == "tool"]
            answers = [json.loads(text) for text in told_back[-together:]]  # older ones may be pruned
            house.model.requests.clear()
            accepted += sum(answer["status"] == "accepted" for answer in answers)
            told = [answer["error"] for answer in answers if answer["status"] == "forbidden"]
            refused += len(told)
            assert all("7 of 7" in error and "sessions_yield" in error for error in told)
        assert (accepted, accepted + refused) == (14, turns * together)
        spawns = Spawns(gateway.services.store._database)
        assert [await spawns.count_active(f"agent:main:storm{n}") for n in range(2)] == [7, 7]
