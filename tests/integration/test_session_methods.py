"""sessions.*: list, describe, patch, create, resolve, follow; over the wire."""

from __future__ import annotations

import pytest

from openclaw.app import Gateway
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

OK = FakeReply(texts=("fine",))


@pytest.mark.spec("RPC-5", "OWN-1", "RPC-4")
async def test_list_is_newest_first_and_pages(client: WireClient) -> None:
    for n in range(7):
        await client.call("sessions.create", {"key": f"agent:main:s{n}", "label": f"label {n}"})
    await client.call("sessions.create", {"key": "agent:bob:main"})
    first = await client.call("sessions.list", {"limit": 3})
    assert first["sessions"][0]["key"] == "agent:bob:main"
    assert (first["count"], first["totalCount"], first["hasMore"], first["nextOffset"]) == (3, 8, True, 3)
    everything: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await client.call("sessions.list", {"limit": 3, "offset": offset})
        everything += [row["key"] for row in page["sessions"]]
        offset = page["nextOffset"]
    assert len(everything) == len(set(everything)) == 8
    only_bob = await client.call("sessions.list", {"agentId": "bob"})
    assert [row["key"] for row in only_bob["sessions"]] == ["agent:bob:main"]
    found = await client.call("sessions.list", {"search": "LABEL 4"})
    assert [row["key"] for row in found["sessions"]] == ["agent:main:s4"]
    exact = await client.call("sessions.list", {"label": "label 5"})
    assert [row["key"] for row in exact["sessions"]] == ["agent:main:s5"]
    assert first["path"].endswith("openclaw.sqlite")


@pytest.mark.spec("RPC-5", "LIST-9")
async def test_titles_and_previews_only_when_asked(house: House, client: WireClient) -> None:
    house.model.script(OK)
    await client.say("proj", "What is the weather in Lisbon?", "run-1")
    plain = (await client.call("sessions.list"))["sessions"][0]
    assert "derivedTitle" not in plain
    assert "lastMessagePreview" not in plain
    rich = await client.call("sessions.list", {"includeDerivedTitles": True, "includeLastMessage": True})
    assert rich["sessions"][0]["derivedTitle"] == "What is the weather in Lisbon?"
    assert rich["sessions"][0]["lastMessagePreview"] == "fine"


@pytest.mark.spec("LIST-9")
async def test_a_preview_is_what_a_person_or_the_agent_said_last(house: House, client: WireClient) -> None:
    """Neither what a tool answered, nor a reply that says that there is none."""

    async def preview() -> str | None:
        row = (await client.call("sessions.describe", {"key": "proj", "includeLastMessage": True}))["session"]
        found: str | None = row.get("lastMessagePreview")
        return found

    calls = (FakeCall("sessions_list", ('{"limit": 5}',)),)
    house.model.script(
        FakeReply(texts=("I look around.",), calls=calls), FakeReply(texts=("half", "whole"), hang_after=2)
    )
    await client.call(
        "chat.send", {"sessionKey": "proj", "message": "Who is there?", "idempotencyKey": "run-1"}
    )
    await client.wait_for(
        lambda e: (
            e["event"] == "agent" and e["payload"]["data"].get("phase") == "model" and e["payload"]["seq"] > 6
        )
    )
    shown = (await client.call("chat.history", {"sessionKey": "proj"}))["messages"]
    assert shown[-1]["role"] == "toolResult"
    assert await preview() == "I look around."
    house.model.release()
    await client.call("agent.wait", {"runId": "run-1", "timeoutMs": 60_000})
    assert await preview() == "halfwhole"
    house.model.script(FakeReply(texts=("NO_REPLY",)))
    await client.say("proj", "Nothing to say?", "run-2")
    assert await preview() is None


