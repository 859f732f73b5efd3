"""What the gateway keeps on disk, what it never reads, and what survives a restart."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from pathlib import Path

import pytest

from openclaw.app import Gateway
from openclaw.store.sqlite import SqliteDatabase
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

OK = FakeReply(texts=("fine",))
_opened: list[str] = []


@pytest.mark.spec("DB-5", "DB-12", "DB-1")
async def test_one_database_in_a_private_place(house: House, client: WireClient) -> None:
    house.model.script(OK)
    await client.say("proj", "hi", "run-1")
    state = house.home / "state"
    kept = {path.name for path in state.iterdir()} - {"logs"}  # what happened, for people; never read back
    assert kept == {
        "openclaw.json",
        "openclaw.sqlite",
        "openclaw.sqlite-shm",
        "openclaw.sqlite-wal",
        "openclaw.sqlite.lock",
    }
    for name in kept - {"openclaw.json"}:
        assert stat.S_IMODE((state / name).stat().st_mode) == 0o600, name
    listed = await client.call("sessions.list")
    status = await client.call("status")
    assert listed["path"] == str(state / "openclaw.sqlite")
    assert status["sessions"]["paths"] == [listed["path"]]


@pytest.mark.spec("DB-10", "TRX-11")
async def test_no_credential_reaches_the_database(house: House) -> None:
    house.model.script(OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say("proj", "hi", "run-1")
    assert house.model.requests[0].headers["Authorization"] == "Bearer sk-fake-key-000000000000"
    for path in (house.home / "state").glob("openclaw.sqlite*"):
        raw = path.read_bytes()
        assert b"sk-fake-key" not in raw
        assert b"test-token-0123456789" not in raw


def _note_open(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], str):
        _opened.append(arguments[0])


@pytest.mark.spec("OWN-5")
async def test_foreign_session_folders_are_never_read(house: House) -> None:
    for name in (".pi/agent/sessions", ".tau/sessions", ".openclaw/sessions"):
        folder = house.home / name
        folder.mkdir(parents=True)
        (folder / "old.jsonl").write_text('{"type":"session"}\n')
    sys.addaudithook(_note_open)
    _opened.clear()
    house.model.script(OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say("proj", "hi", "run-1")
        assert (await client.call("sessions.list"))["totalCount"] == 1
    assert any("openclaw.json" in path for path in _opened)
    assert [path for path in _opened if "/.pi" in path or "/.tau" in path or path.endswith(".jsonl")] == []


@pytest.mark.spec("REST-1", "OWN-2", "LIFE-1")
async def test_everything_is_there_after_a_restart(house: House) -> None:
    house.model.script(OK, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say("proj", "before", "run-1")
        await client.call("sessions.patch", {"key": "proj", "label": "Kept", "model": "fake/two"})
        before = (await client.call("sessions.describe", {"key": "proj"}))["session"]
    async with house.gateway() as gateway, client_of(gateway) as client:
        after = (await client.call("sessions.describe", {"key": "proj"}))["session"]
        assert {**after, "snapshotAt": 0} == {**before, "snapshotAt": 0}
        await client.say("proj", "after", "run-2")
        asked = house.model.requests[1].body
        assert asked["model"] == "two"
        said = [message["content"] for message in asked["messages"] if message["role"] == "user"]
        assert said[1:] == ["before", "after"]
        again = await client.call(
            "chat.send", {"sessionKey": "proj", "message": "before", "idempotencyKey": "run-1"}
        )
        assert again == {"runId": "run-1", "status": "ok"}
        waited = await client.call("agent.wait", {"runId": "run-1", "timeoutMs": 0})
        assert waited["terminalReply"]["text"] == "fine"


@pytest.mark.spec("REST-2", "QUE-8", "REST-6")
async def test_a_stopped_gateway_goes_on_where_it_was(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openclaw.app.gateway.DRAIN_S", 0.05)
    house.model.script(FakeReply(texts=("never",), hang_after=0))
    async with house.gateway() as gateway:
        client = await client_of(gateway).__aenter__()
        await client.call("chat.send", {"sessionKey": "proj", "message": "a", "idempotencyKey": "run-1"})
        await client.call(
            "chat.send",
            {"sessionKey": "proj", "message": "b", "idempotencyKey": "run-2", "queueMode": "followup"},
        )
        await house.model.wait_for_requests(1)
    await client.__aexit__(None, None, None)
    assert client.events[-1]["event"] == "shutdown"
    assert (client.close_code, client.close_reason) == (1012, "service restart")
    house.model.script(OK, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        for run_id in ("run-1", "run-2"):
            waited = await client.call("agent.wait", {"runId": run_id, "timeoutMs": 60_000})
            assert waited["status"] == "ok"
        history = await client.call("chat.history", {"sessionKey": "proj"})
        shown = [(message["role"], str(message["content"])[:1]) for message in history["messages"]]
        assert [role for role, _ in shown] == ["user", "assistant", "user", "assistant"]
        assert [text for role, text in shown if role == "user"] == ["a", "b"]


@pytest.mark.spec("REST-3")
async def test_a_run_that_never_gets_on_is_given_up_with_a_word(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openclaw.app.gateway.DRAIN_S", 0.01)
    house.model.script(*[FakeReply(texts=("never",), hang_after=0)] * 4)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("chat.send", {"sessionKey": "proj", "message": "a", "idempotencyKey": "run-1"})
        await house.model.wait_for_requests(1)
    for resumed in (2, 3, 4):
        async with house.gateway():
            await house.model.wait_for_requests(resumed)
    async with house.gateway() as gateway, client_of(gateway) as client:
        waited = await client.call("agent.wait", {"runId": "run-1", "timeoutMs": 60_000})
        assert (waited["status"], "three times" in waited["error"]) == ("error", True)
        house.model.script(OK)
        assert (await client.say("proj", "again", "run-2"))["state"] == "final"


@pytest.mark.spec("LIFE-25", "LIFE-18")
async def test_a_reset_acts_on_the_agent_it_was_sent_to(house: House, client: WireClient) -> None:
    house.model.script(OK, OK, OK)
    await client.say("agent:main:proj", "mine", "run-1")
    await client.say("agent:bob:proj", "bobs", "run-2")
    ids = {key: await _session_id(client, key) for key in ("agent:main:proj", "agent:bob:proj")}
    await client.call(
        "chat.send",
        {"sessionKey": "proj", "agentId": "bob", "message": "/new", "idempotencyKey": "run-3"},
    )
    await client.ended("run-3")
    assert await _session_id(client, "agent:main:proj") == ids["agent:main:proj"]
    assert await _session_id(client, "agent:bob:proj") != ids["agent:bob:proj"]
    greeting = house.model.requests[2].body["messages"][1]["content"]
    assert "one to three sentences" in greeting
    assert "ask what to do next" in greeting


async def _session_id(client: WireClient, key: str) -> str:
    row = (await client.call("sessions.describe", {"key": key}))["session"]
    return str(row["sessionId"])


@pytest.mark.spec("CFG-4")
async def test_a_changed_config_is_used_on_the_next_turn(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(OK, OK, OK)
    await client.say("proj", "first", "run-1")
    path = house.home / "state" / "openclaw.json"
    good = path.read_text()
    path.write_text(good.replace("fake/one", "fake/two"))
    await _until_model(gateway, "two")
    await client.say("proj", "second", "run-2")
    path.write_text("{ this is not json5")
    await asyncio.sleep(0)
    await client.say("proj", "third", "run-3")
    assert [request.body["model"] for request in house.model.requests] == ["one", "two", "two"]


async def _until_model(gateway: Gateway, name: str) -> None:
    for _ in range(2000):
        if gateway.services.settings().agent("main").default_model.model == name:
            return
        await asyncio.sleep(0.03)
    raise AssertionError(f"the gateway never took {name}")


@pytest.mark.spec("DB-12")
async def test_the_state_directory_is_private(tmp_path: Path, house: House) -> None:
    before = os.umask(0o022)
    try:
        database = await SqliteDatabase.open(tmp_path / "fresh" / "openclaw.sqlite")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o700
    for path in (tmp_path / "fresh").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    await database.close()
