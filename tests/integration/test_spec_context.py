"""Settings and surfaces of a context that is kept small: pruning, compaction, notes, and who hears of it."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of
from tests.integration.test_engine_context import OVERFLOW, SUMMARY, answer, asked, entry, talk, words

KEY = "agent:main:main"


def defaults(house: House) -> dict[str, Any]:
    chosen: dict[str, Any] = house.config["agents"]["defaults"]
    return chosen


async def told(client: WireClient, text: str, run_id: str) -> str:
    final = await client.say(KEY, text, run_id)
    said: str = final["message"]["content"][0]["text"]
    return said


# -- pruning ---------------------------------------------------------------------------------------


@pytest.mark.spec("PRUNE-2", "PRUNE-1")
@pytest.mark.parametrize(
    ("setting", "whole"),
    [
        ({}, False),
        ({"mode": "off"}, True),
        ({"tools": {"deny": ["EX*"]}}, True),
        ({"keepLastAssistants": 50}, True),
    ],
    ids=["as it is", "off", "another tool", "all are recent"],
)
async def test_the_settings_of_pruning_hold_in_a_turn(
    house: House, setting: dict[str, Any], whole: bool
) -> None:
    defaults(house)["contextPruning"] = setting
    command = ('{"command": "head -c 20000 /dev/zero | tr \'\\\\0\' a"}',)
    async with house.gateway() as gateway, client_of(gateway) as client:
        for number in range(5):
            call = FakeCall("exec", command, f"call_{number}")
            house.model.script(FakeReply(calls=(call,)), answer("seen"))
            await client.say(KEY, f"look {number}", f"run-{number}")
        results = [m["content"] for m in asked(house, -1) if m["role"] == "tool"]
    assert len(results) == 5
    assert len(results[-1]) > 15_000, "the newest results are never pruned"
    assert (len(results[0]) > 15_000) is whole


@pytest.mark.spec("TRX-1", "TRX-2", "PRUNE-1", "COMP-3")
async def test_whatever_leaves_the_context_stays_in_the_transcript_byte_for_byte(
    house: House, client: WireClient
) -> None:
    command = ('{"command": "head -c 20000 /dev/zero | tr \'\\\\0\' a"}',)
    for number in range(6):
        call = FakeCall("exec", command, f"call_{number}")
        house.model.script(FakeReply(calls=(call,)), answer("seen " + "y" * 4000))
        await client.say(KEY, f"look {number} " + "x" * 4000, f"run-{number}")
    first = await exported(client)
    house.model.script(answer("pruned", tokens=100))
    await client.say(KEY, "and now", "run-6")
    assert min(len(m["content"]) for m in asked(house, -1) if m["role"] == "tool") < 5000
    house.model.script(FakeReply(texts=(SUMMARY,)))
    assert (await told(client, "/compact", "cmd-1")).startswith("Compacted: ")
    await client.call("sessions.list", {"includeDerivedTitles": True, "includeLastMessage": True})
    second = await exported(client)
    assert len(first) > 6 * 20_000
    assert second.startswith(first) and len(second) > len(first)
    kinds = [json.loads(line)["type"] for line in second.splitlines()]
    assert (kinds[0], kinds.count("compaction")) == ("session", 1)


async def exported(client: WireClient) -> bytes:
    """The exact transcript as JSON Lines."""
    data, cursor = b"", None
    while True:
        params = {"key": KEY} | ({"cursor": cursor} if cursor else {})
        page = await client.call("sessions.export", params)
        data, cursor = data + base64.b64decode(page["data"]), page["cursor"]
        if cursor is None:
            return data


# -- compaction ------------------------------------------------------------------------------------


@pytest.mark.spec("COMP-9", "COMP-1", "COMP-11")
async def test_compact_tells_before_and_after_or_why_not(house: House, client: WireClient) -> None:
    await talk(house, client, 1, size=10)
    assert "too short" in await told(client, "/compact", "cmd-1")
    assert "compactions: 0" in await told(client, "/status", "cmd-2")
    await talk_on(house, client, 10)
    house.model.script(FakeReply(texts=(SUMMARY,)))
    text = await told(client, "/compact", "cmd-3")
    found = re.fullmatch(r"Compacted: (\d+) → (\d+) tokens \((\d+) % of the 32000 that fit\)\..*", text)
    assert found is not None, text
    before, after, share = (int(number) for number in found.groups())
    assert after < before and share == round(100 * after / 32_000)
    row = await entry(client)
    assert (row["compactionCount"], row["totalTokens"]) == (1, after)
    assert "compactions: 1" in await told(client, "/status", "cmd-4")


async def talk_on(house: House, client: WireClient, turns: int) -> None:
    for number in range(turns):
        house.model.script(answer(f"reply {number} " + "y" * 8000))
        await client.say(KEY, f"message {number} " + "x" * 8000, f"more-{number}")


@pytest.mark.spec("COMP-9")
async def test_compact_stops_the_turn_in_progress_first(house: House, client: WireClient) -> None:
    await talk(house, client, 10)
    house.model.script(FakeReply(texts=("slow",), hang_after=0), FakeReply(texts=(SUMMARY,)), answer("after"))
    await client.call("chat.send", {"sessionKey": KEY, "message": "work", "idempotencyKey": "run-1"})
    await house.model.wait_for_requests(11, 60)
    assert (await told(client, "/compact", "cmd-1")).startswith("Compacted: ")
    ended = await client.ended("run-1")
    assert (ended["state"], ended["stopReason"]) == ("aborted", "compact")
    assert (await client.say(KEY, "go on", "run-2"))["state"] == "final"


@pytest.mark.spec("COMP-14", "COMP-3")
async def test_a_compaction_keeps_the_session_and_leaves_no_handle_in_its_row(
    house: House, client: WireClient
) -> None:
    await talk(house, client, 8)
    before = await entry(client)
    house.model.script(OVERFLOW, answer(SUMMARY), answer("done"))
    await client.say(KEY, "the question", "run-1")
    after = await entry(client)
    assert (after["compactionCount"], after["sessionId"]) == (1, before["sessionId"])
    shown = json.dumps(after).lower()
    for handle in ("sessionfile", ".jsonl", "successor", "transcriptpath", "transcriptlocator"):
        assert handle not in shown
    kept = [name for name in after if "compaction" in name.lower()]
    assert set(kept) <= {"compactionCount", "memoryFlushCompactionCount", "compactionCheckpointCount"}


@pytest.mark.spec("COMP-5")
async def test_another_model_may_write_the_summary_and_less_may_be_kept(house: House) -> None:
    defaults(house)["compaction"] = {"model": "fake/two", "keepRecentTokens": 100}
    async with house.gateway() as gateway, client_of(gateway) as client:
        await talk(house, client, 8)
        house.model.script(OVERFLOW, answer(SUMMARY), answer("done"))
        await client.say(KEY, "the question", "run-1")
    models = [request.body["model"] for request in house.model.requests[8:]]
    assert models == ["one", "two", "one"]
    retried = words(house, -1)
    assert "the question" in retried and "SHEEP-4711" in retried
    assert "message 7 " not in retried


@pytest.mark.spec("LOOP-1")
async def test_clients_hear_of_a_compaction(house: House, client: WireClient) -> None:
    await client.call("sessions.subscribe")
    await talk(house, client, 8)
    house.model.script(OVERFLOW, answer(SUMMARY), answer("done"))
    await client.say(KEY, "the question", "run-1")
    changes = [e["payload"] for e in client.events if e["event"] == "sessions.changed"]
    assert [one["sessionKey"] for one in changes if one.get("reason") == "compact"] == [KEY]
    phases = [
        event["payload"]["phase"]
        for event in client.of_run("run-1")
        if event["event"] == "chat" and event["payload"]["state"] == "status"
    ]
    assert phases.count("compacting") == 1


# -- notes before a compaction ---------------------------------------------------------------------


@pytest.mark.spec("FLUSH-7", "FLUSH-4")
async def test_a_flush_that_fails_costs_nobody_a_turn(house: House, client: WireClient) -> None:
    await talk(house, client, 2, size=100)
    house.model.script(
        answer("near the edge", tokens=21_000),
        FakeReply(status=401, body={"error": {"message": "no key"}}),
        answer("after", tokens=21_100),
        answer("and on", tokens=21_200),
    )
    assert (await client.say(KEY, "go on", "run-1"))["state"] == "final"
    await house.model.wait_for_requests(4, timeout_s=60)
    final = await client.say(KEY, "next", "run-2")
    assert (final["state"], final["message"]["content"][0]["text"]) == ("final", "after")
    assert (await client.say(KEY, "more", "run-3"))["state"] == "final"
    assert len(house.model.requests) == 6, "one flush in one cycle, also when it failed"
    assert (await entry(client))["memoryFlushCompactionCount"] == 0
    failures = [e for e in client.events if e["event"] == "chat" and e["payload"]["state"] == "error"]
    assert failures == []
    history = await client.call("chat.history", {"sessionKey": KEY, "limit": 100})
    assert "no key" not in str(history["messages"])


@pytest.mark.spec("FLUSH-5")
@pytest.mark.parametrize("enabled", [True, False])
async def test_the_settings_of_the_flush_hold_in_a_turn(house: House, enabled: bool) -> None:
    flush = {"enabled": enabled, "softThresholdTokens": 9000, "prompt": "Write it down.", "model": "fake/two"}
    defaults(house)["compaction"] = {"memoryFlush": flush}
    async with house.gateway() as gateway, client_of(gateway) as client:
        house.model.script(answer("half", tokens=15_500), answer("NO_REPLY", tokens=15_600), answer("after"))
        await client.say(KEY, "go on", "run-1")
        if enabled:
            await house.model.wait_for_requests(2, timeout_s=60)
        await client.say(KEY, "next", "run-2")
    models = [request.body["model"] for request in house.model.requests]
    assert models == (["one", "two", "one"] if enabled else ["one", "one"])
    if enabled:
        last = asked(house, 1)[-1]["content"]
        assert last.startswith("Write it down.") and "NO_REPLY" in last
