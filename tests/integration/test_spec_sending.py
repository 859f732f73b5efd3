"""The send policy as people meet it: which doors it closes, what stays open, and who may change it."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.domain.commands import CommandCaller
from openclaw.engine.turns import Incoming
from openclaw.store.records import SessionSeed, UserInput
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:proj"
GROUP = "agent:main:discord:group:77"
CRON = "agent:main:cron:nightly"
OK = FakeReply(texts=("fine",))
POLICY = {
    "rules": [
        {"action": "deny", "match": {"channel": "discord", "chatType": "group"}},
        {"action": "deny", "match": {"keyPrefix": "cron:"}},
    ],
    "default": "allow",
}


async def refusal(client: WireClient, method: str, key: str, run_id: str) -> dict[str, Any]:
    with pytest.raises(RefusedError) as refused:
        await client.call(method, {"sessionKey": key, "message": "hi", "idempotencyKey": run_id})
    error: dict[str, Any] = refused.value.error
    return error


async def told(client: WireClient, text: str, run_id: str) -> str:
    final = await client.say(KEY, text, run_id)
    answer: str = final["message"]["content"][0]["text"]
    return answer


async def policy_of(client: WireClient) -> str | None:
    row = (await client.call("sessions.describe", {"key": KEY}))["session"]
    chosen: str | None = row.get("sendPolicy")
    return chosen


@pytest.mark.spec("SEND-1", "SEND-3", "SEND-5", "SEND-8")
@pytest.mark.parametrize("method", ["chat.send", "agent"])
async def test_both_doors_refuse_kinds_of_sessions_and_store_nothing(house: House, method: str) -> None:
    house.config["session"] = {"sendPolicy": POLICY}
    house.model.script(OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        for number, key in enumerate((GROUP, CRON)):
            error = await refusal(client, method, key, f"run-{number}")
            assert error["code"] == "INVALID_REQUEST"
            assert "policy" in error["message"]
            assert await gateway.services.store.session(key) is None
            assert await gateway.services.store.input_state(f"run-{number}") is None
        assert house.model.requests == []
        assert (await client.say("agent:main:discord:direct:77", "hi", "run-2"))["state"] == "final"


@pytest.mark.spec("SEND-4", "SEND-5", "CMD-7", "CMD-8", "CMD-15", "SEND-10")
async def test_the_owner_closes_and_opens_a_session_from_the_chat(house: House, client: WireClient) -> None:
    house.model.script(OK, OK, OK)
    await client.say(KEY, "first", "run-1")
    await client.say(KEY, "please /send off the letter", "run-2")
    assert await policy_of(client) is None
    assert house.model.requests[1].body["messages"][-1]["content"] == "please /send off the letter"
    await told(client, "/send deny", "cmd-1")
    assert await policy_of(client) == "deny"
    for method in ("chat.send", "agent"):
        assert "policy" in (await refusal(client, method, KEY, f"run-3-{method}"))["message"]
    assert "Usage: /send" in await told(client, "/send sometimes", "cmd-2")
    assert await policy_of(client) == "deny"
    await told(client, "/send on", "cmd-3")
    assert await policy_of(client) == "allow"
    assert (await client.say(KEY, "second", "run-4"))["state"] == "final"
    await told(client, "/send inherit", "cmd-4")
    assert await policy_of(client) is None
    assert len(house.model.requests) == 3


@pytest.mark.spec("SEND-4")
async def test_a_session_that_is_set_free_overrides_the_rules_until_it_is_cleared(house: House) -> None:
    house.config["session"] = {"sendPolicy": {"default": "deny"}}
    house.model.script(OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("sessions.create", {"key": KEY})
        await refusal(client, "chat.send", KEY, "run-1")
        await client.call("sessions.patch", {"key": KEY, "sendPolicy": "allow"})
        assert (await client.say(KEY, "hi", "run-2"))["state"] == "final"
        await client.call("sessions.patch", {"key": KEY, "sendPolicy": None})
        assert await policy_of(client) is None
        await refusal(client, "chat.send", KEY, "run-3")
        assert len(house.model.requests) == 1


@pytest.mark.spec("CMD-8", "CMD-13")
async def test_who_is_no_owner_cannot_change_it_and_gets_no_answer(house: House, gateway: Gateway) -> None:
    house.model.script(OK)
    turns, now_ms = gateway.services.turns, gateway.services.clock.now_ms()
    async with client_of(gateway) as client:
        await client.say(KEY, "first", "run-1")
        friend = CommandCaller(authorised=True, sender="telegram:42", channel="telegram")
        body = UserInput("/send off", now_ms)
        receipt = await turns.accept(
            Incoming("run-2", SessionSeed(KEY, "main"), "channel", "42", body, caller=friend)
        )
        assert receipt.finished
        assert await policy_of(client) is None
        assert await gateway.services.store.input_state("run-2") is None
        history = await client.call("chat.history", {"sessionKey": KEY})
        assert "/send off" not in str(history["messages"])
        assert len(house.model.requests) == 1
