"""One message through the whole house: over the wire, through a model, into the transcript and back."""

from __future__ import annotations

import asyncio

import pytest

from openclaw.app import Gateway
from openclaw.errors import StoreFull
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:proj1"
OK = FakeReply(
    texts=("Hello", " you"), usage={"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
)


def names(events: list[dict[str, object]]) -> list[str]:
    """Events of a run in short: `chat:final`, `agent:lifecycle.end`, `session.message:user`."""
    out = []
    for event in events:
        payload = event["payload"]
        assert isinstance(payload, dict)
        match event["event"]:
            case "chat":
                out.append(f"chat:{payload['state']}")
            case "agent":
                phase = payload["data"].get("phase")
                out.append(f"agent:{payload['stream']}" + (f".{phase}" if phase else ""))
            case "session.message":
                out.append(f"message:{payload['message']['role']}")
            case "sessions.changed":
                out.append(f"changed:{payload.get('reason') or payload.get('phase')}")
    return out


@pytest.mark.spec("RPC-12", "RPC-14", "LOOP-1", "DB-15", "RPC-4")
async def test_a_plain_turn_has_its_events_in_order(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("Hello you",)))  # one piece is one delta, however slowly it comes
    await client.call("sessions.subscribe")
    ack = await client.call("chat.send", {"sessionKey": "proj1", "message": "hi", "idempotencyKey": "run-1"})
    assert ack == {"runId": "run-1", "status": "started", "messageSeq": 2}
    final = await client.ended("run-1")
    assert final["message"]["content"] == [{"type": "text", "text": "Hello you"}]
    await client.wait_for(
        lambda event: event["payload"].get("phase") == "end" and event["event"] == "sessions.changed"
    )
    order = [name for name in names(client.events) if not name.startswith("agent:run_status")]
    assert order == [
        "changed:create",
        "chat:status",
        "message:user",
        "agent:lifecycle.start",
        "changed:start",
        "chat:status",
        "agent:lifecycle.model",
        "agent:assistant",
        "chat:delta",
        "message:assistant",
        "agent:lifecycle.end",
        "chat:final",
        "changed:agent.input.settled",
        "changed:end",
    ]
    acked = next(i for i, frame in enumerate(client.frames) if frame.get("payload") == ack)
    # Who is connected and how the gateway is may be told at any time.
    about_it = ("agent", "chat", "session.message", "sessions.changed")
    first = next(i for i, frame in enumerate(client.frames) if frame.get("event") in about_it)
    assert acked < first
    assert [event["seq"] for event in client.events[1:]] == list(range(1, len(client.events)))


@pytest.mark.spec("RPC-14")
async def test_the_deltas_add_up_to_the_final_text(house: House, client: WireClient) -> None:
    pieces = tuple(f"word{n} " for n in range(40))
    house.model.script(FakeReply(texts=pieces, delay_s=0.004))
    final = await client.say(KEY, "talk", "run-1")
    deltas = [
        event["payload"]["deltaText"]
        for event in client.of_run("run-1")
        if event["event"] == "chat" and event["payload"]["state"] == "delta"
    ]
    assert "".join(deltas) == "".join(pieces) == final["message"]["content"][0]["text"]
    assert 1 <= len(deltas) <= len(pieces)


@pytest.mark.spec("RPC-14")
async def test_words_are_told_also_when_the_model_pauses_after_them(house: House, client: WireClient) -> None:
    """They come close behind others and are held back for a moment; the next ones may be minutes away."""
    pieces = tuple(f"word{n} " for n in range(5))
    house.model.script(FakeReply(texts=pieces, delay_s=0.005, hang_after=6))  # the first chunk is empty
    await client.call("chat.send", {"sessionKey": KEY, "message": "talk", "idempotencyKey": "run-1"})

    def told() -> str:
        shown = [event["payload"] for event in client.of_run("run-1") if event["event"] == "chat"]
        return "".join(one["deltaText"] for one in shown if one["state"] == "delta")

    await client.wait_for(lambda _event: told() == "".join(pieces).strip())
    house.model.release()
    assert (await client.ended("run-1"))["message"]["content"][0]["text"].startswith(told().strip())


@pytest.mark.spec("RPC-11")
async def test_the_history_shows_what_was_said(house: House, client: WireClient) -> None:
    house.model.script(OK, OK)
    await client.say(KEY, "first", "run-1")
    await client.say(KEY, "second", "run-2")
    history = await client.call("chat.history", {"sessionKey": KEY})
    shown = [(message["role"], message["__openclaw"]["seq"]) for message in history["messages"]]
    assert shown == [("user", 2), ("assistant", 3), ("user", 4), ("assistant", 5)]  # 1 is a hidden note
    user, assistant = history["messages"][2:]
    assert user["content"] == "second"
    assert user["idempotencyKey"] == "run-2:user"
    assert assistant["__openclaw"]["runId"] == "run-2"
    assert assistant["content"] == [{"type": "text", "text": "Hello you"}]
    assert (history["totalMessages"], history["hasMore"]) == (4, False)
    page = await client.call("chat.history", {"sessionKey": KEY, "limit": 1, "offset": 1})
    assert [message["content"] for message in page["messages"]] == ["second"]
    assert page["hasMore"] is True


