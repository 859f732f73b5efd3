"""Sandboxed sessions through the whole house: who is one, where their commands run, what they may see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openclaw.engine.tools.workspace.bubblewrap import Bubblewrap
from tests.channels.suite import until
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import TOKEN, House, client_of

MAIN, WORK = "agent:main:main", "agent:main:work"


@pytest.fixture(autouse=True)
async def walls() -> None:
    problem = await Bubblewrap({}).problem()
    if problem is not None:
        pytest.skip(f"NO COMMAND WAS RUN IN A SANDBOX: {problem}")


def sandboxed(house: House, **settings: Any) -> None:
    house.config["agents"]["defaults"]["sandbox"] = {"mode": "all", "workspaceAccess": "rw"} | settings


def workspace(house: House) -> Path:
    folder = house.home / "state" / "workspace"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


async def use(
    house: House, client: WireClient, run_id: str, tool: str, key: str = WORK, **arguments: Any
) -> str:
    call = FakeCall(tool, (json.dumps(arguments),))
    house.model.script(FakeReply(calls=(call,)), FakeReply(texts=("done",)))
    assert (await client.say(key, "go", run_id))["state"] == "final"
    content = house.model.requests[-1].body["messages"][-1]["content"]
    assert isinstance(content, str)
    return content


@pytest.mark.spec("TOOL-4")
async def test_commands_and_files_of_a_sandboxed_session_share_one_place(house: House) -> None:
    sandboxed(house)
    (workspace(house) / "a.txt").write_text("old")
    async with house.gateway() as gateway, client_of(gateway) as client:
        told = await use(house, client, "1", "exec", command="pwd; cat a.txt; echo new > b.txt")
        assert told == "/workspace\nold\n[exit code 0]"
        assert await use(house, client, "2", "read", path="b.txt") == "new\n"
        # Neither the token nor the database can be found from inside.
        state = house.home / "state"
        for number, way in enumerate(
            (f"cat {state}/openclaw.json", f"ls {state}", "find / -name '*.sqlite'")
        ):
            told = await use(house, client, f"e{number}", "exec", command=f"{way} 2>&1")
            assert TOKEN not in told and "openclaw.sqlite" not in told
        prompt = house.model.requests[-1].body["messages"][0]["content"]
        assert "Your working directory is /workspace." in prompt
        assert str(house.home) not in prompt
    assert (workspace(house) / "b.txt").read_text() == "new\n"


@pytest.mark.spec("TOOL-4")
async def test_the_main_session_stays_outside_when_only_the_others_are_sandboxed(house: House) -> None:
    sandboxed(house, mode="non-main", workspaceAccess="none")
    folder = workspace(house)
    (folder / "a.txt").write_text("mine")
    async with house.gateway() as gateway, client_of(gateway) as client:
        assert await use(house, client, "1", "exec", MAIN, command="pwd; cat a.txt") == (
            f"{folder}\nmine\n[exit code 0]"
        )
        assert await use(house, client, "2", "exec", command="pwd; ls -A; echo x > kept") == (
            "/workspace\n[exit code 0]"
        )
        assert await use(house, client, "3", "exec", command="cat kept") == "x\n[exit code 0]"
        other = await use(house, client, "4", "exec", "agent:main:other", command="ls -A")
        assert other == "[exit code 0]"
    assert [path.name for path in folder.iterdir()] == ["a.txt"]
    [kept] = (house.home / "state" / "sandboxes").glob("*/kept")
    assert kept.read_text() == "x\n"


@pytest.mark.spec("TOOL-4")
async def test_a_stranger_s_command_runs_inside_and_nowhere_else(house: House) -> None:
    """AMB-35: owners, or inside the sandbox."""
    house.config["channels"] = {"telegram": {"allowFrom": ["42"]}}
    told = await _as_a_guest(house)
    assert "runs for owners only" in told
    sandboxed(house)
    assert "/workspace" in await _as_a_guest(house)


async def _as_a_guest(house: House) -> str:
    call = FakeCall("exec", (json.dumps({"command": "pwd"}),))
    house.model.script(FakeReply(calls=(call,)), FakeReply(texts=("done",)))
    before = len(house.model.requests)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call(
            "channels.inbound",
            {
                "channel": "telegram",
                "peer": {"kind": "direct", "id": "42"},
                "senderId": "42",
                "messageId": f"m{before}",
                "text": "run it",
            },
        )
        await _answered(house, before + 2)
    return str(house.model.requests[before + 1].body["messages"][-1]["content"])


async def _answered(house: House, requests: int) -> None:
    await until(lambda: len(house.model.requests) >= requests, "the answers of the model")


@pytest.mark.spec("VIS-2")
async def test_a_sandboxed_session_sees_its_own_tree_whatever_is_configured(house: House) -> None:
    sandboxed(house, mode="non-main")
    house.config["tools"] = {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}}
    async with house.gateway() as gateway, client_of(gateway) as client:
        house.model.script(FakeReply(texts=("hi",)), FakeReply(texts=("hi",)))
        await client.say(MAIN, "hello", "m1")
        await client.say("agent:bob:main", "hello", "m2")
        inside = json.loads(await use(house, client, "1", "sessions_list"))
        assert [row["key"] for row in inside["sessions"]] == [WORK]
        outside = json.loads(await use(house, client, "2", "sessions_list", MAIN))
        assert {row["key"] for row in outside["sessions"]} == {"main", WORK, "agent:bob:main"}


@pytest.mark.spec("TOOL-4")
async def test_the_sandbox_takes_tools_away_and_gives_the_network(house: House) -> None:
    house.config["tools"] = {"sandbox": {"tools": {"deny": ["read"]}}}
    async with house.gateway() as gateway, client_of(gateway) as client:
        assert str(workspace(house)) in await use(house, client, "1", "exec", command="pwd")
        offered = {tool["function"]["name"] for tool in house.model.requests[-1].body["tools"]}
        assert {"read", "exec"} <= offered
    sandboxed(house, network=True)
    async with house.gateway() as gateway, client_of(gateway) as client:
        assert await use(house, client, "2", "exec", command="pwd") == "/workspace\n[exit code 0]"
        offered = {tool["function"]["name"] for tool in house.model.requests[-1].body["tools"]}
        assert "exec" in offered and "read" not in offered
        shared = await use(house, client, "3", "exec", command=f"exec 3<>/dev/tcp/127.0.0.1/{gateway.port}")
        assert shared == "[exit code 0]"
