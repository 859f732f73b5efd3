"""Exporting a session: exact by default, readable on demand, never over somebody's file."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from openclaw.cli.main import run
from openclaw.store.records import EntryDraft, SessionSeed
from openclaw.store.store import Store
from tests.integration.importing import Place
from tests.unit.store.legacy.making import STARTED_MS, conversation, header, lines, user, write_store

SECRET = "sk-ant-REDACTED"
Export = Callable[..., tuple[int, bytes, str]]


@pytest.fixture
def place(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("OPENCLAW_GATEWAY_PORT", "9")  # nobody listens there
    return place


@pytest.fixture
def export(capfdbinary: pytest.CaptureFixture[bytes]) -> Export:
    def invoke(*arguments: str) -> tuple[int, bytes, str]:
        capfdbinary.readouterr()
        code = run(("sessions", "export", *arguments))
        out, err = capfdbinary.readouterr()
        return code, out, err.decode()

    return invoke


def run_async(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def imported(place: Place, text: bytes) -> None:
    index = {
        "main": {"sessionId": "s1", "updatedAt": STARTED_MS},
        "agent:bob:main": {"sessionId": "s2", "updatedAt": STARTED_MS},
        "agent:main:telegram:group:1:topic:7": {"sessionId": "s3", "updatedAt": STARTED_MS},
    }
    files = {"s1.jsonl": text, "s2.jsonl": conversation("s2", 2), "s3-topic-7.jsonl": conversation("s3", 1)}
    write_store(place.folder, index, files)
    run_async(place.doctor("import"))


@pytest.mark.spec("CLI-11", "DB-4", "TRX-2")
def test_an_imported_session_comes_back_byte_for_byte(place: Place, export: Export) -> None:
    text = lines("junk", header("s1"), '{ "type":"custom" , "id":"a"}', user(1, "a\u2028b")) + b"tail"
    imported(place, text)
    assert export("main") == export("agent:main:main") == export("s1") == (0, text, "")
    bob = conversation("s2", 2)
    assert export("agent:bob:main")[1] == export("main", "--agent", "bob")[1] == bob
    assert export("agent:main:main", "--agent", "bob")[1] == bob
    assert export("agent:bob:main", "--agent", "main")[1] == text
    code, out, err = export("agent:main:nobody")
    assert code == 1 and out == b"" and "openclaw sessions" in err
    assert export("k" * 600)[0] == 1 and export("main", "--output", "x", "--save")[0] == 1


@pytest.mark.spec("TRX-2", "TRX-3", "TRX-4", "CLI-11")
def test_a_session_of_our_own_is_written_as_version_three(place: Place, export: Export) -> None:
    drafts = tuple(
        EntryDraft("message", b'{"role":"user","content":"%d","timestamp":5}' % n, "user") for n in range(450)
    )

    async def make(store: Store) -> None:
        seed = SessionSeed("agent:main:main", "main", "main")
        await store.edit_session(seed, lambda old: old, session_id="live", now_ms=STARTED_MS)
        await store.append("agent:main:main", drafts, now_ms=STARTED_MS + 1)
        await store.append(
            "agent:main:main", (EntryDraft("custom", b'{"customType":"c"}'),), now_ms=STARTED_MS
        )

    run_async(place.store_do(make))
    records = [json.loads(line) for line in export("main")[1].splitlines()]
    first, rest = records[0], records[1:]
    assert (first["type"], first["version"], first["id"]) == ("session", 3, "live") and first["cwd"]
    assert first["timestamp"] == "2026-01-01T00:00:00.000Z" and len(rest) == 451
    assert [one["message"]["content"] for one in rest[:-1]] == [str(n) for n in range(450)]
    assert [one["parentId"] for one in rest] == [None, *(one["id"] for one in rest[:-1])]
    assert len({one["id"] for one in rest}) == 451 and rest[-1]["customType"] == "c"
    assert rest[0]["timestamp"] == "2026-01-01T00:00:00.001Z"


@pytest.mark.spec("TRX-11", "CLI-11")
def test_views_for_people_and_redaction(place: Place, export: Export) -> None:
    text = lines(header("s1"), user(1, f"<b>my key is {SECRET}</b>"), "broken " + SECRET)
    imported(place, text)
    assert export("main")[1] == text
    masked = export("main", "--redact")[1]
    assert SECRET.encode() not in masked and len([json.loads(line) for line in masked.splitlines()]) == 2
    page, notes = export("main", "--format", "html")[1], export("main", "--format", "markdown")[1]
    for shown in (page, notes):
        assert SECRET.encode() not in shown and b"my key is" in shown
    assert b"&lt;b&gt;my" in page and page.endswith(b"</html>\n") and notes.startswith(b"# agent:main:main\n")


@pytest.mark.spec("DB-17", "DB-4")
def test_files_are_complete_private_and_never_overwritten(
    place: Place, export: Export, tmp_path: Path
) -> None:
    text = conversation("s1", 3)
    imported(place, text)
    target = tmp_path / "new" / "out.jsonl"
    code, out, err = export("main", "--output", str(target))
    assert code == 0 and out == b"" and str(target) in err and target.read_bytes() == text
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert export("main", "--output", str(target))[0] == 1 and os.listdir(target.parent) == ["out.jsonl"]
    assert export("main", "--save")[0] == 0 and (place.folder / "s1.jsonl").read_bytes() == text
    assert not list(place.folder.glob("*.bak.*"))
    draft = EntryDraft("message", b'{"role":"user","content":"more","timestamp":5}', "user")
    run_async(place.store_do(lambda store: store.append("agent:main:main", (draft,), now_ms=STARTED_MS)))
    code, _, err = export("main", "--save")
    saved = (place.folder / "s1.jsonl").read_bytes()
    (backup,) = place.folder.glob("s1.jsonl.bak.*")
    assert code == 0 and str(backup) in err and backup.read_bytes() == text and ":" not in backup.name
    assert saved.startswith(text) and b'"more"' in saved
    assert export("main", "--save", "--format", "markdown")[0] == 0 and (place.folder / "s1.md").exists()
    assert export("agent:main:telegram:group:1:topic:7", "--save")[0] == 0
    assert (place.folder / "s3-topic-7.jsonl").read_bytes() == conversation("s3", 1)
    assert run_async(place.doctor("validate")).ok


def test_a_session_id_that_is_no_file_name_is_not_made_one(place: Place, export: Export) -> None:
    write_store(place.folder, {"main": {"sessionId": "../../evil", "updatedAt": 1}}, {})
    run_async(place.doctor("import"))
    code, _, err = export("main", "--save")
    assert code == 1 and "--output" in err and not list(place.state.parent.glob("**/evil*"))
