"""Group, sandbox and provider policies in a turn: what a model is offered, and what `/tools` and RPC show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.openai_server import FakeReply
from tests.integration.conftest import House, client_of
from tests.integration.tools.test_subagents import Play, call, until
from tests.integration.tools.test_subagents_details import OK, spawn

MAIN = "agent:main:main"
GROUP = "agent:main:telegram:group:-100abc"
TOPIC = f"{GROUP}:topic:7"
OTHER = "agent:main:telegram:group:-200"
ROOM = "agent:main:discord:channel:5"


def offered(body: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in body.get("tools", ())}


@pytest.mark.spec("TOOL-4", "TOOL-5")
async def test_a_group_and_its_topics_have_the_tools_of_the_group(house: House) -> None:
    house.config["channels"] = {
        "telegram": {"groups": {"-100ABC": {"tools": {"deny": ["exec", "sessions_send"]}},
                                "*": {"tools": {"allow": ["read", "session_status"]}}}},
    }  # fmt: skip
    async with house.gateway() as gateway, client_of(gateway) as client:
        everything = set(gateway.services.tools.names())
        wanted = {
            MAIN: everything, GROUP: everything - {"exec", "sessions_send"},
            TOPIC: everything - {"exec", "sessions_send"}, OTHER: {"read", "session_status"},
            ROOM: everything,
        }  # fmt: skip
        for number, (key, tools) in enumerate(wanted.items()):
            shown = await client.call("tools.effective", {"sessionKey": key})
            names = {tool["id"] for group in shown["groups"] for tool in group["tools"]}
            assert names == tools, key  # also before the first turn
            house.model.script(FakeReply(calls=(call("exec", "c", command="true"),)), OK)
            await client.say(key, "hello", f"run-{number}")
            assert offered(house.model.requests[-1].body) == tools, key
            refused = "there is no tool" in json.dumps(house.model.requests[-1].body["messages"])
            assert refused == ("exec" not in tools), key
        told = await client.say(OTHER, "/tools", "run-t")
        text = json.dumps(told)
        assert "session_status" in text and "sessions_spawn" not in text


@pytest.mark.spec("TOOL-4", "SPAWN-10")
async def test_a_helper_has_nothing_that_the_group_of_its_requester_may_not_have(house: House) -> None:
    house.config["channels"] = {"telegram": {"groups": {"*": {"tools": {"deny": ["exec", "write"]}}}}}
    async with house.gateway() as gateway, client_of(gateway) as client:
        play = Play(house, spawn(), OK)
        await client.say(GROUP, "go", "run-1")

        async def begun() -> bool:
            return bool(play.children)

        await until(begun)
        tools = offered(play.children[0])
        assert "read" in tools and not tools & {"exec", "write", "sessions_spawn"}
        assert gateway is not None


@pytest.mark.spec("TOOL-4", "VIS-2", "SPAWN-14")
async def test_the_sandbox_has_rules_of_its_own_and_the_main_session_may_stand_outside(house: House) -> None:
    house.config["agents"]["defaults"]["sandbox"] = {"mode": "non-main", "workspaceAccess": "none"}
    house.config["tools"] = {
        "sandbox": {"tools": {"deny": ["group:runtime"]}}, "sessions": {"visibility": "agent"},
    }  # fmt: skip
    async with house.gateway() as gateway, client_of(gateway) as client:
        everything = set(gateway.services.tools.names())
        asks = (call("sessions_history", "c1", sessionKey="main"), call("list", "c2"))
        house.model.script(FakeReply(calls=asks), OK)
        await client.say(MAIN, "hello", "run-1")
        outside = house.model.requests[-1].body
        assert offered(outside) == everything
        history, listing = outside["messages"][-2:]
        assert json.loads(history["content"])["sessionKey"] == "main"
        assert "is not there yet" in listing["content"]  # open to it, and empty: no sandbox in between
        house.model.script(FakeReply(calls=asks), OK)
        await client.say(GROUP, "hello", "run-2")
        inside = house.model.requests[-1].body
        assert offered(inside) == everything - {"exec"}
        hidden, listing = [one["content"] for one in inside["messages"] if one["role"] == "tool"]
        # Clamped to its own tree, whatever is configured.
        assert json.loads(hidden)["status"] == "forbidden"
        # A folder of its own where a sandbox works, else nothing; never the workspace.
        assert listing == "(empty)" or ("forbidden" in listing and "sandbox" in listing)
        status = json.dumps(await client.say(GROUP, "/status", "run-3"))
        assert "sandboxed" in status
        assert "direct" in json.dumps(await client.say(MAIN, "/status", "run-4"))


@pytest.mark.spec("TOOL-4", "TOOL-5")
async def test_the_rules_of_a_provider_follow_the_model_that_a_session_chose(house: House) -> None:
    house.config["tools"] = {"byProvider": {"fake/two": {"deny": ["exec"]}}}
    async with house.gateway() as gateway, client_of(gateway) as client:
        assert gateway is not None
        house.model.script(OK)
        await client.say(MAIN, "hello", "run-1")
        assert "exec" in offered(house.model.requests[-1].body)
        await client.say(MAIN, "/model fake/two", "run-2")
        house.model.script(OK)
        await client.say(MAIN, "hello", "run-3")
        body = house.model.requests[-1].body
        assert body["model"] == "two" and "exec" not in offered(body)
