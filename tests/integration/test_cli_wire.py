"""Wire behaviour that the command line rests on: what became of a delivery, and a clean-up by dmScope."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from openclaw.app import Gateway
from openclaw.domain.entry import DeliveryContext
from tests.conformance.making import seed, turn
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

Json = dict[str, Any]
FINE = FakeReply(texts=("Fine.",))


async def delivered(client: WireClient, run_id: str, **params: Any) -> Json:
    request = {"message": "hello", "idempotencyKey": run_id, "sessionKey": "talk", **params}
    request_id = await client.post("agent", request)
    await client.answer(request_id)
    finished = await client.answer(request_id)
    status: Json = finished["result"]["deliveryStatus"]
    return status


@pytest.mark.spec("CLI-6", "RPC-15")
async def test_an_agent_call_tells_what_became_of_its_delivery(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(*[FINE] * 5)
    unasked = await delivered(client, "r1")
    assert (unasked["requested"], unasked["status"]) == (False, "suppressed")
    nowhere = await delivered(client, "r2", deliver=True)
    assert (nowhere["status"], nowhere["attempted"]) == ("suppressed", False)
    assert "no channel" in nowhere["reason"]
    queued = await delivered(client, "r3", deliver=True, replyChannel="telegram", replyTo="4711")
    assert queued["requested"] is True and queued["status"] in ("queued", "failed")
    services = gateway.services
    route = DeliveryContext(channel="telegram", to="42")
    await services.store.edit_session(
        seed("talk"),
        lambda entry: replace(entry, delivery_context=route),
        session_id="unused",
        now_ms=services.clock.now_ms(),
    )
    known = await delivered(client, "r4", deliver=True)
    assert known["status"] == queued["status"], "without a named place the session's own route is taken"
    (part,) = await services.outbox.reply_of("r4")
    assert part.state in ("prepared", "sending", "failed")
    said = {"sessionKey": "talk", "message": "in chat", "idempotencyKey": "r5", "deliver": True}
    await client.call("chat.send", said)
    assert (await client.call("agent.wait", {"runId": "r5"}))["status"] == "ok"
    assert len(await services.outbox.reply_of("r5")) == 1, "chat.send takes the same way"


@pytest.mark.spec("CLI-8")
async def test_direct_sessions_retire_only_while_all_direct_messages_share_main(house: House) -> None:
    async with house.gateway() as gateway, client_of(gateway) as client:
        now_ms = gateway.services.clock.now_ms()
        for name in ("telegram:dm:1", "telegram:dm:2", "notes"):
            await turn(gateway.services.store, f"run-{name}", name, to=seed(name), at=now_ms)
        planned = await client.call("sessions.cleanup", {"fixDmScope": True, "dryRun": True})
        (part,) = [store for store in planned["stores"] if store["agentId"] == "main"]
        assert (part["dmScopeRetired"], part["beforeCount"], part["afterCount"]) == (2, 3, 1)
        done = await client.call(
            "sessions.cleanup", {"fixDmScope": True, "activeKey": "agent:main:telegram:dm:1"}
        )
        (part,) = [store for store in done["stores"] if store["agentId"] == "main"]
        assert (part["dmScopeRetired"], part["afterCount"], done["applied"]) == (1, 2, True)
        listed = await client.call("sessions.list", {})
        assert {row["key"] for row in listed["sessions"]} == {
            "agent:main:telegram:dm:1",
            "agent:main:notes",
        }
    house.config["session"] = {"dmScope": "per-channel-peer"}
    async with house.gateway() as gateway, client_of(gateway) as client:
        with pytest.raises(RefusedError) as refused:
            await client.call("sessions.cleanup", {"fixDmScope": True})
        assert "per-channel-peer" in str(refused.value.error["message"])
