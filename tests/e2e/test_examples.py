"""The examples run as they stand, as plain programs, and say nothing on standard error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tooling.trees import PROJECT


@pytest.mark.spec("SPAWN-3", "VIS-1")
def test_two_helpers_from_a_plain_program(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(PROJECT / "examples" / "embed.py")],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout.splitlines()
    assert [line.split(": ")[:2] for line in told[:2]] == [["north", "ok"], ["south", "ok"]]
    listed = dict(line.rsplit(": ", 1) for line in told[2:])
    assert listed["main"] == "the session that spawned them"
    assert sorted(listed.values()) == ["north", "south", "the session that spawned them"]
    assert sum(key.startswith("agent:main:subagent:") for key in listed) == 2
    assert list(tmp_path.iterdir()) == []
