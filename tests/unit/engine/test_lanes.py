"""Lanes: who waits gives the place back once, returns first in line, and never leaves the count wrong."""

from __future__ import annotations

import asyncio

import pytest

from openclaw.engine.lanes import Lanes


@pytest.mark.spec("QUE-1")
async def test_two_waits_of_one_run_are_one_absence() -> None:
    lanes = Lanes({"main": 1})
    lane = lanes.lane("main")
    assert lane.try_enter()
    async with lanes.outside("main", "anna"):
        assert lane.active == 0
        async with lanes.outside("main", "anna"):
            assert lane.active == 0
            assert lane.try_enter()  # somebody else runs meanwhile
            lane.leave()
        assert lane.active == 0  # she still waits for the other
    assert lane.active == 1
    lane.leave()
    assert (lane.active, lanes._absent) == (0, {})


@pytest.mark.spec("QUE-1")
async def test_who_returns_stands_before_those_who_came_later() -> None:
    lanes = Lanes({"main": 1})
    lane, order = lanes.lane("main"), []
    assert lane.try_enter()
    waited = asyncio.Event()

    async def anna() -> None:
        async with lanes.outside("main", "anna"):
            await waited.wait()
        order.append("anna")
        lane.leave()

    async def other(name: str) -> None:
        await lane.enter()
        order.append(name)
        await asyncio.sleep(0)
        lane.leave()

    tasks = [asyncio.ensure_future(anna())]
    await asyncio.sleep(0)
    assert lane.try_enter()  # bob has the place that she gave back
    tasks += [asyncio.ensure_future(other(name)) for name in ("cyd", "dan")]
    await asyncio.sleep(0)
    waited.set()
    await asyncio.sleep(0.01)
    lane.leave()
    await asyncio.wait_for(asyncio.gather(*tasks), 60)
    assert order == ["anna", "cyd", "dan"]
    assert lane.active == 0


@pytest.mark.spec("QUE-1", "LOOP-4")
@pytest.mark.parametrize("moment", ["waiting", "in line"])
async def test_a_run_that_is_stopped_while_it_waits_leaves_the_count_right(moment: str) -> None:
    lanes = Lanes({"main": 1})
    lane = lanes.lane("main")
    assert lane.try_enter()
    waited = asyncio.Event()

    async def run() -> None:
        try:
            async with lanes.outside("main", "anna"):
                await waited.wait()
        finally:
            lane.leave()  # as its worker does, whatever happened

    task = asyncio.ensure_future(run())
    await asyncio.sleep(0)
    assert lane.try_enter()  # the lane is full: she could not return at once
    if moment == "in line":
        waited.set()
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait({task}, timeout=60)  # she does not stand in line to be stopped
    assert task.cancelled()
    assert (lane.active, list(lane._line)) == (1, [])
    lane.leave()
    assert lane.try_enter()
