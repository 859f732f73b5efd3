"""sessions.reset, sessions.delete, sessions.restore over the wire, against the real engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.domain.resets import SessionEnd, SessionStart
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:proj"
OK = FakeReply(texts=("fine",))
HANGING = FakeReply(texts=("never",), hang_after=0)
Json = dict[str, Any]


def is_there(path: str) -> bool:
    return Path(path).exists()


async def texts(client: WireClient, key: str = "proj") -> list[str]:
    messages = (await client.call("sessions.get", {"key": key}))["messages"]
    return [m["content"] if isinstance(m["content"], str) else m["content"][0]["text"] for m in messages]


def reasons(client: WireClient, key: str = KEY) -> list[str]:
    return [
        event["payload"]["reason"]
        for event in client.events
        if event["event"] == "sessions.changed"
        and event["payload"]["sessionKey"] == key
        and "reason" in event["payload"]
    ]


async def until_reason(client: WireClient, reason: str, key: str = KEY) -> Json:
    event = await client.wait_for(
        lambda event: (
            event["event"] == "sessions.changed"
            and event["payload"]["sessionKey"] == key
            and event["payload"].get("reason") == reason
        )
    )
    payload: Json = event["payload"]
    return payload


@pytest.mark.spec("RPC-8", "LIFE-21")
async def test_reset_begins_a_new_window_and_keeps_what_a_person_chose(
    house: House, client: WireClient
) -> None:
    house.model.script(OK, OK)
    await client.call("sessions.subscribe")
    await client.call("sessions.patch", {"key": "proj", "label": "Project", "thinkingLevel": "low"})
    await client.say("proj", "first", "run-1")
    before = (await client.call("sessions.describe", {"key": "proj"}))["session"]
    done = await client.call("sessions.reset", {"key": "PROJ", "reason": "new"})
    entry = done["entry"]
    assert (done["ok"], done["key"]) == (True, KEY)
    assert entry["sessionId"] != before["sessionId"]
    assert (entry["label"], entry["thinkingLevel"]) == ("Project", "low")
    assert (entry["inputTokens"], entry["outputTokens"], entry["totalTokens"]) == (0, 0, 0)
    assert done["resolved"]["model"] == "one"
    changed = await until_reason(client, "new")
    assert changed["session"]["sessionId"] == changed["sessionId"] == entry["sessionId"]
    assert await texts(client) == []
    await client.say("proj", "second", "run-2")
    asked = json.dumps(house.model.requests[-1].body["messages"])
    assert "second" in asked and "first" not in asked
    assert (await client.call("sessions.reset", {"key": "proj"}))["entry"]["sessionId"] != entry["sessionId"]
    assert "reset" in reasons(client)


@pytest.mark.spec("RPC-8")
async def test_reset_is_guarded_by_the_session_that_was_seen(client: WireClient) -> None:
    made = await client.call("sessions.create", {"key": "proj"})
    with pytest.raises(RefusedError) as refused:
        await client.call("sessions.reset", {"key": "proj", "expectedSessionId": "zz"})
    assert refused.value.error["code"] == "INVALID_REQUEST"
    assert refused.value.error["message"] == f"Session {KEY} changed before reset. Retry."
    assert refused.value.error["details"]["reason"] == "session-changed"
    assert (await client.call("sessions.describe", {"key": "proj"}))["session"]["sessionId"] == made[
        "sessionId"
    ]
    done = await client.call("sessions.reset", {"key": "proj", "expectedSessionId": made["sessionId"]})
    assert done["entry"]["sessionId"] != made["sessionId"]
    with pytest.raises(RefusedError, match="changed before reset"):
        await client.call("sessions.reset", {"key": "nobody", "expectedSessionId": "zz"})
    assert (await client.call("sessions.describe", {"key": "nobody"}))["session"] is None
    fresh = await client.call("sessions.reset", {"key": "nobody"})
    assert fresh["key"] == "agent:main:nobody" and fresh["entry"]["sessionId"]


@pytest.mark.spec("LIFE-22", "LIFE-12")
async def test_reset_stops_the_run_cancels_what_waits_and_tells_in_order(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    heard: list[SessionEnd | SessionStart] = []

    async def hear(notice: SessionEnd | SessionStart) -> None:
        heard.append(notice)

    house.model.script(HANGING, OK)
    await client.call("chat.send", {"sessionKey": "proj", "message": "one", "idempotencyKey": "run-1"})
    await house.model.wait_for_requests(1, 60)
    old_id = (await client.call("sessions.describe", {"key": "proj"}))["session"]["sessionId"]
    await client.call(
        "chat.send",
        {"sessionKey": "proj", "message": "two", "idempotencyKey": "run-2", "queueMode": "followup"},
    )
    gateway.notices.subscribe(hear)
    done = await client.call("sessions.reset", {"key": "proj"})
    new_id = done["entry"]["sessionId"]
    first, second = await client.ended("run-1"), await client.ended("run-2")
    assert (first["state"], first["stopReason"]) == ("aborted", "reset")
    assert (second["state"], second["stopReason"]) == ("aborted", "reset")
    await gateway.notices.drain()
    assert heard == [SessionEnd(KEY, old_id, "reset", new_id), SessionStart(KEY, new_id, old_id)]
    assert await texts(client) == []
    history = await client.call("chat.history", {"sessionKey": "proj"})
    assert history["pendingInputs"] == {"items": [], "total": 0} and "inFlightRun" not in history
    assert (await client.say("proj", "three", "run-3"))["state"] == "final"
    assert len(house.model.requests) == 2  # the cancelled message never reached the model


@pytest.mark.spec("RPC-8", "LIFE-24", "DB-17")
async def test_delete_removes_one_key_and_archives_its_words(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(OK, OK, OK)
    await client.call("sessions.subscribe")
    await client.say("proj", "an old word", "run-1")
    await client.call("sessions.reset", {"key": "proj"})
    await client.say("proj", "a later word", "run-2")
    await client.say("other", "stays", "run-3")
    row = (await client.call("sessions.describe", {"key": "proj"}))["session"]
    done = await client.call("sessions.delete", {"key": "proj", "expectedSessionId": row["sessionId"]})
    assert (done["ok"], done["key"], done["deleted"]) == (True, KEY, True)
    later, earlier = (Path(path) for path in done["archived"])
    assert later.name.startswith(f"{row['sessionId']}.jsonl.deleted.") and ".jsonl.reset." in earlier.name
    assert "a later word" in later.read_text() and "an old word" in earlier.read_text()
    await until_reason(client, "delete")
    assert (await client.call("sessions.describe", {"key": "proj"}))["session"] is None
    assert await client.call("sessions.delete", {"key": "proj"}) == {
        "ok": True, "key": KEY, "deleted": False, "archived": [],
    }  # fmt: skip
    assert await texts(client, "other") == ["stays", "fine"]
    assert (await client.call("sessions.search", {"query": "word"}))["count"] == 0


@pytest.mark.spec("RPC-8")
@pytest.mark.parametrize("key", ["main", "agent:main:main", "AGENT:MAIN:main", "agent:bob:main"])
async def test_the_main_session_cannot_be_deleted(client: WireClient, key: str) -> None:
    await client.call("sessions.create", {"key": key})
    canonical = "agent:bob:main" if "bob" in key else "agent:main:main"
    with pytest.raises(RefusedError) as refused:
        await client.call("sessions.delete", {"key": key})
    assert refused.value.error["message"] == f"Cannot delete the main session ({canonical})."
    assert (await client.call("sessions.describe", {"key": key}))["session"]["key"] == canonical


@pytest.mark.spec("RPC-8")
async def test_delete_obeys_its_guards_and_can_leave_the_files_out(house: House, client: WireClient) -> None:
    house.model.script(OK)
    await client.say("proj", "words", "run-1")
    session_id = (await client.call("sessions.describe", {"key": "proj"}))["session"]["sessionId"]
    for guards in ({"expectedSessionId": "other"}, {"archivedOnly": True}):
        with pytest.raises(RefusedError) as refused:
            await client.call("sessions.delete", {"key": "proj", **guards})
        assert refused.value.error["details"]["reason"] == "session-changed"
        assert refused.value.error["message"] == f"Session {KEY} changed before delete. Retry."
    await client.call("sessions.patch", {"key": "proj", "archived": True, "expectedSessionId": session_id})
    done = await client.call(
        "sessions.delete", {"key": "proj", "archivedOnly": True, "deleteTranscript": False}
    )
    assert (done["deleted"], done["archived"]) == (True, [])
    assert not list((house.home / "state").glob("archive/*"))


@pytest.mark.spec("RPC-8")
async def test_delete_first_stops_the_work_and_the_helpers(house: House, client: WireClient) -> None:
    spawn = FakeCall("sessions_spawn", (json.dumps({"task": "dig"}),))

    def decide(body: Json) -> FakeReply | None:
        said = json.dumps(body["messages"])
        if "dig" in said and '"tool"' not in said:
            return HANGING  # the helper, which never ends by itself
        return FakeReply(calls=(spawn,)) if '"tool"' not in said else HANGING

    house.model.decide = decide
    await client.call("chat.send", {"sessionKey": "proj", "message": "go", "idempotencyKey": "run-1"})
    await house.model.wait_for_requests(3, 60)
    (child,) = (await client.call("sessions.describe", {"key": "proj"}))["session"]["childSessions"]
    done = await client.call("sessions.delete", {"key": "proj"})
    assert done["deleted"] is True
    ended = await client.ended("run-1")
    assert (ended["state"], ended["stopReason"]) == ("aborted", "deleted")
    await house.model.wait_for_disconnects(2, 60)
    helper = (await client.call("sessions.describe", {"key": child}))["session"]
    assert (helper["hasActiveRun"], helper["status"]) == (False, "killed")
    assert len(house.model.requests) == 3  # nobody announced anything
    assert (await client.call("sessions.describe", {"key": "proj"}))["session"] is None


@pytest.mark.spec("RPC-8", "RPC-10")
async def test_restore_takes_a_reset_and_a_deletion_back(house: House, client: WireClient) -> None:
    house.model.script(OK, OK, OK)
    await client.call("sessions.subscribe")
    await client.call("sessions.patch", {"key": "proj", "label": "Mine"})
    await client.say("proj", "before", "run-1")
    before = (await client.call("sessions.describe", {"key": "proj"}))["session"]
    with pytest.raises(RefusedError, match="was not reset"):
        await client.call("sessions.restore", {"key": "proj"})
    fresh = await client.call("sessions.reset", {"key": "proj"})
    await client.say("proj", "after", "run-2")
    with pytest.raises(RefusedError, match="changed before restore"):
        await client.call("sessions.restore", {"key": "proj", "expectedSessionId": before["sessionId"]})
    back = await client.call(
        "sessions.restore", {"key": "proj", "expectedSessionId": fresh["entry"]["sessionId"]}
    )
    assert (back["restored"], back["entry"]["sessionId"]) == ("reset", before["sessionId"])
    assert await texts(client) == ["before", "fine"]
    gone = await client.call("sessions.delete", {"key": "proj"})
    assert all(is_there(path) for path in gone["archived"]) and gone["archived"]
    again = await client.call("sessions.restore", {"key": "proj"})
    assert (again["restored"], again["entry"]["sessionId"]) == ("delete", before["sessionId"])
    assert again["entry"]["label"] == "Mine"
    assert not any(is_there(path) for path in gone["archived"])
    assert await texts(client) == ["before", "fine"]
    assert (await client.call("sessions.search", {"query": "before"}))["count"] == 1
    await client.say("proj", "goes on", "run-3")
    assert "before" in json.dumps(house.model.requests[-1].body["messages"])
    assert reasons(client).count("restore") == 2
    with pytest.raises(RefusedError, match="session not found: agent:main:nobody"):
        await client.call("sessions.restore", {"key": "nobody"})


@pytest.mark.spec("RPC-8")
async def test_an_ending_survives_a_restart_and_can_still_be_taken_back(house: House) -> None:
    house.model.script(OK)
    async with house.gateway() as first, client_of(first) as client:
        await client.say("proj", "kept", "run-1")
        await client.call("sessions.delete", {"key": "proj"})
    async with house.gateway() as second, client_of(second) as client:
        assert (await client.call("sessions.describe", {"key": "proj"}))["session"] is None
        assert (await client.call("sessions.restore", {"key": "proj"}))["restored"] == "delete"
        assert await texts(client) == ["kept", "fine"]


@pytest.mark.spec("LIFE-12", "LIFE-22")
async def test_what_arrives_while_a_session_is_worked_on_waits(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(OK, OK)
    await client.say("proj", "before", "run-1")
    async with gateway.services.workers.held(KEY):
        await client.call(
            "chat.send", {"sessionKey": "proj", "message": "meanwhile", "idempotencyKey": "run-2"}
        )
        history = await client.call("chat.history", {"sessionKey": "proj"})
        assert [item["runId"] for item in history["pendingInputs"]["items"]] == ["run-2"]
        assert "inFlightRun" not in history and len(house.model.requests) == 1
    assert (await client.ended("run-2"))["state"] == "final"
    assert len(house.model.requests) == 2


@pytest.mark.spec("RPC-8")
async def test_nothing_is_deleted_that_cannot_be_archived(house: House, client: WireClient) -> None:
    house.model.script(OK, OK)
    await client.say("proj", "precious", "run-1")
    in_the_way = house.home / "state" / "archive"
    in_the_way.write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(RefusedError) as refused:
        await client.call("sessions.delete", {"key": "proj"})
    assert refused.value.error["code"] == "UNAVAILABLE"
    assert "nothing was deleted: cannot write the archive" in refused.value.error["message"]
    assert await texts(client) == ["precious", "fine"]
    assert (await client.say("proj", "still here", "run-2"))["state"] == "final"
    assert (await client.call("sessions.delete", {"key": "proj", "deleteTranscript": False}))[
        "deleted"
    ] is True


@pytest.mark.spec("LIFE-22")
async def test_a_reset_forgets_what_the_agent_was_to_be_told(house: House, client: WireClient) -> None:
    house.model.script(OK, OK)
    await client.say("proj", "before", "run-1")
    await client.call("system-event", {"text": "the kettle boils", "sessionKey": "proj"})
    await client.call("sessions.reset", {"key": "proj"})
    await client.say("proj", "after", "run-2")
    assert "kettle" not in json.dumps(house.model.requests[-1].body["messages"])


@pytest.mark.spec("RPC-8")
async def test_whoever_asked_for_a_helper_hears_that_it_was_deleted(house: House, client: WireClient) -> None:
    spawn = FakeCall("sessions_spawn", (json.dumps({"task": "dig a hole"}),))

    def decide(body: Json) -> FakeReply | None:
        last = body["messages"][-1]
        if last["role"] == "user" and "dig a hole" in json.dumps(last) and "killed" not in json.dumps(last):
            return HANGING
        return None

    house.model.decide = decide
    house.model.script(FakeReply(calls=(spawn,)), OK, FakeReply(texts=("the helper is gone",)))
    await client.say("proj", "go", "run-1")
    await house.model.wait_for_requests(3, 60)
    (child,) = (await client.call("sessions.describe", {"key": "proj"}))["session"]["childSessions"]
    assert (await client.call("sessions.delete", {"key": child}))["deleted"] is True
    await house.model.wait_for_requests(4, 60)
    assert "killed" in json.dumps(house.model.requests[-1].body["messages"][-1])
    assert (await client.call("sessions.describe", {"key": child}))["session"] is None