@pytest.mark.spec("RPC-7", "LIFE-12")
async def test_looking_at_a_session_is_not_activity(house: House, client: WireClient) -> None:
    """A list that is sorted by activity must not move under the hand of its reader."""
    house.model.script(OK, OK)
    await client.say("one", "hello", "run-1")
    await client.say("two", "hello", "run-2")

    async def rows() -> list[tuple[str, bool, int]]:
        listed = (await client.call("sessions.list"))["sessions"]
        return [(row["key"], row["unread"], row["updatedAt"]) for row in listed]

    before = await rows()
    assert [(key, unread) for key, unread, _ in before] == [
        ("agent:main:two", True),
        ("agent:main:one", True),
    ]
    for unread in (False, True, False):
        await client.call("sessions.patch", {"key": "one", "unread": unread})
        assert await rows() == [before[0], (before[1][0], unread, before[1][2])]
    await client.call("sessions.patch", {"key": "one", "label": "First"})
    assert [row[0] for row in await rows()] == ["agent:main:one", "agent:main:two"]


@pytest.mark.spec("RPC-7", "ENT-7", "RPC-4")
async def test_patch_sets_clears_and_refuses(client: WireClient) -> None:
    patched = await client.call(
        "sessions.patch",
        {"key": "proj", "label": "  Project  ", "thinkingLevel": "low", "sendPolicy": "deny"},
    )
    assert (patched["ok"], patched["key"]) == (True, "agent:main:proj")
    assert (patched["entry"]["label"], patched["entry"]["sendPolicy"]) == ("Project", "deny")
    cleared = await client.call("sessions.patch", {"key": "proj", "sendPolicy": None, "label": None})
    assert "sendPolicy" not in cleared["entry"]
    assert "label" not in cleared["entry"]
    assert cleared["entry"]["thinkingLevel"] == "low"
    with pytest.raises(RefusedError, match="allow"):
        await client.call("sessions.patch", {"key": "proj", "sendPolicy": "maybe"})
    await client.call("sessions.patch", {"key": "a", "label": "taken"})
    with pytest.raises(RefusedError, match="label already in use"):
        await client.call("sessions.patch", {"key": "b", "label": "taken"})
    with pytest.raises(RefusedError, match="unexpected property 'nonsense'"):
        await client.call("sessions.patch", {"key": "a", "nonsense": 1})


@pytest.mark.spec("RPC-7", "ENT-8")
async def test_lineage_is_not_for_ordinary_sessions(client: WireClient) -> None:
    with pytest.raises(RefusedError):
        await client.call("sessions.patch", {"key": "proj", "spawnedBy": "agent:main:main"})
    child = "agent:main:subagent:1b4e28ba-2fa1-11d2-883f-0016d3cca427"
    await client.call("sessions.patch", {"key": child, "spawnedBy": "agent:main:main", "spawnDepth": 1})
    with pytest.raises(RefusedError):
        await client.call("sessions.patch", {"key": child, "spawnedBy": "agent:main:other"})
    listed = await client.call("sessions.list", {"spawnedBy": "agent:main:main"})
    assert [row["key"] for row in listed["sessions"]] == [child]


@pytest.mark.spec("RPC-7")
async def test_archive_needs_the_session_it_saw(client: WireClient) -> None:
    made = await client.call("sessions.create", {"key": "proj"})
    with pytest.raises(RefusedError) as refused:
        await client.call("sessions.patch", {"key": "proj", "archived": True, "expectedSessionId": "old"})
    assert refused.value.error["details"]["reason"] == "session-changed"
    with pytest.raises(RefusedError, match="changed"):
        await client.call(
            "sessions.patch", {"key": "proj", "pinned": True, "expectedLifecycleRevision": "old"}
        )
    row = (await client.call("sessions.describe", {"key": "proj"}))["session"]
    guard = {"expectedLifecycleRevision": row["lifecycleRevision"]}
    await client.call("sessions.patch", {"key": "proj", "label": "Kept", **guard})
    done = await client.call(
        "sessions.patch", {"key": "proj", "archived": True, "expectedSessionId": made["sessionId"]}
    )
    assert done["entry"]["archivedAt"] > 0
    assert (await client.call("sessions.list"))["sessions"] == []
    archived = await client.call("sessions.list", {"archived": True})
    assert [row["key"] for row in archived["sessions"]] == ["agent:main:proj"]


