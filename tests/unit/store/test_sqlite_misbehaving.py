"""Units that misbehave, callers that leave, a process without files: the threads go on, callers are told."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from openclaw.errors import StoreBusy, StoreError
from openclaw.store import sqlite
from openclaw.store.database import Transaction, Unit
from openclaw.store.sqlite import SqliteDatabase
from tests.unit.store.driving import (
    ENDLESS,
    PATIENCE_S,
    Gate,
    Word,
    batch,
    hand_over,
    outcomes,
    words,
    written,
)


class Ends:
    """A unit that writes and then raises what would end a thread."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, tx: Transaction) -> None:
        tx.rows("SELECT 1")
        raise self.error


ENDINGS = [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()]


@pytest.mark.parametrize("error", ENDINGS, ids=lambda error: type(error).__name__)
async def test_no_unit_ends_the_writer_or_a_reader(database: SqliteDatabase, error: BaseException) -> None:
    said = f"a unit of work raised {type(error).__name__}"
    results = await batch(database, Word("a"), Ends(error), Word("b"))
    assert (results[0], results[2]) == ("a", "b")
    assert (type(results[1]), str(results[1])) == (RuntimeError, said)
    calls: list[Any] = [database.write, *[database.read] * 5, database.between_batches]
    for call in calls[:-1]:
        with pytest.raises(RuntimeError, match=said):
            await asyncio.wait_for(call(Ends(error)), PATIENCE_S)

    def end_bare(_connection: object) -> None:
        raise error

    with pytest.raises(RuntimeError, match=said):
        await asyncio.wait_for(calls[-1](end_bare), PATIENCE_S)
    assert all(thread.is_alive() for thread in database._threads)
    assert await database.write(Word("c")) == "c"
    assert await written(database) == ["a", "b", "c"]


async def test_a_slow_read_is_told_as_a_read(path: Path) -> None:
    database = await SqliteDatabase.open(path, unit_budget_s=0.05)
    with pytest.raises(StoreBusy) as caught:
        await database.read(lambda tx: tx.rows(ENDLESS))
    assert caught.value.message == "a read took longer than 0.05 s"
    with pytest.raises(StoreBusy) as caught:
        await database.write(lambda tx: tx.rows(ENDLESS))
    assert caught.value.message == "a write took longer than 0.05 s and was rolled back"
    await database.close()


@pytest.mark.spec("DB-14")
@pytest.mark.parametrize("kind", ["write", "read"])
async def test_work_that_nobody_waits_for_still_fills_the_line(
    path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Callers that come and go must not pile up more work than the bound allows."""
    monkeypatch.setattr(sqlite, "MAX_WAITING", 2)
    database = await SqliteDatabase.open(path, readers=1)
    gate, late = Gate(), Word("late")
    call: Any = database.write if kind == "write" else database.read
    units: list[Unit[Any]] = [gate, lambda tx: "second"]
    gone = [asyncio.create_task(call(unit)) for unit in units]
    await asyncio.wait_for(gate.entered.wait(), PATIENCE_S)
    for task in gone:
        task.cancel()
    assert [type(result) for result in await outcomes(gone)] == [asyncio.CancelledError] * 2
    (waiting,) = await hand_over(database, [late])
    for _ in range(20):
        await asyncio.sleep(0)
    assert (late.ran, len(database._line._waiting)) == (0, 1)
    gate.open()
    assert await outcomes([waiting]) == ["late"]
    assert await outcomes(await hand_over(database, words("a", "b", "c"))) == ["a", "b", "c"]
    await database.close()


# -- a process without files -----------------------------------------------------------------------


@contextmanager
def files_left(count: int) -> Iterator[None]:
    """This process may open only so many more files inside the block."""
    probe = os.open("/dev/null", os.O_RDONLY)
    os.close(probe)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [number for number in range(probe, soft) if not os.path.exists(f"/proc/self/fd/{number}")]
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[count], hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("left", range(12))
async def test_a_process_that_can_open_no_more_files_is_told_so(path: Path, left: int) -> None:
    await asyncio.to_thread(lambda: None)
    told: StoreError | None = None
    database = None
    with files_left(left):
        try:
            database = await SqliteDatabase.open(path)
        except StoreError as error:
            told = error
    if database is None:
        assert told is not None
        assert "files are open" in told.message or "too many files" in told.message
        database = await SqliteDatabase.open(path)
    assert await database.write(Word("a")) == "a"
    await database.close()
    assert told is not None or left > 2
