"""Completion, config unset and get --reveal, the sections of the help, `openclaw` where one runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from openclaw.cli.main import COMMANDS, SECTIONS
from openclaw.errors import StoreLocked
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, running

WRITTEN = """{
  // the port of this house
  gateway: { port: 19000, auth: { token: "t0ken-0123456789abcdef-0123" } }, /* kept */
  session: { reset: { mode: "idle" }, dmScope: "per-peer" },
}
"""


# -- config --------------------------------------------------------------------------------------------


@pytest.mark.spec("CFG-1")
def test_unset_removes_one_setting_and_keeps_the_comments(
    command: Command, write_config: Callable[[str], Path]
) -> None:
    path = write_config(WRITTEN)
    done = command("config", "unset", "session.reset")
    assert (done.code, done.err) == (0, "") and "session.reset is no longer set" in done.out
    text = path.read_text()
    assert "reset" not in text and "// the port of this house" in text and "/* kept */" in text
    assert command("config", "get", "session.dmScope").out == "per-peer\n"
    body = command("config", "unset", "gateway.port", "--json").json()
    assert body["valid"] is True and body["restartRequired"] is True
    assert command("config", "get", "gateway.port").out == "18789\n"
    again = command("config", "unset", "session.reset")
    assert again.code == 1 and "is not set" in again.err


def test_unset_refuses_what_would_break_the_file(
    command: Command, write_config: Callable[[str], Path]
) -> None:
    text = '{ agents: { list: [{ id: "bob", name: "B" }] } }'
    path = write_config(text)
    assert command("config", "unset", "agents.list[0].id").code == 1
    assert command("config", "unset", "agents.list[").code == 1
    assert command("config", "unset", "").code == 1
    assert path.read_text() == text
    assert command("config", "unset", "agents.list[0]").code == 0


@pytest.mark.spec("TRX-11")
def test_a_secret_is_shown_only_on_request(command: Command, write_config: Callable[[str], Path]) -> None:
    write_config(WRITTEN)
    masked = command("config", "get", "gateway", "--json")
    assert "t0ken" not in masked.out and "19000" in masked.out
    assert command("config", "get", "gateway.auth.token", "--reveal").out == "t0ken-0123456789abcdef-0123\n"
    write_config("{}")
    assert command("config", "get", "gateway.port", "--reveal").out == "18789\n"
    assert command("config", "get", "gateway.auth.token").code == 1


# -- help and completion --------------------------------------------------------------------------------


def test_every_command_has_its_section_in_the_help(command: Command) -> None:
    out = command("--help").out
    for title, names in SECTIONS.items():
        present = [name for name in names if name in COMMANDS]
        block = out.split(f"{title}:\n", 1)[1].split("\n\n", 1)[0]
        assert [row.split()[0] for row in block.splitlines()] == present
    placed = [name for names in SECTIONS.values() for name in names]
    assert len(placed) == len(set(placed))
    unplaced = [name for name in COMMANDS if name not in placed]
    assert ("Commands:" in out) == bool(unplaced)


def test_a_typing_mistake_is_answered_with_the_nearest_name(command: Command) -> None:
    assert "Did you mean 'sessions'?" in command("sesions").err
    assert "Did you mean" not in command("xyzzy").err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_for_this_command(command: Command, shell: str) -> None:
    done = command("completion", shell)
    assert done.code == 0 and "_OPENCLAW_COMPLETE" in done.out and "openclaw" in done.out
    assert f"openclaw completion {shell} >" in done.err
    assert command("completion", "tcsh").code == 2


def test_a_shell_is_answered_with_commands_and_options(home: Path) -> None:
    def complete(words: str, number: int) -> list[str]:
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "_OPENCLAW_COMPLETE": "bash_complete"}
        done = subprocess.run(
            [sys.executable, "-m", "openclaw"],
            env=env | {"COMP_WORDS": words, "COMP_CWORD": str(number)},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.stderr == ""
        return [row.partition(",")[2] for row in done.stdout.splitlines()]

    assert complete("openclaw expl", 1) == ["explain"]
    assert {"route", "reset", "send", "visibility"} == set(complete("openclaw explain ", 2))
    assert "--channel" in complete("openclaw explain route --ch", 3)


# -- openclaw, where a gateway runs ----------------------------------------------------------------------


def owned(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_options: object) -> int:
        raise StoreLocked("another gateway (process 7) owns it")

    import openclaw.app

    monkeypatch.setattr(openclaw.app, "run_gateway", refuse)


def test_a_gateway_that_runs_is_greeted(
    command: Command, point_at: Callable[[FakeGateway], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    owned(monkeypatch)
    with running(FakeGateway({})) as gateway:
        point_at(gateway)
        done = command()
        assert done.code == 0 and f"OpenClaw 9.9.9 is already running at {gateway.url}." in done.out
        assert "openclaw chat" in done.out and "openclaw dashboard" in done.out
    silent = command()
    assert silent.code == 1 and silent.err == "openclaw: another gateway (process 7) owns it\n"
    assert command("gateway", "run").code == 1, "by its own name it refuses, as a service needs it"
