"""cron.* over the wire: jobs that run, in which session, how often, and where the result goes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from openclaw.app import Gateway
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

Json = dict[str, Any]
OK = FakeReply(texts=("The report.",))
HOUR_MS = 3_600_000


def job(**more: Any) -> Json:
    return {
        "name": "report",
        "schedule": {"kind": "every", "everyMs": HOUR_MS},
        "sessionTarget": "isolated",
        "payload": {"kind": "agentTurn", "message": "write the report"},
    } | more


async def ended_runs(client: WireClient, job_id: str, count: int) -> list[Json]:
    for _ in range(3000):
        entries: list[Json] = (await client.call("cron.runs", {"id": job_id}))["entries"]
        if len([one for one in entries if one["state"] == "ended"]) >= count:
            return entries
        await asyncio.sleep(0.02)
    raise AssertionError(f"{count} runs never ended: {entries}")


@pytest.mark.spec("AUTO-1", "AUTO-4", "LIFE-20", "KEY-14")
async def test_an_isolated_job_runs_with_a_fresh_session_each_time(house: House) -> None:
    house.model.script(OK, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        added = await client.call("cron.add", job())
        key = f"agent:main:cron:{added['id']}"
        ids = []
        for number in (1, 2):
            ran = await client.call("cron.run", {"id": added["id"]})
            assert ran == {"ok": True, "ran": True}
            runs = await ended_runs(client, added["id"], number)
            row = (await client.call("sessions.describe", {"key": key}))["session"]
            assert (runs[0]["status"], runs[0]["sessionId"]) == ("ok", row["sessionId"])
            assert row["channel"] == "internal"
            ids.append(row["sessionId"])
        assert len(set(ids)) == 2
        assert "The report." not in str(house.model.requests[1].body["messages"]), "nothing of the run before"
        assert "write the report" in str(house.model.requests[1].body["messages"])


@pytest.mark.spec("AUTO-2", "CLI-7")
async def test_a_job_of_main_leaves_an_event_and_wakes_it_or_not(house: House) -> None:
    house.model.script(OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        quiet = await client.call(
            "cron.add",
            job(
                sessionTarget="main",
                payload={"kind": "systemEvent", "text": "the oven is hot"},
                wakeMode="next-heartbeat",
            ),
        )
        await client.call("cron.run", {"id": quiet["id"]})
        (run,) = await ended_runs(client, quiet["id"], 1)
        assert run["status"] == "ok" and house.model.requests == []
        loud = await client.call(
            "cron.add", job(sessionTarget="main", payload={"kind": "systemEvent", "text": "tea is ready"})
        )
        await client.call("cron.run", {"id": loud["id"]})
        await ended_runs(client, loud["id"], 1)
        asked = str(house.model.requests[0].body["messages"])
        assert "the oven is hot" in asked and "tea is ready" in asked


@pytest.mark.spec("AUTO-2")
async def test_a_named_session_goes_on_from_one_run_to_the_next(house: House) -> None:
    house.model.script(OK, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        added = await client.call("cron.add", job(sessionTarget="session:diary"))
        for number in (1, 2):
            await client.call("cron.run", {"id": added["id"]})
            await ended_runs(client, added["id"], number)
        assert "The report." in str(house.model.requests[1].body["messages"])
        row = (await client.call("sessions.describe", {"key": "agent:main:diary"}))["session"]
        assert row is not None


@pytest.mark.spec("AUTO-2", "AUTO-4")
async def test_times_that_passed_are_made_up_for_once(house: House) -> None:
    house.model.script(OK, OK)
    clock = MovableClock()
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        added = await client.call("cron.add", job())
        first_ms = added["state"]["nextRunAtMs"]
        assert (await client.call("cron.status"))["nextWakeAtMs"] == first_ms
    clock.move(5.5 * 3600)
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        (run,) = await ended_runs(client, added["id"], 1)
        assert (run["dueAt"], run["missed"]) == (first_ms, 4)
        (listed,) = (await client.call("cron.list"))["jobs"]
        assert listed["state"]["nextRunAtMs"] == first_ms + 5 * HOUR_MS
    assert len(house.model.requests) == 1


@pytest.mark.spec("AUTO-2", "ROUTE-2")
async def test_the_result_goes_to_the_route_that_was_named_or_to_mains(house: House) -> None:
    house.model.decide = lambda _body: OK
    house.config["channels"] = {"pigeon": {"dmPolicy": "open"}}
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("channels.attach", {"channel": "pigeon"})
        named = await client.call(
            "cron.add", job(delivery={"mode": "announce", "channel": "pigeon", "to": "loft-7"})
        )
        await client.call("cron.run", {"id": named["id"]})
        await ended_runs(client, named["id"], 1)
        message = {"channel": "pigeon", "peer": {"kind": "direct", "id": "ann"}, "senderId": "ann"}
        taken = await client.call("channels.inbound", message | {"messageId": "1", "text": "hi"})
        await client.ended(taken["runId"])
        last = await client.call("cron.add", job(delivery={"mode": "announce"}))
        await client.call("cron.run", {"id": last["id"]})
        await ended_runs(client, last["id"], 1)
        silent = await client.call("cron.add", job(delivery={"mode": "none"}))
        await client.call("cron.run", {"id": silent["id"]})
        await ended_runs(client, silent["id"], 1)
        told: list[Json] = []

        def arrived(_event: Json) -> bool:
            told[:] = [one["payload"] for one in client.events if one["event"] == "channels.outbound"]
            return len(told) >= 3

        await client.wait_for(arrived)
        assert sorted(one["to"] for one in told) == ["ann", "ann", "loft-7"]


async def test_a_webhook_gets_the_result_once(house: House) -> None:
    house.model.script(OK)
    house.config["cron"] = {"webhookToken": "hook-secret-123456"}
    got: list[tuple[str | None, Json]] = []

    async def take(request: web.Request) -> web.Response:
        got.append((request.headers.get("Authorization"), await request.json()))
        return web.json_response({})

    app = web.Application()
    app.router.add_post("/done", take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}/done"
    try:
        async with house.gateway() as gateway, client_of(gateway) as client:
            added = await client.call("cron.add", job(delivery={"mode": "webhook", "to": address}))
            await client.call("cron.run", {"id": added["id"]})
            for _ in range(3000):
                (run,) = (await client.call("cron.runs", {"id": added["id"]}))["entries"]
                if run["delivery"] == "posted":
                    break
                await asyncio.sleep(0.02)
            assert run["delivery"] == "posted"
    finally:
        await runner.cleanup()
    ((secret, body),) = got
    assert secret == "Bearer hook-secret-123456"
    assert (body["text"], body["status"], body["jobId"]) == ("The report.", "ok", added["id"])


@pytest.mark.spec("AUTO-2")
async def test_a_job_is_changed_and_removed_and_goes_after_its_only_run(
    house: House, client: WireClient
) -> None:
    house.model.script(OK)
    added = await client.call("cron.add", job())
    changed = await client.call(
        "cron.update", {"id": added["id"], "patch": {"name": "weekly", "enabled": False}}
    )
    assert (changed["name"], changed["enabled"], changed["state"]["nextRunAtMs"]) == ("weekly", False, None)
    assert (await client.call("cron.list", {"includeDisabled": False}))["jobs"] == []
    assert (await client.call("cron.remove", {"id": added["id"]}))["removed"] is True
    assert (await client.call("cron.remove", {"id": added["id"]}))["removed"] is False
    resting = await client.call("cron.add", job(enabled=False))
    assert (resting["enabled"], resting["state"]["nextRunAtMs"]) == (False, None)
    once = await client.call(
        "cron.add", job(schedule={"kind": "at", "at": "2999-01-01T00:00:00+00:00"}, delivery={"mode": "none"})
    )
    await client.call("cron.run", {"id": once["id"]})
    (run,) = await ended_runs(client, once["id"], 1)
    assert run["status"] == "ok"


@pytest.mark.spec("AUTO-2")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schedule": {"kind": "cron", "expr": "every day"}}, "five fields"),
        ({"schedule": {"kind": "cron", "expr": "0 7 * * *", "tz": "Mars/Base"}}, "is no time zone"),
        ({"schedule": {"kind": "at", "at": "tomorrow"}}, "is not a time"),
        ({"schedule": {"kind": "at", "at": "1999-01-01T00:00:00+00:00"}}, "its time has passed"),
        ({"schedule": {"kind": "every", "everyMs": 5}}, "at least 1000"),
        ({"sessionTarget": "elsewhere"}, "session:<name>"),
        ({"sessionTarget": "main"}, "systemEvent"),
        ({"payload": {"kind": "systemEvent", "text": "x"}}, 'goes with sessionTarget "main"'),
        ({"payload": {"kind": "agentTurn", "message": " "}}, "must not be empty"),
        ({"agentId": "nobody"}, "unknown agent"),
        ({"delivery": {"mode": "webhook", "to": "ftp://x"}}, "http(s)"),
        ({"delivery": {"mode": "announce", "to": "x"}}, "delivery.channel is missing"),
        ({"surprise": 1}, "unexpected property"),
    ],
)
async def test_a_job_that_makes_no_sense_says_why(client: WireClient, change: Json, says: str) -> None:
    with pytest.raises(RefusedError) as refused:
        await client.call("cron.add", job(**change))
    assert says in refused.value.error["message"]
    assert (await client.call("cron.list"))["jobs"] == []


@pytest.mark.spec("AUTO-7", "AUTO-8")
async def test_a_heartbeat_runs_in_main_and_only_news_is_delivered(house: House) -> None:
    house.config["channels"] = {"pigeon": {"dmPolicy": "open"}}
    house.config["agents"]["defaults"]["heartbeat"] = {"every": "30m", "target": "last"}
    house.model.script(
        OK, FakeReply(texts=("HEARTBEAT_OK all quiet",)), FakeReply(texts=("The cellar is flooded!",))
    )
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("channels.attach", {"channel": "pigeon"})
        message = {"channel": "pigeon", "peer": {"kind": "direct", "id": "ann"}, "senderId": "ann"}
        taken = await client.call("channels.inbound", message | {"messageId": "1", "text": "hi"})
        await client.ended(taken["runId"])
        before = (await client.call("sessions.describe", {"key": "main"}))["session"]["lastInteractionAt"]
        for _ in range(2):
            await _beat(gateway)
        told: list[str] = []

        def arrived(_event: Json) -> bool:
            told[:] = [one["payload"]["text"] for one in client.events if one["event"] == "channels.outbound"]
            return len(told) >= 2

        await client.wait_for(arrived)
        assert told == ["The report.", "The cellar is flooded!"]
        after = (await client.call("sessions.describe", {"key": "main"}))["session"]["lastInteractionAt"]
        assert after == before, "a heartbeat never keeps a session young"
        assert (await client.call("last-heartbeat"))["status"] == "started"


async def _beat(gateway: Gateway) -> None:
    services = gateway.services
    rules = services.settings().agent("main").heartbeat
    assert rules is not None
    await services.heartbeats.beat("main", rules, services.clock.now_ms())
    for _ in range(6000):
        if not services.workers.is_busy("agent:main:main"):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the beat never ended")
