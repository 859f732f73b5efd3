"""chat.history, chat.startup, chat.metadata: pages, what is under way, and what a client needs to begin."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.domain.transcript import AssistantMessage, TextBlock
from openclaw.engine.drafts import draft_message
from openclaw.gateway.handlers.history import WHOLE_BYTES
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House

KEY = "agent:main:proj"
OK = FakeReply(texts=("fine",))
Json = dict[str, Any]


async def fill(gateway: Gateway, count: int, size: int = 1, key: str = KEY) -> None:
    """Messages `0 x`, `1 x`, … in a session."""
    for number in range(count):
        text = f"{number} " + "x" * size
        message = AssistantMessage((TextBlock(text),), 1000 + number, provider="p", model="m")
        await gateway.services.store.append(
            key, (draft_message(message, f"r{number}"),), now_ms=1000 + number
        )


def numbers(answer: Json) -> list[int]:
    return [int(m["content"][0]["text"].split()[0]) for m in answer["messages"]]


async def ask(client: WireClient, **asked: Any) -> Json:
    return await client.call("chat.history", {"sessionKey": "proj", **asked})


@pytest.mark.spec("RPC-11")
async def test_pages_lead_through_the_whole_conversation(gateway: Gateway, client: WireClient) -> None:
    await client.call("sessions.create", {"key": "proj"})
    await fill(gateway, 25)
    seen: list[int] = []
    offset: int | None = 0
    while offset is not None:
        page = await ask(client, limit=10, offset=offset)
        seen = numbers(page) + seen
        assert page["totalMessages"] == 25
        assert page["hasMore"] is ("nextOffset" in page)
        offset = page.get("nextOffset")
    assert seen == list(range(25))
    beyond = await ask(client, limit=10, offset=10_000)
    assert (beyond["messages"], beyond["hasMore"]) == ([], False)


@pytest.mark.spec("RPC-11")
async def test_a_page_of_bytes_ends_early_and_can_be_gone_on_from(
    gateway: Gateway, client: WireClient
) -> None:
    await client.call("sessions.create", {"key": "proj"})
    await fill(gateway, 12, size=500)
    seen: list[int] = []
    offset: int | None = 0
    while offset is not None:
        page = await ask(client, limit=10, maxBytes=2048, offset=offset)
        assert page["messages"] and len(json.dumps(page["messages"])) < 4096
        seen = numbers(page) + seen
        offset = page.get("nextOffset")
    assert seen == list(range(12))
    await fill(gateway, 1, size=5000)
    whole = await ask(client, maxBytes=1024)
    assert len(whole["messages"]) == 1 and whole["hasMore"] is True  # at least the newest one
    short = await ask(client, limit=1, maxChars=50)
    assert len(short["messages"][0]["content"][0]["text"]) < 100


@pytest.mark.spec("RPC-11")
async def test_a_page_around_a_message(gateway: Gateway, client: WireClient) -> None:
    await client.call("sessions.create", {"key": "proj"})
    await fill(gateway, 30)
    everything = (await ask(client, limit=1000))["messages"]
    for place in (0, 1, 15, 28, 29):
        wanted = everything[place]["__openclaw"]["id"]
        page = await ask(client, limit=5, messageId=wanted)
        ids = [m["__openclaw"]["id"] for m in page["messages"]]
        assert wanted in ids and len(ids) == min(5, place + 1 + min(2, 29 - place))
        if page["hasMore"]:
            older = await ask(client, limit=1, offset=page["nextOffset"])
            assert numbers(older)[0] == numbers(page)[0] - 1
    with pytest.raises(RefusedError, match="message not found: zzz"):
        await ask(client, messageId="zzz")


@pytest.mark.spec("RPC-11")
async def test_an_earlier_window_is_read_by_its_id(gateway: Gateway, client: WireClient) -> None:
    old = (await client.call("sessions.create", {"key": "proj"}))["sessionId"]
    await fill(gateway, 3)
    new = (await client.call("sessions.reset", {"key": "proj"}))["entry"]["sessionId"]
    now = await ask(client)
    assert (now["sessionId"], now["messages"]) == (new, [])
    before = await ask(client, sessionId=old)
    assert (before["sessionId"], numbers(before)) == (old, [0, 1, 2])
    assert "deltaCursor" not in before  # nothing will ever come there
    other = (await client.call("sessions.create", {"key": "other"}))["sessionId"]
    with pytest.raises(RefusedError, match="No session found"):
        await ask(client, sessionId=other)


@pytest.mark.spec("RPC-11")
async def test_an_unknown_session_is_empty_without_an_error(client: WireClient) -> None:
    answer = await client.call("chat.history", {"sessionKey": "nobody"})
    assert answer["sessionKey"] == "agent:main:nobody"
    assert (answer["messages"], answer["hasMore"], answer["totalMessages"]) == ([], False, 0)
    assert answer["defaults"]["model"] == "one" and "sessionInfo" not in answer
    assert await client.call("chat.history", {"sessionKey": "nobody", "cursor": "x"}) == {"kind": "reset"}


async def whole(client: WireClient, message_id: str, **asked: Any) -> Json:
    return await client.call("chat.message.get", {"sessionKey": "proj", "messageId": message_id, **asked})


@pytest.mark.spec("RPC-11")
async def test_a_long_message_can_be_read_whole(gateway: Gateway, client: WireClient) -> None:
    """A history stays light whatever is in it; one message is asked for when somebody wants to read it."""
    old = (await client.call("sessions.create", {"key": "proj"}))["sessionId"]
    size = 5_000_000
    await fill(gateway, 1, size=size)
    (shown,) = (await ask(client))["messages"]
    assert len(shown["content"][0]["text"]) < 8100
    message_id = shown["__openclaw"]["id"]
    (left_out,) = (await ask(client, maxChars=10**7))["messages"]
    assert left_out["__openclaw"]["truncated"] is True
    assert left_out["__openclaw"]["reason"] == "oversized"
    answer = await whole(client, message_id, maxChars=10**7)
    assert answer["ok"] is True
    assert answer["message"]["content"] == [{"type": "text", "text": "0 " + "x" * size}]
    assert answer["message"]["__openclaw"] == shown["__openclaw"]
    short = await whole(client, message_id)
    assert 1_000_000 < len(short["message"]["content"][0]["text"]) < 1_000_100
    # An earlier conversation is named; without its name only the current one is looked into.
    await client.call("sessions.reset", {"key": "proj"})
    assert await whole(client, message_id) == {"ok": False, "unavailableReason": "not_found"}
    assert (await whole(client, message_id, sessionId=old, maxChars=10))["ok"] is True
    with pytest.raises(RefusedError, match="No session found"):
        await whole(client, message_id, sessionId="another")
    with pytest.raises(RefusedError, match="messageId"):
        await client.call("chat.message.get", {"sessionKey": "proj"})


@pytest.mark.spec("RPC-11")
async def test_what_people_do_not_see_is_not_read_one_by_one_either(
    gateway: Gateway, client: WireClient
) -> None:
    assert await whole(client, "nobody") == {"ok": False, "unavailableReason": "not_found"}
    await client.call("sessions.create", {"key": "proj"})
    texts = ("NO_REPLY", "for the model alone", "y" * WHOLE_BYTES, "fine")
    kept = [
        await gateway.services.store.append(
            KEY,
            (
                draft_message(
                    AssistantMessage((TextBlock(text),), 1000, provider="p", model="m"),
                    f"r{number}",
                    hidden=number == 1,
                ),
            ),
            now_ms=1000 + number,
        )
        for number, text in enumerate(texts)
    ]
    answers = [await whole(client, entry.entry_id, maxChars=10**9) for (entry,) in kept]
    assert [answer.get("unavailableReason") for answer in answers] == [
        "not_visible",
        "not_visible",
        "oversized",
        None,
    ]
    assert answers[3]["message"]["content"][0]["text"] == "fine"
    assert all("message" not in answer for answer in answers[:3])


@pytest.mark.spec("RPC-11", "QUE-4")
async def test_what_runs_and_what_waits_is_told(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("half ", "whole"), hang_after=2))
    await client.call("chat.send", {"sessionKey": "proj", "message": "go", "idempotencyKey": "run-1"})
    await client.wait_for(lambda e: e["event"] == "chat" and e["payload"]["state"] == "delta")
    for number in range(2, 5):
        await client.call(
            "chat.send",
            {"sessionKey": "proj", "message": f"m{number}", "idempotencyKey": f"run-{number}",
             "queueMode": "followup"},
        )  # fmt: skip
    answer = await ask(client, inputRunIds=["run-3", "unknown"])
    assert answer["inFlightRun"]["runId"] == "run-1" and answer["inFlightRun"]["text"].startswith("half")
    assert answer["inFlightRun"]["startedAt"] > 0
    assert answer["sessionInfo"]["hasActiveRun"] is True
    pending = answer["pendingInputs"]
    assert (pending["total"], [item["runId"] for item in pending["items"]]) == (
        3,
        ["run-2", "run-3", "run-4"],
    )
    assert [item["message"]["content"] for item in pending["items"]] == ["m2", "m3", "m4"]
    assert all(item["state"] == "queued" for item in pending["items"])
    earlier = await ask(client, pendingBefore=pending["items"][2]["id"])
    assert [item["runId"] for item in earlier["pendingInputs"]["items"]] == ["run-2", "run-3"]
    for place in ("soon", "-1", "9" * 400, "", "\u0663"):
        with pytest.raises(RefusedError, match="pendingBefore must be the id"):
            await ask(client, pendingBefore=place)
    await client.call("chat.abort", {"sessionKey": "proj"})


@pytest.mark.spec("RPC-11")
async def test_what_tools_did_stands_beside_the_messages(house: House, client: WireClient) -> None:
    calls = (FakeCall("sessions_list", ("{}",), "call_1"), FakeCall("nonsense", ("{}",), "call_2"))
    house.model.script(FakeReply(calls=calls), OK)
    await client.say("proj", "look", "run-1")
    answer = await ask(client)
    by_message = {one["messageId"]: one["items"] for one in answer["activity"]}
    said = next(m for m in answer["messages"] if m["role"] == "assistant")
    items = by_message[said["__openclaw"]["id"]]
    assert [(i["name"], i["status"], i["phase"]) for i in items] == [
        ("sessions_list", "completed", "end"), ("nonsense", "failed", "end"),
    ]  # fmt: skip
    assert items[0]["itemId"] == "tool:call_1" and items[0]["kind"] == "tool"
    assert len(answer["activity"]) == 3  # the message that calls, and each result
    await client.call("sessions.create", {"key": "plain"})
    assert "activity" not in await client.call("chat.history", {"sessionKey": "plain"})


@pytest.mark.spec("RPC-11")
async def test_startup_has_the_history_and_what_can_be_chosen(house: House, client: WireClient) -> None:
    house.model.script(OK)
    await client.say("proj", "hello", "run-1")
    history = await ask(client, limit=80, maxBytes=262_144)
    started = await client.call(
        "chat.startup", {"sessionKey": "agent:main:proj", "limit": 80, "maxBytes": 262_144}
    )
    metadata = started.pop("metadata")
    for one in (started, history):
        one["sessionInfo"].pop("snapshotAt")
    assert started == history
    assert started["deltaCursor"] and started["sessionInfo"]["key"] == KEY
    assert metadata == await client.call("chat.metadata", {"agentId": "main", "sessionKey": "proj"})
    assert [row["tags"] for row in metadata["models"] if row["id"] == "one"] == [["default"]]
    assert "/help" in [alias for row in metadata["commands"] for alias in row["textAliases"]]
    by_id = await client.call("chat.startup", {"shortId": started["sessionId"][:8], "agentId": "main"})
    assert by_id["sessionKey"] == KEY
    with pytest.raises(RefusedError, match="No session found: zzzzzz"):
        await client.call("chat.startup", {"shortId": "zzzzzz"})
    new = await client.call("chat.startup", {"sessionKey": "main", "limit": 80})
    assert (new["messages"], new["sessionKey"]) == ([], "agent:main:main")