async def test_an_unknown_session_has_an_empty_history(client: WireClient) -> None:
    history = await client.call("chat.history", {"sessionKey": "agent:main:nobody"})
    assert history["messages"] == []
    assert "sessionId" not in history


@pytest.mark.spec("OWN-3", "LOOP-6", "ENT-4")
async def test_counters_come_from_the_entry(house: House, client: WireClient) -> None:
    house.model.script(OK)
    await client.say(KEY, "count me", "run-1")
    row = (await client.call("sessions.describe", {"key": KEY}))["session"]
    assert (row["inputTokens"], row["outputTokens"], row["totalTokens"]) == (11, 3, 11)
    assert (row["model"], row["modelProvider"], row["status"]) == ("one", "fake", "done")
    assert row["estimatedCostUsd"] == pytest.approx((11 * 1 + 3 * 2) / 1e6)
    assert row["contextTokens"] == 32000
    assert row["hasActiveRun"] is False


@pytest.mark.spec("TRX-12", "LOOP-1")
async def test_a_tool_call_is_run_and_its_result_goes_back(house: House, gateway: Gateway) -> None:
    call = FakeCall("sessions_list", ('{"limit"', ": 5}"), "call_7")
    house.model.script(FakeReply(calls=(call,)), OK)
    async with client_of(gateway, caps=("tool-events",)) as client:
        await client.call("sessions.subscribe")
        final = await client.say(KEY, "who is there?", "run-1")
        assert final["state"] == "final"
        second = house.model.requests[1].body["messages"]
        assert [message["role"] for message in second] == ["system", "user", "user", "assistant", "tool"]
        assert second[3]["tool_calls"][0]["id"] == second[4]["tool_call_id"] == "call_7"
        assert KEY in second[4]["content"]
        order = names(client.events)
        assert order.index("message:assistant") < order.index("agent:tool.start")
        assert order.index("agent:tool.start") < order.index("agent:tool.result")
        assert order.index("agent:tool.result") < order.index("message:toolResult")
        history = await client.call("chat.history", {"sessionKey": KEY})
        assert [message["role"] for message in history["messages"]] == [
            "user",
            "assistant",
            "toolResult",
            "assistant",
        ]


async def test_tool_details_only_go_to_clients_that_asked(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(calls=(FakeCall("session_status"),)), OK)
    await client.say(KEY, "status?", "run-1")
    streams = {event["payload"]["stream"] for event in client.of_run("run-1") if event["event"] == "agent"}
    assert "item" in streams
    assert "tool" not in streams


@pytest.mark.spec("TOOL-7")
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (FakeCall("no_such_tool"), "there is no tool 'no_such_tool' here"),
        (FakeCall("sessions_list", ('{"limit": ',)), "not valid JSON"),
        (FakeCall("sessions_list", ('{"limit": "many"}',)), "invalid arguments"),
    ],
)
async def test_a_bad_tool_call_is_a_result_not_a_crash(
    house: House, client: WireClient, call: FakeCall, said: str
) -> None:
    house.model.script(FakeReply(calls=(call,)), OK)
    final = await client.say(KEY, "go", "run-1")
    assert final["state"] == "final"
    assert said in house.model.requests[1].body["messages"][-1]["content"]


async def test_a_failing_provider_is_told_and_the_session_goes_on(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(status=403, body={"error": {"message": "boom"}}), OK)
    failed = await client.say(KEY, "first", "run-1")
    assert failed["state"] == "error"
    assert "fake/one" in failed["errorMessage"]
    assert "sk-fake-key" not in str(failed)
    fine = await client.say(KEY, "second", "run-2")
    assert fine["state"] == "final"
    row = (await client.call("sessions.describe", {"key": KEY}))["session"]
    assert row["status"] == "done"


@pytest.mark.spec("RPC-13", "LOOP-4")
async def test_abort_stops_the_run_and_keeps_what_was_said(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("partial ", "never sent"), hang_after=2))
    await client.call("chat.send", {"sessionKey": KEY, "message": "story", "idempotencyKey": "run-1"})
    await client.wait_for(lambda event: event["payload"].get("state") == "delta")
    answer = await client.call("chat.abort", {"sessionKey": KEY, "runId": "run-1"})
    assert answer == {"ok": True, "aborted": True, "runIds": ["run-1"]}
    ended = await client.ended("run-1")
    assert (ended["state"], ended["stopReason"]) == ("aborted", "rpc")
    assert ended["message"]["content"][0]["text"] == "partial "
    await house.model.wait_for_disconnects(1)
    history = await client.call("chat.history", {"sessionKey": KEY})
    last = history["messages"][-1]
    assert (last["role"], last["stopReason"]) == ("assistant", "aborted")
    row = (await client.call("sessions.describe", {"key": KEY}))["session"]
    assert (row["status"], row["abortedLastRun"]) == ("killed", True)
    waited = await client.call("agent.wait", {"runId": "run-1", "timeoutMs": 60_000})
    assert (waited["status"], waited["stopReason"]) == ("error", "rpc")


