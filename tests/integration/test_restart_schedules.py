"""What a restart leaves of schedules, and where the results of work that nobody watches go (REST-1, DB-8)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of
from tests.integration.test_wire_cron import HOUR_MS, OK, ended_runs, job

Json = dict[str, Any]
NOON = int(datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openclaw.engine.cron.LONGEST_SLEEP_S", 0.05)


async def jobs_of(client: WireClient) -> dict[str, Json]:
    listed = (await client.call("cron.list", {"includeDisabled": True}))["jobs"]
    return {one["name"]: one for one in listed}


@pytest.mark.spec("REST-1", "AUTO-2", "AUTO-4")
async def test_every_kind_of_schedule_survives_a_restart_and_no_time_is_run_twice(house: House) -> None:
    house.model.decide = lambda _body: OK
    clock = MovableClock(NOON)
    at = datetime.fromtimestamp((NOON + HOUR_MS) / 1000, UTC).isoformat()
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        await client.call("cron.add", job(name="hourly"))
        await client.call("cron.add", job(name="once", schedule={"kind": "at", "at": at}))
        daily = {"kind": "cron", "expr": "30 9 * * *", "tz": "Europe/Berlin"}
        await client.call("cron.add", job(name="daily", schedule=daily))
        asleep = await client.call("cron.add", job(name="asleep"))
        await client.call("cron.update", {"id": asleep["id"], "patch": {"enabled": False}})
        before = await jobs_of(client)
        assert len(before) == 4
        nine_thirty = datetime(2026, 3, 11, 8, 30, tzinfo=UTC)
        assert before["daily"]["state"]["nextRunAtMs"] == int(nine_thirty.timestamp() * 1000)
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        assert await jobs_of(client) == before, "nothing about them changed, their next times included"
        clock.move(3600 + 5)
        await ended_runs(client, before["hourly"]["id"], 1)
        await ended_runs(client, before["once"]["id"], 1)
        assert len(house.model.requests) == 2
        after = await jobs_of(client)
        assert after["hourly"]["state"]["nextRunAtMs"] == before["hourly"]["state"]["nextRunAtMs"] + HOUR_MS
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        again = await jobs_of(client)
        assert again == after
        runs = await ended_runs(client, before["hourly"]["id"], 1)
        assert [run["status"] for run in runs] == ["ok"], "its history is there as well"
        clock.move(3600 + 5)
        await ended_runs(client, before["hourly"]["id"], 2)
        assert len(house.model.requests) == 3, "what ran once does not run again, what sleeps still sleeps"


# -- routes ----------------------------------------------------------------------------------------


def outbound(client: WireClient) -> list[tuple[str, str]]:
    sent = [one["payload"] for one in client.events if one["event"] == "channels.outbound"]
    return [(one["to"], one["text"]) for one in sent]


@pytest.mark.spec("DB-8", "AUTO-4")
async def test_the_result_of_a_job_never_goes_where_its_key_seems_to_point(house: House) -> None:
    house.model.decide = lambda _body: OK
    house.config["channels"] = {"pigeon": {"dmPolicy": "open"}}
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("channels.attach", {"channel": "pigeon"})
        message = {"channel": "pigeon", "peer": {"kind": "direct", "id": "Ann"}, "senderId": "Ann"}
        taken = await client.call("channels.inbound", message | {"messageId": "1", "text": "hi"})
        await client.ended(taken["runId"])
        spelled = job(sessionTarget="session:pigeon:group:elsewhere", delivery={"mode": "announce"})
        added = await client.call("cron.add", spelled)
        await client.call("cron.run", {"id": added["id"]})
        await ended_runs(client, added["id"], 1)
        await client.wait_for(lambda _event: len(outbound(client)) >= 2)
        assert outbound(client) == [("Ann", "The report."), ("Ann", "The report.")]


@pytest.mark.spec("DB-8", "ANN-7")
async def test_a_helpers_result_goes_to_the_stored_route_of_its_requester(house: House) -> None:
    """The requester's key names one group; the person wrote, and is answered, in another place."""
    key = "agent:main:pigeon:group:decoy"
    house.config["channels"] = {"pigeon": {"groupPolicy": "open"}}

    def decide(body: Json) -> FakeReply:
        said = str(body["messages"])
        if "You are a helper" in said:
            return FakeReply(texts=("42",))
        if "tool_calls" not in said:
            return FakeReply(calls=(FakeCall("sessions_spawn", ('{"task": "count"}',)),))
        return FakeReply(texts=("It is 42." if "42" in said else "counting",))

    house.model.decide = decide
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("channels.attach", {"channel": "pigeon"})
        sent = {"sessionKey": key, "message": "count them", "idempotencyKey": "run-1", "deliver": True}
        route = {"originatingChannel": "pigeon", "originatingTo": "True-Place", "originatingThreadId": "T9"}
        await client.call("chat.send", sent | route)
        await client.wait_for(lambda _event: any(text == "It is 42." for _, text in outbound(client)))
        assert {to for to, _ in outbound(client)} == {"True-Place"}
        threads = {
            one["payload"].get("threadId") for one in client.events if one["event"] == "channels.outbound"
        }
        assert threads == {"T9"}, "the thread as well"
