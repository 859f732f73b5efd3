"""The PostgreSQL driver: order, shared commits, units that fail, transactions that are lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from openclaw.errors import StoreBusy, StoreClosed, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from openclaw.store import postgres
from openclaw.store.database import ConstraintViolated, Priority, Transaction, Unit
from openclaw.store.postgres import ATTEMPTS, PostgresDatabase
from tests.fakes.postgres_server import shared_server
from tests.unit.store.driving import PATIENCE_S, Gate, Word, words
from tests.unit.store.postgres_driving import (
    BREAK,
    Trouble,
    batch,
    hand_over,
    held,
    opened,
    own_database,
    raising,
    written,
)

COUNT = "SELECT count(*) FROM meta"


@pytest.fixture
async def database() -> AsyncIterator[PostgresDatabase]:
    async with opened(shared_server().wiped()) as driver:
        yield driver


def transaction_number(tx: Transaction) -> int:
    found = tx.row("SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)")
    assert found is not None
    return int(found[0])


# -- order and shared commits ----------------------------------------------------------------------


@pytest.mark.spec("DB-14")
async def test_units_run_in_the_order_of_the_callers_and_share_a_commit(database: PostgresDatabase) -> None:
    order: list[int] = []

    def noting(number: int) -> Unit[int]:
        def unit(tx: Transaction) -> int:
            order.append(number)
            return transaction_number(tx)

        return unit

    numbers = await batch(database, *map(noting, range(40)))
    assert order == list(range(40))
    assert len(set(numbers)) == 1
    many = await batch(database, *map(noting, range(100)))
    assert len(set(many)) == 3
    assert order[40:] == list(range(100))


async def test_background_work_waits_for_people_and_goes_one_at_a_time(database: PostgresDatabase) -> None:
    async with held(database):
        slow = await hand_over(database, [transaction_number] * 3, Priority.BACKGROUND)
        quick = await hand_over(database, [transaction_number] * 2)
    first, second = await asyncio.gather(*quick)
    later = await asyncio.gather(*slow)
    assert first == second < min(later)
    assert len(set(later)) == 3


async def test_one_unit_that_fails_does_not_disturb_the_others(database: PostgresDatabase) -> None:
    await database.write(Word("taken"))

    def breaks(tx: Transaction) -> None:
        tx.run("INSERT INTO meta VALUES ('half', '')")
        raise LookupError("mine")

    def stops(tx: Transaction) -> None:
        raise StopIteration

    results = await batch(database, Word("a"), Word("taken"), breaks, stops, Word("b"))
    assert (results[0], results[4]) == ("a", "b")
    assert isinstance(results[1], ConstraintViolated) and results[1].message.startswith("UNIQUE")
    assert isinstance(results[2], LookupError)
    assert isinstance(results[3], RuntimeError)
    assert await written(database) == ["a", "b", "taken"]


async def test_a_constraint_that_is_checked_at_the_commit_fails_only_its_own_unit(
    database: PostgresDatabase,
) -> None:
    def dangling(tx: Transaction) -> None:
        tx.run(
            "INSERT INTO sessions (session_key, agent_id, kind, session_type, window_no, session_id, "
            "id_salt, version, last_seq, message_count, read_seq, created_at, updated_at, system_sent, "
            "aborted_last_run, more) "
            "VALUES ('k', 'a', 'main', 'direct', 77, 's', 1, 1, 0, 0, 0, 1, 1, 0, 0, '')"
        )

    first, last = words("a", "b")
    results = await batch(database, first, dangling, last)
    assert (results[0], results[2]) == ("a", "b")
    assert isinstance(results[1], ConstraintViolated) and "FOREIGN KEY" in results[1].message
    assert await written(database) == ["a", "b"]
    assert (first.ran, last.ran) == (2, 2)


async def test_a_unit_that_hides_an_error_is_not_told_that_it_is_safe(database: PostgresDatabase) -> None:
    def hides(tx: Transaction) -> str:
        tx.run("INSERT INTO meta VALUES ('hidden', '')")
        try:
            tx.run("SELECT 1 / 0")
        except Exception:
            return "all is well"
        return "impossible"

    with pytest.raises(StoreError, match="hid an error"):
        await database.write(hides)
    results = await batch(database, Word("a"), hides, Word("b"))
    assert results[0] == "a" and results[2] == "b"
    assert isinstance(results[1], StoreError)
    assert await written(database) == ["a", "b"]


# -- transactions that are lost --------------------------------------------------------------------


@pytest.mark.spec("DB-14")
async def test_units_that_meet_each_other_run_again_until_they_fit_in_a_row() -> None:
    """Each reads what the other writes: one of them must have come first."""
    both = threading.Barrier(2)
    ran: list[str] = []

    def crossing(name: str) -> Unit[int]:
        def unit(tx: Transaction) -> int:
            first = ran.count(name) == 0
            ran.append(name)
            counted = tx.row(COUNT)
            assert counted is not None
            if first:
                both.wait(PATIENCE_S)
            tx.run("INSERT INTO meta VALUES ($1, '')", (name,))
            return int(counted[0])

        return unit

    async with opened(shared_server().wiped(), writers=2) as database:
        seen = await asyncio.gather(database.write(crossing("a")), database.write(crossing("b")))
        assert sorted(seen) == [0, 1]
        assert await written(database) == ["a", "b"]
    assert len(ran) >= 3


@pytest.mark.parametrize("trouble", [raising("40001"), raising("40P01"), BREAK])
async def test_a_lost_transaction_is_run_again(database: PostgresDatabase, trouble: str) -> None:
    alone = Trouble("alone", trouble, times=ATTEMPTS - 1)
    assert await database.write(alone) == "alone"
    assert alone.ran == ATTEMPTS == 5
    troubled = Trouble("troubled", trouble)
    assert await batch(database, Word("a"), troubled, Word("b")) == ["a", "troubled", "b"]
    assert await written(database) == ["a", "alone", "b", "troubled"]
    assert await database.write(Word("more")) == "more"


@pytest.mark.parametrize("trouble", [raising("40001"), raising("40P01"), BREAK])
async def test_after_the_last_attempt_the_caller_is_told(database: PostgresDatabase, trouble: str) -> None:
    never = Trouble("never", trouble, times=100)
    with pytest.raises(StoreBusy) as caught:
        await database.write(never)
    assert caught.value.retryable
    assert never.ran == ATTEMPTS
    results = await batch(database, Word("a"), Trouble("never", trouble, times=100), Word("b"))
    assert (results[0], results[2]) == ("a", "b")
    assert isinstance(results[1], StoreBusy)
    assert await written(database) == ["a", "b"]


@pytest.mark.spec("DB-15")
async def test_a_connection_that_breaks_in_the_commit_is_not_run_again() -> None:
    """Nobody can know whether the commit happened: told as such, and never done twice."""
    async with own_database() as url, opened(url) as database:
        await database.write(Word("before"))
        for sql in (
            "CREATE FUNCTION break() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$",
            "CREATE CONSTRAINT TRIGGER breaking AFTER INSERT ON meta DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW WHEN (NEW.name LIKE 'break%') EXECUTE FUNCTION break()",
        ):
            shared_server().execute(sql, url)
        alone = Word("break alone")
        with pytest.raises(StoreError, match="not known whether this was stored") as caught:
            await database.write(alone)
        assert not caught.value.retryable
        together = words("a", "break together", "b")
        results = await batch(database, *together)
        assert all("not known" in str(result) for result in results)
        assert [unit.ran for unit in (alone, *together)] == [1, 1, 1, 1]
        assert await written(database) == ["before"]
        assert await database.write(Word("after")) == "after"


# -- time and other limits -------------------------------------------------------------------------


@pytest.mark.spec("DB-14")
async def test_a_unit_that_takes_too_long_is_rolled_back() -> None:
    def sleeps(tx: Transaction) -> None:
        tx.run("INSERT INTO meta VALUES ('slept', '')")
        tx.run("SELECT pg_sleep(30)")

    def dawdles(tx: Transaction) -> None:
        tx.run("INSERT INTO meta VALUES ('dawdled', '')")
        for _ in range(1000):
            tx.run("SELECT pg_sleep(0.05)")

    async with opened(shared_server().wiped(), unit_budget_s=0.4) as database:
        for unit in (sleeps, dawdles):
            with pytest.raises(StoreBusy):
                await asyncio.wait_for(database.write(unit), PATIENCE_S)
        results = await batch(database, Word("a"), dawdles, Word("b"))
        assert (results[0], type(results[1]), results[2]) == ("a", StoreBusy, "b")
        with pytest.raises(StoreBusy):
            await database.read(lambda tx: tx.rows("SELECT pg_sleep(30)"))
        assert await written(database) == ["a", "b"]


@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError(), StopIteration()])
async def test_no_unit_ends_a_thread(database: PostgresDatabase, error: BaseException) -> None:
    def ends(tx: Transaction) -> None:
        tx.rows("SELECT 1")
        raise error

    said = f"a unit of work raised {type(error).__name__}"
    results = await batch(database, Word("a"), ends, Word("b"))
    assert (results[0], str(results[1]), results[2]) == ("a", said, "b")
    for call in (database.write, database.read, database.read, database.read):
        with pytest.raises(RuntimeError, match=said):
            await asyncio.wait_for(call(ends), PATIENCE_S)
    assert all(thread.is_alive() for thread in database._threads)
    assert await written(database) == ["a", "b"]


@pytest.mark.parametrize(
    ("code", "kind"),
    [("53100", StoreFull), ("53300", StoreBusy), ("55P03", StoreBusy), ("25006", StoreReadOnly),
     ("42501", StoreReadOnly), ("XX001", StoreCorrupt), ("XX002", StoreCorrupt), ("58030", StoreError),
     ("23P01", ConstraintViolated)],
)  # fmt: skip
async def test_what_the_server_says_becomes_our_error(
    database: PostgresDatabase, code: str, kind: type[StoreError]
) -> None:
    unit = Trouble("w", raising(code))
    with pytest.raises(StoreError) as caught:
        await database.write(unit)
    assert type(caught.value) is kind
    assert unit.ran == 1
    assert await written(database) == []


@pytest.mark.spec("DB-14")
async def test_past_the_bound_a_caller_is_told_that_the_store_is_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres, "MAX_WAITING", 3)
    async with opened(shared_server().wiped(), busy_timeout_s=0.5) as database:
        turned_away = Word("turned away")
        for kept in ("ab", "cd"):  # the second time every place is free again
            async with held(database):
                tasks = await hand_over(database, words(*kept))
                for call in (database.write, database.read):
                    with pytest.raises(StoreBusy, match="session busy"):
                        await call(turned_away)
            assert await asyncio.gather(*tasks) == list(kept)
        assert turned_away.ran == 0


@pytest.mark.spec("DB-14")
async def test_more_callers_than_places_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "MAX_WAITING", 3)
    async with opened(shared_server().wiped()) as database:
        assert await asyncio.gather(*await hand_over(database, words(*"abcde"))) == list("abcde")


# -- reading ---------------------------------------------------------------------------------------


async def test_a_read_sees_one_moment_and_cannot_write(database: PostgresDatabase) -> None:
    changed, looked = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def twice(tx: Transaction) -> tuple[object, object]:
        before = tx.row(COUNT)
        loop.call_soon_threadsafe(looked.set)
        assert changed.wait(PATIENCE_S)
        return before, tx.row(COUNT)

    reading = asyncio.create_task(database.read(twice))
    await asyncio.wait_for(looked.wait(), PATIENCE_S)
    await database.write(Word("a"))
    assert await database.read(lambda tx: tx.row(COUNT)) == (1,)
    changed.set()
    assert await reading == ((0,), (0,))
    with pytest.raises(StoreReadOnly):
        await database.read(Word("b"))
    assert await written(database) == ["a"]


async def test_a_reader_that_broke_reads_again(database: PostgresDatabase) -> None:
    ran = []

    def breaks_once(tx: Transaction) -> object:
        ran.append(tx)
        if len(ran) == 1:
            tx.run(BREAK)
        return tx.row("SELECT 7")

    assert await database.read(breaks_once) == (7,)
    assert len(ran) == 2


# -- closing ---------------------------------------------------------------------------------------


async def test_closing_finishes_what_people_wait_for_and_refuses_the_background() -> None:
    url = shared_server().wiped()
    database = await PostgresDatabase.open(url)
    gate = Gate()
    (standing,) = await hand_over(database, [gate])
    await asyncio.wait_for(gate.entered.wait(), PATIENCE_S)
    slow = await hand_over(database, words("slow"), Priority.BACKGROUND)
    quick = await hand_over(database, words("a", "b"))
    closing = asyncio.create_task(database.close())
    await asyncio.sleep(0)
    with pytest.raises(StoreClosed):
        await database.write(Word("late"))
    gate.open()
    assert await asyncio.gather(standing, *quick) == ["passed", "a", "b"]
    await closing
    await database.close()
    assert isinstance((await asyncio.gather(*slow, return_exceptions=True))[0], StoreClosed)
    with pytest.raises(StoreClosed):
        await database.read(lambda tx: None)
    assert not any(thread.is_alive() for thread in database._threads)
    async with opened(url) as again:
        assert await written(again) == ["a", "b"]
