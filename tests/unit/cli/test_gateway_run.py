"""`openclaw gateway run`, and bare `openclaw`: what is asked of the server and what a person reads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openclaw import __version__, app
from openclaw.app import Announcement
from openclaw.cli.startscreen import print_start_screen
from openclaw.errors import StoreLocked
from tests.unit.cli.conftest import Command

ANNOUNCEMENT = Announcement(
    url="ws://127.0.0.1:18789",
    http_url="http://127.0.0.1:18789",
    config_path="/h/.openclaw/openclaw.json",
    config_created=False,
    database="/h/.openclaw/openclaw.sqlite",
    model="offline/offline",
    model_note="built in, costs nothing",
    warnings=(),
    agents=("main", "work"),
    resumed_runs=0,
    woken_sessions=0,
)


class Started(msgspec.Struct):
    """How the server was asked to start."""

    ports: list[int | None] = []
    envs: list[Mapping[str, str]] = []


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    """A server that announces itself and ends at once."""
    seen = Started()

    def run_gateway(*, port: int | None, env: Mapping[str, str], announce: Callable[..., Any]) -> int:
        seen.ports.append(port)
        seen.envs.append(env)
        url = f"ws://127.0.0.1:{port or 18789}"
        announce(msgspec.structs.replace(ANNOUNCEMENT, url=url))
        return 7

    monkeypatch.setattr(app, "run_gateway", run_gateway)
    root, ours = logging.getLogger(), logging.getLogger("openclaw")
    before = (root.level, list(root.handlers), ours.level)
    yield seen
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    ours.setLevel(before[2])


def test_without_a_command_the_gateway_runs(
    started: Started, command: Command, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    bare = command()
    assert bare.code == 7
    assert f"OpenClaw {__version__} is running." in bare.out
    assert '  openclaw agent -m "hello"' in bare.out
    assert started.envs[0]["HOME"] == str(home)
    assert command("gateway", "run").out == bare.out
    monkeypatch.setenv("OPENCLAW_GATEWAY_PORT", "19555")
    command()
    command("gateway", "run")
    command("gateway", "run", "--port", "19666")
    assert started.ports == [None, None, 19555, 19555, 19666]


def test_another_port_is_part_of_the_advice(started: Started, command: Command) -> None:
    out = command("gateway", "run", "--port", "19777").out
    assert '  OPENCLAW_GATEWAY_PORT=19777 openclaw agent -m "hello"' in out
    assert '  openclaw agent -m "hello"' in command("gateway", "run", "--port", "18789").out


def test_ports_that_do_not_exist_are_refused(started: Started, command: Command) -> None:
    for port in ("0", "65536", "x"):
        assert command("gateway", "run", "--port", port).code == 2
    assert started.ports == []


def test_bind_loopback_does_not_start_on_a_config_that_serves_others(
    started: Started, command: Command, write_config: Callable[[str], Path]
) -> None:
    path = write_config('{ gateway: { bind: "lan", auth: { token: "t-0123456789abcdef0123456789abcdef" } } }')
    refused = command("gateway", "run", "--bind", "loopback")
    assert refused.code == 1 and str(path) in refused.err
    assert "openclaw config set gateway.bind loopback" in refused.err
    assert started.ports == []
    assert command("gateway", "run", "--bind", "lan").code == 2
    path.unlink()
    assert command("gateway", "run", "--bind", "loopback").code == 7


def test_what_prevents_a_start_is_one_line(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_options: object) -> int:
        raise StoreLocked("another gateway owns /state")

    monkeypatch.setattr(app, "run_gateway", refuse)
    outcome = command("gateway", "run")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "openclaw: another gateway owns /state\n"


def test_verbose_turns_our_own_log_up(started: Started, command: Command) -> None:
    command("gateway", "run")
    assert logging.getLogger("openclaw").level == logging.INFO
    command("gateway", "run", "--verbose")
    assert logging.getLogger("openclaw").level == logging.DEBUG
    assert logging.getLogger("asyncio").getEffectiveLevel() == logging.WARNING


def test_the_start_screen_tells_where_everything_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_start_screen(ANNOUNCEMENT)
    calm = capsys.readouterr().out
    for fact in (
        "listens at: ws://127.0.0.1:18789",
        "model:      offline/offline",
        "built in, costs nothing",
        "agents:     main, work",
        "config:     /h/.openclaw/openclaw.json",
        "database:   /h/.openclaw/openclaw.sqlite",
        "Ctrl-C stops it.",
    ):
        assert fact in calm
    assert "Welcome" not in calm and "picked up" not in calm and "warning" not in calm
    busy = msgspec.structs.replace(
        ANNOUNCEMENT,
        config_created=True,
        model_note="",
        warnings=("plugins: ignored\x1b[2J",),
        resumed_runs=1,
        woken_sessions=2,
    )
    print_start_screen(busy, hint="OPENCLAW_GATEWAY_PORT=5 ")
    told = capsys.readouterr().out
    assert told.startswith("Welcome to OpenClaw. This is the first start")
    assert "picked up:  1 interrupted run resumed, 2 sessions had waiting messages" in told
    assert "warning: plugins: ignored�[2J" in told
    assert "OPENCLAW_GATEWAY_PORT=5 openclaw sessions" in told


def test_a_greeting_that_nobody_reads_does_not_stop_the_gateway(
    started: Started, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_options: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("openclaw.cli.startscreen.print_start_screen", broken)
    assert command("gateway", "run").code == 7
