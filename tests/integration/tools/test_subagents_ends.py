"""How helpers end: what is told of them when they say nothing, get lost, are given up or stopped."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from openclaw.app import Gateway
from openclaw.domain.entry import DeliveryContext
from openclaw.engine.children import Children
from openclaw.store.records import SessionSeed
from openclaw.store.spawns import Spawns
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of
from tests.integration.tools.test_subagents import (
    KEY,
    Play,
    at_rest,
    call,
    held,
    is_child,
    last_said,
    results,
    until,
)
from tests.integration.tools.test_subagents_details import HANGING, OK, spawn

YIELD = FakeReply(calls=(call("sessions_yield", "y1"),))


async def _true(value: bool) -> bool:
    return value


def registry(gateway: Gateway) -> Spawns:
    return Spawns(gateway.services.store._database)


async def blocks(play: Play) -> list[str]:
    return [last_said(body) for body in play.parents if "[Sub-agent finished" in last_said(body)]


def line(block: str, name: str) -> str:
    return next(text for text in block.splitlines() if text.startswith(f"{name}: "))


@pytest.mark.spec("ANN-4")
@pytest.mark.parametrize(
    ("words", "wanted"),
    [("", "Result: 7 sheep in the file"), ("I looked. ", "Result: I looked.")],
)
async def test_a_helper_without_last_words_shows_what_it_had(
    house: House, client: WireClient, words: str, wanted: str
) -> None:
    workspace = house.home / "state" / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "sheep.txt").write_text("7 sheep in the file\n")
    play = Play(house, spawn(), YIELD, FakeReply(texts=("heard",)))
    reading = FakeReply(texts=(words,) if words else (), calls=(call("read", "read_1", path="sheep.txt"),))
    silent = FakeReply(texts=("NO_REPLY",))
    steps = [held(reading), silent]
    play.announcement = FakeReply(texts=("Status: great\nResult:\nNotes: none",))
    decide = play.decide

    def by_turn(body: dict[str, Any]) -> FakeReply | None:
        if is_child(body) and "Your task has ended" not in last_said(body):
            play.task = steps.pop(0)
        return decide(body)

    house.model.decide = by_turn
    await client.call("chat.send", {"sessionKey": KEY, "message": "go", "idempotencyKey": "run-1"})
    await at_rest(house, client)
    await until(lambda: _true(len(play.parents) == 3))
    (block,) = await blocks(play)
    assert line(block, "Status") == "Status: success"
    assert line(block, "Result") == wanted
    assert "Notes: none" in block


@pytest.mark.spec("ANN-4", "ANN-6", "REST-4")
async def test_a_helper_that_vanished_is_unknown_and_its_numbers_are_not_available(house: House) -> None:
    clock = MovableClock()
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        play = Play(house, spawn(task="vanish"), OK, FakeReply(texts=("heard",)))
        play.task = HANGING
        await client.say(KEY, "go", "run-1")
        (child,) = await registry(gateway).of_parent(KEY, settled_since=0)
        await until(lambda: _true(bool(play.children)))
        await gateway.services.store.delete_session(child.child_key, now_ms=clock.now_ms())
        await gateway.services.workers.abort(child.child_key, "test")
        children = Children(
            registry(gateway), gateway.services.settings, clock, gateway.services.workers.wake
        )
        assert await children.sweep() == (0, 0)  # it may have been begun just now
        clock.move(61)
        assert await children.sweep() == (0, 1)
        await until(lambda: _true(len(play.parents) == 3))
        (block,) = await blocks(play)
        assert line(block, "Status") == "Status: unknown"
        assert line(block, "Result") == "Result: (no output)"
        stats = line(block, "Stats")
        assert "tokens n/a (in n/a / out n/a)" in stats
        assert "sessionId n/a" in stats
        assert "est $" not in stats
        assert await children.sweep() == (0, 0)


@pytest.mark.spec("ANN-8", "ANN-10", "VIS-5")
async def test_the_result_of_a_helper_whose_requester_is_gone_goes_one_up(house: House) -> None:
    house.config["agents"]["defaults"]["subagents"] = {"maxSpawnDepth": 2}
    async with house.gateway() as gateway, client_of(gateway) as client:
        seen: list[dict[str, Any]] = []
        hanging: dict[str, FakeReply] = {"leaf": FakeReply(texts=("leaf ", "done"), hang_after=0)}

        def decide(body: dict[str, Any]) -> FakeReply:
            seen.append(body)
            said = last_said(body)
            if not is_child(body):
                return spawn(task="lead") if len(seen) == 1 else OK
            if said.endswith("lead"):
                return spawn("call_2", task="leaf work")
            if said.endswith("leaf work"):
                return hanging["leaf"]
            return FakeReply(texts=("Result: the leaf says hello",)) if "has ended" in said else OK

        house.model.decide = decide
        await client.say(KEY, "go", "run-1")
        await until(lambda: _true(any(last_said(body).endswith("leaf work") for body in seen)))
        (lead,) = await registry(gateway).of_parent(KEY, settled_since=0)
        assert [
            one.body.task for one in await registry(gateway).of_parent(lead.child_key, settled_since=0)
        ] == ["leaf work"]
        await gateway.services.store.delete_session(lead.child_key, now_ms=gateway.services.clock.now_ms())
        house.model.release()
        await until(lambda: _true(any("the leaf says hello" in last_said(body) for body in seen)))
        heard = [body for body in seen if "[Sub-agent finished" in last_said(body)]
        assert len(heard) == 1 and not is_child(heard[0])
        assert "Task: leaf work" in last_said(heard[0])


@pytest.mark.spec("REST-3", "ANN-8")
async def test_a_helper_that_cannot_go_on_is_settled_with_its_run(house: House) -> None:
    clock = MovableClock()
    play = Play(house, spawn(), OK, FakeReply(texts=("heard",)))
    play.task = HANGING
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        await client.say(KEY, "go", "run-1")
        await until(lambda: _true(bool(play.children)))
        (child,) = await registry(gateway).of_parent(KEY, settled_since=0)
        active = gateway.services.workers.active_run(child.child_key)
        assert active is not None
        await gateway.services.workers.abandon(active)  # as the watchdog does with one that hangs
        # In the same commit: nothing has to be swept.
        (settled,) = await registry(gateway).of_parent(KEY, settled_since=0)
        assert (settled.state, settled.body.status) == ("settled", "error")
        await until(lambda: _true(len(play.parents) == 3))
        (block,) = await blocks(play)
        assert line(block, "Status").startswith("Status: error: stopped answering")
        house.model.release()


@pytest.mark.spec("ANN-8", "QUE-7", "LIFE-12")
@pytest.mark.parametrize("command", ["/stop", "/new", "/reset and go on"])
async def test_no_stop_and_no_reset_loses_a_result_that_waits(house: House, command: str) -> None:
    house.config["messages"] = {"queue": {"mode": "followup"}}
    async with house.gateway() as gateway, client_of(gateway) as client:
        play = Play(house, spawn(task="count"), FakeReply(texts=("slow",), hang_after=0))
        await client.call("chat.send", {"sessionKey": KEY, "message": "go", "idempotencyKey": "run-1"})

        async def waits() -> bool:
            queued = await gateway.services.store.queued(KEY)
            return [one.body.purpose for one in queued] == ["completion"]

        await until(waits)
        await client.call("chat.send", {"sessionKey": KEY, "message": "dropped?", "idempotencyKey": "run-2"})
        await client.call("chat.send", {"sessionKey": KEY, "message": command, "idempotencyKey": "run-3"})
        house.model.release()
        await until(lambda: _true(any("[Sub-agent finished" in last_said(body) for body in play.parents)))
        (block,) = await blocks(play)
        assert "Result: 42 sheep" in block
        said = json.dumps([body["messages"][-1] for body in play.parents])
        assert "dropped?" not in said

        async def all_done() -> bool:
            return await gateway.services.store.queued(KEY) == ()

        await until(all_done)


@pytest.mark.spec("CMD-5", "CMD-6", "SUB-4")
async def test_a_stopped_tree_does_not_speak_again(house: House) -> None:
    house.config["agents"]["defaults"]["subagents"] = {"maxConcurrent": 1}
    async with house.gateway() as gateway, client_of(gateway) as client:
        play = Play(house, FakeReply(calls=tuple(
            call("sessions_spawn", f"c{n}", task=f"work {n}") for n in range(3)
        )), YIELD)  # fmt: skip
        play.task = HANGING
        await client.call("chat.send", {"sessionKey": KEY, "message": "go", "idempotencyKey": "run-1"})
        await client.ended("run-1")
        await until(lambda: _true(len(play.children) == 1))  # one runs, two have not begun
        stopped = await client.say(KEY, "/stop", "run-2")
        assert "sub-agent run" in json.dumps(stopped)
        rows = await registry(gateway).of_parent(KEY, settled_since=0)
        assert [(row.state, row.body.status) for row in rows] == [("settled", "killed")] * 3
        assert await gateway.services.store.queued(KEY) == ()
        assert len(play.parents) == 2 and len(play.children) == 1
        play.parent = [OK]
        await client.say(KEY, "hello again", "run-3")
        assert "[Sub-agent finished" not in json.dumps(play.parents[-1]["messages"])


@pytest.mark.spec("SUB-1", "CMD-11")
async def test_a_person_who_kills_one_helper_wakes_the_parent_that_waits(house: House) -> None:
    async with house.gateway() as gateway, client_of(gateway) as client:
        play = Play(house, spawn(label="slow"), YIELD, FakeReply(texts=("it was killed",)))
        play.task = HANGING
        await client.call("chat.send", {"sessionKey": KEY, "message": "go", "idempotencyKey": "run-1"})
        await client.ended("run-1")
        await until(lambda: _true(bool(play.children)))
        await client.say(KEY, "/kill last", "run-2")
        await until(lambda: _true(len(play.parents) == 3))
        assert "Status: killed" in last_said(play.parents[2])
        assert results(play.parents[2])[0]["status"] == "accepted"


@pytest.mark.spec("SPAWN-8", "REST-2", "REST-4")
async def test_a_fork_that_goes_on_after_a_crash_does_not_repeat_what_its_requester_called(
    house: House,
) -> None:
    house.config["agents"]["defaults"]["subagents"] = {"maxSpawnDepth": 3}
    play = Play(house, spawn(task="look around", context="fork"), OK)
    play.task = HANGING
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(KEY, "the word is abracadabra", "run-1")
        await until(lambda: _true(bool(play.children)))
        gateway.services.workers._draining = True  # as a kill would: its turn is cut off
    play.task = FakeReply(texts=("I looked",))
    async with house.gateway() as gateway, client_of(gateway) as client:
        await until(lambda: _true(any("[Sub-agent finished" in last_said(body) for body in play.parents)))
        (child,) = await registry(gateway).of_parent(KEY, settled_since=0)
        assert await registry(gateway).of_parent(child.child_key, settled_since=0) == ()
        resumed = json.dumps(play.children[-1]["messages"])
        assert "abracadabra" in resumed and "childSessionKey" not in resumed


@pytest.mark.spec("ANN-7", "ANN-8")
@pytest.mark.parametrize("there", [True, False])
async def test_an_origin_that_names_only_a_channel_is_filled_in_or_stays_quiet(
    house: House, there: bool
) -> None:
    async with house.gateway() as gateway, client_of(gateway) as client:
        store, now_ms = gateway.services.store, gateway.services.clock.now_ms

        async def route(context: DeliveryContext) -> None:
            seed = SessionSeed(KEY, "main", "main")
            await store.edit_session(
                seed, lambda entry: msgspec.structs.replace(entry, delivery_context=context),
                session_id="w-1", now_ms=now_ms(),
            )  # fmt: skip

        await route(DeliveryContext("telegram", account_id="work"))
        play = Play(house, spawn(), OK, FakeReply(texts=("It is done.",)))
        play.task = FakeReply(texts=("done",), hang_after=0)
        await client.say(KEY, "go", "run-1")
        await route(DeliveryContext("telegram", "42", "home", "7"))
        if not there:
            await store.delete_session(KEY, now_ms=now_ms())
        house.model.release()

        async def settled() -> bool:
            return await registry(gateway).count_active(KEY) == 0

        await until(settled)
        if (
            not there
        ):  # nobody to tell, and no address: nothing is sent, and the helper is settled all the same
            assert await store.deliveries_due("telegram", now_ms=now_ms()) == ()
            return

        async def delivered() -> bool:
            return bool(await store.deliveries_due("telegram", now_ms=now_ms()))

        await until(delivered)
        (due,) = await store.deliveries_due("telegram", now_ms=now_ms())
        assert (due.target, due.account_id, due.thread_id) == ("42", "work", "7")
        assert due.body == b'{"text":"It is done."}'