@pytest.mark.spec("RPC-13")
async def test_abort_of_nothing_and_of_a_foreign_run(house: House, client: WireClient) -> None:
    assert await client.call("chat.abort", {"sessionKey": KEY}) == {
        "ok": True,
        "aborted": False,
        "runIds": [],
    }
    house.model.script(OK)
    await client.say("agent:main:other", "hi", "run-9")
    with pytest.raises(RefusedError, match="does not belong to session"):
        await client.call("chat.abort", {"sessionKey": KEY, "runId": "run-9"})


@pytest.mark.spec("RPC-12")
async def test_the_same_idempotency_key_runs_once(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("slow",), hang_after=0))
    send = {"sessionKey": KEY, "message": "once", "idempotencyKey": "run-1"}
    assert (await client.call("chat.send", send))["status"] == "started"
    await house.model.wait_for_requests(1)
    assert await client.call("chat.send", send) == {"runId": "run-1", "status": "in_flight"}
    house.model.release()
    await client.ended("run-1")
    assert await client.call("chat.send", send) == {"runId": "run-1", "status": "ok"}
    with pytest.raises(RefusedError, match="idempotency key already used"):
        await client.call("chat.send", {**send, "message": "twice"})
    assert len(house.model.requests) == 1


@pytest.mark.spec("QUE-1", "QUE-2", "QUE-6")
async def test_a_second_message_waits_and_then_runs(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("one",), hang_after=0), OK)
    await client.call("chat.send", {"sessionKey": KEY, "message": "a", "idempotencyKey": "run-1"})
    await house.model.wait_for_requests(1)
    await client.call(
        "chat.send",
        {"sessionKey": KEY, "message": "b", "idempotencyKey": "run-2", "queueMode": "followup"},
    )
    pending = (await client.call("chat.history", {"sessionKey": KEY}))["pendingInputs"]
    assert [(item["runId"], item["state"]) for item in pending["items"]] == [("run-2", "queued")]
    assert len(house.model.requests) == 1
    house.model.release()
    await client.ended("run-1")
    assert (await client.ended("run-2"))["state"] == "final"
    history = await client.call("chat.history", {"sessionKey": KEY})
    assert [message["role"] for message in history["messages"]] == ["user", "assistant"] * 2


@pytest.mark.spec("QUE-2", "QUE-5")
async def test_a_steered_message_reaches_the_running_turn(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(calls=(FakeCall("session_status"),), hang_after=0), OK)
    await client.call("chat.send", {"sessionKey": KEY, "message": "a", "idempotencyKey": "run-1"})
    await house.model.wait_for_requests(1)
    await client.call("chat.send", {"sessionKey": KEY, "message": "also b", "idempotencyKey": "run-2"})
    house.model.release()
    await client.ended("run-1")
    assert (await client.ended("run-2"))["state"] == "final"
    assert len(house.model.requests) == 2
    roles = [(m["role"], m["content"]) for m in house.model.requests[1].body["messages"]]
    assert roles[-1] == ("user", "also b")
    assert roles[-2][0] == "tool"


async def test_sessions_do_not_wait_for_one_another(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("slow",), hang_after=0), OK)
    await client.call("chat.send", {"sessionKey": KEY, "message": "slow", "idempotencyKey": "run-1"})
    await house.model.wait_for_requests(1)
    assert (await client.say("agent:bob:main", "quick", "run-2"))["state"] == "final"
    house.model.release()
    await client.ended("run-1")


@pytest.mark.spec("QUE-1")
async def test_the_main_lane_runs_four_at_once(house: House, client: WireClient) -> None:
    house.model.script(*[FakeReply(texts=("x",), hang_after=0)] * 6)
    for n in range(6):
        await client.call(
            "chat.send", {"sessionKey": f"agent:main:s{n}", "message": "go", "idempotencyKey": f"run-{n}"}
        )
    await house.model.wait_for_requests(4)
    await asyncio.sleep(0.05)
    assert len(house.model.requests) == 4
    house.model.release()
    for n in range(6):
        assert (await client.ended(f"run-{n}"))["state"] == "final"


@pytest.mark.spec("REST-2", "QUE-8")
async def test_a_run_whose_end_could_not_be_written_goes_on_with_the_next_message(
    house: House, gateway: Gateway, client: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.model.script(OK, OK, OK)
    store = gateway.services.store
    finish = store.finish

    async def full_once(*arguments: object, **named: object) -> object:
        monkeypatch.setattr(store, "finish", finish)
        raise StoreFull()

    monkeypatch.setattr(store, "finish", full_once)
    told = await client.say(KEY, "first", "run-1")
    assert (told["state"], "disk is full" in told["errorMessage"]) == ("error", True)
    assert (await client.say(KEY, "second", "run-2"))["state"] == "final"
    waited = await client.call("agent.wait", {"runId": "run-1", "timeoutMs": 60_000})
    assert waited["status"] == "ok"
    history = await client.call("chat.history", {"sessionKey": KEY})
    assert [message["role"] for message in history["messages"]] == ["user", "assistant"] * 2
