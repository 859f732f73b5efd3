"""Chat commands as a person gives them: sent like a message, answered like one, never seen by a model."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:main"
OK = FakeReply(texts=("fine",), usage={"prompt_tokens": 900, "completion_tokens": 5, "total_tokens": 905})


async def command(client: WireClient, text: str, run_id: str) -> str:
    final = await client.say(KEY, text, run_id)
    assert final["state"] == "final", final
    answer: str = final["message"]["content"][0]["text"]
    return answer


@pytest.mark.spec("CMD-1", "CMD-2", "CMD-15", "QUE-9", "RPC-12")
async def test_status_is_answered_at_once_and_stands_in_the_history(house: House, client: WireClient) -> None:
    house.model.script(OK, OK)
    await client.say(KEY, "hello", "run-1")
    card = await command(client, "/status", "cmd-1")
    for line in ("fake/one", KEY, "900"):
        assert line in card
    history = await client.call("chat.history", {"sessionKey": KEY})
    shown = [
        (m["role"], m["content"] if m["role"] == "user" else m["content"][0]["text"])
        for m in history["messages"]
    ]
    assert shown == [("user", "hello"), ("assistant", "fine"), ("user", "/status"), ("assistant", card)]
    await client.say(KEY, "more", "run-2")
    assert "/status" not in str(house.model.requests[1].body)
    again = await client.call(
        "chat.send", {"sessionKey": KEY, "message": "/status", "idempotencyKey": "cmd-1"}
    )
    assert again["status"] == "ok"


@pytest.mark.spec("CMD-5", "QUE-7")
async def test_stop_says_how_many_and_nothing_runs_afterwards(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("slow",), hang_after=0))
    await client.call("chat.send", {"sessionKey": KEY, "message": "one", "idempotencyKey": "run-1"})
    await house.model.wait_for_requests(1)
    await client.call(
        "chat.send", {"sessionKey": KEY, "message": "two", "idempotencyKey": "run-2", "queueMode": "followup"}
    )
    assert await command(client, "STOP!", "cmd-1") == "Stopped the run. 1 waiting message will not run."
    assert (await client.ended("run-1"))["state"] == "aborted"
    await house.model.wait_for_disconnects(1)
    assert len(house.model.requests) == 1


@pytest.mark.spec("COMP-1", "COMP-9", "CMD-7")
async def test_compact_and_its_undo(house: House, client: WireClient) -> None:
    for number in range(10):
        house.model.script(FakeReply(texts=("reply " + "y" * 8000,)))
        await client.say(KEY, f"message {number} " + "x" * 8000, f"run-{number}")
    house.model.script(FakeReply(texts=("Goals: sheep. Identifiers: SHEEP-1.",)))
    told = await command(client, "/compact keep the sheep", "cmd-1")
    assert told.startswith("Compacted: ")
    assert "keep the sheep" in str(house.model.requests[10].body)
    house.model.script(OK, OK)
    await client.say(KEY, "after", "run-a")
    assert "SHEEP-1" in str(house.model.requests[11].body)
    assert "message 0 " not in str(house.model.requests[11].body)
    undone = await command(client, "/compact undo", "cmd-2")
    assert "undone" in undone or "no longer" in undone or "fit" in undone


async def test_an_automatic_reset_can_be_taken_back(house: House) -> None:
    clock = MovableClock()
    house.model.script(OK, OK, OK)
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        await client.say(KEY, "yesterday", "run-1")
        before = await _session(client)
        clock.move(25 * 3600)
        await client.say(KEY, "today", "run-2")
        assert (await _session(client))["sessionId"] != before["sessionId"]
        told = await command(client, "/undo reset", "cmd-1")
        after = await _session(client)
        assert after["sessionId"] == before["sessionId"], told
        await client.say(KEY, "and on", "run-3")
        said = [m["content"] for m in house.model.requests[2].body["messages"] if m["role"] == "user"]
        assert "yesterday" in said
        assert "today" not in said


async def _session(client: WireClient) -> dict[str, Any]:
    row: dict[str, Any] = (await client.call("sessions.describe", {"key": KEY}))["session"]
    return row


@pytest.mark.spec("CMD-16")
async def test_a_side_question_leaves_no_trace_in_the_conversation(house: House, client: WireClient) -> None:
    house.model.script(OK, FakeReply(texts=("forty-two",)), OK)
    await client.say(KEY, "hello", "run-1")
    assert await command(client, "/btw what was that number?", "cmd-1") == "forty-two"
    aside = house.model.requests[1].body
    assert "hello" in str(aside["messages"])
    assert "tools" not in aside
    await client.say(KEY, "go on", "run-2")
    assert "number" not in str(house.model.requests[2].body["messages"])
    history = await client.call("chat.history", {"sessionKey": KEY})
    assert "forty-two" not in str(history["messages"])


@pytest.mark.spec("CMD-10")
async def test_directives_alone_persist_and_inside_text_hold_for_one_message(
    house: House, client: WireClient
) -> None:
    house.model.script(OK, OK, OK)
    assert "two" in await command(client, "/model fake/two", "cmd-1")
    await client.say(KEY, "hello", "run-1")
    await client.say(KEY, "/model fake/one just this once", "run-2")
    await client.say(KEY, "again", "run-3")
    assert [request.body["model"] for request in house.model.requests] == ["two", "one", "two"]
    assert house.model.requests[1].body["messages"][-1]["content"] == "just this once"


@pytest.mark.spec("CMD-3", "CMD-4", "LOOP-2")
async def test_context_shows_the_files_that_the_prompt_holds(house: House, client: WireClient) -> None:
    workspace = house.home / "state" / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "AGENTS.md").write_text("Always answer in verse. " * 10)
    (workspace / "SOUL.md").write_text("s" * 20_000)
    house.model.script(OK)
    await client.say(KEY, "hello", "run-1")
    system = house.model.requests[0].body["messages"][0]["content"]
    assert "Always answer in verse." in system
    listed = await command(client, "/context list", "cmd-1")
    assert "AGENTS.md" in listed and "OK" in listed
    assert "SOUL.md" in listed and "TRUNCATED" in listed
    assert "MISSING" in listed


async def test_an_unknown_slash_word_is_an_ordinary_message(house: House, client: WireClient) -> None:
    house.model.script(OK)
    assert (await client.say(KEY, "/unheard of", "run-1"))["state"] == "final"
    assert house.model.requests[0].body["messages"][-1]["content"] == "/unheard of"
