"""What the simulation found, each as the smallest scene that shows it. Where a race is needed, many seeds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from openclaw.domain.commands import CommandCaller
from openclaw.domain.transcript import ToolCallBlock
from openclaw.engine.ports import Model
from openclaw.engine.turns import Incoming
from openclaw.errors import StoreError
from openclaw.models.scripted import ScriptedModel, ScriptedStep, call_tool, say
from openclaw.store.records import UserInput
from tests.simulation.configuring import PLACES
from tests.simulation.loop import TICK_S
from tests.simulation.memory import Memory, Violation
from tests.simulation.process import STALLED_S, Process

KEY = "agent:main:main"
PLACE = PLACES[0]
Scene = Callable[[Process], Coroutine[Any, Any, None]]


def play(memory: Memory, scene: Scene, model: Model | None = None) -> None:
    """Play a scene in a process of its own, which then crashes."""
    process = Process(memory, model or ScriptedModel(then=say("done")))
    asyncio.set_event_loop(process.loop)
    try:
        process.loop.run_until_complete(scene(process))
        if memory.violations or process.loop.problems:
            raise Violation(str([*memory.violations, *process.loop.problems]))
    finally:
        process.gone()
        process.loop.throw_away()
        asyncio.set_event_loop(None)


def message(run_id: str, text: str = "hello", mode: str | None = None, **options: Any) -> Incoming:
    body = UserInput(text, 0, queue_mode=mode)
    caller = CommandCaller(authorised=True)
    return Incoming(run_id, PLACE.seed, PLACE.source, "operator", body, caller=caller, **options)


async def until(condition: Callable[[], object]) -> None:
    """Look after every callback, and let a tick pass when nothing is ready any more."""
    for number in range(5_000):
        if condition():
            return
        await asyncio.sleep(TICK_S if number % 10 == 9 else 0)
    raise AssertionError("it never came to that")


async def idle(process: Process) -> None:
    for _ in range(5_000):
        if not process.tasks:
            return
        await asyncio.sleep(1)
    raise AssertionError("something still runs")


def run_row(memory: Memory, run_id: str) -> tuple[Any, ...]:
    rows = memory.image.peek("SELECT state, outcome, stop_reason FROM runs WHERE run_id = ?", run_id)
    return rows[0]


def count(memory: Memory, role: str) -> int:
    found: int = memory.image.one("SELECT count(*) FROM entries WHERE role = ?", role)
    return found


@pytest.mark.spec("LOOP-4")
@pytest.mark.parametrize("seed", range(5))
def test_an_abort_before_the_first_step_of_a_run_settles_it(seed: int) -> None:
    async def scene(process: Process) -> None:
        await process.turns.accept(message("r1"))
        await until(lambda: process.workers.active_run(KEY))
        assert await process.workers.abort(KEY, "rpc") == "r1"
        assert run_row(process.memory, "r1") == ("ended", "aborted", "rpc")
        await idle(process)
        assert process.memory.ended_told["r1"] == [(1, "aborted")]

    play(Memory(seed), scene)


@pytest.mark.spec("LOOP-4")
@pytest.mark.parametrize("seed", range(12))
def test_an_abort_during_the_commit_of_results_adds_no_second_result(seed: int) -> None:
    async def scene(process: Process) -> None:
        memory = process.memory
        await process.turns.accept(message("r1"))
        await until(lambda: count(memory, "toolResult"))
        await process.turns.abort(KEY)
        await idle(process)
        assert count(memory, "toolResult") == 1

    play(Memory(seed), scene, ScriptedModel(call_tool("peek"), then=say("done")))


@pytest.mark.spec("LOOP-4")
def test_a_stop_does_not_keep_again_what_stands_in_the_transcript() -> None:
    step = ScriptedStep(texts=("Let me look.",), tool_calls=(ToolCallBlock("c1", "wait", {}),))

    async def scene(process: Process) -> None:
        await process.turns.accept(message("r1"))
        await until(lambda: count(process.memory, "assistant"))
        await asyncio.sleep(0.05)
        await process.turns.abort(KEY)
        assert (count(process.memory, "assistant"), count(process.memory, "toolResult")) == (1, 1)

    play(Memory(1), scene, ScriptedModel(step, then=say("done")))


@pytest.mark.spec("REST-2", "LOOP-4")
def test_the_calls_of_an_abandoned_run_get_their_result() -> None:
    async def scene(process: Process) -> None:
        memory = process.memory
        await process.turns.accept(message("r1"))
        await asyncio.sleep(STALLED_S + 30)
        assert await process.watchdog.sweep() == (KEY,)
        assert run_row(memory, "r1")[:2] == ("ended", "interrupted")
        assert count(memory, "toolResult") == 1
        assert memory.ended_told["r1"] == [(1, "interrupted")]
        await process.turns.accept(message("r2"))
        await idle(process)
        assert run_row(memory, "r2")[:2] == ("ended", "ok")
        assert count(memory, "toolResult") == 1

    memory = Memory(4)  # its hanging tool hangs for longer than the watchdog waits
    play(memory, scene, ScriptedModel(call_tool("hang"), then=say("done")))


@pytest.mark.spec("LIFE-12", "LIFE-13")
def test_a_repeated_reset_does_not_stop_the_turn_that_the_first_one_began() -> None:
    gate = asyncio.Event()
    model = ScriptedModel(ScriptedStep(texts=("hello",), gate=gate), then=say("done"))

    async def scene(process: Process) -> None:
        await process.turns.accept(message("r1", "/new hello"))
        await asyncio.sleep(0.1)
        again = await process.turns.accept(message("r1", "/new hello"))
        assert (again.run_id, again.duplicate, again.finished) == ("r1", True, False)
        gate.set()
        await idle(process)
        assert run_row(process.memory, "r1")[:2] == ("ended", "ok")

    play(Memory(1), scene, model)


@pytest.mark.spec("REST-2", "QUE-1", "QUE-8")
@pytest.mark.parametrize("seed", range(20))
def test_a_message_during_recovery_does_not_run_the_interrupted_run_twice(seed: int) -> None:
    memory = Memory(seed)

    async def begin(process: Process) -> None:
        await process.turns.accept(message("r1"))
        await asyncio.sleep(0.1)

    async def recover(process: Process) -> None:
        process.spawn(process.recover())
        await asyncio.sleep(process.rng.choice((0, 0.001, 0.002)))
        await process.turns.accept(message("r2", mode="followup"))
        await idle(process)
        assert run_row(memory, "r1")[:2] == run_row(memory, "r2")[:2] == ("ended", "ok")
        assert memory.ended_told == {"r1": [(2, "ok")], "r2": [(2, "ok")]}

    play(memory, begin, ScriptedModel(ScriptedStep(texts=("hello",), gate=asyncio.Event())))
    play(memory, recover)


@pytest.mark.spec("REST-2")
def test_an_interrupted_run_whose_session_was_reset_asks_no_model() -> None:
    memory, model = Memory(1), ScriptedModel(then=say("done"))

    async def begin(process: Process) -> None:
        await process.turns.accept(message("r1"))
        await asyncio.sleep(0.1)

    async def recover(process: Process) -> None:
        await process.store.reset_session(KEY, "reset", session_id="next", now_ms=process.clock.now_ms())
        await process.recover()
        await idle(process)
        assert run_row(memory, "r1")[:2] == ("ended", "interrupted")
        assert model.requests == []

    play(memory, begin, ScriptedModel(ScriptedStep(texts=("hello",), gate=asyncio.Event())))
    play(memory, recover, model)


@pytest.mark.spec("LOOP-1")
def test_a_failure_after_the_end_of_a_run_does_not_tell_a_second_end() -> None:
    frugal = next(place for place in PLACES if place.seed.agent_id == "frugal")

    async def scene(process: Process) -> None:
        memory = process.memory
        incoming = Incoming("r1", frugal.seed, "api", "operator", UserInput("hello", 0))
        await process.turns.accept(incoming)
        await until(lambda: "r1" in memory.ended_told)
        memory.faults.broken = True
        await idle(process)
        assert memory.steps["store failure"] > 0
        assert memory.ended_told["r1"] == [(1, "ok")]
        assert memory.unsettled["r1"] == 0

    play(Memory(1), scene)


@pytest.mark.spec("QUE-8")
def test_an_expired_message_is_not_steered_into_a_run() -> None:
    async def scene(process: Process) -> None:
        memory = process.memory
        await process.turns.accept(message("r1"))
        await asyncio.sleep(0.05)
        expires_at = process.clock.now_ms() + 20
        await process.turns.accept(message("r2", "too late", "steer", expires_at=expires_at))
        await idle(process)
        assert memory.image.one("SELECT state FROM inbox WHERE run_id = 'r2'") == "cancelled"
        assert memory.cancelled_told["r2"] == 1
        assert count(memory, "user") == 1

    play(Memory(1), scene, ScriptedModel(call_tool("wait"), then=say("done")))


@pytest.mark.spec("QUE-8")
def test_who_was_cancelled_hears_of_it_although_the_store_cannot_be_read() -> None:
    async def scene(process: Process) -> None:
        memory = process.memory
        await process.turns.accept(message("r1"))
        await asyncio.sleep(0.05)
        await process.turns.accept(message("r2", "next", "followup"))
        memory.faults.reading = 1.0
        with suppress(StoreError):
            await process.turns.abort(KEY)
        memory.faults.reading = 0.0
        cancelled = memory.image.one("SELECT state FROM inbox WHERE run_id = 'r2'") == "cancelled"
        assert memory.cancelled_told["r2"] == int(cancelled)
        await process.turns.abort(KEY)
        await idle(process)
        assert memory.cancelled_told["r2"] == 1

    play(Memory(1), scene, ScriptedModel(call_tool("wait"), then=say("done")))


@pytest.mark.spec("QUE-2", "RPC-12")
def test_messages_that_interrupt_a_run_which_does_not_stop_are_acknowledged_at_once() -> None:
    async def scene(process: Process) -> None:
        memory = process.memory
        await process.turns.accept(message("r1"))
        await asyncio.sleep(0.6)
        before_s = process.loop.time()
        receipts = await asyncio.gather(
            *(process.turns.accept(message(name, name, "interrupt")) for name in ("r2", "r3", "r4"))
        )
        assert process.loop.time() - before_s < 1
        assert [receipt.run_id for receipt in receipts] == ["r2", "r3", "r4"]
        await idle(process)
        assert memory.ended_told["r1"] == [(1, "interrupted")]
        assert count(memory, "user") == 4

    play(Memory(1), scene, ScriptedModel(call_tool("hang"), then=say("done")))


@pytest.mark.spec("QUE-5")
def test_what_a_stranger_says_never_joins_a_turn_of_the_owner() -> None:
    async def scene(process: Process) -> None:
        memory = process.memory
        await process.turns.accept(message("r1"))
        await asyncio.sleep(0.05)
        stranger = msgspec.structs.replace(message("r2", "give me the keys", "steer"), principal="pigeon:66")
        await process.turns.accept(stranger)
        await process.turns.accept(message("r3", "and hurry", "steer"))
        await idle(process)
        taken_by: dict[str, str] = dict(memory.image.peek("SELECT run_id, consumed_by FROM inbox"))
        assert taken_by == {"r1": "r1", "r2": "r2", "r3": "r1"}

    play(Memory(1), scene, ScriptedModel(call_tool("wait"), then=say("done")))
