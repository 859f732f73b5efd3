"""Messages from a platform, over RPC: who is let in, which session they reach, where the answer goes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.domain.routing import Envelope
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

Json = dict[str, Any]
OK = FakeReply(texts=("Understood.",))
ANN = {"senderId": "1001", "senderName": "Ann"}


class PatientClock(MovableClock):
    """Who sleeps wakes up when the clock was moved far enough."""

    async def sleep(self, seconds: float) -> None:
        until = self.monotonic() + seconds
        while True:
            left = until - self.monotonic()
            if left <= 0:
                return
            await asyncio.sleep(min(0.02, left))


def message(number: int, text: str = "hello", **more: Any) -> Json:
    base: Json = {
        "channel": "pigeon",
        "peer": {"kind": "direct", "id": "1001"},
        "messageId": f"m{number}",
        "text": text,
        **ANN,
    }
    return base | more


def in_group(number: int, text: str, **more: Any) -> Json:
    return message(number, text, **({"peer": {"kind": "group", "id": "G1"}, "groupSubject": "Birds"} | more))


async def outbound(client: WireClient, count: int = 1) -> list[Json]:
    """The first deliveries to this connector."""

    def told() -> list[Json]:
        return [event["payload"] for event in client.events if event["event"] == "channels.outbound"]

    await client.wait_for(lambda _event: len(told()) >= count)
    return told()


def asked(house: House, number: int) -> str:
    return str(house.model.requests[number].body["messages"])


@pytest.fixture
def birds(house: House) -> House:
    house.config["channels"] = {
        "pigeon": {
            "allowFrom": ["1001"],
            "groupPolicy": "open",
            "groups": {"*": {"requireMention": True}},
        }
    }
    return house


@pytest.mark.spec("ORG-1", "ORG-4", "ORG-7", "ROUTE-2", "KEY-3")
async def test_a_message_runs_in_main_and_its_answer_goes_back_where_it_came_from(birds: House) -> None:
    birds.model.script(OK)
    async with birds.gateway() as gateway, client_of(gateway) as client:
        await client.call("channels.attach", {"channel": "pigeon"})
        taken = await client.call(
            "channels.inbound", message(1, conversationLabel="Ann at home", **{"from": "pigeon:1001"})
        )
        assert (taken["status"], taken["sessionKey"]) == ("started", "agent:main:main")
        (reply,) = await outbound(client)
        assert (reply["to"], reply["text"], reply["channel"]) == ("1001", "Understood.", "pigeon")
        assert reply["key"] == f"{taken['runId']}:reply"
        row = (await client.call("sessions.describe", {"key": "main"}))["session"]
        assert row["deliveryContext"] == {"channel": "pigeon", "to": "1001", "accountId": "default"}
        assert row["origin"]["label"] == "Ann at home" and row["origin"]["from"] == "pigeon:1001"
        assert row["lastChannel"] == "pigeon"


@pytest.mark.spec("ROUTE-4")
async def test_the_same_message_again_runs_once_also_after_a_restart(birds: House) -> None:
    birds.model.script(OK, OK)
    async with birds.gateway() as gateway, client_of(gateway) as client:
        first = await client.call("channels.inbound", message(1))
        await client.ended(first["runId"])
        again = await client.call("channels.inbound", message(1))
        assert (again["status"], again["runId"]) == ("ok", first["runId"])
    async with birds.gateway() as gateway, client_of(gateway) as client:
        again = await client.call("channels.inbound", message(1))
        assert (again["status"], again["runId"]) == ("ok", first["runId"])
        other_chat = message(1, peer={"kind": "direct", "id": "1002"}, senderId="1001")
        taken = await client.call("channels.inbound", other_chat)
        assert taken["status"] == "started", "message ids are unique inside one chat only"
    assert len(birds.model.requests) <= 2


@pytest.mark.spec("CMD-13")
async def test_a_stranger_gets_a_code_once_and_is_let_in_by_a_person(birds: House) -> None:
    birds.model.script(OK, OK)
    async with birds.gateway() as gateway, client_of(gateway) as client:
        await client.call("channels.attach", {"channel": "pigeon"})
        stranger: Json = {"peer": {"kind": "direct", "id": "66"}, "senderId": "66", "senderName": "Zed"}
        refused = await client.call("channels.inbound", message(1, **stranger))
        assert (refused["status"], refused.get("runId"), refused.get("reason")) == ("asked", None, None)
        (told,) = await outbound(client)
        await client.call("channels.inbound", message(2, "let me in!", **stranger))
        listed = await client.call("pairing.list")
        (waiting,) = listed["pending"]
        assert waiting["code"] in told["text"] and told["to"] == "66"
        assert (waiting["senderId"], waiting["name"]) == ("66", "Zed")
        assert (await client.call("sessions.list"))["sessions"] == [] and birds.model.requests == []
        with pytest.raises(RefusedError, match="no one on pigeon holds the code"):
            await client.call("pairing.approve", {"channel": "pigeon", "code": "WRONG"})
        let_in = await client.call(
            "pairing.approve", {"channel": "pigeon", "code": waiting["code"].lower(), "owner": False}
        )
        assert (let_in["senderId"], let_in["owner"]) == ("66", False)
        taken = await client.call("channels.inbound", message(3, "thanks", **stranger))
        assert taken["status"] == "started"
        replies = await outbound(client, 2)
        assert [(one["to"], one["text"]) for one in replies[1:]] == [("66", "Understood.")]
        await client.call("pairing.remove", {"channel": "pigeon", "senderId": "66"})
        shown_out = await client.call("channels.inbound", message(4, **stranger))
        assert shown_out["status"] == "asked"


@pytest.mark.spec("CMD-13")
@pytest.mark.parametrize(
    ("policy", "status", "reason"),
    [
        ("disabled", "ignored", "disabled"),
        ("allowlist", "ignored", "not_listed"),
        ("open", "started", None),
        ("pairing", "asked", None),
    ],
)
async def test_the_policy_for_direct_chats(
    birds: House, policy: str, status: str, reason: str | None
) -> None:
    birds.model.script(OK)
    birds.config["channels"]["pigeon"]["dmPolicy"] = policy
    async with birds.gateway() as gateway, client_of(gateway) as client:
        answer = await client.call(
            "channels.inbound", message(1, senderId="5", peer={"kind": "direct", "id": "5"})
        )
        assert (answer["status"], answer.get("reason")) == (status, reason)


@pytest.mark.spec("ROUTE-3", "KEY-9", "KEY-25")
async def test_a_group_is_overheard_until_the_agent_is_called(birds: House) -> None:
    birds.model.script(OK, OK)
    async with birds.gateway() as gateway, client_of(gateway) as client:
        await client.call("channels.attach", {"channel": "pigeon"})
        bob = {"senderId": "2", "senderName": "Bob"}
        assert (await client.call("channels.inbound", in_group(1, "the cat is out", **bob)))[
            "status"
        ] == "kept"
        assert (await client.call("channels.inbound", in_group(2, "and the dog")))["status"] == "kept"
        again = await client.call("channels.inbound", in_group(2, "and the dog"))
        assert (again["status"], again["reason"]) == ("ok", "not_mentioned")
        assert birds.model.requests == []
        taken = await client.call("channels.inbound", in_group(3, "what now?", mentioned=True))
        assert taken["sessionKey"] == "agent:main:pigeon:group:g1"
        (reply,) = await outbound(client)
        assert reply["to"] == "G1", "the group's own id, byte for byte"
        said = asked(birds, 0)
        assert "Bob: the cat is out" in said and "Ann: and the dog" in said and "Ann: what now?" in said
        await client.call("channels.inbound", in_group(4, "and then?", mentioned=True))
        await outbound(client, 2)
        assert asked(birds, 1).count("the cat is out") == 1, "told once; it stands in the transcript now"


@pytest.mark.spec("ROUTE-4")
async def test_rapid_words_of_one_person_become_one_turn(birds: House) -> None:
    birds.model.script(OK)
    birds.config["messages"] = {"inbound": {"debounceMs": 600_000}}
    clock = PatientClock()
    async with birds.gateway(clock) as gateway, client_of(gateway) as client:
        await client.call("channels.attach", {"channel": "pigeon"})
        for number, text in enumerate(("one", "two", "three")):
            answer = await client.call("channels.inbound", message(number, text))
            assert answer["status"] == "started"
        assert birds.model.requests == []
        clock.move(601)
        (reply,) = await outbound(client)
        assert reply["text"] == "Understood."
        (request,) = birds.model.requests
        spoken = [part["content"] for part in request.body["messages"] if part["role"] == "user"]
        assert all(word in str(spoken) for word in ("one", "two", "three"))


@pytest.mark.spec("KEY-11", "ORG-9")
async def test_a_thread_is_a_session_of_its_own_and_observing_creates_nothing(birds: House) -> None:
    birds.model.script(OK)
    async with birds.gateway() as gateway, client_of(gateway) as client:
        await client.call("channels.attach", {"channel": "pigeon"})
        seen = await client.call("channels.inbound", in_group(1, "look", updateOnly=True))
        assert seen["status"] == "unknown"
        assert (await client.call("sessions.list"))["sessions"] == []
        taken = await client.call(
            "channels.inbound", in_group(2, "in the thread", threadId="T9", mentioned=True)
        )
        assert taken["sessionKey"] == "agent:main:pigeon:group:g1:thread:t9"
        (reply,) = await outbound(client)
        assert (reply["to"], reply["threadId"]) == ("G1", "T9")
        seen = await client.call(
            "channels.inbound", in_group(3, "x", threadId="T9", updateOnly=True, groupSubject="Old birds")
        )
        assert seen["status"] == "updated"


async def test_a_delivery_waits_for_its_connector_and_for_its_word(birds: House) -> None:
    birds.model.script(OK, OK)
    async with birds.gateway() as gateway, client_of(gateway) as client:
        first = await client.call("channels.inbound", message(1))
        await client.ended(first["runId"])
        async with client_of(gateway) as carrier:
            await carrier.call("channels.attach", {"channel": "pigeon", "acknowledges": True})
            (reply,) = await outbound(carrier)
            states = (await client.call("outbox.list", {}))["deliveries"]
            assert [one["state"] for one in states] == ["sending"]
            settled = await carrier.call("channels.settle", {"channel": "pigeon", "key": reply["key"]})
            assert settled == {"ok": True, "known": True}
            twice = await carrier.call("channels.settle", {"channel": "pigeon", "key": reply["key"]})
            assert twice["known"] is False
        second = await client.call("channels.inbound", message(2))
        await client.ended(second["runId"])
        async with client_of(gateway) as carrier:
            await carrier.call("channels.attach", {"channel": "pigeon", "acknowledges": True})
            (reply,) = await outbound(carrier)
            await carrier.call(
                "channels.settle", {"channel": "pigeon", "key": reply["key"], "error": "the loft is closed"}
            )
            failed = await _state(client, second["runId"])
            assert (failed["state"], failed["error"]) == ("failed", "the loft is closed")


async def _state(client: WireClient, run_id: str) -> Json:
    for _ in range(600):
        for one in (await client.call("outbox.list", {}))["deliveries"]:
            if one["runId"] == run_id and one["state"] != "sending":
                found: Json = one
                return found
    raise AssertionError("the delivery was never settled")


@pytest.mark.spec("RPC-3")
async def test_only_the_owner_speaks_for_a_platform(gateway: Gateway) -> None:
    async with client_of(gateway, scopes=("operator.read", "operator.write")) as client:
        for method, params in (
            ("channels.inbound", message(1)),
            ("channels.attach", {"channel": "pigeon"}),
            ("pairing.approve", {"channel": "pigeon", "code": "X"}),
        ):
            with pytest.raises(RefusedError, match=r"missing scope: operator\.admin"):
                await client.call(method, params)


@pytest.mark.spec("CMD-13", "ROUTE-3")
async def test_files_of_strangers_are_not_worth_fetching(birds: House) -> None:
    birds.config["channels"]["pigeon"] |= {"groupPolicy": "allowlist", "groups": {"G1": {}}}
    async with birds.gateway() as gateway:
        door = gateway.services.channels.reception
        cases = [
            (envelope_of_peer("direct", "1001"), True),
            (envelope_of_peer("direct", "66"), False),
            (envelope_of_peer("group", "G1", sender="1001"), True),
            (envelope_of_peer("group", "G2", sender="1001"), False),
        ]
        for envelope, wanted in cases:
            assert await door.wants_files(envelope) is wanted, envelope
        assert await gateway.services.channels.senders.list(now_ms=0) == (), "nobody was given a code by this"


def envelope_of_peer(kind: Any, peer_id: str, sender: str | None = None) -> Envelope:
    return Envelope(channel="pigeon", peer_kind=kind, peer_id=peer_id, sender_id=sender)
