"""Whichever statement the way to PostgreSQL breaks at: callers are told, and nothing acknowledged is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from openclaw.errors import StoreError
from openclaw.store.postgres import PostgresDatabase
from tests.fakes.postgres_server import shared_server
from tests.faults.connections import MODES, TOLD, Wire, breaking

ROOT = Path(__file__).resolve().parents[2]
EVERY = 29
PROVES = pytest.mark.spec("DB-15", "DB-16")


def run_campaign(mode: str, *options: str, timeout_s: float = 300) -> tuple[list[Any], dict[str, Any]]:
    """What a campaign in a process of its own found, and its totals."""
    command = [sys.executable, "-m", "tests.faults.connections", mode, *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert ended.returncode == 0, ended.stderr
    *found, totals = [json.loads(line) for line in ended.stdout.splitlines()]
    return found, totals


@pytest.mark.spec("DB-16")
@pytest.mark.parametrize("mode", MODES)
async def test_opening_says_what_is_wrong_and_leaves_nothing_behind(mode: Any) -> None:
    url, refused = shared_server().wiped(), 0
    for at in range(1, 40):
        wire = Wire(mode, at)
        with breaking(wire):
            try:
                database = await PostgresDatabase.open(url, readers=1)
            except StoreError as error:
                assert type(error).__name__ in TOLD, error
                refused += 1
            else:
                await database.close()
        if wire.struck is None:
            break
        # Nobody is left who owns the database, or holds a connection to it.
        await (await PostgresDatabase.open(url, readers=1)).close()
    assert wire.struck is None, "opening takes more statements than were tried"
    assert refused >= 5


@PROVES
@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_lost_whichever_statement_fails(mode: str) -> None:
    # Other statements every day; in CI always the same, so that red means that the change broke it.
    first = 1 + int(time.time() // 86_400) % EVERY
    found, totals = run_campaign(mode, "--first", str(first), "--every", str(EVERY))
    print(f"from statement {first}: {totals}")
    assert found == []
    assert totals["trials"] >= totals["script_statements"] // EVERY >= 5


@pytest.mark.long
@PROVES
@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_lost_at_any_statement(mode: str) -> None:
    found, totals = run_campaign(mode, "--seeds", "3", timeout_s=6 * 3600)
    print(totals)
    assert found == []
    assert totals["trials"] >= totals["script_statements"]
