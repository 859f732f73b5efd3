"""Whichever call to the disk breaks, and however: callers are told, and nothing acknowledged is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.vfs import MODES

ROOT = Path(__file__).resolve().parents[2]
EVERY = 40
EVERY_READ = 10  # there are fewer of them

PROVES = pytest.mark.spec("DB-15", "DB-16")


def run_campaign(mode: str, *options: str, timeout_s: float = 180) -> tuple[list[Any], dict[str, Any]]:
    """What a campaign in a process of its own found, and its totals."""
    command = [sys.executable, "-m", "tests.faults.campaign", mode, *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert ended.returncode == 0, ended.stderr
    *found, totals = [json.loads(line) for line in ended.stdout.splitlines()]
    return found, totals


@PROVES
@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_lost_whichever_call_fails(mode: str) -> None:
    call, every = ("xRead", EVERY_READ) if mode == "unreadable" else ("xWrite", EVERY)
    # Another part of the calls every day.
    first = 1 + int(time.time() // 86_400) % every
    found, totals = run_campaign(mode, "--first", str(first), "--every", str(every))
    print(f"from call {first}: {totals}")
    assert found == []
    assert totals["trials"] >= totals["script_calls"] // every > 30
    assert totals["struck"].get(call, 0) > 30
    assert totals["refused"] > 10


@pytest.mark.long
@PROVES
@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_lost_at_any_call(mode: str) -> None:
    found, totals = run_campaign(mode, "--seeds", "5", timeout_s=6 * 3600)
    print(totals)
    assert found == []
    assert totals["trials"] >= totals["script_calls"]
