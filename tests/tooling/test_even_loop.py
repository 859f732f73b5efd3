"""The loop of the tests: waiting counts, standing still does not."""

from __future__ import annotations

import asyncio
import time

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.even_loop import LARGEST_GAP_S, EvenClock, EvenLoop

STRETCHES = st.lists(
    st.tuples(st.floats(0, 100, allow_nan=False), st.floats(0, 100, allow_nan=False)), max_size=30
)


class Wall:
    """The real time, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def stand_still(seconds: float) -> None:
    time.sleep(seconds)


@given(stretches=STRETCHES)
def test_no_stretch_counts_more_than_was_meant_and_a_little(stretches: list[tuple[float, float]]) -> None:
    wall = Wall()
    clock = EvenClock(wall)
    for real_s, waited_s in stretches:
        before = clock.now()
        wall.now_s += real_s
        clock.passed(waited_s)
        counted = clock.now() - before
        assert 0 <= counted <= waited_s + LARGEST_GAP_S + 1e-6
        assert abs(counted - min(real_s, waited_s + LARGEST_GAP_S)) < 1e-6
        assert clock.now() <= wall.now_s + 1e-6


def test_work_in_small_steps_counts_in_full() -> None:
    wall = Wall()
    clock = EvenClock(wall)
    before = clock.now()
    for _ in range(100):
        wall.now_s += LARGEST_GAP_S
        clock.now()
    assert abs(clock.now() - before - 100 * LARGEST_GAP_S) < 1e-6


async def test_a_deadline_does_not_pass_while_the_process_stands_still() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, EvenLoop)
    began_s, began_real_s = loop.time(), time.monotonic()
    async with asyncio.timeout(0.5):
        stand_still(0.6)
        await asyncio.sleep(0.01)
    assert loop.time() - began_s < 0.5 < time.monotonic() - began_real_s


async def test_what_is_waited_for_is_waited_for() -> None:
    loop = asyncio.get_running_loop()
    began_s, began_real_s = loop.time(), time.monotonic()
    await asyncio.sleep(0.2)
    assert 0.19 < loop.time() - began_s <= time.monotonic() - began_real_s + 0.001
