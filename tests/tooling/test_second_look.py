"""A test that failed and then passes alone is told as shaky; what must never happen is not excused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.run_checks import Part, run_part
from scripts.second_look import may_be_looked_at
from tests.tooling.trees import PROJECT, plant

FLAKY = """
from pathlib import Path
SEEN = Path(__file__).with_name("seen")
def test_good(): pass
def test_{name}():
    before = SEEN.read_text() if SEEN.exists() else ""
    SEEN.write_text(before + "x")
    assert len(before) in {passes}
"""


def look(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    plant(place, {"scripts/__init__.py": "", "pytest.ini": "[pytest]\n"})
    (place / "scripts/second_look.py").write_bytes((PROJECT / "scripts/second_look.py").read_bytes())
    command = [sys.executable, "-m", "scripts.second_look", "-q", *arguments]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_what_fails_once_and_passes_twice_alone_is_told_by_name(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    plant(tmp_path, {"tests/test_a.py": FLAKY.format(name="shy", passes="(1, 2)")})
    done = look(tmp_path, *workers, "tests")
    assert done.returncode == 0, done.stdout
    assert "SHAKY: tests/test_a.py::test_shy failed once and then passed 2 times alone" in done.stdout
    assert done.stdout.endswith("\nshaky: 1\n")
    # The closing line is that of the whole run.
    closing = [line for line in done.stdout.splitlines() if " in " in line and not line.startswith("  |")]
    assert "1 failed, 1 passed" in closing[-1]
    part = Part("tests", [sys.executable, "-c", "print('shaky: 1')"])
    assert run_part(part, 60, tmp_path).result == "ok, but 1 SHAKY: see above"


@pytest.mark.parametrize(
    ("name", "passes", "looks"),
    [
        ("shy", "(1,)", 3),  # passes once, not twice
        ("shy", "()", 2),
        ("no_row_is_lost", "(1, 2)", 1),
    ],
)
def test_what_is_not_excused(tmp_path: Path, name: str, passes: str, looks: int) -> None:
    plant(tmp_path, {"tests/test_a.py": FLAKY.format(name=name, passes=passes)})
    done = look(tmp_path, "tests")
    assert done.returncode == 1
    assert "SHAKY" not in done.stdout and "shaky" not in done.stdout
    assert (tmp_path / "tests/seen").read_text() == "x" * looks


def test_a_file_that_cannot_be_read_is_not_excused(tmp_path: Path) -> None:
    plant(
        tmp_path, {"tests/test_a.py": "import nothing_like_this\n", "tests/test_b.py": "def test_b(): pass\n"}
    )
    done = look(tmp_path, "tests")
    assert done.returncode == 2
    assert "looking a second time" not in done.stdout


def test_which_tests_may_be_excused() -> None:
    one = "tests/integration/test_turns.py::test_words"
    assert may_be_looked_at([one]) and may_be_looked_at([one, one + "2", one + "3"])
    assert not may_be_looked_at([]) and not may_be_looked_at([one] * 4)
    for never in (
        "tests/conformance/test_inbox.py::test_a", "tests/faults/test_kill.py::test_a",
        "tests/simulation/test_family.py::test_a", "tests/e2e/test_subagent_kill.py::test_a",
        "tests/integration/tools/test_canaries.py::test_a", "tests/unit/domain/test_keys.py::test_a",
        "tests/integration/test_doors.py::test_a_stranger_is_refused", "a file that could not be read",
    ):  # fmt: skip
        assert not may_be_looked_at([one, never]), never
