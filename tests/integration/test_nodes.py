"""Nodes over the wire: where their words go, what they hear, and all that they may not (AUTO-9)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.protocol.methods import METHODS
from tests.conformance.making import select
from tests.fakes.device import TestDevice
from tests.fakes.device_client import FROM_AFAR, DeviceClient
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import TOKEN, House
from tests.integration.test_devices import turned_away

Json = dict[str, Any]
LAMP, CLOCK = TestDevice(21), TestDevice(22)
OWN = f"agent:main:node-{LAMP.device_id}"


@pytest.fixture(autouse=True)
def talkative(house: House) -> None:
    house.model.script(*[FakeReply(texts=("I am here.",))] * 8)


def node_of(gateway: Gateway, device: TestDevice | None = LAMP, **options: Any) -> DeviceClient:
    auth = options.pop("auth", {"token": TOKEN})
    client = {"id": "node-host", "mode": "node", "displayName": "Lamp"}
    url = f"ws://127.0.0.1:{gateway.port}"
    return DeviceClient(url, auth, device=device, role="node", scopes=(), client=client, **options)


async def tell(node: WireClient, event: str, **payload: Any) -> Json:
    return await node.call("node.event", {"event": event, "payload": payload})


async def refusal(node: WireClient, method: str, params: Json) -> Json:
    with pytest.raises(RefusedError) as caught:
        await node.call(method, params)
    return caught.value.error


async def rows(client: WireClient) -> dict[str, Json]:
    return {row["key"]: row for row in (await client.call("sessions.list"))["sessions"]}


@pytest.mark.spec("AUTO-9", "KEY-14")
class TestWhereWordsGo:
    async def test_into_the_session_of_the_node_on_the_internal_channel(
        self, house: House, gateway: Gateway, client: WireClient
    ) -> None:
        async with node_of(gateway) as node:
            taken = await tell(node, "agent.request", message="Is anybody there?")
            assert taken["ok"] and taken["handled"] and taken["event"] == "agent.request"
            assert taken["sessionKey"] == OWN
            await client.ended(taken["runId"])
        listed = await rows(client)
        assert set(listed) == {OWN}
        row = listed[OWN]
        assert (row["channel"], row["agentId"]) == ("internal", "main")
        kept = await select(gateway.services.door.book.database, "SELECT session_key, kind FROM sessions")
        assert kept == [(OWN, "node")]
        assert "Is anybody there?" in house.model.requests[-1].raw.decode()

    async def test_spoken_words_too_also_as_text(self, gateway: Gateway, client: WireClient) -> None:
        async with node_of(gateway) as node:
            encoded = json.dumps({"text": "Good morning", "eventId": "e1", "timestamp": 7})
            taken = await node.call("node.event", {"event": "voice.transcript", "payloadJSON": encoded})
            assert taken["sessionKey"] == OWN
            await client.ended(taken["runId"])
        history = await client.call("chat.history", {"sessionKey": OWN})
        assert "Good morning" in json.dumps(history["messages"][0]["content"])

    async def test_elsewhere_when_the_event_says_so(self, gateway: Gateway, client: WireClient) -> None:
        async with node_of(gateway) as node:
            for named, meant in (
                ("main", "agent:main:main"),
                ("agent:bob:lamps", "agent:bob:lamps"),
                ("  ", OWN),
                (None, OWN),
            ):
                taken = await tell(node, "agent.request", message="Hello", sessionKey=named)
                assert taken["sessionKey"] == meant
                await client.ended(taken["runId"])
            unknown = await refusal(
                node, "node.event",
                {"event": "agent.request", "payload": {"message": "x", "sessionKey": "agent:nobody:main"}},
            )  # fmt: skip
            assert "unknown agent id" in unknown["message"]
        assert set(await rows(client)) >= {OWN, "agent:main:main", "agent:bob:lamps"}

    async def test_each_node_has_its_own_session_and_ids_are_its_own(
        self, gateway: Gateway, client: WireClient
    ) -> None:
        async with node_of(gateway) as lamp, node_of(gateway, CLOCK) as clock:
            first = await tell(lamp, "agent.request", message="One", idempotencyKey="1")
            again = await tell(lamp, "agent.request", message="One", idempotencyKey="1")
            other = await tell(clock, "agent.request", message="One", idempotencyKey="1")
            assert again["runId"] == first["runId"] != other["runId"]
            assert other["sessionKey"] == f"agent:main:node-{CLOCK.device_id}"
            for taken in (first, other):
                await client.ended(taken["runId"])
        history = await client.call("chat.history", {"sessionKey": OWN})
        assert [one["role"] for one in history["messages"]] == ["user", "assistant"]

    async def test_they_have_no_rights_of_an_owner(self, gateway: Gateway, client: WireClient) -> None:
        async with node_of(gateway) as node:
            taken = await tell(node, "agent.request", message="Hello", sessionKey="main", deliver=True)
            await client.ended(taken["runId"])
            database = gateway.services.door.book.database
            found = await select(database, "SELECT source, principal FROM inbox")
            assert found == [("node", f"node:{LAMP.device_id}")]
            # A command of owners is not carried out: the session is the one that it was.
            before = (await rows(client))["agent:main:main"]["sessionId"]
            await tell(node, "agent.request", message="/reset", sessionKey="main")
            assert (await rows(client))["agent:main:main"]["sessionId"] == before


@pytest.mark.spec("AUTO-9", "RPC-3")
class TestWhatNodesMayNot:
    async def test_nothing_of_the_operators_table(self, gateway: Gateway) -> None:
        async with node_of(gateway) as node:
            assert node.granted["role"] == "node" and node.granted["scopes"] == []
            assert node.hello["features"]["methods"] == ["node.event"]
            for method in METHODS:
                error = await refusal(node, method, {})
                assert error == {"code": "INVALID_REQUEST", "message": "unauthorized role: node"}, method

    async def test_and_an_operator_is_no_node(self, client: WireClient) -> None:
        error = await refusal(client, "node.event", {"event": "agent.request", "payload": {"message": "x"}})
        assert error["message"] == "unknown method: node.event"
        assert "node.event" not in client.hello["features"]["methods"]

    async def test_a_node_is_a_device_and_waits_for_its_owner_when_it_comes_from_afar(
        self, gateway: Gateway
    ) -> None:
        bare = await turned_away(node_of(gateway, None))
        assert bare["code"] == "NOT_PAIRED"
        far = await turned_away(node_of(gateway, headers=FROM_AFAR))
        assert far["details"]["code"] == "PAIRING_REQUIRED" and far["details"]["reason"] == "not-paired"

    async def test_a_node_follows_its_own_session_only(self, gateway: Gateway, client: WireClient) -> None:
        async with node_of(gateway) as lamp, node_of(gateway, CLOCK) as clock:
            for key in ("main", f"agent:main:node-{CLOCK.device_id}"):
                params = {"event": "chat.subscribe", "payload": {"sessionKey": key}}
                assert (await refusal(lamp, "node.event", params))["code"] == "FORBIDDEN"
            assert (await tell(clock, "chat.subscribe"))["sessionKey"].endswith(CLOCK.device_id)
            assert (await tell(lamp, "chat.subscribe", sessionKey=OWN))["sessionKey"] == OWN
            heard = await tell(lamp, "agent.request", message="Hello")
            final = await lamp.ended(heard["runId"])
            assert final["state"] == "final" and final["sessionKey"] == OWN
            await client.say("main", "A secret", "run-main")
            assert (await tell(lamp, "chat.unsubscribe"))["handled"]
            unheard = await tell(lamp, "agent.request", message="Hello again")
            await client.ended(unheard["runId"])
            await tell(lamp, "chat.unsubscribe")  # everything that was sent before has arrived now
            assert {one["payload"]["runId"] for one in lamp.events if one["event"] == "chat"} == {
                heard["runId"]
            }
            assert not [one for one in clock.events if one["event"] == "chat"]
            assert "secret" not in json.dumps(lamp.frames)


@pytest.mark.spec("AUTO-9")
class TestWhatIsWrong:
    @pytest.mark.parametrize(
        ("params", "told"),
        [
            ({"event": "agent.request"}, "message"),
            ({"event": "agent.request", "payload": {"message": " \n"}}, "message must not be empty"),
            ({"event": "agent.request", "payload": {"message": "x" * 20_001}}, "/message"),
            ({"event": "agent.request", "payload": {"message": 7}}, "/message"),
            ({"event": "agent.request", "payload": {"message": "x", "timeoutSeconds": 0}}, "/timeoutSeconds"),
            ({"event": "voice.transcript", "payloadJSON": "{"}, "must be a JSON object"),
            ({"event": "voice.transcript", "payloadJSON": "[" * 100_000}, "voice.transcript payload"),
            ({"event": "voice.transcript", "payloadJSON": '{"text":"a\\u0000b"}'}, "NUL"),
            ({"event": "chat.subscribe", "payloadJSON": "[1]"}, "chat.subscribe payload"),
            ({"event": ""}, "/event"),
            ({"event": "agent.request", "surprise": 1}, "surprise"),
        ],
        ids=range(11),
    )
    async def test_it_is_refused_by_name(self, gateway: Gateway, params: Json, told: str) -> None:
        async with node_of(gateway) as node:
            error = await refusal(node, "node.event", params)
            assert error["code"] == "INVALID_REQUEST" and told in error["message"]
            assert (await tell(node, "node.presence.alive"))["handled"] is False

    async def test_the_list_of_nodes(self, gateway: Gateway, client: WireClient) -> None:
        async with node_of(gateway):
            (shown,) = (await client.call("node.list"))["nodes"]
            assert shown["nodeId"] == LAMP.device_id and shown["connected"] and shown["paired"]
            assert (shown["displayName"], shown["platform"]) == ("Lamp", "test")
        await client.wait_for(lambda event: event["event"] == "presence")
        (shown,) = (await client.call("node.list"))["nodes"]
        assert shown["connected"] is False
