"""memory: notes by day, added to, read and searched."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from openclaw.engine.tools.workspace.access import WriteLocks
from openclaw.engine.tools.workspace.memory import (
    MAX_DAY_BYTES,
    MAX_NOTE_CHARS,
    MAX_READ_BYTES,
    MemoryTool,
    note_path,
)
from tests.unit.engine.tools.workspace.doing import NOON_MS, call, context_of, refused, said

UTC_ZONE = ZoneInfo("UTC")
MEMORY = MemoryTool(WriteLocks(), lambda: UTC_ZONE)


@pytest.mark.spec("FLUSH-5")
def test_notes_go_to_the_file_of_the_local_day() -> None:
    late_ms = int(datetime(2026, 3, 1, 23, 30, tzinfo=UTC).timestamp() * 1000)
    assert note_path(late_ms, UTC_ZONE) == "memory/2026-03-01.md"
    assert note_path(late_ms, ZoneInfo("Asia/Tokyo")) == "memory/2026-03-02.md"
    assert note_path(late_ms, ZoneInfo("America/New_York")) == "memory/2026-03-01.md"
    assert note_path(late_ms + 30 * 60_000 - 1, UTC_ZONE) == "memory/2026-03-01.md"
    assert note_path(late_ms + 30 * 60_000, UTC_ZONE) == "memory/2026-03-02.md"


async def test_a_note_is_added_to_what_is_there(tmp_path: Path) -> None:
    context = context_of(tmp_path, owner=False)
    first = await call(MEMORY, context, action="append", text="  likes tea \n")
    assert said(first) == "noted in memory/2026-01-01.md"
    assert first.details == {"path": "memory/2026-01-01.md", "bytes": 10}
    await call(MEMORY, context, action="append", text="has a dog")
    assert (tmp_path / "memory" / "2026-01-01.md").read_text() == "likes tea\nhas a dog\n"
    (tmp_path / "memory" / "2026-01-01.md").write_text("no line end")
    await call(MEMORY, context, action="append", text="more")
    assert said(await call(MEMORY, context, action="read")) == "no line end\nmore\n"


async def test_notes_of_one_moment_are_all_kept(tmp_path: Path) -> None:
    context = context_of(tmp_path)
    await asyncio.gather(*(call(MEMORY, context, action="append", text=f"note {n}") for n in range(30)))
    lines = (tmp_path / "memory" / "2026-01-01.md").read_text().splitlines()
    assert sorted(lines) == sorted(f"note {n}" for n in range(30))


async def test_notes_are_read_by_date(tmp_path: Path) -> None:
    context = context_of(tmp_path)
    tmp_path.joinpath("memory").mkdir()
    (tmp_path / "memory" / "2025-12-31.md").write_text("old year")
    assert said(await call(MEMORY, context, action="read", date="2025-12-31")) == "old year"
    missing = await call(MEMORY, context, action="read")
    assert said(missing) == "no notes in memory/2026-01-01.md; there are notes of 2025-12-31"
    assert not missing.is_error
    for wrong in ("yesterday", "../../x", "2026-13-01", "2026-1-1"):
        assert "of the form 2026-01-31" in refused(await call(MEMORY, context, action="read", date=wrong))
    (tmp_path / "memory" / "2026-01-01.md").write_text("x" * (MAX_READ_BYTES + 1))
    assert said(await call(MEMORY, context, action="read")).endswith("for the rest]")


async def test_a_workspace_without_notes_says_so(tmp_path: Path) -> None:
    context = context_of(tmp_path)
    assert "there are no notes yet" in said(await call(MEMORY, context, action="read"))
    assert said(await call(MEMORY, context, action="search", query="x")) == "no match in 0 files"


async def test_notes_are_searched_without_regard_to_case(tmp_path: Path) -> None:
    context = context_of(tmp_path)
    await call(MEMORY, context, action="append", text="Anna likes TEA\nBob likes coffee")
    later = context_of(tmp_path, now_ms=NOON_MS + 86_400_000)
    await call(MEMORY, later, action="append", text="tea is out")
    (tmp_path / "other.md").write_text("tea elsewhere")
    found = await call(MEMORY, context, action="search", query="tea")
    assert said(found).splitlines() == [
        "memory/2026-01-01.md:1: Anna likes TEA",
        "memory/2026-01-02.md:1: tea is out",
    ]
    assert found.details == {"matches": 2, "files": 2, "truncated": False}
    assert "pattern is empty" in refused(await call(MEMORY, context, action="search"))


async def test_notes_have_limits(tmp_path: Path) -> None:
    context = context_of(tmp_path)
    assert "text is empty" in refused(await call(MEMORY, context, action="append", text=" \n"))
    long = "x" * (MAX_NOTE_CHARS + 1)
    assert "keep what matters" in refused(await call(MEMORY, context, action="append", text=long))
    assert not (await call(MEMORY, context, action="append", text=long[:-1])).is_error
    (tmp_path / "memory" / "2026-01-01.md").write_bytes(b"y" * (MAX_DAY_BYTES - 3))
    assert not (await call(MEMORY, context, action="append", text="z")).is_error
    full = await call(MEMORY, context, action="append", text="z")
    assert "is full" in refused(full)
    assert (tmp_path / "memory" / "2026-01-01.md").stat().st_size == MAX_DAY_BYTES
    assert "invalid arguments" in refused(await call(MEMORY, context, action="forget"))


@pytest.mark.spec("DB-19")
async def test_notes_do_not_leave_through_a_link(tmp_path: Path) -> None:
    place, outside = tmp_path / "w", tmp_path / "outside"
    place.mkdir()
    outside.mkdir()
    (place / "memory").symlink_to(outside)
    answer = await call(MEMORY, context_of(place), action="append", text="x")
    assert "leads out" in refused(answer, "forbidden")
    assert list(outside.glob("*")) == []
