"""`openclaw mcp serve` as a host uses it: its own client library over stdio, and a real gateway."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client

from tests.e2e.gateway_process import TOKEN, GatewayProcess
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply

Json = dict[str, Any]
WAIT_S = 60.0


def environment(home: Path, port: int) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "OPENCLAW_STATE_DIR": str(home / "state"),
        "OPENCLAW_GATEWAY_PORT": str(port),
        "TZ": "UTC",
        "PYTHONWARNINGS": "error",
    }


@asynccontextmanager
async def host(home: Path, port: int, *options: str) -> AsyncIterator[ClientSession]:
    """A host that starts the server as its child; what the server says to people goes to a file."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "openclaw", "mcp", "serve", *options], env=environment(home, port)
    )
    with (home / "server.log").open("a", encoding="utf-8") as log:
        async with (
            stdio_client(server, errlog=log) as (incoming, outgoing),
            ClientSession(incoming, outgoing, read_timeout_seconds=WAIT_S) as session,
        ):
            await session.initialize()
            yield session


async def use(session: ClientSession, tool: str, **arguments: Any) -> Json:
    """The object that a tool answered with; its text says the same."""
    result = await session.call_tool(tool, arguments)
    answer: Json = result.structured_content
    if tool != "session_status":
        (block,) = result.content
        assert block.type == "text"
        assert json.loads(block.text) == answer
    assert result.is_error is (answer.get("status") in ("error", "forbidden"))
    return answer


@pytest.fixture
async def house(
    tmp_path: Path, unused_tcp_port: int
) -> AsyncIterator[tuple[GatewayProcess, FakeOpenAIServer]]:
    async with FakeOpenAIServer(then=FakeReply(texts=("understood",))) as model:
        gateway = GatewayProcess(tmp_path, model.base_url, unused_tcp_port)
        path = tmp_path / "state" / "openclaw.json"
        config = json.loads(path.read_text())
        config["tools"] = {"sessions": {"visibility": "agent"}}
        path.write_text(json.dumps(config))
        await gateway.start()
        try:
            yield gateway, model
        finally:
            gateway.kill()


@pytest.mark.spec("TOOL-1", "TOOL-2", "LIST-1", "HIST-1", "OWN-1")
async def test_a_host_lists_and_reads_sessions(house: tuple[GatewayProcess, FakeOpenAIServer]) -> None:
    gateway, _ = house
    async with gateway.client() as client:
        await client.say("agent:main:kitchen", "buy apricots", "run-1")
    async with host(gateway.home, gateway.port) as session:
        told = session.initialize_result
        assert told is not None
        assert told.server_info.name == "openclaw"
        assert "session 'main'" in (told.instructions or "")
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert {"sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "subagents"} <= set(
            tools
        )
        assert {"session_status", "agents_list", "sessions_search"} <= set(tools)
        assert not {"sessions_yield", "exec", "read", "write"} & set(tools)
        assert tools["sessions_history"].input_schema["required"] == ["sessionKey"]
        listed = await use(session, "sessions_list")
        assert {row["key"] for row in listed["sessions"]} == {"main", "agent:main:kitchen"}
        history = await use(session, "sessions_history", sessionKey="agent:main:kitchen")
        assert [message["role"] for message in history["messages"]] == ["user", "assistant"]
        assert "apricots" in json.dumps(history)
        (hit,) = (await use(session, "sessions_search", query="apricots"))["hits"]
        assert hit["sessionKey"] == "agent:main:kitchen"
        missing = await use(session, "sessions_history", sessionKey="agent:main:nowhere")
        assert missing["error"].startswith("No session 'agent:main:nowhere'")
        card = await use(session, "session_status", sessionKey="agent:main:kitchen")
        assert card["model"] == "one"
    assert (gateway.home / "server.log").read_text() == ""


