"""The virtual loop and the simulated driver keep what they promise: the simulation rests on them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

import pytest

from openclaw.errors import StoreError, StoreFull
from openclaw.store.database import Transaction
from tests.simulation.database import Faults, Image, SimulatedDatabase
from tests.simulation.loop import Crashed, Stuck, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop(Random(1))
    yield made
    if not made.is_closed():
        made.throw_away()


def test_time_jumps_to_the_next_timer(loop: VirtualLoop) -> None:
    async def sleep() -> float:
        await asyncio.sleep(86_400)
        return loop.time()

    assert loop.run_until_complete(sleep()) == 86_400


def test_ready_callbacks_keep_their_order_and_timers_of_one_moment_do_not(loop: VirtualLoop) -> None:
    told: list[str] = []

    async def register() -> None:
        for number in range(20):
            loop.call_soon(told.append, f"soon {number}")
            loop.call_later(0.001, told.append, f"later {number}")
        await asyncio.sleep(0.01)

    loop.run_until_complete(register())
    assert told[:20] == [f"soon {number}" for number in range(20)]
    assert told[20:] != [f"later {number}" for number in range(20)]
    assert sorted(told[20:]) == sorted(f"later {number}" for number in range(20))


def test_a_wait_that_nothing_ends_is_told(loop: VirtualLoop) -> None:
    async def wait_for_ever() -> None:
        await loop.create_future()

    with pytest.raises(Stuck):
        loop.run_until_complete(wait_for_ever())


def test_a_crash_comes_between_two_callbacks_and_nothing_goes_on(loop: VirtualLoop) -> None:
    steps: list[int] = []

    async def work() -> None:
        for number in range(100):
            steps.append(number)
            await asyncio.sleep(0)

    loop.crash_in = 10
    with pytest.raises(Crashed):
        loop.run_until_complete(work())
    assert 5 < len(steps) <= 11
    assert loop.crash_in is None
    loop.throw_away()
    assert loop.is_closed()


def test_work_for_a_thread_runs_in_virtual_time(loop: VirtualLoop) -> None:
    def fail() -> None:
        raise ValueError("no")

    async def work() -> int:
        with pytest.raises(ValueError, match="no"):
            await asyncio.to_thread(fail)
        return await asyncio.to_thread(sum, (1, 2))

    assert loop.run_until_complete(work()) == 3


class TestDriver:
    @pytest.fixture
    def image(self) -> Iterator[Image]:
        made = Image()
        yield made
        made.close()

    def kept(self, image: Image) -> list[str]:
        return [row[0] for row in image.peek("SELECT name FROM meta WHERE value = 'x' ORDER BY name")]

    def test_a_write_is_answered_after_its_commit(self, loop: VirtualLoop, image: Image) -> None:
        database = SimulatedDatabase(image, Random(2), Faults(), lambda _kind: None)

        async def write() -> list[str]:
            await database.write(lambda tx: tx.run("INSERT INTO meta VALUES ('a', 'x')"))
            return self.kept(image)

        assert loop.run_until_complete(write()) == ["a"]
        assert database.commits == 1

    def test_who_goes_away_leaves_the_unit_behind(self, loop: VirtualLoop, image: Image) -> None:
        database = SimulatedDatabase(image, Random(2), Faults(), lambda _kind: None)

        async def walk_away() -> None:
            task = asyncio.ensure_future(
                database.write(lambda tx: tx.run("INSERT INTO meta VALUES ('a', 'x')"))
            )
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.sleep(1)

        loop.run_until_complete(walk_away())
        assert self.kept(image) == ["a"]

    def test_a_failure_keeps_nothing_and_a_dead_process_writes_nothing(
        self, loop: VirtualLoop, image: Image
    ) -> None:
        faults, told = Faults(broken=True), list[str]()
        database = SimulatedDatabase(image, Random(2), faults, told.append)

        async def write() -> None:
            with pytest.raises(StoreFull):
                await database.write(lambda tx: tx.run("INSERT INTO meta VALUES ('a', 'x')"))
            faults.broken = False
            with pytest.raises(StoreError):
                await database.write(lambda tx: tx.run("INSERT INTO meta VALUES (NULL, NULL)"))
            database.dead = True
            task = asyncio.ensure_future(
                database.write(lambda tx: tx.run("INSERT INTO meta VALUES ('b', 'x')"))
            )
            await asyncio.sleep(1)
            assert not task.done()

        loop.run_until_complete(write())
        assert self.kept(image) == []
        assert told == ["store failure"]

    def test_a_unit_may_run_again_and_is_kept_once(self, loop: VirtualLoop, image: Image) -> None:
        database = SimulatedDatabase(image, Random(2), Faults(again=1.0), lambda _kind: None)
        ran: list[str] = []

        def unit(tx: Transaction) -> None:
            ran.append("x")
            tx.run("INSERT INTO meta VALUES ('a', 'x')")

        loop.run_until_complete(database.write(unit))
        assert len(ran) == 2
        assert self.kept(image) == ["a"]
