"""Looking after the store of a running gateway over the wire: clean up, erase, export, back up."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openclaw.app import Gateway
from openclaw.domain.transcript import AssistantMessage, TextBlock
from openclaw.engine.drafts import draft_message
from openclaw.store import rendering
from openclaw.store.backup import verify_backup
from openclaw.store.export import Export
from openclaw.store.records import EntryDraft
from openclaw.store.store import Accepted
from tests.conformance.making import DAY, DONE, PLAN, RESETS, draft_inputs, say, seed, turn
from tests.conformance.test_erasing import GROUP
from tests.fakes.openai_server import FakeReply
from tests.fakes.postgres_server import shared_server
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:talk"
OK = FakeReply(texts=("Fine",))
Json = dict[str, Any]


async def refusal(client: WireClient, method: str, params: Json) -> str:
    with pytest.raises(RefusedError) as refused:
        await client.call(method, params)
    assert refused.value.error["code"] == "INVALID_REQUEST"
    return str(refused.value.error["message"])


def asked(house: House, number: int) -> str:
    """What the model was told in its n-th request."""
    return str(house.model.requests[number].body["messages"])


async def said_in_group(gateway: Gateway, principal: str, run_id: str, text: str) -> None:
    """A turn of somebody in a group, just now, with a reply that a model may be shown again."""
    store, now_ms = gateway.services.store, gateway.services.clock.now_ms()
    new = msgspec.structs.replace(say(run_id, text, to=GROUP, source="channel"), principal=principal)
    taken = await store.accept(
        new, RESETS, session_id=f"{run_id}-window", now_ms=now_ms, start=PLAN, draft_inputs=draft_inputs
    )
    assert isinstance(taken, Accepted) and taken.claimed is not None
    reply = draft_message(AssistantMessage((TextBlock("noted"),), now_ms), run_id)
    await store.finish(taken.claimed.run, (reply,), DONE, now_ms=now_ms)


# -- cleanup ---------------------------------------------------------------------------------------


@pytest.mark.spec("RPC-10", "MAINT-5")
async def test_a_cleanup_previews_and_then_does_the_same(house: House) -> None:
    house.config["session"] = {"maintenance": {"mode": "warn", "maxEntries": 3}}
    async with house.gateway() as gateway, client_of(gateway) as client:
        store, now_ms = gateway.services.store, gateway.services.clock.now_ms()
        for number in range(6):
            await turn(store, f"run-{number}", to=seed(f"s{number}"), at=now_ms - number * DAY)
        await turn(store, "run-old", to=seed("old"), at=now_ms - 40 * DAY)
        await turn(store, "run-hook", to=seed("hook:1", "bob", kind="hook"), at=now_ms - 40 * DAY)
        plan = await client.call("sessions.cleanup", {"dryRun": True, "activeKey": "s5"})
        assert (plan["mode"], plan["dryRun"], plan["applied"]) == ("warn", True, False)
        assert plan["stores"] == [
            {
                "agentId": agent,
                "storePath": gateway.services.database,
                "missing": 0,
                "dmScopeRetired": 0,
                **rest,
            }
            for agent, rest in (
                ("bob", {"beforeCount": 1, "afterCount": 0, "pruned": 1, "capped": 0}),
                ("main", {"beforeCount": 7, "afterCount": 3, "pruned": 1, "capped": 3}),
            )
        ]
        assert (plan["archived"], plan["deleted"], plan["reasons"]) == (4, 1, {"age": 2, "cap": 3})
        taken = {example["key"] for example in plan["examples"]}
        assert "agent:main:s5" not in taken and "agent:main:s4" in taken
        warned = await client.call("sessions.cleanup", {"activeKey": "agent:main:s5"})
        assert warned == plan | {"dryRun": False}, "in mode warn nothing happens"
        only = await client.call("sessions.cleanup", {"agent": "Bob", "dryRun": True})
        assert [part["agentId"] for part in only["stores"]] == ["bob"]
        done = await client.call("sessions.cleanup", {"enforce": True, "activeKey": "s5"})
        assert (done["mode"], done["applied"], done["stores"]) == ("enforce", True, plan["stores"])
        assert (done["archived"], done["deleted"]) == (4, 1)
        listed = await client.call("sessions.list", {})
        assert {row["key"] for row in listed["sessions"]} == {f"agent:main:s{n}" for n in (0, 1, 5)}
        again = await client.call("sessions.cleanup", {"enforce": True})
        assert (again["archived"], again["deleted"]) == (0, 0)


async def test_a_cleanup_that_makes_no_sense_says_why(client: WireClient) -> None:
    assert "exclude one another" in await refusal(
        client, "sessions.cleanup", {"agent": "main", "allAgents": True}
    )
    assert await client.call("sessions.cleanup", {"fixMissing": True, "allAgents": True})


# -- erase -----------------------------------------------------------------------------------------


@pytest.mark.spec("OWN-4")
async def test_an_erase_stops_the_run_and_the_next_turn_knows_nothing(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(OK, FakeReply(texts=("thinking …",), hang_after=2), OK)
    await client.call("sessions.subscribe")
    await client.say("talk", "my walrus is ill", "run-1")
    await client.call("chat.send", {"sessionKey": "talk", "message": "and now?", "idempotencyKey": "run-2"})
    await house.model.wait_for_requests(2, timeout_s=60)
    assert "walrus" in asked(house, 1)
    await client.call("chat.send", {"sessionKey": "talk", "message": "waits", "idempotencyKey": "run-3"})
    erased = await client.call("sessions.erase", {"key": "talk", "confirm": True})
    receipt = erased["receipt"]
    assert erased["ok"] and (receipt["sessions"], receipt["windows"]) == (1, 1)
    assert receipt["inputs"] == 3 and receipt["logEmptied"] and receipt["fileRewritten"]
    assert (await client.ended("run-2"))["state"] == "aborted"
    assert (await client.ended("run-3"))["state"] == "aborted"
    await house.model.wait_for_disconnects(1, timeout_s=60)
    gone = await client.wait_for(
        lambda event: event["event"] == "sessions.changed" and event["payload"].get("reason") == "delete"
    )
    assert "walrus" not in str(gone)
    assert (await client.call("chat.history", {"sessionKey": "talk"}))["messages"] == []
    await client.say("talk", "hello again", "run-4")
    assert "hello again" in asked(house, 2) and "walrus" not in asked(house, 2)
    assert gateway.services.workers.active_run(KEY) is None


async def test_a_person_is_erased_from_what_the_engine_remembers(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(OK, OK)
    await said_in_group(gateway, "telegram:ann-4711", "run-a", "ann has a walrus")
    await said_in_group(gateway, "telegram:bob", "run-b", "bob has a cat")
    await client.say(GROUP.session_key, "who has what?", "run-1")
    assert "walrus" in asked(house, 0)
    erased = await client.call(
        "sessions.erase", {"person": {"channel": "telegram", "peerId": "ann-4711"}, "confirm": True}
    )
    assert (erased["receipt"]["sharedSessions"], erased["receipt"]["tombstones"]) == (1, 1)
    await client.say(GROUP.session_key, "and now?", "run-2")
    told = asked(house, 1)
    assert "[erased]" in told and "bob has a cat" in told and "walrus" not in told
    shown = await client.call("chat.history", {"sessionKey": GROUP.session_key})
    assert "walrus" not in str(shown) and len(shown["messages"]) == 8, shown["messages"]


async def test_an_erase_is_asked_for_exactly(client: WireClient) -> None:
    person = {"channel": "telegram", "peerId": "1"}
    assert "confirm: true" in await refusal(client, "sessions.erase", {"key": "talk", "confirm": False})
    for params in ({"confirm": True}, {"confirm": True, "key": "talk", "person": person}):
        assert "exactly one" in await refusal(client, "sessions.erase", params)
    assert "not found" in await refusal(client, "sessions.erase", {"key": "agent:gone:x", "confirm": True})
    assert "peerId" in await refusal(
        client, "sessions.erase", {"confirm": True, "person": {"channel": "telegram"}}
    )


# -- export ----------------------------------------------------------------------------------------


@pytest.mark.spec("CLI-11", "DB-4")
async def test_an_export_comes_in_pages_that_are_the_exact_transcript(
    gateway: Gateway, client: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = gateway.services.store
    await turn(store, "run-1", to=seed("talk"))
    drafts = tuple(
        EntryDraft("message", b'{"role":"user","content":"%d"}' % number, "user") for number in range(5000)
    )
    await store.append(KEY, drafts, now_ms=1)
    export = Export(gateway.services.upkeep._database)
    window = await export.window_of(KEY)
    assert window is not None
    cwd = str(gateway.services.settings().agent("main").workspace)
    whole = b"".join([piece async for piece in export.lines(window, cwd=cwd)])
    data, cursor, pages = b"", None, 0
    while True:
        params: Json = {"key": "talk"} | ({"cursor": cursor} if cursor else {})
        page = await client.call("sessions.export", params)
        data, cursor, pages = data + base64.b64decode(page["data"]), page["cursor"], pages + 1
        assert (page["key"], page["sessionId"], page["agentId"]) == (KEY, window.session_id, "main")
        if pages == 1:
            await store.reset_session(KEY, "new", session_id="fresh", now_ms=2)
        if cursor is None:
            break
    assert data == whole and pages > 1 and page["seq"] == page["lastSeq"] == 5002
    assert len(whole) > rendering.PAGE_BYTES
    assert "no session" in await refusal(client, "sessions.export", {"key": "nothing-there"})
    assert "begin again" in await refusal(client, "sessions.export", {"key": "talk", "cursor": "x"})


# -- backup ----------------------------------------------------------------------------------------


@pytest.mark.spec("DB-20")
async def test_a_backup_of_a_running_gateway_has_all_that_was_acknowledged(
    house: House, gateway: Gateway, client: WireClient, tmp_path: Path
) -> None:
    house.model.script(OK)
    await client.say("talk", "keep this", "run-1")
    made = await client.call("backup.create", {"output": str(tmp_path / "b1")})
    assert made["ok"] and made["backup"] == str(tmp_path / "b1")
    manifest = await asyncio.to_thread(verify_backup, tmp_path / "b1")
    assert manifest.last_admission == 1 and manifest.sha256 == made["manifest"]["sha256"]
    assert "not empty" in await refusal(client, "backup.create", {"output": str(tmp_path / "b1")})
    assert "absolute" in await refusal(client, "backup.create", {"output": "b2"})
    await asyncio.to_thread((tmp_path / "file").write_text, "x")
    assert "cannot write the backup" in await refusal(
        client, "backup.create", {"output": str(tmp_path / "file" / "b")}
    )
    left = await asyncio.to_thread(lambda: sorted(path.name for path in tmp_path.iterdir()))
    assert left == ["b1", "file", "state"]


@pytest.mark.spec("DB-20")
async def test_on_postgresql_a_backup_names_the_tool_for_it(house: House, tmp_path: Path) -> None:
    house.config["store"] = {"url": shared_server().wiped()}
    house.model.script(OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say("talk", "my walrus", "run-1")
        assert "pg_dump" in await refusal(client, "backup.create", {"output": str(tmp_path / "b")})
        page = await client.call("sessions.export", {"key": "talk"})
        assert b"my walrus" in base64.b64decode(page["data"]) and page["cursor"] is None
        assert (await client.call("sessions.cleanup", {}))["usedBytes"] is None
        erased = await client.call("sessions.erase", {"key": "talk", "confirm": True})
        assert erased["receipt"]["entries"] >= 2 and not erased["receipt"]["fileRewritten"]


@pytest.mark.spec("RPC-3")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("sessions.cleanup", {"dryRun": True}),
        ("sessions.erase", {"key": "talk", "confirm": True}),
        ("sessions.export", {"key": "talk"}),
        ("backup.create", {"output": "/nowhere"}),
    ],
)
async def test_only_the_owner_looks_after_the_store(gateway: Gateway, method: str, params: Json) -> None:
    async with client_of(gateway, scopes=("operator.read", "operator.write")) as client:
        with pytest.raises(RefusedError) as refused:
            await client.call(method, params)
    assert refused.value.error["details"]["missingScope"] == "operator.admin"
