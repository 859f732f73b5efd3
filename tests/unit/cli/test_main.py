"""The door: every command explains itself, and every way out has its exit code and one clear line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from openclaw import __version__
from openclaw.cli.lazy import load_command
from openclaw.cli.main import cli
from openclaw.errors import StoreLocked
from scripts.gen_cli_docs import walk
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, listing_of, running, session


def commands(command: click.Command, *names: str) -> Iterator[tuple[str, ...]]:
    yield names
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            child = command.get_command(click.Context(command), name)
            assert child is not None, name
            yield from commands(child, *names, name)


def test_every_command_explains_itself_with_an_example(command: Command) -> None:
    paths = list(commands(cli))
    assert {("sessions",), ("status",), ("gateway", "call"), ("config", "set"), ("agent",)} <= set(paths)
    for path in paths:
        short = command(*path, "-h")
        assert short.code == 0 and short.err == ""
        assert "Example" in short.out and f"openclaw {' '.join(path)}".strip() in short.out
        assert short == command(*path, "--help")


def test_the_table_of_commands_is_what_the_reference_page_shows() -> None:
    names = [name for name, _ in walk(cli, "openclaw")]
    assert names[:4] == ["openclaw", "openclaw gateway", "openclaw gateway run", "openclaw gateway call"]
    assert "openclaw config validate" in names


def test_lists_of_commands_fit_into_eighty_columns(command: Command) -> None:
    for path in commands(cli):
        told = command(*path, "--help").out.partition("Options:")[2].splitlines()
        assert [line for line in told if line.endswith("...") or len(line) > 80] == [], path


def test_the_version_and_a_typo(command: Command) -> None:
    assert command("--version").out == f"openclaw {__version__}\n"
    typo = command("sesions")
    assert typo.code == 2 and "sesions" in typo.err and typo.out == ""
    assert command("gateway", "nope").code == 2
    assert command("sessions", "--nope").code == 2


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(**_options: object) -> None:
        raise error

    monkeypatch.setattr(load_command("openclaw.cli.health:health"), "callback", fail)


@pytest.mark.parametrize(
    ("error", "code", "err"),
    [
        (StoreLocked(), 1, "openclaw: Another gateway owns this state directory.\n"),
        (PermissionError(13, "Permission denied", "/x"), 1, "openclaw: [Errno 13] Permission denied: '/x'\n"),
        (click.ClickException("odd"), 1, "Error: odd\n"),
        (KeyboardInterrupt(), 130, "\n"),
    ],
)
def test_a_failure_is_one_line_and_an_exit_code(
    command: Command, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, err: str
) -> None:
    failing(monkeypatch, error)
    outcome = command("health")
    assert (outcome.code, outcome.out, outcome.err) == (code, "", err)


def test_a_mistake_in_the_program_is_not_hidden(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        command("health")


def test_a_reader_that_leaves_early_is_no_error_message(point_at: Callable[[FakeGateway], Path]) -> None:
    rows = [session(f"agent:main:s{number}") for number in range(3000)]
    with running(FakeGateway({"sessions.list": listing_of(rows)})) as gateway:
        point_at(gateway)
        for arguments in (("sessions", "--json"), ("--version",)):
            process = subprocess.Popen(
                [sys.executable, "-m", "openclaw", *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            assert process.stdout is not None and process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""
            process.stderr.close()
            assert process.wait(60) == 1


def test_a_poor_terminal_encoding_is_no_traceback(
    point_at: Callable[[FakeGateway], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    with running(FakeGateway({"sessions.list": listing_of([session("agent:main:ключ")])})) as gateway:
        point_at(gateway)
        done = subprocess.run(
            [sys.executable, "-m", "openclaw", "sessions"], capture_output=True, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"agent:main:????" in done.stdout