async def test_a_model_override_is_used_and_an_unknown_one_refused(house: House, client: WireClient) -> None:
    house.model.script(OK)
    patched = await client.call("sessions.patch", {"key": "proj", "model": "fake/two"})
    assert patched["resolved"] == {"modelProvider": "fake", "model": "two"}
    await client.say("proj", "hi", "run-1")
    assert house.model.requests[0].body["model"] == "two"
    with pytest.raises(RefusedError, match="has no model"):
        await client.call("sessions.patch", {"key": "proj", "model": "fake/three"})
    with pytest.raises(RefusedError, match="unknown model provider"):
        await client.call("sessions.patch", {"key": "proj", "model": "nobody/x"})


@pytest.mark.spec("RPC-6", "KEY-2", "KEY-23")
async def test_resolve_and_main_aliases(client: WireClient) -> None:
    made = await client.call("sessions.create", {"key": "main", "label": "Home"})
    assert made["key"] == "agent:main:main"
    for asked in (
        {"key": "main"},
        {"key": "AGENT:Main:MAIN"},
        {"label": "Home"},
        {"sessionId": made["sessionId"]},
    ):
        assert (await client.call("sessions.resolve", asked))["key"] == "agent:main:main"
    with pytest.raises(RefusedError, match="No session found: nope"):
        await client.call("sessions.resolve", {"key": "nope"})
    assert await client.call("sessions.resolve", {"key": "nope", "allowMissing": True}) == {"ok": False}


@pytest.mark.spec("RPC-10")
async def test_describe_of_a_missing_session_is_null(client: WireClient) -> None:
    assert await client.call("sessions.describe", {"key": "nope"}) == {"session": None}


@pytest.mark.spec("RPC-10")
async def test_followers_get_changes_and_messages(house: House, gateway: Gateway, client: WireClient) -> None:
    house.model.script(OK, OK)
    async with client_of(gateway) as follower, client_of(gateway) as stranger:
        await follower.call("sessions.messages.subscribe", {"key": "proj"})
        await client.say("proj", "hello", "run-1")
        message = await follower.wait_for(lambda event: event["event"] == "session.message")
        assert message["payload"]["message"]["content"] == "hello"
        await client.say("elsewhere", "secret", "run-2")
        await stranger.ended("run-2")
        kinds = {event["event"] for event in stranger.events}
        assert "session.message" not in kinds
        assert "sessions.changed" not in kinds
        heard = [e["payload"]["sessionKey"] for e in follower.events if e["event"] == "session.message"]
        assert set(heard) == {"agent:main:proj"}
        await follower.call("sessions.messages.unsubscribe", {"key": "proj"})


@pytest.mark.spec("RPC-13")
async def test_inject_appends_without_a_run(house: House, client: WireClient) -> None:
    await client.call("sessions.create", {"key": "proj"})
    answer = await client.call("chat.inject", {"sessionKey": "proj", "message": "a note", "label": "ops"})
    assert answer["ok"] is True
    history = await client.call("chat.history", {"sessionKey": "proj"})
    (message,) = history["messages"]
    assert message["content"][0]["text"] == "[ops]\n\na note"
    assert (message["provider"], message["model"]) == ("openclaw", "gateway-injected")
    assert house.model.requests == []
    with pytest.raises(RefusedError, match="session not found"):
        await client.call("chat.inject", {"sessionKey": "nope", "message": "x"})


@pytest.mark.spec("LIFE-13", "LIFE-17")
async def test_new_starts_a_new_window_and_greets(house: House, client: WireClient) -> None:
    house.model.script(OK, OK, OK)
    await client.say("proj", "old words", "run-1")
    before = (await client.call("sessions.describe", {"key": "proj"}))["session"]["sessionId"]
    await client.say("proj", "/new", "run-2")
    after = (await client.call("sessions.describe", {"key": "proj"}))["session"]["sessionId"]
    assert before != after
    asked = house.model.requests[1].body["messages"]
    assert "Greet them" in asked[1]["content"]
    assert all("old words" not in str(message) for message in asked)
    await client.say("proj", "/reset tell me a joke", "run-3")
    history = await client.call("chat.history", {"sessionKey": "proj"})
    assert history["messages"][0]["content"] == "tell me a joke"
