"""The first screen: commands that work as they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw.cli.startscreen import command_name


def test_the_commands_to_type_work_where_the_shell_does_not_know_the_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "my folder" / "openclaw"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    monkeypatch.setattr("sys.argv", [str(script)])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command_name() == f"'{script}'"
    monkeypatch.setattr("sys.argv", ["/usr/lib/python3/openclaw/__main__.py"])
    assert command_name() == "openclaw"
    script.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(script)])
    monkeypatch.setenv("PATH", str(script.parent))
    assert command_name() == "openclaw"
