"""Where an earlier terminal UI had been last: understood by its hashes, and never in the way (DB-3)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from openclaw.errors import InvalidRequest
from openclaw.tui.legacy import MAX_BYTES, Known, import_last_sessions, last_sessions_file
from openclaw.tui.memory import ClientMemory

HERE, THERE = "ws://127.0.0.1:18789", "wss://far.example:443"
KNOWN = Known(gateways=(HERE,), agent_ids=("main", "Bob"))


def scope(gateway: str, agent_id: str = "main", session_scope: str = "per-sender") -> str:
    return sha256(f"{session_scope}\n{agent_id}\n{gateway}".encode()).hexdigest()[:32]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[ClientMemory]:
    with ClientMemory(tmp_path / "client.sqlite") as opened:
        yield opened


def put(folder: Path, content: Any) -> Path:
    path = last_sessions_file(folder)
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.spec("DB-3", "CLI-12")
class TestImporting:
    def test_entries_of_known_places_are_remembered(self, tmp_path: Path, memory: ClientMemory) -> None:
        path = put(tmp_path, {
            scope(HERE): {"sessionKey": " agent:main:proj ", "updatedAt": 5},
            scope(HERE, "bob", "global"): {"sessionKey": "agent:bob:x", "updatedAt": 9},
        })  # fmt: skip
        assert path == tmp_path / "tui" / "last-session.json"
        before = path.read_bytes()
        done = import_last_sessions(path, memory, KNOWN)
        assert (done.found, done.imported, done.already, done.problems) == (2, 2, 0, ())
        assert memory.last_session(HERE, "main") == "agent:main:proj"
        assert memory.last_session(HERE, "bob") == "agent:bob:x"
        assert memory.last_session(HERE) == "agent:bob:x", "the later one"
        assert path.read_bytes() == before

    def test_what_is_remembered_since_wins(self, tmp_path: Path, memory: ClientMemory) -> None:
        memory.remember_session(HERE, "main", "agent:main:today", 10)
        path = put(tmp_path, {scope(HERE): {"sessionKey": "agent:main:old", "updatedAt": 99}})
        done = import_last_sessions(path, memory, KNOWN)
        assert (done.imported, done.already) == (0, 1)
        assert memory.last_session(HERE, "main") == "agent:main:today"

    @pytest.mark.parametrize(
        ("name", "value", "told"),
        [
            (scope(THERE), {"sessionKey": "agent:main:x"}, "not known here"),
            (scope(HERE, "carl"), {"sessionKey": "agent:carl:x"}, "not known here"),
            (scope(HERE), {"sessionKey": "agent:main:heartbeat"}, "no session that a person opens"),
            (scope(HERE), {"sessionKey": " "}, "no session that a person opens"),
            (scope(HERE), {"sessionKey": "unknown"}, "no session that a person opens"),
            (scope(HERE), {"updatedAt": 5}, "sessionKey"),
            (scope(HERE), 7, "Expected"),
        ],
        ids=range(7),
    )
    def test_others_are_left_out_with_the_reason(
        self, tmp_path: Path, memory: ClientMemory, name: str, value: Any, told: str
    ) -> None:
        done = import_last_sessions(put(tmp_path, {name: value}), memory, KNOWN)
        (problem,) = done.problems
        assert done.imported == 0 and told in problem and problem.startswith(name[:12])
        assert memory.last_session(HERE) is None

    @pytest.mark.parametrize("content", ["", "[]", "{", "[" * 100_000, '{"a": "' + "x" * MAX_BYTES + '"}'])
    def test_what_is_no_such_file_is_refused(
        self, tmp_path: Path, memory: ClientMemory, content: str
    ) -> None:
        with pytest.raises(InvalidRequest, match="no list of last sessions; nothing was imported"):
            import_last_sessions(put(tmp_path, content), memory, KNOWN)

    def test_no_file(self, tmp_path: Path, memory: ClientMemory) -> None:
        with pytest.raises(InvalidRequest, match="does not exist"):
            import_last_sessions(last_sessions_file(tmp_path), memory, KNOWN)
        with pytest.raises(InvalidRequest, match="cannot read"):
            import_last_sessions(tmp_path, memory, KNOWN)
