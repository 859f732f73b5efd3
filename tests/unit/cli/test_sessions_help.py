"""Every session command explains itself by an example, and says how to start a gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.ports import free_port
from tests.unit.cli.conftest import Command

READING = ("show", "history", "search", "tree")
CHANGING = ("rename", "archive", "unarchive", "delete", "restore", "cleanup", "erase", "export")


@pytest.mark.parametrize("name", [*READING, *CHANGING])
def test_a_command_has_an_example_and_the_common_options(command: Command, name: str) -> None:
    told = command("sessions", name, "--help")
    assert told.code == 0 and "Example" in told.out and f"openclaw sessions {name}" in told.out
    for option in ("--json", "--url", "--token", "--password", "--timeout"):
        assert option in told.out, option


@pytest.mark.parametrize("words", [("chat",), ("agent",), ("sessions", "import"), ("status",)])
def test_the_other_commands_have_examples_too(command: Command, words: tuple[str, ...]) -> None:
    told = command(*words, "--help")
    assert told.code == 0 and "Examples:" in told.out and f"openclaw {' '.join(words)}" in told.out


@pytest.mark.spec("OWN-1")
@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "x"),
        ("history", "x"),
        ("search", "x"),
        ("tree",),
        ("rename", "x", "y"),
        ("archive", "x"),
        ("delete", "x", "--yes"),
        ("restore", "x"),
    ],
)
def test_without_a_gateway_nothing_is_read_and_the_way_to_one_is_told(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("OPENCLAW_GATEWAY_PORT", str(free_port()))
    done = command("sessions", *arguments)
    assert (done.code, done.out) == (1, "") and "openclaw gateway run" in done.err
    as_json = command("sessions", *arguments, "--json")
    assert (as_json.code, as_json.err) == (1, "")
    assert as_json.json()["error"]["type"] == "unreachable"
    assert not (home / ".openclaw").exists()
