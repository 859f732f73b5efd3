"""`openclaw.Gateway`: a gateway inside a program, and its sessions from Python."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import openclaw
from openclaw.api.failures import GatewayGone, ToolFailed, TurnFailed
from openclaw.errors import ConfigInvalid, Forbidden, InvalidRequest, StoreLocked
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import TOKEN, House


def embedded(house: House) -> openclaw.Gateway:
    return openclaw.Gateway(house.config, env=house.env)


@pytest.fixture
async def gw(house: House) -> AsyncIterator[openclaw.Gateway]:
    async with embedded(house) as running:
        yield running


# -- sessions ----------------------------------------------------------------------------------


@pytest.mark.spec("LIST-1", "HIST-1", "STAT-1", "AGL-1")
async def test_look_at_a_session_that_was_talked_to(house: House, gw: openclaw.Gateway) -> None:
    house.model.script(FakeReply(texts=("It is ", "sunny.")))
    reply = await gw.chat("main", "How is the weather in Lisbon?")
    assert (reply.text, reply.session_key) == ("It is sunny.", "agent:main:main")
    (row,) = await gw.sessions.list(titles=True, previews=True, messages=2)
    assert (row.key, row.agent_id, row.kind, row.model) == ("main", "main", "main", "one")
    assert (row.derived_title, row.last_message_preview) == ("How is the weather in Lisbon?", "It is sunny.")
    assert [message["role"] for message in row.messages] == ["user", "assistant"]
    history = await gw.sessions.history("main")
    assert history.texts == (("user", "How is the weather in Lisbon?"), ("assistant", "It is sunny."))
    assert (history.session_key, history.next_offset, history.truncated) == ("main", None, False)
    latest = await gw.sessions.history(row.session_id, limit=1)
    assert latest.texts == (("assistant", "It is sunny."),)
    assert latest.next_offset == 1
    card = await gw.sessions.status()
    assert (card.session_key, card.model, card.model_provider) == ("main", "one", "fake")
    assert "Session: main" in card.text
    assert [(agent.id, agent.model) for agent in await gw.sessions.agents()] == [("main", "fake/one")]


@pytest.mark.spec("SRCH-1", "HIST-14")
async def test_search_and_read_around_a_hit(house: House, gw: openclaw.Gateway) -> None:
    house.model.script(FakeReply(texts=("Noted.",)), FakeReply(texts=("Yes.",)))
    await gw.chat("main", "Remember that the key is under the quince tree")
    await gw.chat("main", "Are you there?")
    (hit,) = await gw.sessions.search("quince key")
    assert (hit.session_key, hit.role) == ("main", "user")
    assert "quince tree" in hit.snippet
    around = await gw.sessions.history(hit.session_id, message_id=hit.message_id)
    assert ("user", "Remember that the key is under the quince tree") in around.texts
    assert await gw.sessions.search("persimmon") == ()


@pytest.mark.spec("VIS-1", "VIS-4", "TOOL-7")
async def test_a_session_acts_within_its_visibility(house: House, gw: openclaw.Gateway) -> None:
    house.model.script(FakeReply(texts=("secret",)))
    await gw.chat("agent:main:diary", "dear diary")
    desk = gw.acting_as("agent:main:desk")
    assert desk.key == "agent:main:desk"
    assert [row.key for row in await desk.list()] == ["agent:main:desk"]
    with pytest.raises(Forbidden, match=r"tools\.sessions\.visibility"):
        await desk.history("agent:main:diary")
    diary = gw.acting_as("agent:main:diary")
    assert (await diary.history("current")).texts[0] == ("user", "dear diary")


@pytest.mark.spec("VIS-1")
async def test_the_configuration_widens_what_is_seen(house: House) -> None:
    house.config["tools"] = {"sessions": {"visibility": "agent"}}
    house.model.script(FakeReply(texts=("hi",)))
    async with embedded(house) as gw:
        await gw.chat("agent:main:diary", "dear diary")
        assert {row.key for row in await gw.sessions.list()} == {"main", "agent:main:diary"}
        assert [row.key for row in await gw.sessions.list(search="diary")] == ["agent:main:diary"]
        assert [row.key for row in await gw.sessions.list(kinds=("main",))] == ["main"]
        assert len(await gw.sessions.list(limit=1)) == 1


@pytest.mark.spec("TOOL-7")
async def test_what_a_tool_cannot_do_is_raised(gw: openclaw.Gateway) -> None:
    with pytest.raises(ToolFailed, match="No session 'nowhere'") as failed:
        await gw.sessions.history("nowhere")
    assert (failed.value.code, failed.value.fields["tool"]) == ("TOOL_FAILED", "sessions_history")
    with pytest.raises(ToolFailed, match="there is no tool 'teleport' here"):
        await gw.sessions.use("teleport")
    with pytest.raises(InvalidRequest, match="unknown agent id"):
        await gw.acting_as("agent:eve:main").list()
    assert json.loads((await gw.sessions.use("agents_list")).text)["requester"] == "main"


@pytest.mark.spec("SPAWN-2", "SPAWN-3", "SPAWN-4", "SUB-1", "VIS-1")
async def test_two_helpers_are_spawned_and_waited_for(house: House, gw: openclaw.Gateway) -> None:
    house.model.decide = lambda body: FakeReply(texts=(_task_of(body),))
    helpers = [await gw.sessions.spawn(f"look {way}", label=way) for way in ("north", "south")]
    ended = await asyncio.gather(*(gw.wait(helper.run_id, 60) for helper in helpers))
    assert [(one.status, one.text) for one in ended] == [("ok", "look north"), ("ok", "look south")]
    assert [helper.status for helper in helpers] == ["accepted"] * 2
    keys = {helper.child_session_key for helper in helpers}
    assert all(key.startswith("agent:main:subagent:") for key in keys)
    rows = {row.key: row for row in await gw.sessions.list()}
    assert set(rows) == {"main", *keys}
    assert {rows[key].spawned_by for key in keys} == {"main"}
    listed = await gw.sessions.subagents()
    assert (listed["status"], listed["total"]) == ("ok", 2)
    assert await gw.acting_as("agent:main:desk").list(search="subagent") == ()


def _task_of(body: dict[str, Any]) -> str:
    """What the last words of a request ask for."""
    said = json.dumps(body["messages"][-1])
    return next((f"look {way}" for way in ("north", "south") if f"look {way}" in said), "noted")


@pytest.mark.spec("A2A-1", "A2A-2", "A2A-3", "A2A-4", "A2A-5")
async def test_write_to_another_session(house: House) -> None:
    house.config["tools"] = {"sessions": {"visibility": "agent"}}
    house.config["session"] = {"agentToAgent": {"maxPingPongTurns": 0}}
    house.model.decide = lambda _body: FakeReply(texts=("seven",))
    async with embedded(house) as gw:
        await gw.call("sessions.create", {"key": "agent:main:kitchen", "label": "Kitchen"})
        answered = await gw.sessions.send("agent:main:kitchen", "how many?", timeout_s=60)
        assert (answered.status, answered.reply, answered.error) == ("ok", "seven", None)
        by_label = await gw.sessions.send(label="Kitchen", message="and now?", timeout_s=0)
        assert (by_label.status, by_label.reply) == ("accepted", None)
        assert (await gw.wait(by_label.run_id, 60)).status == "ok"
        assert by_label.run_id != answered.run_id
        with pytest.raises(ToolFailed, match="either sessionKey or label"):
            await gw.sessions.send(message="to whom?")
        roles = [role for role, _ in (await gw.sessions.history("agent:main:kitchen")).texts]
        assert roles[:2] == ["user", "assistant"]


# -- turns -------------------------------------------------------------------------------------


@pytest.mark.spec("RPC-15", "RPC-16", "RPC-17")
async def test_a_run_can_be_waited_for(house: House, gw: openclaw.Gateway) -> None:
    house.model.script(FakeReply(texts=("slowly",), hang_after=0))
    turn = asyncio.ensure_future(gw.chat("main", "take your time", run_id="slow-1"))
    await house.model.wait_for_requests(1, timeout_s=60)
    early = await gw.wait("slow-1", timeout_s=0.05)
    assert (early.status, early.text, early.ended_at) == ("timeout", "", None)
    house.model.release()
    assert (await turn).run_id == "slow-1"
    late = await gw.wait("slow-1")
    assert (late.status, late.text, late.error) == ("ok", "slowly", None)
    assert late.started_at is not None
    assert late.ended_at is not None
    assert late.started_at <= late.ended_at


@pytest.mark.spec("RPC-15")
async def test_the_same_run_id_is_the_same_message(house: House, gw: openclaw.Gateway) -> None:
    house.model.script(FakeReply(texts=("once",)))
    first = await gw.chat("main", "count", run_id="once-1")
    again = await gw.chat("main", "count", run_id="once-1")
    assert first == again
    assert len(house.model.requests) == 1
    with pytest.raises(InvalidRequest, match="idempotency key already used"):
        await gw.chat("main", "something else", run_id="once-1")


async def test_a_turn_that_fails_is_raised(house: House, gw: openclaw.Gateway) -> None:
    house.model.script(FakeReply(status=401, body={"error": {"message": "bad key"}}))
    with pytest.raises(TurnFailed, match="key") as failed:
        await gw.chat("main", "hello", run_id="bad-1")
    assert (failed.value.fields["run_id"], failed.value.fields["status"]) == ("bad-1", "error")
    house.model.script(FakeReply(texts=("back",)))
    assert (await gw.chat("main", "and now?")).text == "back"
    with pytest.raises(InvalidRequest, match="must not be empty"):
        await gw.chat("main", "  ")


@pytest.mark.spec("RPC-2")
async def test_text_that_cannot_be_kept_is_refused_or_mended(house: House, gw: openclaw.Gateway) -> None:
    house.model.script(FakeReply(texts=("fine",)))
    await gw.chat("main", "half \ud800 a pair")
    assert (await gw.sessions.history("main")).texts[0] == ("user", "half \ufffd a pair")
    for refused in (
        gw.chat("main", "a\0b"),
        gw.chat("x" * 10_000, "hello"),
        gw.acting_as("agent:main:\0").list(),
        gw.sessions.history("a\0b"),
        gw.sessions.use("sessions_list" * 100),
    ):
        with pytest.raises(InvalidRequest):
            await refused
    assert len(house.model.requests) == 1


async def test_many_turns_at_once_each_get_their_own_reply(house: House, gw: openclaw.Gateway) -> None:
    def echo(body: dict[str, object]) -> FakeReply:
        messages = body["messages"]
        assert isinstance(messages, list)
        return FakeReply(texts=(f"re: {messages[-1]['content'][-6:]}",))

    house.model.decide = echo
    names = [f"room{n:02d}" for n in range(12)]
    replies = await asyncio.gather(*(gw.chat(f"agent:main:{name}", name) for name in names))
    assert [reply.text for reply in replies] == [f"re: {name}" for name in names]


# -- events ------------------------------------------------------------------------------------


@pytest.mark.spec("RPC-14")
async def test_events_of_a_turn_come_in_order(house: House, gw: openclaw.Gateway) -> None:
    house.model.script(FakeReply(texts=("one ", "two")))
    async with gw.on("chat", "session.message") as events:
        await gw.chat("main", "count", run_id="events-1")
        seen = []
        async for event in events:
            assert event.payload["sessionKey"] == "agent:main:main"
            seen.append((event.name, event.payload.get("state") or event.payload["message"]["role"]))
            if seen[-1] == ("chat", "final"):
                break
    assert seen[-1] == ("chat", "final")
    assert seen.index(("session.message", "user")) < seen.index(("session.message", "assistant"))
    assert {name for name, _ in seen} == {"chat", "session.message"}


async def test_leaving_the_block_ends_the_iteration(gw: openclaw.Gateway) -> None:
    async with gw.on("chat") as events:
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
    with pytest.raises(StopAsyncIteration):
        await waiting
    assert [event async for event in events] == []


# -- life --------------------------------------------------------------------------------------


@pytest.mark.spec("OWN-1", "RPC-3")
async def test_it_is_a_whole_gateway_for_other_clients(house: House, gw: openclaw.Gateway) -> None:
    assert gw.url.startswith("ws://127.0.0.1:")
    async with WireClient(gw.url, TOKEN) as client:
        await client.call("sessions.create", {"key": "agent:main:shared", "label": "from outside"})
    listed = await gw.call("sessions.list", {"label": "from outside"})
    assert [row["key"] for row in listed["sessions"]] == ["agent:main:shared"]
    with pytest.raises(InvalidRequest, match=r"unknown method: sessions\.fly") as refused:
        await gw.call("sessions.fly")
    assert refused.value.fields["wire_code"] == "INVALID_REQUEST"
    async with openclaw.Gateway(
        house.config, env=house.env, state_dir=house.home / "second", scopes=("operator.read",)
    ) as reader:
        with pytest.raises(Forbidden, match=r"missing scope: operator\.write"):
            await reader.chat("main", "hello")


@pytest.mark.spec("OWN-6", "DB-15")
async def test_conversations_outlive_the_program(house: House) -> None:
    house.model.script(FakeReply(texts=("I will.",)))
    async with embedded(house) as gw:
        await gw.chat("main", "remember me")
        with pytest.raises(StoreLocked):
            await embedded(house).__aenter__()
    async with embedded(house) as again:
        assert (await again.sessions.history("main")).texts == (
            ("user", "remember me"),
            ("assistant", "I will."),
        )


async def test_closing_leaves_nothing_behind(house: House) -> None:
    before = asyncio.all_tasks()
    gw = embedded(house)
    house.model.script(FakeReply(texts=("never seen",), hang_after=0))
    async with gw:
        async with gw.on() as events:
            turn = asyncio.ensure_future(gw.chat("main", "hello"))
            await house.model.wait_for_requests(1, timeout_s=60)
        house.model.release()
        await turn
        assert events is not None
    assert asyncio.all_tasks() == before
    for use in (gw.call("health"), gw.wait("x"), gw.chat("main", "x")):
        with pytest.raises(GatewayGone, match="inside `async with`"):
            await use
    async with gw:
        assert (await gw.call("health"))["ok"] is True
    assert asyncio.all_tasks() == before


async def test_a_configuration_that_is_wrong_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="agents"):
        async with openclaw.Gateway({"agents": {"lisst": []}}, state_dir=tmp_path / "state"):
            pass
    with pytest.raises(ConfigInvalid, match="JSON values"):
        async with openclaw.Gateway({"agents": object()}, state_dir=tmp_path / "state"):
            pass
    assert not (tmp_path / "state").exists()