@pytest.mark.spec("A2A-1", "A2A-3", "A2A-4", "A2A-9", "SPAWN-3", "SPAWN-4")
async def test_a_host_messages_a_session(house: tuple[GatewayProcess, FakeOpenAIServer]) -> None:
    gateway, model = house
    async with gateway.client() as client:
        await client.say("agent:main:kitchen", "hello", "run-1")
        async with host(gateway.home, gateway.port, "--session", "agent:main:desk") as session:
            sent = await use(
                session,
                "sessions_send",
                sessionKey="agent:main:kitchen",
                message="how many?",
                timeoutSeconds=60,
            )
            assert (sent["status"], sent["reply"]) == ("ok", "understood")
            asked = json.dumps([request.body["messages"] for request in model.requests])
            assert "sourceSession=agent:main:desk" in asked
            assert "isUser=false" in asked
            handed_over = await use(
                session, "sessions_send", sessionKey="agent:main:kitchen", message="bye", timeoutSeconds=0
            )
            assert handed_over["status"] == "accepted"
            helper = await use(session, "sessions_spawn", task="count the spoons")
            assert helper["childSessionKey"].startswith("agent:main:subagent:")
        for run in (handed_over, helper):
            waited = await client.call("agent.wait", {"runId": run["runId"], "timeoutMs": 60_000})
            assert waited["status"] == "ok"


@pytest.mark.spec("VIS-1", "VIS-4")
async def test_a_host_sees_what_its_session_sees(house: tuple[GatewayProcess, FakeOpenAIServer]) -> None:
    gateway, _ = house
    async with gateway.client() as client:
        await client.call("sessions.create", {"key": "agent:main:kitchen"})
        async with host(gateway.home, gateway.port, "--session", "agent:main:desk") as session:
            seen = await use(session, "sessions_list")
            assert {row["key"] for row in seen["sessions"]} == {"agent:main:desk", "agent:main:kitchen"}
            path = gateway.home / "state" / "openclaw.json"
            config = json.loads(path.read_text())
            config["tools"]["sessions"]["visibility"] = "self"
            path.write_text(json.dumps(config))
            async with asyncio.timeout(WAIT_S):
                seen_now = 2
                while seen_now > 1:  # until the gateway has read its changed configuration
                    seen_now = (await use(session, "sessions_list"))["count"]
            hidden = await use(session, "sessions_history", sessionKey="agent:main:kitchen")
            assert hidden["status"] == "forbidden"
            assert "tools.sessions.visibility" in hidden["error"]


async def test_a_restarted_gateway_is_found_again(house: tuple[GatewayProcess, FakeOpenAIServer]) -> None:
    gateway, _ = house
    async with host(gateway.home, gateway.port) as session:
        assert (await use(session, "sessions_list"))["count"] == 1
        gateway.kill()
        gone = await session.call_tool("sessions_list", {})
        assert gone.is_error
        await gateway.start()
        assert (await use(session, "sessions_list"))["count"] == 1
        assert len((await session.list_tools()).tools) >= 5


@pytest.mark.spec("OWN-6")
async def test_it_can_bring_its_own_gateway(tmp_path: Path, unused_tcp_port: int) -> None:
    async with host(tmp_path, unused_tcp_port, "--embedded", "--session", "agent:main:desk") as session:
        listed = await use(session, "sessions_list")
        assert [row["key"] for row in listed["sessions"]] == ["agent:main:desk"]
        token = json.loads((tmp_path / "state" / "openclaw.json").read_text())["gateway"]["auth"]["token"]
        asked = await asyncio.to_thread(
            run, tmp_path, unused_tcp_port, "sessions", "--json", "--token", token
        )
        assert [row["key"] for row in json.loads(asked.stdout)["sessions"]] == ["agent:main:desk"]
    async with host(tmp_path, unused_tcp_port, "--embedded") as session:
        assert (await use(session, "sessions_list"))["count"] >= 1
    assert (tmp_path / "server.log").read_text() == ""


def run(home: Path, port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "openclaw", *arguments],
        env=environment(home, port),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "no gateway at ws://127.0.0.1:"),
        (("--embedded", "--token", TOKEN), "leave out --url, --token and --password"),
    ],
)
def test_what_prevents_it_is_told_on_stderr(
    tmp_path: Path, unused_tcp_port: int, options: tuple[str, ...], told: str
) -> None:
    done = run(tmp_path, unused_tcp_port, "mcp", "serve", *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
