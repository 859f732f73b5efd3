"""sessions.send, sessions.steer, sessions.abort: messages for a session that exists, and stopping it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openclaw.app import Gateway
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:proj"
OK = FakeReply(texts=("fine",))
HANGING = FakeReply(texts=("never",), hang_after=0)
Json = dict[str, Any]


async def send_hanging(house: House, client: WireClient) -> None:
    house.model.script(HANGING)
    await client.call("chat.send", {"sessionKey": "proj", "message": "one", "idempotencyKey": "run-1"})
    await house.model.wait_for_requests(1, 60)


async def wait_behind(client: WireClient, run_id: str) -> None:
    await client.call(
        "chat.send",
        {"sessionKey": "proj", "message": run_id, "idempotencyKey": run_id, "queueMode": "followup"},
    )


@pytest.mark.spec("RPC-10")
async def test_send_needs_a_session_and_runs_a_turn_in_it(house: House, client: WireClient) -> None:
    with pytest.raises(RefusedError) as refused:
        await client.call("sessions.send", {"key": "agent:main:zzz", "message": "x"})
    assert refused.value.error["message"] == "session not found: agent:main:zzz"
    assert (await client.call("sessions.list"))["count"] == 0
    house.model.script(OK, OK)
    await client.call("sessions.create", {"key": "proj"})
    sent = await client.call("sessions.send", {"key": "proj", "message": "hi", "thinking": "low"})
    assert sent["status"] == "started" and sent["messageSeq"] >= 1
    assert (await client.ended(sent["runId"]))["state"] == "final"
    named = {"key": "proj", "message": "again", "idempotencyKey": "run-2"}
    assert (await client.call("sessions.send", named))["runId"] == "run-2"
    await client.ended("run-2")
    assert await client.call("sessions.send", named) == {"runId": "run-2", "status": "ok"}
    with pytest.raises(RefusedError, match="message must not be empty"):
        await client.call("sessions.send", {"key": "proj", "message": "   "})
    assert len(house.model.requests) == 2


@pytest.mark.spec("RPC-10", "QUE-4")
async def test_steer_is_taken_in_by_the_turn_in_progress(house: House, client: WireClient) -> None:
    call = FakeCall("sessions_list", ("{}",))
    await client.call("sessions.create", {"key": "proj"})
    house.model.script(FakeReply(calls=(call,), hang_after=0), OK)
    first = await client.call("sessions.send", {"key": "proj", "message": "look around"})
    await house.model.wait_for_requests(1, 60)
    steered = await client.call("sessions.steer", {"key": "proj", "message": "only the newest"})
    house.model.release()
    assert (await client.ended(first["runId"]))["state"] == "final"
    assert (await client.ended(steered["runId"]))["state"] == "final"
    assert "only the newest" in json.dumps(house.model.requests[1].body["messages"])
    assert len(house.model.requests) == 2
    with pytest.raises(RefusedError, match="session not found"):
        await client.call("sessions.steer", {"key": "nobody", "message": "x"})


@pytest.mark.spec("RPC-10")
async def test_abort_stops_the_run_and_leaves_the_queue(house: House, client: WireClient) -> None:
    idle = {"ok": True, "abortedRunId": None, "status": "no-active-run"}
    assert await client.call("sessions.abort", {"key": "proj"}) == idle
    assert await client.call("sessions.abort", {"runId": "unknown"}) == idle
    await send_hanging(house, client)
    await wait_behind(client, "run-2")
    house.model.script(OK)
    done = await client.call("sessions.abort", {"key": "proj"})
    assert done == {"ok": True, "abortedRunId": "run-1", "status": "aborted"}
    assert (await client.ended("run-1"))["state"] == "aborted"
    assert (await client.ended("run-2"))["state"] == "final"


@pytest.mark.spec("RPC-10")
async def test_abort_by_run_takes_a_waiting_message_out(house: House, client: WireClient) -> None:
    await send_hanging(house, client)
    await wait_behind(client, "run-2")
    await wait_behind(client, "run-3")
    done = await client.call("sessions.abort", {"runId": "run-2"})
    assert (done["abortedRunId"], done["status"]) == ("run-2", "aborted")
    assert (await client.ended("run-2"))["state"] == "aborted"
    waiting = (await client.call("chat.history", {"sessionKey": "proj"}))["pendingInputs"]
    assert [item["runId"] for item in waiting["items"]] == ["run-3"]
    with pytest.raises(RefusedError, match="does not belong to session agent:main:other"):
        await client.call("sessions.abort", {"key": "other", "runId": "run-1"})


@pytest.mark.spec("RPC-10")
@pytest.mark.parametrize("named", [{}, {"runId": "run-1"}])
async def test_abort_can_clear_the_queue_too(house: House, client: WireClient, named: Json) -> None:
    await send_hanging(house, client)
    await wait_behind(client, "run-2")
    await wait_behind(client, "run-3")
    done = await client.call("sessions.abort", {"key": "proj", "clearQueued": True, **named})
    assert (done["abortedRunId"], done["cleared"]) == ("run-1", ["run-2", "run-3"])
    for run_id in ("run-1", "run-2", "run-3"):
        assert (await client.ended(run_id))["state"] == "aborted"
    assert len(house.model.requests) == 1


@pytest.mark.spec("RPC-10")
async def test_a_session_can_be_created_with_its_first_message(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(OK, OK)
    made = await client.call("sessions.create", {"label": "New", "message": "begin", "model": "fake/two"})
    assert made["key"].startswith("agent:main:dashboard:") and made["runStarted"] is True
    assert (await client.ended(made["runId"]))["state"] == "final"
    assert house.model.requests[0].body["model"] == "two"
    quiet = await client.call("sessions.create", {"key": "quiet", "message": "  "})
    assert quiet["runStarted"] is False and "runId" not in quiet
    async with client_of(gateway, scopes=("operator.read", "operator.write")) as writer:
        theirs = await writer.call("sessions.create", {"key": "theirs", "task": "do it"})
        await writer.ended(theirs["runId"])
    principals = (
        await gateway.services.store.input(made["runId"]),
        await gateway.services.store.input(theirs["runId"]),
    )
    assert [one.principal for one in principals if one] == ["operator", "client"]
    for wish in ({"incognito": True}, {"fork": True}, {"worktree": True}, {"cwd": "/"}):
        with pytest.raises(RefusedError, match="not supported by this gateway yet"):
            await client.call("sessions.create", {"key": "wished", **wish})
    assert (await client.call("sessions.describe", {"key": "wished"}))["session"] is None


@pytest.mark.spec("RPC-2")
@pytest.mark.parametrize(
    ("method", "params", "text"),
    [
        ("sessions.reset", {"key": "k", "reason": "no"}, "at /reason: must be equal to one of the allowed"),
        ("sessions.reset", {}, "must have required property 'key'"),
        ("sessions.delete", {"key": "k", "all": True}, "at root: unexpected property 'all'"),
        ("sessions.restore", {"key": 1}, "at /key: must be string"),
        ("sessions.compact", {"key": "k", "maxLines": "3"}, "at /maxLines: must be integer"),
        ("sessions.send", {"key": "k"}, "must have required property 'message'"),
        ("sessions.steer", {"message": "m"}, "must have required property 'key'"),
        ("sessions.abort", {}, "give key, runId or both"),
        ("sessions.preview", {"keys": []}, "at /keys: must NOT have fewer than 1 items"),
        ("sessions.preview", {"keys": ["k"], "maxChars": 19}, "at /maxChars: must be >= 20"),
        ("sessions.get", {"key": "k", "limit": 0}, "at /limit: must be >= 1"),
        ("sessions.usage", {"range": "8d"}, "at /range: must be equal to one of the allowed values: 7d, 30d"),
        ("sessions.search", {}, "must have required property 'query'"),
        ("chat.startup", {}, "give sessionKey or shortId, one of them"),
        ("chat.metadata", {"kinds": []}, "at root: unexpected property 'kinds'"),
        ("chat.history", {"sessionKey": "k", "limit": 1001}, "at /limit: must be <= 1000"),
        ("commands.list", {"scope": "all"}, "at /scope: must be equal to one of the allowed values: text"),
        ("agent.identity.get", {"agentId": ""}, "at /agentId: must NOT have fewer than 1 characters"),
        ("exec.approval.list", {"x": 1}, "at root: unexpected property 'x'"),
    ],
)
async def test_closed_parameters(client: WireClient, method: str, params: Json, text: str) -> None:
    with pytest.raises(RefusedError) as refused:
        await client.call(method, params)
    assert refused.value.error["code"] == "INVALID_REQUEST"
    assert refused.value.error["message"].startswith(f"invalid {method} params: {text}")
