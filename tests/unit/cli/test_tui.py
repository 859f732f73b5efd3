"""`openclaw tui` before anything is drawn: what it needs, and how it says so."""

from __future__ import annotations

import importlib.util

import pytest

from tests.unit.cli.conftest import Command


@pytest.mark.spec("CLI-13")
def test_its_options_are_those_that_people_know(command: Command) -> None:
    shown = command("tui", "--help")
    assert shown.code == 0
    for option in (
        "--url",
        "--token",
        "--session",
        "--history-limit",
        "--deliver",
        "--thinking",
        "--message",
    ):
        assert option in shown.out, option
    assert "[default: 200" in " ".join(shown.out.split())


def test_a_missing_library_is_named_with_the_fix(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    refused = command("tui")
    assert refused.code == 1
    assert "pip install 'openclaw[tui]'" in refused.err


def test_a_pipe_is_no_terminal(command: Command) -> None:
    refused = command("tui", "--url", "ws://127.0.0.1:1")
    assert refused.code == 1
    assert "needs a terminal" in refused.err and "openclaw chat" in refused.err


@pytest.mark.parametrize("limit", ["0", "1001", "many"])
def test_a_page_has_a_sensible_size(command: Command, limit: str) -> None:
    assert command("tui", "--history-limit", limit).code == 2
