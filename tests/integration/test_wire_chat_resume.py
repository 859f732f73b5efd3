"""Coming back after a break: a cursor brings what came since, each message once and none left out."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openclaw.app import Gateway
from openclaw.domain.transcript import AssistantMessage, TextBlock
from openclaw.engine.drafts import draft_message
from openclaw.engine.events import MessageStored, RunScope
from openclaw.gateway.handlers.history import read_cursor, write_cursor
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:proj"
OK = FakeReply(texts=("fine",))
Json = dict[str, Any]


async def append(gateway: Gateway, number: int) -> None:
    """One message, stored and told as a run would."""
    store = gateway.services.store
    message = AssistantMessage((TextBlock(f"m{number}"),), 1000 + number, provider="p", model="m")
    (entry,) = await store.append(KEY, (draft_message(message, f"r{number}"),), now_ms=1000 + number)
    row = await store.session(KEY)
    assert row is not None
    scope = RunScope(f"r{number}", KEY, "main", row.entry.session_id)
    gateway.services.hub.publish(MessageStored(scope, row, entry))


def text_of(message: Json) -> str:
    text: str = message["content"][0]["text"]
    return text


class Screen:
    """What a client would draw: it follows a session, is cut off, and comes back with its cursor."""

    def __init__(self) -> None:
        self.shown: dict[int, str] = {}
        self.cursor: str | None = None
        self.client: WireClient | None = None

    async def connect(self, gateway: Gateway, limit: int) -> None:
        self.client = await client_of(gateway).__aenter__()
        await self.client.call("sessions.messages.subscribe", {"key": "proj"})
        asked: Json = {"sessionKey": "proj", "limit": limit}
        if self.cursor is not None:
            delta = await self.client.call("chat.history", {**asked, "cursor": self.cursor})
            if delta["kind"] == "delta":
                self.take(delta["messages"])
                self.cursor = delta["deltaCursor"]
                return
            assert delta == {"kind": "reset"}
            self.shown = {}
        offset: int | None = 0
        while offset is not None:
            page = await self.client.call("chat.history", {**asked, "offset": offset})
            for message in page["messages"]:
                self.shown[message["__openclaw"]["seq"]] = text_of(message)
            if offset == 0:
                self.cursor = page.get("deltaCursor")
            offset = page.get("nextOffset")

    def take(self, payloads: list[Json]) -> None:
        for payload in payloads:
            assert (
                payload["sessionKey"] == KEY
                and payload["messageId"] == payload["message"]["__openclaw"]["id"]
            )
            self.shown[payload["messageSeq"]] = text_of(payload["message"])

    async def cut(self) -> None:
        """The connection goes; what had arrived by then was drawn."""
        if self.client is not None:
            self.take([e["payload"] for e in self.client.events if e["event"] == "session.message"])
            await self.client.__aexit__(None, None, None)
            self.client = None


STEPS = st.lists(st.sampled_from(["append", "append", "cut", "connect"]), min_size=1, max_size=24)


@pytest.mark.spec("RPC-11", "RPC-10")
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, limit=st.integers(3, 30))
def test_what_a_client_assembles_is_the_transcript(tmp_path: Path, steps: list[str], limit: int) -> None:
    home = tmp_path / str(len(list(tmp_path.iterdir())))
    home.mkdir()
    asyncio.run(_play(home, steps, limit))


async def _play(home: Path, steps: list[str], limit: int) -> None:
    screen, said = Screen(), 0
    async with FakeOpenAIServer() as model, House(home, model).gateway() as gateway:
        async with client_of(gateway) as maker:
            await maker.call("sessions.create", {"key": "proj"})
        for step in steps:
            if step == "append":
                await append(gateway, said)
                said += 1
            elif step == "connect" and screen.client is None:
                await screen.connect(gateway, limit)
            elif step == "cut":
                await screen.cut()
        await screen.cut()
        await screen.connect(gateway, limit)
        await screen.cut()
    assert [text for _, text in sorted(screen.shown.items())] == [f"m{number}" for number in range(said)]


@pytest.mark.spec("RPC-11")
async def test_a_delta_brings_only_what_came_since(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(OK, OK)
    await client.say("proj", "one", "run-1")
    cursor = (await client.call("chat.history", {"sessionKey": "proj"}))["deltaCursor"]
    nothing = await client.call("chat.history", {"sessionKey": "proj", "cursor": cursor})
    assert (nothing["kind"], nothing["messages"], nothing["deltaCursor"]) == ("delta", [], cursor)
    assert nothing["pendingInputs"] == {"items": [], "total": 0}
    await client.say("proj", "two", "run-2")
    delta = await client.call("chat.history", {"sessionKey": "proj", "cursor": cursor})
    assert [p["message"]["role"] for p in delta["messages"]] == ["user", "assistant"]
    assert [p["messageSeq"] for p in delta["messages"]] == sorted(p["messageSeq"] for p in delta["messages"])
    assert delta["messages"][0]["message"]["content"] == "two"
    assert delta["sessionInfo"]["key"] == delta["sessionKey"] == KEY
    after = await client.call("chat.history", {"sessionKey": "proj", "cursor": delta["deltaCursor"]})
    assert after["messages"] == []
    few = await client.call("chat.history", {"sessionKey": "proj", "cursor": cursor, "limit": 1})
    assert few == {"kind": "reset"}  # more came than the client wants at once: it reads anew


@pytest.mark.spec("RPC-11")
async def test_a_cursor_of_another_window_or_gateway_says_read_anew(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(OK)
    await client.say("proj", "one", "run-1")
    cursor = (await client.call("chat.history", {"sessionKey": "proj"}))["deltaCursor"]
    foreign = base64.urlsafe_b64encode(json.dumps({"agentId": "main", "lastSeq": 4}).encode()).decode()
    ahead = base64.urlsafe_b64encode(
        json.dumps({"s": json.loads(_plain(cursor))["s"], "q": 999, "v": 1}).encode()
    ).decode()
    for text in ("", "%%%", "AAAA", foreign, ahead, "é", cursor[:-3]):
        answer = await client.call("chat.history", {"sessionKey": "proj", "cursor": text})
        assert answer == {"kind": "reset"}, text
    await client.call("sessions.reset", {"key": "proj"})
    assert await client.call("chat.history", {"sessionKey": "proj", "cursor": cursor}) == {"kind": "reset"}
    await client.call("sessions.restore", {"key": "proj"})
    back = await client.call("chat.history", {"sessionKey": "proj", "cursor": cursor})
    assert (back["kind"], back["messages"]) == ("delta", [])


def _plain(cursor: str) -> str:
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()


@pytest.mark.spec("RPC-11")
async def test_cursors_are_read_as_they_were_written(gateway: Gateway, client: WireClient) -> None:
    await client.call("sessions.create", {"key": "proj"})
    row = await gateway.services.store.session(KEY)
    assert row is not None
    cursor = read_cursor(write_cursor(row))
    assert cursor is not None and (cursor.session_id, cursor.seq) == (row.entry.session_id, row.last_seq)
    newer = base64.urlsafe_b64encode(json.dumps({"s": "x", "q": 1, "v": 2}).encode()).decode()
    assert read_cursor(newer) is None


@pytest.mark.spec("RPC-11")
async def test_a_cursor_outlives_the_gateway_that_gave_it(house: House) -> None:
    house.model.script(OK, OK)
    async with house.gateway() as first, client_of(first) as client:
        await client.say("proj", "one", "run-1")
        cursor = (await client.call("chat.history", {"sessionKey": "proj"}))["deltaCursor"]
    async with house.gateway() as second, client_of(second) as client:
        await client.say("proj", "two", "run-2")
        delta = await client.call("chat.history", {"sessionKey": "proj", "cursor": cursor})
        assert delta["kind"] == "delta"
        assert [payload["message"]["role"] for payload in delta["messages"]] == ["user", "assistant"]
