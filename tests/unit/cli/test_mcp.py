"""`openclaw mcp serve`: what stops it before it serves."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Iterator

import pytest

from tests.unit.cli.conftest import Command


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    """The command gives Ctrl-C its first meaning back; a test run keeps its own."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_without_the_library_it_names_the_extra(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    done = command("mcp", "serve")
    assert (done.code, done.out) == (1, "")
    assert "pip install 'openclaw[mcp]'" in done.err


@pytest.mark.parametrize("option", ["--url", "--token", "--password"])
def test_its_own_gateway_needs_no_address(command: Command, option: str) -> None:
    done = command("mcp", "serve", "--embedded", option, "ws://127.0.0.1:1")
    assert (done.code, done.out) == (1, "")
    assert "--embedded starts its own gateway" in done.err


def test_a_gateway_that_is_not_there_is_told_as_everywhere(command: Command, unused_tcp_port: int) -> None:
    done = command("mcp", "serve", "--url", f"ws://127.0.0.1:{unused_tcp_port}", "--token", "t")
    assert (done.code, done.out) == (1, "")
    assert f"no gateway at ws://127.0.0.1:{unused_tcp_port}" in done.err
