"""What the terminal UI keeps on this machine."""

from __future__ import annotations

import stat
from pathlib import Path

import apsw
import pytest

from openclaw.errors import StoreError
from openclaw.tui.memory import KEPT_LINES, MAX_LINE_CHARS, ClientMemory, Unsent

HERE, THERE = "ws://127.0.0.1:18789", "wss://far.example.org"


@pytest.mark.spec("CLI-12", "DB-1")
def test_the_last_session_is_kept_per_gateway_and_agent(tmp_path: Path) -> None:
    path = tmp_path / "state" / "client.sqlite"
    with ClientMemory(path) as memory:
        assert memory.last_session(HERE) is None
        memory.remember_session(HERE, "main", "agent:main:notes", 10)
        memory.remember_session(HERE, "bob", "agent:bob:desk", 20)
        memory.remember_session(THERE, "main", "agent:main:far", 30)
        memory.remember_session(HERE, "main", "agent:main:plans", 15)
    with ClientMemory(path) as memory:
        assert memory.last_session(HERE, "main") == "agent:main:plans"
        assert memory.last_session(HERE, "bob") == "agent:bob:desk"
        assert memory.last_session(HERE, "eve") is None
        assert memory.last_session(HERE) == "agent:bob:desk", "without an agent the newest of all"
        assert memory.last_session(THERE) == "agent:main:far"
    kept = apsw.Connection(str(path)).execute("SELECT count(*) FROM last_sessions").get
    assert kept == 3


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / "client.sqlite"
    with ClientMemory(path) as memory:
        memory.device_seed(b"s" * 32)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        assert set(modes.values()) == {0o600}, modes
    path.chmod(0o644)
    with ClientMemory(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_earlier_inputs_are_bounded_and_in_order(tmp_path: Path) -> None:
    with ClientMemory(tmp_path / "m") as memory:
        for number in range(KEPT_LINES + 5):
            memory.remember_line(f"line {number}")
        memory.remember_line(f"line {KEPT_LINES + 4}")
        memory.remember_line("x" * (MAX_LINE_CHARS + 1))
        lines = memory.typed_lines()
        assert lines == [f"line {number}" for number in range(5, KEPT_LINES + 5)]
        memory.remember_line("x" * MAX_LINE_CHARS)
        assert memory.typed_lines()[-1] == "x" * MAX_LINE_CHARS


def test_what_is_not_sent_waits_in_order_for_its_gateway(tmp_path: Path) -> None:
    first, second = Unsent("r1", "agent:main:a", "one", 1), Unsent("r2", "agent:main:b", "two\nlines", 2)
    with ClientMemory(tmp_path / "m") as memory:
        memory.keep_unsent(HERE, first)
        memory.keep_unsent(HERE, second)
        memory.keep_unsent(HERE, Unsent("r1", "agent:main:a", "again", 9))
        memory.keep_unsent(THERE, Unsent("r3", "k", "far", 3))
    with ClientMemory(tmp_path / "m") as memory:
        assert memory.unsent(HERE) == [first, second]
        memory.forget_unsent("r1")
        assert memory.unsent(HERE) == [second]
        assert [one.message for one in memory.unsent(THERE)] == ["far"]


def test_the_key_of_this_device_is_made_once(tmp_path: Path) -> None:
    with ClientMemory(tmp_path / "m") as memory, ClientMemory(tmp_path / "m") as beside:
        assert memory.device_seed(b"a" * 32) == b"a" * 32
        assert beside.device_seed(b"b" * 32) == b"a" * 32
        assert memory.device_token(HERE) is None
        memory.remember_device_token(HERE, "t1")
        memory.remember_device_token(HERE, "t2")
        assert (beside.device_token(HERE), beside.device_token(THERE)) == ("t2", None)
        memory.remember_choice("theme", "nord")
        memory.remember_choice("theme", "textual-light")
        assert (beside.choice("theme"), beside.choice("other")) == ("textual-light", None)


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"this is no database" * 100)
    with pytest.raises(StoreError, match=r"broken.*move the file away"):
        ClientMemory(broken)
    newer = tmp_path / "newer"
    with ClientMemory(newer):
        pass
    apsw.Connection(str(newer)).execute("PRAGMA user_version = 2")
    with pytest.raises(StoreError, match="newer openclaw"):
        ClientMemory(newer)
    with pytest.raises(StoreError, match="cannot use"):
        ClientMemory(tmp_path)
