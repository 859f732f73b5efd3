"""The line before a database thread: bounded, first come first served, and a place belongs to its call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.errors import StoreBusy, StoreClosed
from openclaw.store.line import Call, Line, answerable

PATIENCE_S = 60.0


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def kinds(tasks: list[asyncio.Task[None]]) -> list[str]:
    found = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE_S)
    return [type(item).__name__ for item in found]


@pytest.mark.spec("DB-14")
async def test_places_are_bounded_and_given_in_the_order_of_arrival() -> None:
    line, order = Line(2, PATIENCE_S), list[str]()

    async def come(name: str) -> None:
        await line.enter()
        order.append(name)

    tasks = [asyncio.create_task(come(name)) for name in "abcd"]
    await settle()
    assert order == ["a", "b"]
    line.leave()
    late = asyncio.create_task(come("e"))
    await settle()
    # The place went to the one who waited longest, not to the one who came just now.
    assert order == ["a", "b", "c"]
    line.leave()
    line.leave()
    await asyncio.gather(*tasks, late)
    assert order == ["a", "b", "c", "d", "e"]
    # Two places are taken: when both are given back, two are free and a third is not.
    for _ in range(2):
        line.leave()
    await line.enter()
    await line.enter()
    third = asyncio.create_task(line.enter())
    await settle()
    assert not third.done()
    line.leave()
    await asyncio.wait_for(third, PATIENCE_S)


@pytest.mark.spec("DB-14")
async def test_who_waits_too_long_is_told_and_costs_no_place() -> None:
    line = Line(1, 0.01)
    await line.enter()
    with pytest.raises(StoreBusy) as caught:
        await line.enter()
    assert caught.value.__cause__ is None
    line.leave()
    await line.enter()
    with pytest.raises(StoreBusy):
        await line.enter()


async def test_a_place_that_comes_at_the_moment_of_going_away_is_the_next_ones() -> None:
    line = Line(1, PATIENCE_S)
    await line.enter()
    first, second = (asyncio.create_task(line.enter()) for _ in range(2))
    await settle()
    line.leave()  # handed to `first`, which has not run yet
    first.cancel()
    assert await kinds([first]) == ["CancelledError"]
    assert await kinds([second]) == ["NoneType"]
    third = asyncio.create_task(line.enter())
    await settle()
    assert not third.done()
    third.cancel()
    assert await kinds([third]) == ["CancelledError"]
    line.leave()
    await asyncio.wait_for(line.enter(), PATIENCE_S)


async def test_closing_tells_everybody_who_waits_and_lets_nobody_in() -> None:
    line = Line(1, PATIENCE_S)
    await line.enter()
    waiting = [asyncio.create_task(line.enter()) for _ in range(3)]
    await settle()
    waiting[1].cancel()
    await settle()
    line.close()
    assert await kinds(waiting) == ["StoreClosed", "CancelledError", "StoreClosed"]
    with pytest.raises(StoreClosed):
        await line.enter()
    line.leave()
    with pytest.raises(StoreClosed):
        await line.enter()


async def test_a_place_handed_over_just_before_closing_is_not_used() -> None:
    line = Line(1, PATIENCE_S)
    await line.enter()
    late = asyncio.create_task(line.enter())
    await settle()
    line.leave()
    line.close()
    assert await kinds([late]) == ["StoreClosed"]


async def test_an_answer_reaches_its_caller_and_frees_one_place() -> None:
    line, loop = Line(2, PATIENCE_S), asyncio.get_running_loop()
    calls: list[Call[Any]] = [Call(lambda tx: 1, loop.create_future()) for _ in range(2)]
    for _ in calls:
        await line.enter()
    third = asyncio.create_task(line.enter())
    calls[0].succeed(7)
    calls[1].fail(KeyError("x"))
    await asyncio.to_thread(line.answer, calls)
    assert await calls[0].future == 7
    with pytest.raises(KeyError):
        await calls[1].future
    await asyncio.wait_for(third, PATIENCE_S)
    assert (calls[0].error, calls[1].result) == (None, None)


async def test_a_caller_who_went_away_frees_no_place_until_the_call_is_done() -> None:
    line, loop = Line(1, PATIENCE_S), asyncio.get_running_loop()
    await line.enter()
    call: Call[Any] = Call(lambda tx: 1, loop.create_future())
    call.future.cancel()
    waiting = asyncio.create_task(line.enter())
    await settle()
    assert not waiting.done()
    call.succeed(1)
    line.answer([call])
    await asyncio.wait_for(waiting, PATIENCE_S)
    assert call.future.cancelled()


def test_an_answer_without_a_loop_is_dropped() -> None:
    async def make() -> tuple[Line, Call[Any]]:
        return Line(1, 1.0), Call(lambda tx: 1, asyncio.get_running_loop().create_future())

    line, call = asyncio.run(make())
    call.succeed(1)
    line.answer([call])
    assert not call.future.done()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration()])
def test_what_no_future_can_carry_is_told_as_an_ordinary_error(error: BaseException) -> None:
    told = answerable(error)
    assert type(told) is RuntimeError
    assert str(told) == f"a unit of work raised {type(error).__name__}"
    assert told.__cause__ is error
    plain = ValueError("x")
    assert answerable(plain) is plain


@pytest.mark.spec("DB-14")
@settings(max_examples=150, deadline=None)
@given(st.integers(1, 3), st.lists(st.sampled_from(["come", "leave", "cancel", "run"]), max_size=40))
def test_never_more_than_the_places_and_nobody_is_forgotten(places: int, steps: list[str]) -> None:
    async def play() -> None:
        line, inside, peak = Line(places, PATIENCE_S), list[int](), [0]
        tasks: list[asyncio.Task[None]] = []

        async def come(number: int) -> None:
            await line.enter()
            inside.append(number)
            peak[0] = max(peak[0], len(inside))

        for number, step in enumerate(steps):
            if step == "come":
                tasks.append(asyncio.create_task(come(number)))
            elif step == "leave" and inside:
                inside.pop(0)
                line.leave()
            elif step == "cancel" and tasks:
                tasks[number % len(tasks)].cancel()
            else:
                await asyncio.sleep(0)
        while not all(task.done() for task in tasks):
            await settle()
            if inside:
                inside.pop(0)
                line.leave()
        assert peak[0] <= places
        for _ in inside:
            line.leave()
        for _ in range(places):
            await asyncio.wait_for(line.enter(), PATIENCE_S)

    asyncio.run(play())
