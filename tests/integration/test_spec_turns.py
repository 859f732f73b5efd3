"""What a turn keeps and what it shows: prompts that do not move, calls that stay paired, origins of words."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.store.records import StoredEntry
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:proj"
OK = FakeReply(texts=("fine",))
HANGING = FakeReply(texts=("slow",), hang_after=0)


def asked(house: House, number: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = house.model.requests[number].body["messages"]
    return messages


async def entries(gateway: Gateway) -> tuple[StoredEntry, ...]:
    row = await gateway.services.store.session(KEY)
    assert row is not None
    return await gateway.services.store.context(row.window_no)


async def describe(client: WireClient) -> dict[str, Any]:
    row: dict[str, Any] = (await client.call("sessions.describe", {"key": KEY}))["session"]
    return row


async def until(path: Path) -> None:
    """Wait until a tool has made a file."""
    await asyncio.to_thread(_wait_for_file, path)


def _wait_for_file(path: Path) -> None:
    give_up = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < give_up, path
        time.sleep(0.02)


# -- the prompt ------------------------------------------------------------------------------------


@pytest.mark.spec("LOOP-2")
async def test_the_prompt_stays_the_same_bytes_until_a_file_in_it_changes(house: House) -> None:
    workspace = house.home / "state" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "AGENTS.md").write_text("Answer in verse.")
    (workspace / "SOUL.md").write_text("Be kind.")
    clock = MovableClock()
    house.model.script(OK, OK, FakeReply(calls=(FakeCall("session_status"),)), OK, OK)
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        await client.say(KEY, "one", "run-1")
        clock.move(2)
        await client.say(KEY, "two", "run-2")
        (workspace / "SOUL.md").write_text("Be brief.")
        clock.move(2)
        await client.say(KEY, "three", "run-3")
        await client.say(KEY, "four", "run-4")
        kept = await entries(gateway)
    prompts = [asked(house, number)[0]["content"] for number in range(5)]
    assert prompts[0].index("Answer in verse.") < prompts[0].index("Be kind.")
    assert prompts[1] == prompts[0]
    assert "Be brief." in prompts[2] and "Be kind." not in prompts[2]
    assert prompts[2] == prompts[3] == prompts[4]
    assert asked(house, 4)[1 : len(asked(house, 3))] == asked(house, 3)[1:]
    marks = [(json.loads(entry.body), entry.run_id) for entry in kept if entry.type == "custom"]
    assert [(mark["customType"], mark["data"], run_id) for mark, run_id in marks] == [
        ("context_boundary", {"kind": "prompt"}, "run-3")
    ]


@pytest.mark.spec("TRX-14", "LOOP-2")
async def test_what_one_turn_adds_for_the_model_is_hidden_and_replayed_unchanged(
    house: House, client: WireClient
) -> None:
    house.model.script(OK, OK)
    extra = {
        "sessionKey": KEY,
        "message": "hi",
        "idempotencyKey": "run-1",
        "extraSystemPrompt": "Be a pirate.",
    }
    await client.call("agent", extra)
    await client.ended("run-1")
    await client.say(KEY, "more", "run-2")
    first, second = asked(house, 0), asked(house, 1)
    assert "Be a pirate." not in first[0]["content"]
    assert "Be a pirate." in first[1]["content"] and first[2]["content"] == "hi"
    assert second[: len(first)] == first
    assert str(second).count("Be a pirate.") == 1
    history = await client.call("chat.history", {"sessionKey": KEY})
    assert [m["content"] for m in history["messages"] if m["role"] == "user"] == ["hi", "more"]
    assert "pirate" not in str(history)


# -- words of other sessions -----------------------------------------------------------------------


@pytest.mark.spec("TRX-8", "TRX-9")
async def test_words_of_another_session_are_kept_as_such_and_marked_for_the_model(
    house: House, client: WireClient
) -> None:
    house.model.script(OK, OK, OK)
    provenance = {
        "kind": "inter_session",
        "sourceSessionKey": "agent:bob:main",
        "sourceChannel": "telegram",
        "sourceTool": "sessions_send",
    }
    sent = {"sessionKey": KEY, "message": "do it", "idempotencyKey": "run-1", "inputProvenance": provenance}
    await client.say(KEY, "mine", "run-0")
    await client.call("agent", sent)
    await client.ended("run-1")
    await client.say(KEY, "more", "run-2")
    history = await client.call("chat.history", {"sessionKey": KEY})
    users = [message for message in history["messages"] if message["role"] == "user"]
    assert [message.get("provenance") for message in users] == [None, provenance, None]
    assert users[1]["content"] == "do it"
    marked = next(m["content"] for m in asked(house, 1) if "do it" in str(m["content"]))
    assert marked.startswith("[Inter-session message sourceSession=agent:bob:main")
    assert "isUser=false" in marked and marked.endswith("\ndo it")
    assert asked(house, 2)[: len(asked(house, 1))] == asked(house, 1)


# -- stopped runs ----------------------------------------------------------------------------------


@pytest.mark.spec("LOOP-4", "TRX-12")
async def test_calls_that_a_stop_left_open_get_a_result_each(house: House, client: WireClient) -> None:
    workspace = house.home / "state" / "workspace"
    calls = (
        FakeCall("exec", ('{"command": "touch began; sleep 300"}',), "call_1"),
        FakeCall("exec", ('{"command": "touch second"}',), "call_2"),
    )
    house.model.script(FakeReply(texts=("Working.",), calls=calls), OK)
    await client.call("chat.send", {"sessionKey": KEY, "message": "go", "idempotencyKey": "run-1"})
    await until(workspace / "began")
    await client.call("chat.abort", {"sessionKey": KEY})
    assert (await client.ended("run-1"))["state"] == "aborted"
    assert (await describe(client))["abortedLastRun"] is True
    assert (await client.say(KEY, "and now?", "run-2"))["state"] == "final"
    messages = asked(house, 1)
    results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    assert sorted(results) == ["call_1", "call_2"]
    assert all("stopped while it ran" in text for text in results.values())
    assert not (workspace / "second").exists()
    history = await client.call("chat.history", {"sessionKey": KEY})
    stored = [m for m in history["messages"] if m["role"] == "toolResult"]
    assert [(m["toolCallId"], m["isError"]) for m in stored] == [("call_1", True), ("call_2", True)]


@pytest.mark.spec("REST-2", "TRX-12")
async def test_a_call_that_a_restart_cut_off_is_told_to_the_model_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openclaw.app.gateway.DRAIN_S", 0.05)
    house.model.script(
        FakeReply(calls=(FakeCall("exec", ('{"command": "touch began; sleep 300"}',), "call_1"),)), OK
    )
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("chat.send", {"sessionKey": KEY, "message": "go", "idempotencyKey": "run-1"})
        await until(house.home / "state" / "workspace" / "began")
    async with house.gateway() as gateway, client_of(gateway) as client:
        waited = await client.call("agent.wait", {"runId": "run-1", "timeoutMs": 60_000})
        assert waited["status"] == "ok"
        row = await describe(client)
        assert (row["status"], row.get("abortedLastRun", False)) == ("done", False)
        history = await client.call("chat.history", {"sessionKey": KEY})
        roles = [message["role"] for message in history["messages"]]
        assert roles == ["user", "assistant", "toolResult", "assistant"]
    results = [m["content"] for m in asked(house, 1) if m["role"] == "tool"]
    assert len(house.model.requests) == 2
    assert len(results) == 1 and results[0].startswith("interrupted:")


# -- the model of a turn ---------------------------------------------------------------------------


@pytest.mark.spec("CMD-14")
async def test_a_model_chosen_during_a_run_is_kept_at_once_and_used_by_the_next_turn(
    house: House, client: WireClient
) -> None:
    house.model.script(FakeReply(calls=(FakeCall("session_status"),), hang_after=0), OK, OK)
    await client.call("chat.send", {"sessionKey": KEY, "message": "one", "idempotencyKey": "run-1"})
    await house.model.wait_for_requests(1, 60)
    await client.say(KEY, "/model fake/two", "cmd-1")
    row = await describe(client)
    assert (row["modelOverride"], row["modelOverrideSource"]) == ("two", "user")
    house.model.release()
    assert (await client.ended("run-1"))["state"] == "final"
    await client.say(KEY, "two", "run-2")
    assert [request.body["model"] for request in house.model.requests] == ["one", "one", "two"]


@pytest.mark.spec("LOOP-6")
async def test_a_failed_turn_keeps_the_counters_of_the_last_good_one(
    house: House, client: WireClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    usage = {"prompt_tokens": 700, "completion_tokens": 30, "total_tokens": 730}
    house.model.script(FakeReply(texts=("fine",), usage=usage), FakeReply(status=403, body={"error": {}}))
    await client.say(KEY, "one", "run-1")
    before = await describe(client)
    assert (await client.say(KEY, "two", "run-2"))["state"] == "error"
    after = await describe(client)
    names = ("inputTokens", "outputTokens", "totalTokens", "contextTokens", "model", "modelProvider")
    assert [after[name] for name in names] == [before[name] for name in names]
    assert before["inputTokens"] == 700


@pytest.mark.spec("CMD-9", "TOOL-4")
async def test_the_tools_of_a_session_are_those_that_its_model_is_offered(house: House) -> None:
    house.config["tools"] = {"deny": ["group:runtime", "write"]}
    house.model.script(OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(KEY, "hi", "run-1")
        final = await client.say(KEY, "/tools", "cmd-1")
    text = final["message"]["content"][0]["text"]
    offered = [tool["function"]["name"] for tool in house.model.requests[0].body["tools"]]
    assert text == f"Tools ({len(offered)}): {', '.join(offered)}"
    assert "read" in offered
    assert not {"exec", "write"} & set(offered)


@pytest.mark.spec("CMD-10")
async def test_the_nearest_level_of_thinking_reaches_the_model(house: House) -> None:
    house.config["models"]["providers"]["fake"]["models"][0]["reasoning"] = True
    house.config["agents"]["defaults"]["thinkingDefault"] = "low"
    house.model.script(*[OK] * 5)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(KEY, "by the agent's default", "run-1")
        await client.say(KEY, "/think high", "cmd-1")
        await client.say(KEY, "by the session", "run-2")
        await client.say(KEY, "/think medium by this message", "run-3")
        await client.say(KEY, "by the session again", "run-4")
        await client.say(KEY, "/think default", "cmd-2")
        await client.say(KEY, "and by the default", "run-5")
    efforts = [request.body.get("reasoning_effort") for request in house.model.requests]
    assert efforts == ["low", "high", "medium", "high", "low"]
    assert asked(house, 2)[-1]["content"] == "by this message"


@pytest.mark.spec("CMD-15")
async def test_a_command_is_answered_to_the_agent_method_too(house: House, client: WireClient) -> None:
    request = await client.post("agent", {"message": "/status", "idempotencyKey": "cmd-1"})
    assert (await client.answer(request))["status"] == "accepted"
    finished = await client.answer(request)
    assert finished["status"] == "ok"
    assert "Context: " in finished["result"]["payloads"][0]["text"]
    house.model.script(OK)
    inside = await client.post("agent", {"message": "tell me the /compact way", "idempotencyKey": "run-1"})
    await client.answer(inside)
    assert (await client.answer(inside))["result"]["payloads"][0]["text"] == "fine"
    assert asked(house, 0)[-1]["content"] == "tell me the /compact way"


@pytest.mark.spec("LOOP-5")
async def test_the_time_of_a_turn_comes_from_the_configuration(house: House) -> None:
    house.config["agents"]["defaults"]["timeoutSeconds"] = 1
    house.model.script(HANGING)
    async with house.gateway() as gateway, client_of(gateway) as client:
        ended = await client.say(KEY, "go", "run-1")
        assert (ended["state"], ended["errorKind"]) == ("error", "timeout")
        assert "timed out after 1" in ended["errorMessage"]
        row = await describe(client)
        assert (row["status"], row.get("abortedLastRun", False)) == ("timeout", False)
        house.model.decide = lambda _body: OK
        assert (await client.say(KEY, "and now?", "run-2", timeoutMs=60_000))["state"] == "final"
