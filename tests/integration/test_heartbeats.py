"""Heartbeats through a running gateway whose clock the test holds: when they run, and whom they tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.engine.heartbeats import Heartbeats
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of
from tests.integration.test_engine_context import SUMMARY, answer

Json = dict[str, Any]
MAIN = "agent:main:main"
NOON = int(datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp() * 1000)
MINUTE, HOUR = 60, 3600
QUIET = FakeReply(texts=("HEARTBEAT_OK",))
NEWS = FakeReply(texts=("The cellar is flooded!",))


class Looks:
    """How often a gateway has looked at its clock."""

    done = 0


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openclaw.engine.heartbeats.LOOK_EVERY_S", 0.02)
    look = Heartbeats.look

    async def counted(beats: Heartbeats) -> None:
        await look(beats)
        Looks.done += 1

    monkeypatch.setattr(Heartbeats, "look", counted)


@asynccontextmanager
async def beating(
    house: House, clock: MovableClock, **settings: Any
) -> AsyncIterator[tuple[Gateway, WireClient]]:
    """A gateway whose main agent has a heartbeat; its clock has been looked at once."""
    house.config["agents"]["list"][0]["heartbeat"] = settings
    house.config["channels"] = {"pigeon": {"dmPolicy": "open", "groupPolicy": "open"}}
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        await client.call("channels.attach", {"channel": "pigeon"})
        await until(lambda: bool(gateway.services.heartbeats._due))
        yield gateway, client


async def until(condition: Any) -> None:
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")


async def passed(clock: MovableClock, gateway: Gateway, seconds: float) -> Json | None:
    """Let time pass and the gateway look; its last beat, once nothing runs any more."""
    await until(lambda: not gateway.services.workers.is_busy(MAIN))  # else the beat is left out
    clock.move(seconds)
    before = Looks.done
    await until(lambda: Looks.done >= before + 2)  # one look may have been under way
    await until(lambda: not gateway.services.workers.is_busy(MAIN))
    last = gateway.services.heartbeats.last
    return None if last is None else {"status": last.status, "reason": last.reason, "ts": last.ts}


async def hears(client: WireClient, text: str, number: int) -> None:
    """Ann writes on the channel, and her turn ends."""
    message = {"channel": "pigeon", "peer": {"kind": "direct", "id": "ann"}, "senderId": "ann"}
    taken = await client.call("channels.inbound", message | {"messageId": str(number), "text": text})
    await client.ended(taken["runId"])


def told(client: WireClient) -> list[tuple[str, str]]:
    sent = [one["payload"] for one in client.events if one["event"] == "channels.outbound"]
    return [(one["to"], one["text"]) for one in sent]


async def sent(client: WireClient, count: int) -> None:
    """Wait until so many messages are known as sent: that is written down after the channel has them."""
    for _ in range(3000):
        if (await client.call("outbox.list", {}))["states"] == {"sent": count}:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it was never written down")


@pytest.mark.spec("AUTO-7")
async def test_it_beats_every_half_hour_in_main_and_never_makes_up_for_what_it_missed(house: House) -> None:
    house.model.decide = lambda _body: QUIET
    clock = MovableClock(NOON)
    async with beating(house, clock) as (gateway, client):
        assert await passed(clock, gateway, 29 * MINUTE) is None, "the first comes after a whole interval"
        first = await passed(clock, gateway, 61)
        assert first is not None and first["status"] == "started"
        assert len(house.model.requests) == 1
        assert "HEARTBEAT.md" in str(house.model.requests[0].body["messages"][-1])
        await passed(clock, gateway, 5 * HOUR)
        assert len(house.model.requests) == 2, "one beat, however long it was"
        keys = [row["key"] for row in (await client.call("sessions.list"))["sessions"]]
        assert keys == [MAIN], "bob has none, and nothing but main beats"


@pytest.mark.spec("AUTO-7")
async def test_quiet_hours_are_kept(house: House) -> None:
    house.model.decide = lambda _body: QUIET
    clock = MovableClock(NOON)
    hours = {"start": "08:00", "end": "22:00", "timezone": "America/New_York"}
    async with beating(house, clock, every="1h", activeHours=hours) as (gateway, client):
        beats = [await passed(clock, gateway, HOUR + 1) for _ in range(16)]
        # Noon in UTC is eight in New York (summer time since the 8th): 13:00 UTC is nine.
        reasons = [beat["reason"] if beat else "none" for beat in beats]
        assert reasons == [None] * 13 + ["quiet-hours"] * 3
        assert len(house.model.requests) == 13
        assert (await client.call("last-heartbeat"))["reason"] == "quiet-hours"
        later = [await passed(clock, gateway, HOUR + 1) for _ in range(8)]
        assert [beat["reason"] if beat else "none" for beat in later] == ["quiet-hours"] * 7 + [None]


@pytest.mark.spec("AUTO-7")
async def test_a_beat_that_finds_its_session_busy_is_left_out(house: House) -> None:
    house.model.script(FakeReply(texts=("done",), hang_after=0), QUIET)
    clock = MovableClock(NOON)
    async with beating(house, clock) as (gateway, client):
        await client.call("chat.send", {"sessionKey": MAIN, "message": "work", "idempotencyKey": "run-1"})
        await house.model.wait_for_requests(1)
        clock.move(31 * MINUTE)
        await until(lambda: gateway.services.heartbeats.last is not None)
        last = await client.call("last-heartbeat")
        assert (last["status"], last["reason"]) == ("skipped", "busy")
        house.model.release()
        await client.ended("run-1")
        await until(lambda: not gateway.services.workers.is_busy(MAIN))
        assert len(house.model.requests) == 1, "it does not wait in line either"
        again = await passed(clock, gateway, 31 * MINUTE)
        assert again is not None and again["status"] == "started"
        assert len(house.model.requests) == 2


@pytest.mark.spec("AUTO-7", "DB-8", "AUTO-8")
async def test_where_it_tells_comes_from_the_row_or_the_configuration_never_from_words(
    house: House,
) -> None:
    house.model.decide = lambda body: (
        NEWS if "HEARTBEAT.md" in str(body["messages"][-1]) else FakeReply(texts=("to telegram:999 please",))
    )
    clock = MovableClock(NOON)
    async with beating(house, clock, target="last") as (gateway, client):
        await hears(client, "send everything to telegram:999", 1)
        await passed(clock, gateway, 31 * MINUTE)
        await client.wait_for(lambda _event: len(told(client)) >= 2)
        assert told(client) == [("ann", "to telegram:999 please"), ("ann", "The cellar is flooded!")]
        row = (await client.call("sessions.describe", {"key": MAIN}))["session"]
        assert row["deliveryContext"] == {"channel": "pigeon", "to": "ann", "accountId": "default"}


@pytest.mark.spec("AUTO-7", "DB-8")
async def test_a_named_target_is_told_and_none_tells_nobody(house: House) -> None:
    house.model.decide = lambda _body: NEWS
    clock = MovableClock(NOON)
    async with beating(house, clock, target="pigeon", to="Loft-7") as (gateway, client):
        await passed(clock, gateway, 31 * MINUTE)
        await client.wait_for(lambda _event: bool(told(client)))
        assert told(client) == [("Loft-7", "The cellar is flooded!")], "byte-exact, and nobody wrote before"
        await sent(client, 1)
    async with beating(house, clock) as (gateway, client):
        await passed(clock, gateway, 31 * MINUTE)
        assert len(house.model.requests) == 2
        assert (await client.call("outbox.list", {}))["states"] == {"sent": 1}


@pytest.mark.spec("AUTO-7", "LIFE-6")
async def test_a_beat_keeps_no_session_young(house: House) -> None:
    house.config["session"] = {"reset": {"mode": "idle", "idleMinutes": 60}}
    house.model.decide = lambda body: (
        QUIET if "HEARTBEAT.md" in str(body["messages"][-1]) else FakeReply(texts=("hello",))
    )
    clock = MovableClock(NOON)
    async with beating(house, clock) as (gateway, client):
        await hears(client, "hi", 1)
        before = (await client.call("sessions.describe", {"key": MAIN}))["session"]["sessionId"]
        for _ in range(3):
            await passed(clock, gateway, 31 * MINUTE)
        await hears(client, "hi again", 2)
        after = (await client.call("sessions.describe", {"key": MAIN}))["session"]["sessionId"]
        assert after != before, "an hour and a half without a person"


@pytest.mark.spec("FLUSH-6")
@pytest.mark.parametrize("heartbeat", [True, False], ids=["a heartbeat", "a person"])
async def test_only_a_persons_turn_is_followed_by_a_memory_flush(house: House, heartbeat: bool) -> None:
    clock = MovableClock(NOON)
    note = FakeCall("memory", ('{"action": "append", "text": "counted"}',))
    async with beating(house, clock) as (gateway, client):
        for number in range(10):
            house.model.script(answer("y" * 8000))
            await client.say(MAIN, "x" * 8000, f"talk-{number}")
        full = answer("HEARTBEAT_OK", tokens=25_000)
        if heartbeat:
            house.model.script(full, answer(SUMMARY))
            await passed(clock, gateway, 31 * MINUTE)
        else:
            notes = (FakeReply(calls=(note,)), answer("NO_REPLY", tokens=25_100))
            house.model.script(full, *notes, answer(SUMMARY))
            await client.say(MAIN, "go on", "run-1")
            await until(lambda: not gateway.services.workers.is_busy(MAIN))
        row = (await client.call("sessions.describe", {"key": MAIN}))["session"]
        assert row["compactionCount"] == 1, "the compaction itself is due all the same"
        assert ("memoryFlushCompactionCount" in row) is not heartbeat
        assert len(house.model.requests) == 10 + (2 if heartbeat else 4)
        assert bool(list(house.home.rglob("memory/*.md"))) is not heartbeat
