"""`openclaw doctor`: every check with its way out, and the modes that mend and shrink the database."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from openclaw.app import checkup
from openclaw.app.checkup import check, check_disk
from openclaw.store.lockfile import OwnerLock
from openclaw.store.store import Store
from tests.conformance.making import seed, turn
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.integration.conftest import Said
from tests.integration.importing import Place
from tests.unit.store.legacy.making import STARTED_MS, conversation, write_store
from tests.unit.store.test_salvage import pages_of, spoil


def fill(place: Place) -> Path:
    """Some turns; returns the database file."""

    async def work(store: Store) -> None:
        for number in range(20):
            await turn(store, f"run-{number}", "words " * 40, to=seed(f"s{number % 4}"))

    asyncio.run(place.store_do(work))
    return place.state / "openclaw.sqlite"


def names(out: str, mark: str) -> list[str]:
    return [line.split()[1] for line in out.splitlines() if line.startswith(mark)]


@pytest.mark.spec("CLI-10")
def test_every_check_has_a_line_and_a_way_out(place: Place, openclaw: Callable[..., Said]) -> None:
    code, out, _ = openclaw("doctor")
    assert code == 0 and out.endswith("All is well.\n")
    assert names(out, "✓") == ["config", "state", "versions", "lock", "database", "sessions", "disk"]
    assert not place.state.exists(), "looking makes nothing"
    fill(place)
    place.state.chmod(0o755)
    (place.state / "openclaw.json").write_text("{ gateway: { port: 19000 } }")
    (place.state / "openclaw.json").chmod(0o644)
    code, out, _ = openclaw("doctor")
    assert code == 1 and names(out, "✗") == ["state"] and "fix: openclaw doctor --fix" in out
    assert "(0755)" in out and "(0644)" in out and out.endswith("1 problem.\n")
    code, out, _ = openclaw("doctor", "--fix")
    assert code == 0 and names(out, "✗") == []
    assert place.state.stat().st_mode & 0o777 == 0o700
    report: Any = json.loads(openclaw("doctor", "--json")[1])
    assert report["ok"] is True and [one["ok"] for one in report["checks"]] == [True] * 7
    assert "SQLite 3." in next(one["detail"] for one in report["checks"] if one["name"] == "versions")


@pytest.mark.spec("CLI-10")
def test_a_disk_that_is_almost_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = tmp_path / "x.sqlite"
    usage = SimpleNamespace(free=checkup.LEAST_FREE_BYTES)
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    assert check_disk(tmp_path / "not" / "there", database).ok
    usage.free -= 1
    told = check_disk(tmp_path, database)
    assert not told.ok and told.fix == "free some space" and "256 MiB would be good" in told.detail


@pytest.mark.spec("CLI-10")
def test_a_database_that_cannot_be_used_is_a_problem_among_others(
    place: Place, openclaw: Callable[..., Said]
) -> None:
    database = fill(place)
    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    code, out, err = openclaw("doctor")
    assert code == 1 and err == "" and names(out, "✗") == ["database"]
    assert "schema 99" in out and "disk" in names(out, "✓"), "the other checks are still made"


@pytest.mark.spec("CLI-10")
def test_a_state_that_is_no_directory_is_told(place: Place, openclaw: Callable[..., Said]) -> None:
    place.state.write_text("a file")
    code, out, _ = openclaw("doctor")
    assert code == 1 and names(out, "✗") == ["config", "state"] and "is not a directory" in out
    assert place.state.read_text() == "a file"


@pytest.mark.spec("CLI-10")
async def test_models_are_asked_only_when_wanted(place: Place) -> None:
    place.state.mkdir()
    async with FakeOpenAIServer(FakeReply(texts=("ok",))) as server:
        provider = {
            "baseUrl": server.base_url,
            "apiKey": "sk-1",
            "api": "openai-completions",
            "models": [{"id": "m"}],
        }
        config = {"models": {"providers": {"p": provider}}, "agents": {"defaults": {"model": "p/m"}}}
        (place.state / "openclaw.json").write_text(json.dumps(config))
        shallow = await check(place.loaded, place.env, fix=False)
        assert shallow.ok and server.requests == []
        deep = await check(place.loaded, place.env, fix=False, deep=True)
        assert deep.ok and deep.checks[-1].name == "model" and "p/m answers" in deep.checks[-1].detail
    gone = await check(place.loaded, place.env, fix=False, deep=True)
    assert not gone.ok and gone.checks[-1].fix == "openclaw models test p/m"
    assert "sk-1" not in gone.checks[-1].detail


@pytest.mark.spec("CLI-10", "DB-7")
def test_a_damaged_database_is_found_and_mended(place: Place, openclaw: Callable[..., Said]) -> None:
    database = fill(place)
    code, out, _ = openclaw("doctor", "--session-sqlite", "recover")
    assert code == 0 and "is whole; nothing was changed" in out
    spoil(database, pages_of(database, "entries")[2])
    code, out, _ = openclaw("doctor")
    assert code == 1 and names(out, "✗") == ["database"] and "--session-sqlite recover" in out
    code, out, _ = openclaw("doctor", "--session-sqlite", "recover", "--json")
    report: Any = json.loads(out)
    assert code == 0 and report["ok"] and report["mode"] == "recover"
    assert report["recovered"]["rows"]["sessions"] == 4 and 0 < report["recovered"]["rows"]["entries"] < 40
    assert Path(report["recovered"]["keptAs"]).exists()
    assert openclaw("doctor")[0] == 0
    assert "is whole" in openclaw("doctor", "--session-sqlite", "recover")[1]


@pytest.mark.spec("CLI-10", "DB-7")
def test_what_was_imported_comes_back_from_its_files(place: Place, openclaw: Callable[..., Said]) -> None:
    index = {"main": {"sessionId": "old-1", "updatedAt": STARTED_MS}}
    write_store(place.folder, index, {"old-1.jsonl": conversation("old-1", 6)})
    assert openclaw("doctor", "--session-sqlite", "import")[0] == 0
    database = place.state / "openclaw.sqlite"
    spoil(database, *pages_of(database, "windows"))
    code, out, _ = openclaw("doctor", "--session-sqlite", "recover")
    assert code == 0 and "1 session brought back from an earlier layout" in out and "left out" in out
    assert "delete it when you are sure" in out
    code, out, _ = openclaw("doctor", "--session-sqlite", "validate")
    assert code == 0 and "1 equal, 0 different" in out


@pytest.mark.spec("CLI-10")
def test_compact_and_a_store_that_lies_elsewhere(
    place: Place, openclaw: Callable[..., Said], tmp_path: Path
) -> None:
    missing = openclaw("doctor", "--session-sqlite", "compact")
    assert missing[0] == 1 and "there is no database" in missing[2]
    fill(place)
    code, out, _ = openclaw("doctor", "--session-sqlite", "compact", "--json")
    done: Any = json.loads(out)
    assert code == 0 and done["compacted"]["afterBytes"] > 0 and done["ok"] is True
    assert "bytes before" in openclaw("doctor", "--session-sqlite", "compact")[1]
    elsewhere = tmp_path / "elsewhere"
    index = {"x": {"sessionId": "e-1", "updatedAt": STARTED_MS}}
    write_store(elsewhere, index, {"e-1.jsonl": conversation("e-1", 2)})
    option = ("--session-sqlite-store", str(elsewhere / "sessions.json"), "--session-sqlite-agent", "Bob")
    code, out, _ = openclaw("doctor", "--session-sqlite", "dry-run", *option)
    assert code == 0 and "bob:" in out and "1 to import" in out
    assert openclaw("doctor", "--session-sqlite", "import", *option)[0] == 0
    assert asyncio.run(place.rows("SELECT session_key FROM sessions WHERE session_id = 'e-1'")) == [
        ("agent:bob:x",)
    ]
    whole = ("--session-sqlite-store", str(elsewhere), "--json")
    seen: Any = json.loads(openclaw("doctor", "--session-sqlite", "inspect", *whole)[1])
    assert seen["stores"][0]["sessions"] == 1


@pytest.mark.spec("CLI-10", "OWN-6")
def test_options_that_do_not_go_together(place: Place, openclaw: Callable[..., Said]) -> None:
    for arguments, words in (
        (("recover", "--session-sqlite-agent", "a"), "works on the whole database"),
        (("compact", "--session-sqlite-all-agents"), "works on the whole database"),
        (("import", "--session-sqlite-store", "x", "--session-sqlite-all-agents"), "is one store"),
        (("import", "--session-sqlite-store", "/nowhere/at/all"), "is not a folder"),
    ):
        code, _, err = openclaw("doctor", "--session-sqlite", *arguments)
        assert code == 1 and words in err, arguments
    assert "add --session-sqlite inspect" in openclaw("doctor", "--session-sqlite-store", "x")[2]
    fill(place)
    lock = OwnerLock(place.state / "openclaw.sqlite")
    lock.take()
    try:
        for mode in ("recover", "compact"):
            code, out, err = openclaw("doctor", "--session-sqlite", mode)
            assert code == 1 and out == "" and f"(process {os.getpid()})" in err
    finally:
        lock.release()
    (place.state / "openclaw.json").write_text(json.dumps({"store": {"url": "postgresql://x/y"}}))
    assert "PostgreSQL has its own tools" in openclaw("doctor", "--session-sqlite", "compact")[2]
