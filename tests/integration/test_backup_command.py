"""`openclaw backup` from end to end: make, check, put back; and what it says when a gateway runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from openclaw.cli.main import run
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import select, turn


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(folder))
    monkeypatch.setenv("OPENCLAW_GATEWAY_PORT", "9")  # nobody listens there
    monkeypatch.delenv("OPENCLAW_CONFIG_PATH", raising=False)
    return folder


async def say_one(state: Path, run_id: str) -> None:
    database = await SqliteDatabase.open(state / "openclaw.sqlite")
    await turn(Store(database), run_id, f"words of {run_id}")
    await database.close()


async def inputs(state: Path) -> list[str]:
    database = await SqliteDatabase.open(state / "openclaw.sqlite")
    found = await select(database, "SELECT run_id FROM inbox ORDER BY admission")
    await database.close()
    return [run_id for (run_id,) in found]


@pytest.mark.spec("DB-20", "DB-17")
def test_make_check_and_put_back(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(say_one(state, "run-1"))
    folder = tmp_path / "backups" / "monday"
    assert run(["backup", "create", "--output", str(folder)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Backup: {folder}\n") and "1 session, 2 entries" in out
    assert run(["backup", "verify", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["verified"], told["lastAdmission"]) == (True, str(folder), 1)
    asyncio.run(say_one(state, "run-2"))
    assert run(["backup", "restore", str(folder)]) == 1
    assert "--force" in capsys.readouterr().err
    assert asyncio.run(inputs(state)) == ["run-1", "run-2"]
    assert run(["backup", "restore", str(folder), "--force", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert ".bak." in told["kept"] and told["database"] == str(state / "openclaw.sqlite")
    assert asyncio.run(inputs(state)) == ["run-1"]
    assert run(["backup", "restore", str(folder), "--force"]) == 0
    assert "the old one:" in capsys.readouterr().out


@pytest.mark.spec("OWN-6", "CLI-10")
def test_while_a_gateway_runs_nothing_is_touched(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(say_one(state, "run-1"))
    folder = tmp_path / "monday"
    assert run(["backup", "create", "--output", str(folder)]) == 0

    async def own() -> SqliteDatabase:
        return await SqliteDatabase.open(state / "openclaw.sqlite")

    loop = asyncio.new_event_loop()
    database = loop.run_until_complete(own())
    try:
        capsys.readouterr()
        for words in (["create", "--output", str(tmp_path / "tuesday")], ["restore", str(folder), "--force"]):
            assert run(["backup", *words]) == 1
            err = capsys.readouterr().err
            assert "a gateway is running (process " in err and "Stop the gateway" in err
        assert not (tmp_path / "tuesday").exists()
        assert run(["backup", "verify", str(folder)]) == 0, "looking at a backup needs nobody's leave"
    finally:
        loop.run_until_complete(database.close())
        loop.close()
    assert asyncio.run(inputs(state)) == ["run-1"]


def test_mistakes_name_the_fix(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["backup", "create", "--output", str(tmp_path / "x")]) == 1
    assert "there is no store to back up" in capsys.readouterr().err
    assert run(["backup", "verify", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False
    state.mkdir()
    (state / "openclaw.json").write_text('{ store: { url: "postgresql://x/y" } }')
    assert run(["backup", "restore", str(tmp_path)]) == 1
    assert "pg_restore" in capsys.readouterr().err
    assert run(["backup", "create", "--output", str(tmp_path / "y")]) == 1
    assert "pg_dump" in capsys.readouterr().err
    (state / "openclaw.json").write_text("{ nonsense: 1 }")
    assert run(["backup", "restore", str(tmp_path)]) == 1
    assert "config is not valid" in capsys.readouterr().err
