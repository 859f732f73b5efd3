"""The gateway's own life on every database: bounded, cut, and a crash found by the start after it (DB-1)."""

from __future__ import annotations

import pytest

from openclaw.store.database import Database
from openclaw.store.diagnostics import KEPT, MAX_DETAIL_CHARS, Diagnostic, Diagnostics
from tests.conformance.making import NOON, select


@pytest.mark.spec("DB-1")
class TestDiagnostics:
    async def test_they_come_back_in_order(self, database: Database) -> None:
        diary = Diagnostics(database)
        assert await diary.newest() == ()
        await diary.note("refused", "the port is taken", now_ms=NOON)
        await diary.note("watchdog", "taken up: k", now_ms=NOON + 1)
        assert await diary.newest() == (
            Diagnostic(NOON, "refused", "the port is taken"),
            Diagnostic(NOON + 1, "watchdog", "taken up: k"),
        )
        assert await diary.newest(1) == (Diagnostic(NOON + 1, "watchdog", "taken up: k"),)

    async def test_a_start_after_a_start_tells_of_a_crash(self, database: Database) -> None:
        diary = Diagnostics(database)
        assert await diary.note_start("one", now_ms=NOON) is None
        await diary.note("recovery", "x", now_ms=NOON)
        crashed = await diary.note_start("two", now_ms=NOON + 5000)
        assert crashed == Diagnostic(NOON, "start", "one")
        await diary.note("stop", "in order", now_ms=NOON + 6000)
        assert await diary.note_start("three", now_ms=NOON + 7000) is None
        found = await diary.newest()
        assert [one.kind for one in found] == ["start", "recovery", "crash", "start", "stop", "start"]
        assert found[2].at == NOON + 5000
        assert found[2].detail.endswith(" did not stop in order: one") and "T12:00:00" in found[2].detail

    async def test_only_the_newest_are_kept_and_a_text_is_cut(self, database: Database) -> None:
        diary = Diagnostics(database)
        for number in range(KEPT + 3):
            await diary.note("doctor", f"{number}", now_ms=NOON + number)
        found = await diary.newest(KEPT * 2)
        assert len(found) == KEPT == 500
        assert (found[0].detail, found[-1].detail) == ("3", str(KEPT + 2))
        await diary.note("doctor", "x\0\ud800" + "y" * MAX_DETAIL_CHARS, now_ms=NOON)
        (last,) = await diary.newest(1)
        assert last.detail == "x\ufffd" + "y" * (MAX_DETAIL_CHARS - 2)
        (count,) = await select(database, "SELECT count(*) FROM diagnostics")
        assert count == (KEPT,)
