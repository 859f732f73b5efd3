"""What a gateway tells about itself: status, health, presence, and that they are told again on change."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from openclaw.app import Gateway
from openclaw.errors import StoreBusy
from openclaw.gateway import healthwatch
from openclaw.gateway.about import ChannelsView
from openclaw.gateway.handlers import presence, system
from openclaw.gateway.healthwatch import HealthWatch
from openclaw.gateway.hub import Hub
from openclaw.gateway.services import Caller
from openclaw.protocol import params, params_system
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

Json = dict[str, Any]
NOBODY: Any = None
OK = FakeReply(texts=("Fine",))


def is_presence_with(count: int) -> Any:
    return lambda event: event["event"] == "presence" and len(event["payload"]["presence"]) == count


@pytest.mark.spec("CLI-1", "CLI-9")
async def test_status_names_the_store_of_each_agent_and_the_recent_sessions(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(OK, OK)
    await client.say("main", "hello", "run-1")
    await client.say("agent:bob:main", "hello", "run-2")
    status = await client.call("status", {"includeCliProjection": True})
    sessions = status["sessions"]
    assert sessions["paths"] == [gateway.services.database]
    assert gateway.services.database.endswith("openclaw.sqlite")
    assert sessions["count"] == 2
    assert [row["key"] for row in sessions["recent"]] == ["agent:bob:main", "agent:main:main"]
    assert all(row["age"] >= 0 for row in sessions["recent"])
    assert [(row["agentId"], row["count"], row["path"]) for row in sessions["byAgent"]] == [
        ("bob", 1, gateway.services.database),
        ("main", 1, gateway.services.database),
    ]
    assert sessions["defaults"]["model"] == "one"
    assert status["cliProjection"]["agents"]["defaultId"] == "main"
    assert [row["agentId"] for row in status["cliProjection"]["agents"]["rows"]] == ["bob", "main"]
    assert status["tasks"]["active"] == 0 and status["tasks"]["byStatus"] == {"queued": 0, "running": 0}
    assert status["heartbeat"]["agents"] == [
        {"agentId": "bob", "enabled": False},
        {"agentId": "main", "enabled": False},
    ]
    assert "cliProjection" not in await client.call("status")


@pytest.mark.spec("CLI-9")
async def test_status_counts_the_work_under_way(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("Long",), hang_after=0))
    await client.call("chat.send", {"sessionKey": "main", "message": "work", "idempotencyKey": "run-1"})
    await house.model.wait_for_requests(1, 60)
    tasks = (await client.call("status"))["tasks"]
    assert (tasks["total"], tasks["active"], tasks["byRuntime"]) == (1, 1, {"main": 1})
    assert tasks["byStatus"] == {"queued": 0, "running": 1}
    house.model.release()
    await client.ended("run-1")


async def test_channels_are_read_from_one_place(gateway: Gateway, client: WireClient) -> None:
    empty = await client.call("channels.status")
    assert (empty["channelOrder"], empty["channels"], empty["channelAccounts"]) == ([], {}, {})
    assert (await client.call("health"))["channels"] == {}
    view = ChannelsView(
        order=("telegram",),
        labels={"telegram": "Telegram"},
        states={"telegram": {"running": True}},
        accounts={"telegram": [{"accountId": "default"}]},
        default_accounts={"telegram": "default"},
        summary=("Telegram: running",),
    )
    about = replace(gateway.services.about, channels=lambda: view)
    services, caller = replace(gateway.services, about=about), Caller(NOBODY, "", False, print)
    shown = await presence.channels(services, caller, params_system.ChannelsStatusParams(probe=True))
    assert shown.channel_order == ["telegram"]
    assert shown.channel_meta == [{"id": "telegram", "label": "Telegram"}]
    assert shown.channel_default_account_id == {"telegram": "default"}
    health = await system.health(services, caller, params.HealthParams(probe=True))
    assert (health.channel_order, health.channels) == (["telegram"], {"telegram": {"running": True}})
    assert health.channel_labels == {"telegram": "Telegram"}
    told = await system.status(services, caller, params.StatusParams())
    assert told.channel_summary == ["Telegram: running"]
    quiet = await system.status(services, caller, params.StatusParams(include_channel_summary=False))
    assert quiet.channel_summary == []


@pytest.mark.spec("RPC-1")
async def test_a_greeting_holds_presence_health_and_their_versions(gateway: Gateway) -> None:
    async with client_of(gateway) as first, client_of(gateway, scopes=("operator.read",)) as second:
        snapshot = second.hello["snapshot"]
        own, joining, other = snapshot["presence"]
        assert (own["mode"], own["reason"], own["host"] != "") == ("gateway", "self", True)
        assert own["text"].startswith("Gateway: ")
        assert joining["scopes"] == ["operator.read"]
        assert other["scopes"] == list(first.scopes)
        for entry in (joining, other):
            assert (entry["host"], entry["mode"], entry["version"], entry["platform"]) == (
                "cli", "cli", "1", "test",
            )  # fmt: skip
            assert entry["ip"] == "127.0.0.1"
            assert entry["roles"] == ["operator"]
        assert joining["instanceId"] == second.hello["server"]["connId"]
        assert snapshot["health"]["ok"] is True and snapshot["health"]["defaultAgentId"] == "main"
        assert snapshot["stateVersion"]["presence"] > first.hello["snapshot"]["stateVersion"]["presence"]
        told: Any = await second.call("system-presence")
        assert told == gateway.services.about.presence.entries()


async def test_who_comes_and_goes_is_told_with_a_growing_version(
    gateway: Gateway, client: WireClient
) -> None:
    async with client_of(gateway, client_id="gateway-client", mode="backend"):
        came = await client.wait_for(is_presence_with(3))
        hosts = [entry["host"] for entry in came["payload"]["presence"][1:]]
        assert sorted(hosts) == ["cli", "gateway-client"]
    gone = await client.wait_for(lambda event: is_presence_with(2)(event) and event["seq"] > came["seq"])
    assert gone["stateVersion"]["presence"] > came["stateVersion"]["presence"]
    assert gone["stateVersion"]["presence"] >= client.hello["snapshot"]["stateVersion"]["presence"]
    assert gone["stateVersion"]["health"] >= 1
    assert len(await client.call("system-presence")) == 2


async def test_presence_is_bounded(gateway: Gateway, client: WireClient, monkeypatch: Any) -> None:
    monkeypatch.setattr("openclaw.gateway.presence.MAX_ENTRIES", 2)
    async with client_of(gateway), client_of(gateway), client_of(gateway) as last:
        entries: Any = await last.call("system-presence")
        assert len(entries) == 3
        assert entries[0]["mode"] == "gateway"
        assert max(entry["ts"] for entry in entries[1:]) == entries[1]["ts"]


async def test_lists_of_what_does_not_exist_are_empty(client: WireClient) -> None:
    nodes = await client.call("node.list")
    assert nodes["nodes"] == [] and nodes["ts"] > 0
    assert await client.call("node.pair.list") == {"pending": [], "paired": []}
    assert await client.call("question.list") == {"questions": []}
    assert await client.call("last-heartbeat") is None


@pytest.mark.spec("RPC-3")
async def test_what_a_gateway_tells_needs_read(gateway: Gateway) -> None:
    async with client_of(gateway, scopes=()) as nobody:
        for method in ("status", "health", "system-presence", "channels.status", "usage.cost", "node.list"):
            with pytest.raises(RefusedError) as refused:
                await nobody.call(method)
            assert refused.value.error["details"]["missingScope"] == "operator.read"
        assert set(nobody.hello["snapshot"]["health"]) == {"ok", "ts", "durationMs"}


# -- the watch over health ---------------------------------------------------------------------------


class Told(Hub):
    """A hub that remembers what it would have sent."""

    def __init__(self, clock: MovableClock) -> None:
        super().__init__(lambda: pytest.fail("no settings are needed"), clock)
        self.sent: list[tuple[str, Any, Any]] = []

    def broadcast(self, event: str, payload: object, versions: Any = None) -> None:
        self.sent.append((event, payload, versions))


async def soon(condition: Any) -> None:
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it never happened")


async def test_health_is_told_on_change_and_once_a_minute_and_not_otherwise(monkeypatch: Any) -> None:
    monkeypatch.setattr(healthwatch, "TELL_EVERY_S", 3600.0)
    clock = MovableClock()
    hub = Told(clock)
    state: Json = {"ok": True, "agents": [{"agentId": "main"}], "sessions": {"count": 1}}
    computed = 0

    async def compute() -> Json:
        nonlocal computed
        computed += 1
        return dict(state)

    watch = HealthWatch(compute, hub, clock)
    task = asyncio.create_task(watch.tell_forever(lambda: 7))
    try:
        await soon(lambda: computed == 1)
        state["sessions"] = {"count": 2}
        watch.look_again()
        await soon(lambda: computed == 2)
        assert hub.sent == []  # a count is no change of health
        state["agents"] = [{"agentId": "main"}, {"agentId": "bob"}]
        watch.look_again()
        await soon(lambda: len(hub.sent) == 1)
        event, payload, versions = hub.sent[0]
        assert (event, payload) == ("health", state)
        assert (versions.presence, versions.health) == (7, 2)
        assert watch.version == 2
        assert await watch.snapshot() == state
    finally:
        task.cancel()
    monkeypatch.setattr(healthwatch, "TELL_EVERY_S", 0.01)
    task = asyncio.create_task(watch.tell_forever(lambda: 7))
    try:
        await soon(lambda: len(hub.sent) >= 3)  # the minute tells it also unchanged
    finally:
        task.cancel()


async def test_a_snapshot_is_shared_for_a_moment() -> None:
    clock, computed = MovableClock(), 0

    async def compute() -> Json:
        nonlocal computed
        computed += 1
        return {"ok": True, "number": computed}

    watch = HealthWatch(compute, Told(clock), clock)
    both = await asyncio.gather(watch.snapshot(), watch.snapshot())
    assert [one["number"] for one in both] == [1, 1]
    clock.move(2)
    assert (await watch.snapshot())["number"] == 2


async def test_a_store_that_fails_does_not_end_the_watch(monkeypatch: Any) -> None:
    monkeypatch.setattr(healthwatch, "TELL_EVERY_S", 0.01)
    clock, computed = MovableClock(), 0
    hub = Told(clock)

    async def compute() -> Json:
        nonlocal computed
        computed += 1
        if computed == 1:
            raise StoreBusy()
        return {"ok": True}

    task = asyncio.create_task(HealthWatch(compute, hub, clock).tell_forever(lambda: 1))
    try:
        await soon(lambda: len(hub.sent) == 1)
        assert computed >= 2
    finally:
        task.cancel()
