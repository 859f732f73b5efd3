"""grep: what is found, what is left out, and patterns that would never end."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from openclaw.engine.tools.workspace import searching
from openclaw.engine.tools.workspace.grep import GrepTool, search_apart
from openclaw.engine.tools.workspace.searching import Match, Search, search
from openclaw.errors import InvalidRequest
from tests.unit.engine.tools.workspace.doing import call, context_of, refused, said

GREP = GrepTool(time_s=30)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("import os\nprint(os.name)\n")
    (tmp_path / "b.txt").write_text("Os and os.\nnothing\na(b*c\n")
    for hidden in (".git", "node_modules", ".venv"):
        (tmp_path / hidden).mkdir()
        (tmp_path / hidden / "c.txt").write_text("os")
    (tmp_path / "bin").write_bytes(b"os\x00os")
    (tmp_path / "link").symlink_to("/etc")
    return tmp_path


async def test_plain_text_is_found_with_its_place(place: Path) -> None:
    outcome = await call(GREP, context_of(place), pattern="os")
    assert said(outcome).splitlines() == [
        "b.txt:1: Os and os.",
        "src/a.py:1: import os",
        "src/a.py:2: print(os.name)",
    ]
    assert outcome.details == {"matches": 3, "files": 3, "truncated": False}
    literal = await call(GREP, context_of(place), pattern="a(b*c")
    assert said(literal) == "b.txt:3: a(b*c"
    assert said(await call(GREP, context_of(place), pattern="absent")) == "no match in 3 files"


async def test_path_glob_case_and_limit_narrow_the_search(place: Path) -> None:
    context = context_of(place)
    assert "b.txt" not in said(await call(GREP, context, pattern="os", glob="*.py"))
    assert "b.txt" not in said(await call(GREP, context, pattern="os", glob="src/*"))
    assert said(await call(GREP, context, pattern="os", path="b.txt")) == "b.txt:1: Os and os."
    assert (
        said(await call(GREP, context, pattern="IMPORT", path="src/", ignoreCase=True))
        == "src/a.py:1: import os"
    )
    cut = await call(GREP, context, pattern="os", limit=2)
    assert said(cut).splitlines()[2] == "[stopped: more than 2 matches]"
    assert cut.details == {"matches": 2, "files": 3, "truncated": True}
    exact = await call(GREP, context, pattern="os", limit=3)
    assert exact.details == {"matches": 3, "files": 3, "truncated": False}


async def test_a_regular_expression_is_one_only_when_asked_for(place: Path) -> None:
    context = context_of(place)
    assert said(await call(GREP, context, pattern=r"^import\s+\w+$")) == "no match in 3 files"
    found = await call(GREP, context, pattern=r"^import\s+\w+$", regex=True)
    assert said(found) == "src/a.py:1: import os"
    folded = await call(GREP, context, pattern="^OS", regex=True, ignoreCase=True)
    assert said(folded) == "b.txt:1: Os and os."
    wrong = refused(await call(GREP, context, pattern="a(b", regex=True))
    assert wrong.startswith("pattern is not a regular expression: ")


async def test_a_pattern_that_never_ends_is_stopped_and_blocks_nobody(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a" * 60 + "!")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    beside = asyncio.create_task(tick())
    started = time.monotonic()
    outcome = await call(GrepTool(time_s=1), context_of(tmp_path), pattern="(a+)+$", regex=True)
    beside.cancel()
    assert said(outcome) == "no match in 0 files\n[stopped: out of time after 1 s; use a simpler pattern]"
    assert time.monotonic() - started < 60
    assert ticks > 3  # a search on the loop would leave one at most


async def test_a_search_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a" * 60 + "!")
    asked = Search(str(tmp_path), "(a+)+$", regex=True, time_s=60)
    running = asyncio.create_task(search_apart(asked))
    await asyncio.to_thread(wait_for_searches, 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.to_thread(wait_for_searches, 0)


def wait_for_searches(count: int) -> None:
    """Until this process has so many searches under way."""
    until = time.monotonic() + 60
    while len(searches_under_way()) != count:
        assert time.monotonic() < until
        time.sleep(0.05)


def searches_under_way() -> list[str]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            try:
                command = Path(f"/proc/{pid}/cmdline").read_text()
            except OSError:
                continue
            if searching.__name__ in command:
                found.append(pid)
    return found


@pytest.mark.spec("DB-19")
async def test_a_search_stays_inside(place: Path) -> None:
    context = context_of(place)
    for regex in (False, True):
        assert "leads out" in refused(
            await call(GREP, context, pattern="root", path="link", regex=regex),
            "forbidden" if not regex else "error",
        )
        assert "not allowed" in refused(
            await call(GREP, context, pattern="x", path="../", regex=regex), "forbidden"
        )
    assert "root:" not in said(await call(GREP, context, pattern="root"))
    assert "does not exist" in refused(await call(GREP, context, pattern="x", path="none"))


async def test_patterns_have_limits(place: Path) -> None:
    assert "pattern is empty" in refused(await call(GREP, context_of(place), pattern=""))
    assert "longer than 1000" in refused(await call(GREP, context_of(place), pattern="x" * 1001))
    assert not (await call(GREP, context_of(place), pattern="x" * 1000)).is_error


async def test_long_lines_are_shown_short(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * 100_000 + "needle")
    found = search(Search(str(tmp_path), "needle"))
    assert found.matches == (Match("a", 1, "x" * 300),)
    apart = await search_apart(Search(str(tmp_path), "needle", regex=True))
    assert (apart.matches, apart.files) == ((), 1)  # a regex looks at the beginning of a line only


def test_a_search_ends_when_its_time_is_over(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("needle")
    found = search(Search(str(tmp_path), "needle", time_s=-1))
    assert (found.matches, found.stopped) == ((), "out of time; name a directory with path")


def test_a_search_ends_after_too_many_files_or_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        (tmp_path / f"{number}").write_text("needle 12")
    monkeypatch.setattr(searching, "MAX_FILES", 3)
    assert (
        search(Search(str(tmp_path), "needle")).files,
        search(Search(str(tmp_path), "x")).stopped[:8],
    ) == (3, "too many")
    monkeypatch.setattr(searching, "MAX_FILES", 4)
    assert search(Search(str(tmp_path), "needle")).stopped == ""
    monkeypatch.setattr(searching, "MAX_TOTAL_BYTES", 18)
    assert search(Search(str(tmp_path), "needle")).files == 2


def test_odd_names_and_missing_places_do_not_stop_a_search(tmp_path: Path) -> None:
    (tmp_path / "a\nb").write_text("needle")
    (tmp_path / "c\nd").mkdir()
    (tmp_path / "z").write_text("needle")
    assert [match.path for match in search(Search(str(tmp_path), "needle")).matches] == ["z"]
    with pytest.raises(InvalidRequest, match="not there yet"):
        search(Search(str(tmp_path / "none"), "x"))
