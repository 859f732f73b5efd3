"""The start-up budget: a command loads what it needs, and never the server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.fake_gateway import FakeGateway, listing_of, running, session

SERVER = (
    "aiohttp",
    "apsw",
    "uvloop",
    "asyncio",
    "watchfiles",
    "openclaw.app",
    "openclaw.gateway",
    "openclaw.engine",
    "openclaw.store",
    "openclaw.models",
)


def loaded_by(*arguments: str) -> set[str]:
    """Every module that a command has loaded when it ends; it must succeed."""
    program = (
        "import sys, runpy\n"
        "try:\n    runpy.run_module('openclaw', run_name='__main__')\n"
        "except SystemExit as leaving:\n    assert not leaving.code, leaving.code\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stderr.split())


def offenders(loaded: set[str], forbidden: tuple[str, ...]) -> set[str]:
    return {name for name in loaded for root in forbidden if name == root or name.startswith(root + ".")}


def test_the_version_costs_next_to_nothing() -> None:
    loaded = loaded_by("--version")
    assert "openclaw.cli.main" in loaded
    assert offenders(loaded, (*SERVER, "rich", "websockets", "msgspec", "openclaw.protocol")) == set()
    assert offenders(loaded, ("openclaw.config", "openclaw.domain")) == set()


@pytest.mark.spec("CLI-2", "OWN-1")
@pytest.mark.parametrize("arguments", [("sessions", "--json"), ("sessions",), ("status",), ("health",)])
def test_a_client_command_loads_no_server(
    point_at: Callable[[FakeGateway], Path], arguments: tuple[str, ...]
) -> None:
    answers = {
        "sessions.list": listing_of([session("agent:main:main")]),
        "status": lambda _params: {},
        "health": lambda _params: {"ok": True},
    }
    with running(FakeGateway(answers)) as gateway:
        point_at(gateway)
        loaded = loaded_by(*arguments)
    assert "websockets.sync.client" in loaded
    assert offenders(loaded, (*SERVER, "rich")) == set()


OPERATING: dict[tuple[str, ...], dict[str, Any]] = {
    ("agents", "list"): {"agents.list": {"agents": []}, "health": {}, "config.get": {"config": {}}},
    ("usage",): {"usage.cost": {"daily": [], "totals": {}}},
    ("outbox", "list"): {"outbox.list": {"ts": 0, "deliveries": [], "states": {}}},
    ("explain", "reset", "main"): {"explain": {"answer": "x", "steps": []}},
    ("system", "event", "--text", "x"): {"wake": {"ok": True}},
    ("logs",): {"logs.tail": {"file": "", "cursor": 0, "size": 0, "lines": []}},
    ("security", "audit"): {
        "security.audit": {"ok": True, "findings": [], "counts": {"critical": 0, "warn": 0, "info": 0}}
    },
}


@pytest.mark.spec("OWN-1")
@pytest.mark.parametrize("arguments", OPERATING)
def test_a_command_that_asks_a_running_gateway_loads_no_server(
    point_at: Callable[[FakeGateway], Path], arguments: tuple[str, ...]
) -> None:
    answers = {name: (lambda _params, body=body: body) for name, body in OPERATING[arguments].items()}
    with running(FakeGateway(answers)) as gateway:
        point_at(gateway)
        loaded = loaded_by(*arguments)
    assert "websockets.sync.client" in loaded
    assert offenders(loaded, (*SERVER, "rich")) == set()


def test_checking_the_config_loads_neither_server_nor_client() -> None:
    loaded = loaded_by("config", "validate")
    assert "openclaw.config.load" in loaded
    assert offenders(loaded, (*SERVER, "rich", "websockets")) == set()
