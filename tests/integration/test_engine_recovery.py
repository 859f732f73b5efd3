"""Nothing is left lying: interrupted runs go on, stalled ones stop, a stopping gateway keeps accepting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from openclaw.app import Gateway
from openclaw.domain.entry import DeliveryContext
from openclaw.engine.drafts import draft_inputs_in
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.turns import Incoming
from openclaw.engine.watchdog import Watchdog
from openclaw.store.inbox import NewInput
from openclaw.store.records import SessionSeed, UserInput
from openclaw.store.runs import RunPlan
from openclaw.store.store import Store, Unfinished
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.integration.conftest import House, client_of

KEY = "agent:main:proj"
SEED = SessionSeed(KEY, "main")
OK = FakeReply(texts=("fine",))
HANGING = FakeReply(texts=("slow",), hang_after=0)
ROUTE = DeliveryContext("telegram", "42")


async def begin_elsewhere(gateway: Gateway, run_id: str = "run-1") -> None:
    """A run as a killed gateway leaves it: claimed, its owner gone."""
    settings, now_ms = gateway.services.settings(), gateway.services.clock.now_ms()
    new = NewInput(run_id, SEED, "channel", "42", UserInput("hi", now_ms, route=ROUTE, deliver=True))
    await gateway.services.store.accept(
        new,
        settings.resets,
        session_id="w-1",
        now_ms=now_ms,
        start=RunPlan("turn", "main", "a dead gateway"),
        draft_inputs=draft_inputs_in(settings.resets.zone),
    )


@pytest.mark.spec("REST-2", "REST-3", "ROUTE-2", "QUE-8")
async def test_an_interrupted_run_goes_on_and_answers_where_it_was_asked(house: House) -> None:
    house.model.script(OK)
    async with house.gateway() as gateway:
        await begin_elsewhere(gateway)
        swept = await Watchdog(
            gateway.services.store, gateway.services.workers, gateway.services.clock
        ).sweep()
        assert swept == (KEY,)
        run = await gateway.services.turns.wait("run-1", 60)
        assert run is not None and (run.outcome, run.fence) == ("ok", 2)
        due = await gateway.services.store.deliveries_due("telegram", now_ms=gateway.services.clock.now_ms())
        assert [(one.idempotency_key, one.body) for one in due] == [("run-1:reply", b'{"text":"fine"}')]
        assert len(house.model.requests) == 1


@pytest.mark.spec("REST-3")
async def test_after_three_resumes_without_progress_the_session_says_so(house: House) -> None:
    async with house.gateway() as gateway, client_of(gateway) as client:
        await begin_elsewhere(gateway)
        for _ in range(3):
            now_ms = gateway.services.clock.now_ms()
            await gateway.services.store.take_over("run-1", "another dead gateway", now_ms=now_ms)
        await Watchdog(gateway.services.store, gateway.services.workers, gateway.services.clock).sweep()
        ended = await client.ended("run-1")
        assert ended["state"] == "error"
        assert "send it again" in ended["errorMessage"]
        run = await gateway.services.store.run("run-1")
        assert run is not None and run.outcome == "interrupted"
        assert house.model.requests == []
        house.model.script(OK)
        assert (await client.say(KEY, "again", "run-2"))["state"] == "final"


@pytest.mark.spec("QUE-8")
async def test_the_sweep_wakes_a_session_that_nobody_looks_after(house: House) -> None:
    house.model.script(OK)
    async with house.gateway() as gateway:
        settings, now_ms = gateway.services.settings(), gateway.services.clock.now_ms()
        new = NewInput("run-1", SEED, "channel", "42", UserInput("hi", now_ms))
        await gateway.services.store.accept(new, settings.resets, session_id="w-1", now_ms=now_ms)
        watchdog = Watchdog(gateway.services.store, gateway.services.workers, gateway.services.clock)
        assert await watchdog.sweep() == (KEY,)
        run = await gateway.services.turns.wait("run-1", 60)
        assert run is not None and run.outcome == "ok"
        assert await watchdog.sweep() == ()


class LateStore:
    """A store whose first answer is old by the time it is looked at."""

    def __init__(self, store: Store, meanwhile: Callable[[], Awaitable[object]]) -> None:
        self._store = store
        self._meanwhile = meanwhile
        self.asked = 0

    async def unfinished(self) -> Unfinished:
        self.asked += 1
        found = await self._store.unfinished()
        if self.asked == 1:
            await self._meanwhile()
        return found


async def test_what_ended_while_the_rows_were_read_is_not_taken_for_left_alone(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.model.script(HANGING)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("chat.send", {"sessionKey": KEY, "message": "hi", "idempotencyKey": "run-1"})
        await house.model.wait_for_requests(1)

        async def end_it() -> None:
            await client.call("chat.abort", {"sessionKey": KEY, "runId": "run-1"})
            await client.ended("run-1")
            for _ in range(6000):
                if not gateway.services.workers.is_busy(KEY):
                    return
                await asyncio.sleep(0.01)
            raise AssertionError("it goes on and on")

        late = LateStore(gateway.services.store, end_it)
        watchdog = Watchdog(cast("Store", late), gateway.services.workers, gateway.services.clock)
        assert await watchdog.sweep() == ()
        assert late.asked == 2
        assert "nobody" not in caplog.text
        assert len(house.model.requests) == 1


async def test_a_run_without_a_sign_of_life_is_stopped_and_told(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    clock = MovableClock()
    house.model.script(HANGING, OK)
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        await client.call("chat.send", {"sessionKey": KEY, "message": "hi", "idempotencyKey": "run-1"})
        await house.model.wait_for_requests(1)
        watchdog = Watchdog(gateway.services.store, gateway.services.workers, clock)
        assert await watchdog.sweep() == ()
        clock.move(16 * 60)
        assert await watchdog.sweep() == (KEY,)
        ended = await client.ended("run-1")
        assert (ended["state"], ended["stopReason"]) == ("aborted", "stalled")
        assert "no sign of life" in caplog.text
        assert (await client.say(KEY, "again", "run-2"))["state"] == "final"


class DeafTool:
    """A tool that does not stop when it is told to."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.let_go = asyncio.Event()

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("session_status", "deaf", {"type": "object", "properties": {}})

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        self.began.set()
        while not self.let_go.is_set():
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                continue
        raise asyncio.CancelledError


