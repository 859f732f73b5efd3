"""sessions.compact in both modes, and what followers hear of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openclaw.app import Gateway
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:proj"
OK = FakeReply(texts=("fine",))
LONG = "lorem ipsum dolor sit amet " * 900
SUMMARY = "They spoke about lorem ipsum; the goal is to go on with it. " * 4
Json = dict[str, Any]


def is_there(path: str) -> bool:
    return Path(path).exists()


def read_private(path: str) -> str:
    """The words of a file that nobody else may read."""
    assert Path(path).stat().st_mode & 0o777 == 0o600
    return Path(path).read_text(encoding="utf-8")


def asked(house: House) -> str:
    return json.dumps(house.model.requests[-1].body["messages"])


def operations(client: WireClient) -> list[Json]:
    return [event["payload"] for event in client.events if event["event"] == "session.operation"]


@pytest.mark.spec("RPC-9", "COMP-9", "RPC-10")
async def test_a_summary_replaces_what_is_older_and_followers_hear_of_it(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(*[FakeReply(texts=(LONG,))] * 4, FakeReply(texts=(SUMMARY,)), OK)
    for number in range(4):
        await client.say("proj", f"question {number}", f"run-{number}")
    async with client_of(gateway) as follower, client_of(gateway) as stranger:
        await follower.call("sessions.messages.subscribe", {"key": "proj"})
        await client.call("sessions.subscribe")
        done = await client.call("sessions.compact", {"key": "proj"})
        assert (done["ok"], done["key"], done["compacted"]) == (True, KEY, True)
        assert done["result"]["tokensAfter"] < done["result"]["tokensBefore"]
        assert "lorem ipsum" in done["result"]["summary"]
        changed = await client.wait_for(
            lambda event: event["event"] == "sessions.changed" and event["payload"].get("reason") == "compact"
        )
        assert changed["payload"]["session"]["compactionCount"] == 1
        for listener in (follower, client):
            await listener.wait_for(
                lambda event: event["event"] == "session.operation" and event["payload"]["phase"] == "end"
            )
            start, end = operations(listener)
            assert (start["operation"], start["phase"], start["sessionKey"]) == ("compact", "start", KEY)
            assert (end["phase"], end["completed"]) == ("end", True)
            assert start["operationId"] == end["operationId"] and "completed" not in start
        await stranger.call("health")
        assert operations(stranger) == []
    await client.say("proj", "go on", "run-9")
    assert "question 0" not in asked(house) and "lorem ipsum; the goal" in asked(house)
    shown = await client.call("chat.history", {"sessionKey": "proj"})
    assert shown["messages"][0]["content"] == "question 0"  # people still see all of it


@pytest.mark.spec("RPC-9")
async def test_what_cannot_be_compacted_is_told_with_its_reason(client: WireClient) -> None:
    await client.call("sessions.create", {"key": "proj"})
    done = await client.call("sessions.compact", {"key": "proj"})
    assert done == {
        "ok": False, "key": KEY, "compacted": False,
        "reason": "The conversation is too short to be compacted.",
    }  # fmt: skip
    missing = await client.call("sessions.compact", {"key": "nobody"})
    assert (missing["ok"], missing["compacted"], missing["reason"]) == (False, False, "no session")
    with pytest.raises(RefusedError, match="session not found: agent:main:nobody"):
        await client.call("sessions.compact", {"key": "nobody", "maxLines": 3})
    with pytest.raises(RefusedError, match=r"invalid sessions\.compact params: at /maxLines: must be >= 1"):
        await client.call("sessions.compact", {"key": "proj", "maxLines": 0})


@pytest.mark.spec("RPC-9", "DB-17", "TRX-1")
async def test_max_lines_keeps_the_last_ones_after_archiving_all(house: House, client: WireClient) -> None:
    house.model.script(*[OK] * 6)
    await client.call("sessions.subscribe")
    for number in range(3):
        await client.say("proj", f"question {number}", f"run-{number}")
    done = await client.call("sessions.compact", {"key": "proj", "maxLines": 2})
    assert (done["ok"], done["compacted"], done["kept"]) == (True, True, 2)
    assert ".jsonl.bak." in done["archived"]
    archive = read_private(done["archived"])
    assert all(f"question {number}" in archive for number in range(3))
    await client.say("proj", "next", "run-4")
    assert "question 2" in asked(house) and "question 1" not in asked(house)
    shown = await client.call("chat.history", {"sessionKey": "proj"})
    assert [m["content"] for m in shown["messages"] if m["role"] == "user"] == [
        "question 0", "question 1", "question 2", "next",
    ]  # fmt: skip
    row = (await client.call("sessions.describe", {"key": "proj"}))["session"]
    assert row["compactionCount"] == 1
    again = await client.call("sessions.compact", {"key": "proj", "maxLines": 100})
    assert (again["ok"], again["compacted"], again["kept"]) == (True, False, 4)
    assert "archived" not in again
    await client.say("proj", "/compact undo", "run-5")
    await client.say("proj", "and now", "run-6")
    assert "question 0" in asked(house)


@pytest.mark.spec("RPC-9", "COMP-7")
async def test_max_lines_never_begins_with_the_result_of_a_tool(house: House, client: WireClient) -> None:
    call = FakeCall("sessions_list", ("{}",))
    house.model.script(FakeReply(calls=(call,)), OK, OK)
    await client.say("proj", "look", "run-1")
    done = await client.call("sessions.compact", {"key": "proj", "maxLines": 2})
    assert (done["compacted"], done["kept"]) == (True, 1)  # the result would have been the first
    await client.say("proj", "next", "run-2")
    roles = [message["role"] for message in house.model.requests[-1].body["messages"]]
    assert "tool" not in roles


@pytest.mark.spec("RPC-9")
async def test_compacting_interrupts_the_run_and_what_waits_goes_on(house: House, client: WireClient) -> None:
    house.model.script(OK, OK, FakeReply(texts=("never",), hang_after=0), OK)
    await client.say("proj", "the very first", "run-1")
    await client.say("proj", "two", "run-2")
    await client.call("chat.send", {"sessionKey": "proj", "message": "three", "idempotencyKey": "run-3"})
    await house.model.wait_for_requests(3, 60)
    await client.call(
        "chat.send",
        {"sessionKey": "proj", "message": "four", "idempotencyKey": "run-4", "queueMode": "followup"},
    )
    done = await client.call("sessions.compact", {"key": "proj", "maxLines": 1})
    assert done["compacted"] is True
    ended = await client.ended("run-3")
    assert (ended["state"], ended["stopReason"]) == ("aborted", "compact")
    assert (await client.ended("run-4"))["state"] == "final"
    assert "four" in asked(house) and "the very first" not in asked(house)


@pytest.mark.spec("DB-17")
async def test_an_erase_finds_every_archive_of_a_session(house: House, client: WireClient) -> None:
    house.model.script(*[OK] * 3)
    for number in range(3):
        await client.say("proj", f"question {number}", f"run-{number}")
    first = (await client.call("sessions.compact", {"key": "proj", "maxLines": 4}))["archived"]
    second = (await client.call("sessions.compact", {"key": "proj", "maxLines": 2}))["archived"]
    assert first != second and is_there(first) and is_there(second)
    await client.call("sessions.erase", {"key": "proj", "confirm": True})
    assert not is_there(first) and not is_there(second)


@pytest.mark.spec("RPC-9", "DB-17")
async def test_nothing_is_put_away_that_cannot_be_archived(house: House, client: WireClient) -> None:
    house.model.script(*[OK] * 3)
    await client.say("proj", "question 0", "run-0")
    await client.say("proj", "question 1", "run-1")
    (house.home / "state" / "archive").write_text("a file where the folder should be", encoding="utf-8")
    await client.call("sessions.subscribe")
    with pytest.raises(RefusedError, match="nothing was compacted: cannot write the archive"):
        await client.call("sessions.compact", {"key": "proj", "maxLines": 1})
    assert [(one["phase"], one.get("completed")) for one in operations(client)] == [
        ("start", None), ("end", False),
    ]  # fmt: skip
    await client.say("proj", "next", "run-2")
    assert "question 0" in asked(house)
