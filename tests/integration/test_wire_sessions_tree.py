"""sessions.tree over a real socket: the family of a session while its helpers work, and afterwards."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House

KEY = "agent:main:main"
Json = dict[str, Any]


def call(name: str, call_id: str, **arguments: Any) -> FakeCall:
    return FakeCall(name, (json.dumps(arguments),), call_id)


async def nodes_of(client: WireClient, **asked: Any) -> dict[str, Json]:
    answer = await client.call("sessions.tree", asked)
    return {node.get("displayName") or node["key"]: node for node in answer["nodes"]}


async def helper_is(client: WireClient, *, running: bool, **asked: Any) -> dict[str, Json]:
    """The tree as soon as its helper runs, or has ended.

    What runs is known a moment before it stands in the row, and what ended a moment before it leaves it.
    """
    async with asyncio.timeout(60):
        while True:
            nodes = await nodes_of(client, **asked)
            helper = nodes.get("counting", {})
            if helper.get("hasActiveRun") is running and (helper.get("status") == "running") is running:
                return nodes
            await asyncio.sleep(0.02)


async def test_a_family_while_it_works_and_afterwards(house: House, client: WireClient) -> None:
    parent = [
        FakeReply(calls=(call("sessions_spawn", "call_1", task="count", label="counting"),)),
        FakeReply(texts=("I asked a helper.",)),
    ]
    used = {"prompt_tokens": 1200, "completion_tokens": 30, "total_tokens": 1230}
    helper = FakeReply(texts=("42",), hang_after=0, usage=used)
    announced = asyncio.Event()

    def decide(body: Json) -> FakeReply:
        if str(body["messages"][0]["content"]).startswith("You are a helper"):
            if "Your task has ended" not in json.dumps(body):
                return helper
            announced.set()
            return FakeReply(texts=("done",), usage=used)
        return parent.pop(0) if parent else FakeReply(texts=("Thank you.",))

    house.model.decide = decide
    assert await client.call("sessions.tree") == {
        "ts": pytest.approx(0, abs=1e15), "nodes": [], "hasMore": False,
    }  # fmt: skip
    await client.say(KEY, "how many?", "run-1")
    nodes = await helper_is(client, running=True)
    child = nodes["counting"]
    assert list(nodes) == [KEY, "counting"]
    assert (child["spawnedBy"], child["status"], child["archived"]) == (KEY, "running", False)
    assert child["startedAt"] > 0 and len(child["activeRunIds"]) == 1
    assert nodes[KEY]["isMain"] is True and "spawnedBy" not in nodes[KEY]
    house.model.release()
    # The helper has two turns, its task and its announcement: both are to be over.
    await asyncio.wait_for(announced.wait(), 60)
    nodes = await helper_is(client, running=False, key=child["key"])
    ended = nodes["counting"]
    assert (ended["status"], ended["totalTokens"], ended["contextTokens"]) == ("done", 1200, 32000)
    assert ended["runtimeMs"] >= 0 and ended["estimatedCostUsd"] == pytest.approx(2 * (1200 + 2 * 30) / 1e6)
    assert ended["task"]["status"] == "done" and ended["task"]["runtimeMs"] >= 0
    assert "task" not in child and "task" not in nodes[KEY]
    # The same names as in the row that change events carry.
    asked = {"key": child["key"], "includeDerivedTitles": True}
    row = (await client.call("sessions.describe", asked))["session"]
    assert ended.keys() - {"task"} <= row.keys()


async def test_what_is_asked_for_is_shown(house: House, client: WireClient) -> None:
    await client.call("sessions.create", {"key": "a"})
    for name in ("b", "c"):
        await client.call("sessions.create", {"key": name, "parentSessionKey": "a"})
    await client.call("sessions.patch", {"key": "b", "archived": True})
    assert list(await nodes_of(client)) == ["agent:main:a", "agent:main:c"]
    everybody = ["agent:main:a", "agent:main:b", "agent:main:c"]
    assert list(await nodes_of(client, includeArchived=True)) == everybody
    assert list(await nodes_of(client, key="B", includeArchived=True)) == everybody
    assert list(await nodes_of(client, key="nobody")) == []
    cut = await client.call("sessions.tree", {"includeArchived": True, "limit": 1})
    assert [node["key"] for node in cut["nodes"]] == ["agent:main:a", "agent:main:c"]
    assert cut["hasMore"] is True
    with pytest.raises(RefusedError, match="limit"):
        await client.call("sessions.tree", {"limit": 0})