async def test_a_run_that_does_not_stop_loses_its_session(house: House) -> None:
    clock, tool = MovableClock(), DeafTool()
    house.model.script(FakeReply(calls=(FakeCall("session_status"),)), OK)
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        gateway.services.workers._services.tools._tools["session_status"] = tool
        await client.call("chat.send", {"sessionKey": KEY, "message": "hi", "idempotencyKey": "run-1"})
        await tool.began.wait()
        clock.move(16 * 60)
        watchdog = Watchdog(gateway.services.store, gateway.services.workers, clock, release_s=0.05)
        assert await watchdog.sweep() == (KEY,)
        ended = await client.ended("run-1")
        assert "abandoned" in ended["errorMessage"]
        assert (await client.say(KEY, "again", "run-2"))["state"] == "final"
        tool.let_go.set()
        await asyncio.sleep(0.05)
        history = await client.call("chat.history", {"sessionKey": KEY})
        assert history["messages"][-1]["content"] == [{"type": "text", "text": "fine"}]


@pytest.mark.spec("REST-6", "QUE-8")
async def test_a_stopping_gateway_accepts_and_the_next_one_runs_it(house: House) -> None:
    house.model.script(HANGING, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("chat.send", {"sessionKey": KEY, "message": "one", "idempotencyKey": "run-1"})
        await house.model.wait_for_requests(1)
        draining = asyncio.create_task(gateway.services.workers.drain())
        await asyncio.sleep(0)
        now_ms = gateway.services.clock.now_ms()
        for key, run_id in ((KEY, "run-2"), ("agent:main:other", "run-3")):
            body = UserInput("two", now_ms, queue_mode="followup")
            receipt = await gateway.services.turns.accept(
                Incoming(run_id, SessionSeed(key, "main"), "channel", "42", body)
            )
            assert receipt.run_id == run_id
        house.model.release()
        await asyncio.wait_for(draining, 60)
        assert (await client.ended("run-1"))["state"] == "final"
        assert len(house.model.requests) == 1
    house.model.script(OK)
    async with house.gateway() as gateway:
        for run_id in ("run-2", "run-3"):
            run = await gateway.services.turns.wait(run_id, 60)
            assert run is not None and run.outcome == "ok"
    assert len(house.model.requests) == 3


@pytest.mark.spec("LOOP-4", "CMD-5")
async def test_a_stop_while_waiting_to_try_again_ends_it(house: House) -> None:
    busy = FakeReply(status=503, body={"error": {"message": "later"}}, headers={"Retry-After": "30"})
    house.model.script(busy, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("chat.send", {"sessionKey": KEY, "message": "hi", "idempotencyKey": "run-1"})
        await house.model.wait_for_requests(1)
        final = await client.say(KEY, "/stop", "stop-1")
        assert final["message"]["content"][0]["text"].startswith("Stopped the run")
        assert (await client.ended("run-1"))["state"] == "aborted"
        await asyncio.sleep(0.3)
        assert len(house.model.requests) == 1


@pytest.mark.spec("CMD-5", "LIFE-22", "COMP-9")
async def test_a_stop_does_not_wait_for_ever_for_a_deaf_tool(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openclaw.engine.workers.STOP_WITHIN_S", 0.05)
    tool = DeafTool()
    house.model.script(FakeReply(calls=(FakeCall("session_status"),)), OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        gateway.services.tools._tools["session_status"] = tool
        await client.call("chat.send", {"sessionKey": KEY, "message": "hi", "idempotencyKey": "run-1"})
        await tool.began.wait()
        stopped = await client.call("chat.abort", {"sessionKey": KEY})
        assert stopped["runIds"] == ["run-1"]
        run = await gateway.services.store.run("run-1")
        assert run is not None and run.state == "ended"
        assert (await client.say(KEY, "again", "run-2"))["state"] == "final"
        tool.let_go.set()
        await asyncio.sleep(0.05)


async def test_a_turn_that_cannot_begin_is_told_and_the_session_goes_on(house: House) -> None:
    house.model.script(OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        body = UserInput("hi", gateway.services.clock.now_ms(), model="gone/model")
        await gateway.services.turns.accept(Incoming("run-1", SEED, "channel", "42", body))
        ended = await client.ended("run-1")
        assert ended["state"] == "error"
        assert "gone" in ended["errorMessage"]
        assert (await client.say(KEY, "again", "run-2"))["state"] == "final"


@pytest.mark.spec("LIFE-13", "A2A-9")
async def test_words_of_another_session_never_reset_one(house: House) -> None:
    house.model.script(OK, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(KEY, "hello", "run-1")
        before = (await client.call("sessions.describe", {"key": KEY}))["session"]["sessionId"]
        provenance = {"kind": "inter_session", "sourceSessionKey": "agent:main:other"}
        await client.call(
            "agent",
            {"sessionKey": KEY, "message": "/new", "idempotencyKey": "run-2", "inputProvenance": provenance},
        )
        await client.ended("run-2")
        assert (await client.call("sessions.describe", {"key": KEY}))["session"]["sessionId"] == before
