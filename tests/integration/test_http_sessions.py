"""Tools, history and kill over HTTP, on a real gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest

from openclaw.app import Gateway
from openclaw.domain.toolpolicy import OWNER_TOOLS, SESSION_TOOLS
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House
from tests.integration.http_client import ADMIN, HttpClient

KEY = "agent:main:main"
Json = dict[str, Any]


@pytest.fixture
async def http(gateway: Gateway) -> AsyncIterator[HttpClient]:
    async with HttpClient(gateway) as client:
        yield client


async def speak(house: House, client: WireClient, *words: str, key: str = "main") -> None:
    house.model.script(*(FakeReply(texts=(f"re: {word}",)) for word in words))
    for word in words:
        await client.say(key, word, f"run-{key}-{word}")


# -- tools -------------------------------------------------------------------------------------


async def test_a_tool_is_called_as_a_session(house: House, http: HttpClient, client: WireClient) -> None:
    (house.home / "state" / "workspace").mkdir()
    (house.home / "state" / "workspace" / "note.txt").write_text("x")
    await speak(house, client, "hi")
    answer = await http.post("/tools/invoke", {"tool": "list", "args": {}, "sessionKey": "main"})
    assert answer.status == 200
    assert answer.json["ok"] is True
    assert "note.txt" in answer.json["result"]["content"][0]["text"]
    named = await http.post("/tools/invoke", {"name": "list"})
    assert named.json["ok"] is True


async def test_tools_of_sessions_are_closed_until_they_are_opened(
    house: House, http: HttpClient, client: WireClient
) -> None:
    await speak(house, client, "hi")
    for tool in SESSION_TOOLS:
        if tool not in house_tools(client, await client.call("tools.catalog", {})):
            continue
        answer = await http.post("/tools/invoke", {"tool": tool, "args": {}})
        assert answer.status == 403, tool
        assert answer.json["error"]["type"] == "forbidden"
        assert tool == "sessions_yield" or "gateway.tools.allow" in answer.json["error"]["message"]


def house_tools(_client: WireClient, catalog: Json) -> set[str]:
    return {tool["id"] for group in catalog["groups"] for tool in group["tools"]}


async def test_the_configuration_opens_and_closes_tools(house: House) -> None:
    house.config["gateway"]["tools"] = {"allow": ["sessions_list", "sessions_yield"], "deny": ["list"]}
    async with house.gateway() as gateway, HttpClient(gateway) as http:
        async with WireClient(f"ws://127.0.0.1:{gateway.port}", "test-token-0123456789abcdef") as client:
            await speak(house, client, "hi")
        opened = await http.post("/tools/invoke", {"tool": "sessions_list", "args": {}})
        assert opened.status == 200
        assert [row["key"] for row in opened.json["result"]["details"]["sessions"]] == ["main"]
        assert (await http.post("/tools/invoke", {"tool": "sessions_history"})).status == 403
        denied = await http.post("/tools/invoke", {"tool": "list"})
        assert "gateway.tools.deny" in denied.json["error"]["message"]
        assert (await http.post("/tools/invoke", {"tool": "sessions_yield"})).status == 403


async def test_a_script_is_nobodys_owner(house: House, http: HttpClient, client: WireClient) -> None:
    """Not even with the admin scope: the tools of owners are not for plain requests."""
    await speak(house, client, "hi")
    known = house_tools(client, await client.call("tools.catalog", {}))
    owners = [tool for tool in OWNER_TOOLS if tool in known]
    assert owners
    for tool in owners:
        for headers in ({}, ADMIN):
            body = {"tool": tool, "args": {"path": "x", "content": "y"}}
            answer = await http.post("/tools/invoke", body, headers=headers)
            assert (answer.status, answer.json["error"]["type"]) == (403, "forbidden"), tool


async def test_unknown_tools_and_sessions(house: House, http: HttpClient, client: WireClient) -> None:
    missing = await http.post("/tools/invoke", {"tool": "list", "sessionKey": "nowhere"})
    assert (missing.status, "No session found" in missing.json["error"]["message"]) == (400, True)
    await speak(house, client, "hi")
    unknown = await http.post("/tools/invoke", {"tool": "no_such_tool", "args": {}})
    assert unknown.status == 404
    assert unknown.json["ok"] is False
    assert unknown.json["error"]["type"] == "not_found"
    failing = await http.post("/tools/invoke", {"tool": "read", "args": {"path": "none.txt"}})
    assert (failing.status, failing.json["error"]["type"]) == (400, "tool_error")


@pytest.mark.spec("TOOL-3")
async def test_a_tool_that_policy_takes_away_is_not_there(house: House) -> None:
    house.config["tools"] = {"deny": ["list"]}
    async with house.gateway() as gateway, HttpClient(gateway) as http:
        async with WireClient(f"ws://127.0.0.1:{gateway.port}", "test-token-0123456789abcdef") as client:
            await speak(house, client, "hi")
        assert (await http.post("/tools/invoke", {"tool": "list"})).status == 404


# -- history -----------------------------------------------------------------------------------


def texts(items: list[Json]) -> list[str]:
    said = []
    for item in items:
        content = item["content"]
        said.append(content if isinstance(content, str) else content[0]["text"])
    return said


@pytest.mark.spec("RPC-11")
async def test_history_is_the_display_form_page_by_page(
    house: House, http: HttpClient, client: WireClient
) -> None:
    await speak(house, client, "one", "two", "three")
    whole = (await http.get(f"/sessions/{quote(KEY, safe='')}/history")).json
    assert whole["sessionKey"] == KEY
    assert whole["hasMore"] is False
    assert "nextCursor" not in whole
    expected = ["one", "re: one", "two", "re: two", "three", "re: three"]
    assert [text.splitlines()[-1] for text in texts(whole["items"])] == expected
    found: list[Json] = []
    cursor = ""
    for _ in range(10):
        page = (await http.get(f"/sessions/main/history?limit=2{cursor}")).json
        assert len(page["items"]) <= 2
        found = page["items"] + found
        if not page["hasMore"]:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert found == whole["items"]


async def test_history_refuses_what_it_cannot_read(http: HttpClient) -> None:
    missing = await http.get("/sessions/nowhere/history")
    assert (missing.status, missing.json["error"]["type"]) == (404, "not_found")
    for query in ("limit=0", "limit=-1", "limit=x", "cursor=", "limit=" + "9" * 40, "cursor=%C2%B2"):
        assert (await http.get(f"/sessions/main/history?{query}")).status == 400, query
    for key in ("agent:nobody:main", quote("a\0b", safe=""), quote("x" * 3000, safe=""), "%FF%FE"):
        answer = await http.get(f"/sessions/{key}/history")
        assert answer.status in (400, 404), key
        assert answer.json["ok"] is False


async def test_history_goes_on_as_a_stream(house: House, http: HttpClient, client: WireClient) -> None:
    await speak(house, client, "one")
    headers = {**http.headers, "Accept": "text/event-stream"}
    async with http.session.get("/sessions/main/history", headers=headers) as answer:
        assert answer.content_type == "text/event-stream"
        first = await next_event(answer)
        assert first[0] == "history"
        assert [text.splitlines()[-1] for text in texts(first[1]["items"])] == ["one", "re: one"]
        await speak(house, client, "elsewhere", key="other")
        await speak(house, client, "two")
        told = [await next_event(answer) for _ in range(2)]
        assert [name for name, _ in told] == ["message", "message"]
        assert [text.splitlines()[-1] for text in texts([body["message"] for _, body in told])] == [
            "two",
            "re: two",
        ]
        seqs = [body["messageSeq"] for _, body in told]
        assert seqs == sorted(seqs)
        assert {body["sessionKey"] for _, body in told} == {KEY}


async def next_event(answer: aiohttp.ClientResponse) -> tuple[str, Json]:
    name = ""
    async with asyncio.timeout(60):
        async for raw in answer.content:
            line = raw.decode().rstrip("\n")
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                return name, json.loads(line.removeprefix("data: "))
    raise AssertionError("the stream ended")


async def test_a_reader_that_is_too_slow_is_told_to_begin_anew(
    house: House, http: HttpClient, client: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openclaw.gateway.http.follow.MOST_WAITING", 0)
    await speak(house, client, "one")
    headers = {**http.headers, "Accept": "text/event-stream"}
    async with http.session.get("/sessions/main/history", headers=headers) as answer:
        assert (await next_event(answer))[0] == "history"
        await speak(house, client, "two")
        assert (await next_event(answer))[0] == "resync"
        assert await answer.content.read() == b"\n"


async def test_a_stream_ends_with_the_gateway(house: House, gateway: Gateway, http: HttpClient) -> None:
    async with WireClient(f"ws://127.0.0.1:{gateway.port}", "test-token-0123456789abcdef") as client:
        await speak(house, client, "one")
    headers = {**http.headers, "Accept": "text/event-stream"}
    async with http.session.get("/sessions/main/history", headers=headers) as answer:
        assert (await next_event(answer))[0] == "history"
        gateway._server.say_goodbye()
        async with asyncio.timeout(60):
            assert await answer.content.read() == b"\n"


# -- kill --------------------------------------------------------------------------------------


async def test_kill_stops_what_runs(house: House, http: HttpClient, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("never", " ends"), hang_after=2))
    await client.call("chat.send", {"sessionKey": "main", "message": "go", "idempotencyKey": "k1"})
    await house.model.wait_for_requests(1, 60)
    refused = await http.post("/sessions/main/kill")
    assert refused.status == 403
    killed = await http.post("/sessions/main/kill", headers=ADMIN)
    assert killed.json == {"ok": True, "sessionKey": KEY, "killed": True, "runIds": ["k1"]}
    assert (await client.ended("k1"))["state"] == "aborted"
    again = await http.post("/sessions/main/kill", headers=ADMIN)
    assert (again.json["killed"], again.json["runIds"]) == (False, [])


async def test_kill_reaches_the_helpers(house: House, http: HttpClient, client: WireClient) -> None:
    def decide(body: Json) -> FakeReply:
        last = json.dumps(body["messages"][-1])
        if "dig a hole" in last and "go" not in last:
            return FakeReply(texts=("digging", " on"), hang_after=2)
        if body["messages"][-1]["role"] == "tool":
            return FakeReply(texts=("it digs",))
        return FakeReply(calls=(FakeCall("sessions_spawn", ('{"task":"dig a hole"}',)),))

    house.model.decide = decide
    assert (await client.say("main", "go", "k1"))["state"] == "final"
    await house.model.wait_for_requests(3, 60)
    killed = (await http.post("/sessions/main/kill", headers=ADMIN)).json
    assert killed["killed"] is True
    assert len(killed["runIds"]) == 1
    await house.model.wait_for_disconnects(1, 60)
