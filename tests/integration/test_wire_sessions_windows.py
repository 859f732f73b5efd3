"""sessions.windows, and the marks of compactions in chat.history: where a conversation begins anew."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.app import Gateway
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House

KEY = "agent:main:proj"
OK = FakeReply(texts=("fine",))
LONG = "lorem ipsum dolor sit amet " * 900
SUMMARY = "They spoke about lorem ipsum; the goal is to go on with it. " * 4
Json = dict[str, Any]


async def windows(client: WireClient, **more: Any) -> list[Json]:
    answer = await client.call("sessions.windows", {"key": "proj", **more})
    assert answer["key"] == KEY
    found: list[Json] = answer["windows"]
    return found


@pytest.mark.spec("RPC-8")
async def test_every_reset_leaves_a_window_that_can_be_read(house: House, client: WireClient) -> None:
    assert await windows(client) == []
    house.model.script(OK, OK, OK)
    await client.say("proj", "one", "run-1")
    (only,) = await windows(client)
    assert "endedAt" not in only
    await client.call("sessions.reset", {"key": "proj"})
    await client.say("proj", "two", "run-2")
    await client.call("sessions.reset", {"key": "proj", "reason": "new"})
    current, middle, first = await windows(client)
    assert first["sessionId"] == only["sessionId"]
    assert (current["reason"], middle["reason"]) == ("new", "reset")
    assert first["startedAt"] <= first["endedAt"] == middle["startedAt"] <= middle["endedAt"]
    assert "firstMessageId" not in current
    asked = {"sessionKey": "proj", "sessionId": middle["sessionId"], "messageId": middle["firstMessageId"]}
    page = await client.call("chat.history", asked)
    assert [message["content"] for message in page["messages"][:1]] == ["two"]
    assert await windows(client, limit=2) == [current, middle]
    with pytest.raises(RefusedError, match="limit"):
        await windows(client, limit=201)


@pytest.mark.spec("RPC-8")
async def test_a_reset_that_was_taken_back_is_no_window_of_the_trail(
    house: House, client: WireClient
) -> None:
    house.model.script(OK, OK)
    await client.say("proj", "one", "run-1")
    (first,) = await windows(client)
    await client.call("sessions.reset", {"key": "proj"})
    await client.say("proj", "two", "run-2")
    await client.call("sessions.restore", {"key": "proj"})
    (only,) = await windows(client)
    assert only["sessionId"] == first["sessionId"]
    await client.call("sessions.delete", {"key": "proj"})
    assert await windows(client) == []


@pytest.mark.spec("RPC-11")
async def test_a_compaction_is_marked_between_its_messages(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(*[FakeReply(texts=(LONG,))] * 4, FakeReply(texts=(SUMMARY,)), OK)
    for number in range(4):
        await client.say("proj", f"question {number}", f"run-{number}")
    before = await client.call("chat.history", {"sessionKey": "proj"})
    assert "compactions" not in before
    done = await client.call("sessions.compact", {"key": "proj"})
    delta = await client.call("chat.history", {"sessionKey": "proj", "cursor": before["deltaCursor"]})
    (mark,) = delta["compactions"]
    assert mark["seq"] > before["messages"][-1]["__openclaw"]["seq"]
    assert mark["tokensBefore"] == done["result"]["tokensBefore"]
    await client.say("proj", "and now", "run-4")
    page = await client.call("chat.history", {"sessionKey": "proj", "limit": 3})
    assert page["compactions"] == [mark]
    seqs = [message["__openclaw"]["seq"] for message in page["messages"]]
    assert seqs[0] < mark["seq"] < seqs[1]
    newest = await client.call("chat.history", {"sessionKey": "proj", "limit": 2})
    assert "compactions" not in newest
    older = await client.call("chat.history", {"sessionKey": "proj", "limit": 2, "offset": 2})
    assert older["compactions"] == [mark]
    oldest = await client.call("chat.history", {"sessionKey": "proj", "limit": 2, "offset": 4})
    assert "compactions" not in oldest
    since = await client.call("chat.history", {"sessionKey": "proj", "cursor": delta["deltaCursor"]})
    assert (len(since["messages"]), "compactions" in since) == (2, False)
