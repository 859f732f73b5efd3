"""The gateway beside a founding layout, and the command that imports it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openclaw.app.checkup import check
from openclaw.errors import Unavailable
from openclaw.store.lockfile import OwnerLock
from tests.fakes.postgres_server import shared_server
from tests.integration.conftest import House, Said
from tests.integration.importing import Place
from tests.unit.store.legacy.making import STARTED_MS, conversation, write_store

COMMAND = "openclaw doctor --session-sqlite import --session-sqlite-all-agents"


def fill(place: Place, agent: str = "main") -> Path:
    folder = place.state / "agents" / agent / "sessions"
    index = {"main": {"sessionId": f"{agent}-1", "updatedAt": STARTED_MS}}
    return write_store(folder, index, {f"{agent}-1.jsonl": conversation(f"{agent}-1", 4) + b"garbage\n"})


@pytest.mark.spec("DB-6", "DB-3")
async def test_a_gateway_does_not_start_beside_a_history_that_it_does_not_know(house: House) -> None:
    place = Place(house.home / "state")
    index = fill(place)
    with pytest.raises(Unavailable) as refusal:
        async with house.gateway():
            pass
    assert str(index) in str(refusal.value) and COMMAND in str(refusal.value)
    assert (await place.doctor("import")).ok
    async with house.gateway() as gateway:
        row = await gateway.services.store.session("agent:main:main")
        assert row is not None and row.message_count == 4
    os.utime(index)  # touched, not changed
    async with house.gateway():
        pass
    index.write_text('{"new": {"sessionId": "n", "updatedAt": 1}}')
    with pytest.raises(Unavailable):
        async with house.gateway():
            pass


@pytest.mark.spec("DB-6")
async def test_an_empty_layout_is_no_history(house: House) -> None:
    place = Place(house.home / "state")
    index = write_store(place.folder, "", {})
    for content in ("", "{}", " {}\n"):
        index.write_text(content)
        async with house.gateway():
            pass
    (place.folder / "x.jsonl").write_bytes(conversation("x", 1))
    with pytest.raises(Unavailable):
        async with house.gateway():
            pass
    index.unlink()
    async with house.gateway():
        pass


@pytest.mark.spec("CLI-10", "DB-7")
def test_the_modes_of_the_doctor(place: Place, openclaw: Callable[..., Said]) -> None:
    assert openclaw("doctor", "--session-sqlite", "inspect")[1] == "Nothing of an earlier layout is there.\n"
    fill(place)
    fill(place, "bob")
    code, out, err = openclaw("doctor", "--session-sqlite", "dry-run")
    assert code == 0 and "main-1.jsonl:6: not JSON" in out and "1 to import" in out and "Nothing was" in err
    assert not (place.state / "openclaw.sqlite").exists()
    assert openclaw("doctor", "--session-sqlite", "validate")[0] == 1
    code, out, _ = openclaw("doctor", "--session-sqlite", "import", "--session-sqlite-agent", "Bob", "--json")
    report: Any = json.loads(out)
    assert code == 0 and report["ok"] and report["mode"] == "import" and len(report["stores"]) == 1
    assert report["stores"][0]["agentId"] == "bob" and report["stores"][0]["imported"] == 1
    assert report["stores"][0]["skipped"] == 1 and "garbage" not in out
    code, out, _ = openclaw("doctor")
    assert code == 1 and COMMAND in out and "✗ sessions" in out and "✓ database" in out
    code, out, _ = openclaw("doctor", "--fix")
    assert code == 0 and "1 sessions imported" in out
    assert openclaw("doctor", "--json")[0] == 0
    code, out, _ = openclaw("doctor", "--session-sqlite", "validate", "--session-sqlite-all-agents")
    assert code == 0 and "1 equal, 0 different" in out and "bob:" in out
    seen: Any = json.loads(openclaw("doctor", "--session-sqlite", "inspect", "--json")[1])
    assert [store["already"] for store in seen["stores"]] == [1, 1]


@pytest.mark.spec("CLI-10")
def test_mistakes_have_an_answer(place: Place, openclaw: Callable[..., Said]) -> None:
    both = ("--session-sqlite-agent", "a", "--session-sqlite-all-agents")
    assert "exclude one another" in openclaw("doctor", "--session-sqlite", "import", *both)[2]
    assert "add --session-sqlite" in openclaw("doctor", "--session-sqlite-agent", "a")[2]
    write_store(place.folder, "{broken", {})
    code, out, _ = openclaw("doctor", "--session-sqlite", "import")
    assert code == 1 and "was not changed. Repair it" in out
    (place.state / "openclaw.json").write_text("{ nonsense: 1 }")
    assert openclaw("doctor", "--session-sqlite", "import")[0] == 1
    code, out, _ = openclaw("doctor")
    assert code == 1 and "✗ config" in out


@pytest.mark.spec("OWN-6", "CLI-10", "DB-3")
def test_a_running_gateway_is_named(place: Place, openclaw: Callable[..., Said]) -> None:
    fill(place)
    lock = OwnerLock(place.state / "openclaw.sqlite")
    lock.take()
    try:
        code, out, _ = openclaw("doctor")
        assert code == 0 and f"(process {os.getpid()})" in out and "left to the gateway" in out
        for arguments in (
            ("doctor", "--session-sqlite", "import"),
            ("sessions", "export", "main"),
        ):
            code, out, err = openclaw(*arguments)
            assert code == 1 and out == "" and f"(process {os.getpid()})" in err and "Stop the gateway" in err
    finally:
        lock.release()
    assert not (place.state / "openclaw.sqlite").exists()


@pytest.mark.spec("CFG-2", "DB-5")
async def test_the_store_setting_says_where_the_layout_lies(place: Place) -> None:
    place.state.mkdir()
    (place.state / "openclaw.json").write_text(
        json.dumps({"session": {"store": str(place.state / "old" / "{agentId}.json")}})
    )
    write_store(place.state / "old", None, {"s1.jsonl": conversation("s1", 2)})
    (place.state / "old" / "main.json").write_text('{"main": {"sessionId": "s1", "updatedAt": 5}}')
    assert (await place.doctor("import")).stores[0].imported == 1
    (place.state / "openclaw.json").write_text(
        json.dumps({"session": {"store": str(place.state / "one.json")}})
    )
    (place.state / "one.json").write_text('{"agent:bob:main": {"sessionId": "b", "updatedAt": 5}}')
    outcome = (await place.doctor("import")).stores[0]
    assert outcome.agent_id == "main" and outcome.imported == 1
    assert await place.rows("SELECT agent_id FROM sessions WHERE session_id = 'b'") == [("bob",)]


@pytest.mark.spec("DB-3", "DB-6", "CLI-10")
async def test_the_way_into_postgresql_is_open_too(place: Place) -> None:
    fill(place)
    url = shared_server().wiped()
    (place.state / "openclaw.json").write_text(json.dumps({"store": {"url": url}}))
    looked = await check(place.loaded, place.env, fix=False)
    assert not looked.ok and [one.name for one in looked.checks if not one.ok] == ["sessions"]
    report = await place.doctor("import")
    assert report.ok and report.database == "PostgreSQL (store.url)" and report.stores[0].imported == 1
    assert (await place.doctor("validate")).ok
    assert await place.exported("main-1") == (place.folder / "main-1.jsonl").read_bytes()
    assert (await check(place.loaded, place.env, fix=False)).ok
    assert not (place.state / "openclaw.sqlite").exists()
