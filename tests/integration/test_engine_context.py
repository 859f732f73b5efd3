"""The context stays healthy: pruned before a call, flushed to notes, compacted when it must be."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:main"
OVERFLOW = FakeReply(status=400, body={"error": {"code": "context_length_exceeded", "message": "too long"}})
SUMMARY = "Goals: count the sheep. Open asks: none. Identifier: SHEEP-4711."


def answer(text: str = "fine", tokens: int = 100) -> FakeReply:
    usage = {"prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5}
    return FakeReply(texts=(text,), usage=usage)


def asked(house: House, number: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = house.model.requests[number].body["messages"]
    return messages


def words(house: House, number: int) -> str:
    return json.dumps(asked(house, number))


async def talk(house: House, client: WireClient, turns: int, size: int = 8000) -> None:
    """Turns with long messages, so that there is something to compact."""
    for number in range(turns):
        house.model.script(answer(f"reply {number} " + "y" * size))
        await client.say(KEY, f"message {number} " + "x" * size, f"talk-{number}")


async def entry(client: WireClient) -> dict[str, Any]:
    row: dict[str, Any] = (await client.call("sessions.describe", {"key": KEY}))["session"]
    return row


@pytest.mark.spec("COMP-2", "COMP-4", "COMP-10", "COMP-3", "COMP-12")
async def test_a_context_that_does_not_fit_is_compacted_and_the_turn_goes_on(
    house: House, client: WireClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await talk(house, client, 8)
    before = len(house.model.requests)
    house.model.script(OVERFLOW, answer(SUMMARY), answer("done"), answer("more"))
    final = await client.say(KEY, "the question", "run-1")
    assert final["message"]["content"][0]["text"] == "done"
    retried = words(house, before + 2)
    assert "SHEEP-4711" in retried
    assert "the question" in retried
    assert "message 0 " not in retried
    assert len(retried) < len(words(house, before)) / 2
    assert (await entry(client))["compactionCount"] == 1
    assert "compaction start" in caplog.text
    assert "compaction complete" in caplog.text
    history = await client.call("chat.history", {"sessionKey": KEY, "limit": 100})
    assert history["messages"][0]["content"].startswith("message 0 ")
    await client.say(KEY, "and then", "run-2")
    assert asked(house, before + 3)[: len(asked(house, before + 2))] == asked(house, before + 2)


@pytest.mark.spec("COMP-10")
@pytest.mark.parametrize(
    "summariser",
    [
        FakeReply(texts=("",)),
        FakeReply(status=401, body={"error": {"message": "no"}}),
        FakeReply(texts=("z" * 200_000,)),
        FakeReply(calls=(FakeCall("exec", ('{"command": "touch owned"}',)),)),
    ],
    ids=["empty", "failing", "larger", "calling tools"],
)
async def test_a_bad_summariser_never_costs_the_turn(
    house: House, client: WireClient, summariser: FakeReply
) -> None:
    await talk(house, client, 8)
    house.model.script(OVERFLOW, answer("done"))
    house.model.decide = lambda body: None if body.get("tools") else summariser
    final = await client.say(KEY, "the question", "run-1")
    assert (final["state"], final["message"]["content"][0]["text"]) == ("final", "done")
    assert "the question" in words(house, -1)
    assert not list(house.home.rglob("owned"))


@pytest.mark.spec("COMP-10")
async def test_when_nothing_helps_the_person_is_told_what_to_do(house: House, client: WireClient) -> None:
    await talk(house, client, 8)
    before = (await entry(client))["sessionId"]
    house.model.decide = lambda body: OVERFLOW if body.get("tools") else answer(SUMMARY)
    failed = await client.say(KEY, "the question", "run-1")
    assert failed["state"] == "error"
    assert "/compact" in failed["errorMessage"]
    assert "/new" in failed["errorMessage"]
    assert (await entry(client))["sessionId"] == before


@pytest.mark.spec("FLUSH-1", "FLUSH-4", "FLUSH-5", "FLUSH-7", "COMP-2", "COMP-4")
async def test_notes_are_written_before_the_compaction_and_nobody_sees_it(
    house: House, client: WireClient
) -> None:
    await talk(house, client, 10)
    note = FakeCall("memory", ('{"action": "append", "text": "The sheep are counted."}',))
    house.model.script(
        answer("near the edge", tokens=25_000),
        FakeReply(calls=(note,)),
        answer("NO_REPLY", tokens=25_100),
        answer(SUMMARY),
        answer("after"),
    )
    await client.say(KEY, "go on", "run-1")
    await house.model.wait_for_requests(10 + 4, timeout_s=60)
    flush = asked(house, 11)
    assert "NO_REPLY" in flush[-1]["content"]
    assert "memory/" in words(house, 11)
    await _until(client, compactionCount=1)
    row = await entry(client)
    assert row["memoryFlushCompactionCount"] == 0
    written = list(house.home.rglob("memory/*.md"))
    assert ["The sheep are counted." in path.read_text() for path in written] == [True]
    history = await client.call("chat.history", {"sessionKey": KEY, "limit": 100})
    shown = json.dumps(history["messages"])
    assert "NO_REPLY" not in shown
    assert "sheep are counted" not in shown
    told = [event["payload"] for event in client.events if event["event"] == "chat"]
    assert {payload["runId"] for payload in told} <= {f"talk-{n}" for n in range(10)} | {"run-1"}
    final = await client.say(KEY, "next", "run-2")
    assert final["message"]["content"][0]["text"] == "after"
    assert "SHEEP-4711" in words(house, -1)


async def _until(client: WireClient, **fields: Any) -> None:
    async with asyncio.timeout(60):
        while True:
            row = await entry(client)
            if all(row.get(name) == value for name, value in fields.items()):
                return
            await asyncio.sleep(0.02)


@pytest.mark.spec("FLUSH-2")
async def test_without_a_writable_workspace_there_is_no_flush(house: House) -> None:
    (house.home / "occupied").write_text("a file where the workspace should be")
    house.config["agents"]["defaults"]["workspace"] = str(house.home / "occupied" / "workspace")
    async with house.gateway() as gateway, client_of(gateway) as client:
        await talk(house, client, 10)
        house.model.script(answer("near the edge", tokens=25_000), answer(SUMMARY), answer("after"))
        await client.say(KEY, "go on", "run-1")
        await _until(client, compactionCount=1)
        assert "memoryFlushCompactionCount" not in await entry(client)
        assert len(house.model.requests) == 10 + 2


@pytest.mark.spec("PRUNE-1", "PRUNE-3")
async def test_old_tool_results_leave_the_request_and_stay_in_the_transcript(
    house: House, client: WireClient
) -> None:
    big = FakeCall("exec", ('{"command": "head -c 60000 /dev/zero | tr \'\\\\0\' a"}',))
    house.model.script(FakeReply(calls=(big,)), answer("seen"))
    await client.say(KEY, "look", "run-0")
    for number in range(1, 6):
        house.model.script(FakeReply(calls=(FakeCall("exec", big.pieces, f"call_{number}"),)), answer("seen"))
        await client.say(KEY, f"look {number}", f"run-{number}")
    sizes = [
        max((len(m["content"]) for m in asked(house, n) if m["role"] == "tool"), default=0) for n in (1, 11)
    ]
    assert sizes[0] > 30_000
    first_result = next(m["content"] for m in asked(house, 11) if m["role"] == "tool")
    assert len(first_result) < 5000
    history = await client.call("chat.history", {"sessionKey": KEY, "limit": 100})
    stored = next(m for m in history["messages"] if m["role"] == "toolResult")
    assert len(stored["content"][0]["text"]) > 5000


async def test_a_stop_during_a_compaction_stops_it(house: House, client: WireClient) -> None:
    await talk(house, client, 8)
    before = len(house.model.requests)
    house.model.script(OVERFLOW, FakeReply(texts=("slow",), hang_after=0))
    await client.call("chat.send", {"sessionKey": KEY, "message": "q", "idempotencyKey": "run-1"})
    await house.model.wait_for_requests(before + 2)
    stopped = await client.call("chat.abort", {"sessionKey": KEY})
    assert stopped["runIds"] == ["run-1"]
    assert (await client.ended("run-1"))["state"] == "aborted"
    await house.model.wait_for_disconnects(1)
    assert "compactionCount" not in await entry(client)
    house.model.script(answer("fine"))
    assert (await client.say(KEY, "still there?", "run-2"))["state"] == "final"
