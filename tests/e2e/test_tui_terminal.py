"""`openclaw tui` on a real terminal, with a real gateway beside it."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from openclaw.tui.memory import ClientMemory
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.terminal import Terminal
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.fakes.ports import free_port

CTRL_Q = "\x11"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    async with FakeOpenAIServer(FakeReply(texts=("Nice-to-meet-you",))) as model:
        gateway = GatewayProcess(tmp_path, model.base_url, free_port())
        await gateway.start()
        try:
            yield gateway
        finally:
            gateway.stop()


def converse(env: dict[str, str]) -> tuple[int, Terminal]:
    with Terminal(env, "tui", "--session", "smoke") as terminal:
        terminal.wait_for("ready")
        terminal.type("good-morning\r")
        terminal.wait_for("Nice-to-meet-you")
        terminal.type(CTRL_Q)
        return terminal.leave(), terminal


@pytest.mark.spec("CLI-13", "CLI-12")
async def test_a_person_talks_and_leaves(gateway: GatewayProcess, tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OPENCLAW_STATE_DIR": str(tmp_path / "state")}
    code, terminal = await asyncio.to_thread(converse, env)
    assert code == 0
    assert "good-morning" in terminal.screen and "Traceback" not in terminal.screen
    assert b"\x1b[?1049l" in terminal.raw, "the terminal is given back as it was"
    path = tmp_path / "state" / "client.sqlite"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with ClientMemory(path) as memory:
        assert memory.last_session(gateway.url) == "agent:main:smoke"
        assert memory.typed_lines() == ["good-morning"] and memory.unsent(gateway.url) == []
