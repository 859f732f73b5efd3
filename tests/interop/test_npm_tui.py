"""The terminal UI of the npm package, in tmux, against this gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.interop.clients import NpmClient, Terminal, wait_until

pytestmark = pytest.mark.interop


@pytest.fixture
def terminal(client: NpmClient) -> Iterator[Terminal]:
    opened = Terminal("tui", ["openclaw", "tui"], client.env)
    yield opened
    opened.close()


@pytest.mark.spec("RPC-1", "RPC-12", "RPC-14")
def test_it_signs_in_with_a_device_chats_and_streams(terminal: Terminal, client: NpmClient) -> None:
    terminal.wait_for(lambda screen: "connected" in screen.lower())
    terminal.type("hello from the terminal")
    terminal.wait_for(lambda screen: "The walrus answers politely." in screen)
    (row,) = client.call("sessions.list", {})["sessions"]
    assert row["key"] == "agent:main:main" and row["channel"] == "webchat"


@pytest.mark.spec("RPC-13")
def test_it_stops_a_turn_that_runs(terminal: Terminal, model: FakeOpenAIServer, client: NpmClient) -> None:
    model.script(FakeReply(texts=("Let me think", " about it"), hang_after=2))
    terminal.wait_for(lambda screen: "connected" in screen.lower())
    terminal.type("take your time")
    terminal.wait_for(lambda screen: "Let me think" in screen)
    terminal.press("Escape")
    wait_until(
        lambda: str(client.call("sessions.list", {})["sessions"][0]["hasActiveRun"]),
        lambda running: running == "False",
    )
    terminal.type("and now?")
    terminal.wait_for(lambda screen: "The walrus answers politely." in screen)


@pytest.mark.spec("RPC-11", "REST-1")
def test_it_shows_history_after_a_restart_of_the_gateway(terminal: Terminal, client: NpmClient) -> None:
    terminal.wait_for(lambda screen: "connected" in screen.lower())
    terminal.type("remember the walrus")
    terminal.wait_for(lambda screen: "The walrus answers politely." in screen)
    client.gateway.kill()
    terminal.wait_for(lambda screen: "disconnected" in screen.lower() or "reconnect" in screen.lower())
    asyncio.run(client.gateway.start())
    terminal.wait_for(lambda screen: screen.lower().count("connected") > screen.lower().count("disconnected"))
    terminal.type("still there?")
    seen = terminal.wait_for(lambda screen: screen.count("The walrus answers politely.") >= 2)
    assert "remember the walrus" in seen


@pytest.mark.spec("CMD-1")
def test_slash_commands_reach_the_gateway(terminal: Terminal, client: NpmClient) -> None:
    terminal.wait_for(lambda screen: "connected" in screen.lower())
    terminal.type("hello")
    terminal.wait_for(lambda screen: "The walrus answers politely." in screen)
    terminal.type("/whoami")
    terminal.wait_for(lambda screen: "owner" in screen.lower())
