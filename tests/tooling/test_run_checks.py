"""The runner times every part, goes on after a failure, and ends what does not end by itself."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from scripts import run_checks
from scripts.run_checks import CLOSING_LINE, LEFT_OUT, Outcome, Part, format_table, main, run_part


def python(name: str, code: str) -> Part:
    return Part(name, [sys.executable, "-c", code])


def test_a_part_passes_fails_or_cannot_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = run_part(python("good", "print('hello')"), 60, tmp_path)
    bad = run_part(python("bad", "import sys; print('3 failed in 1.00s'); sys.exit(3)"), 60, tmp_path)
    absent = run_part(Part("absent", [str(tmp_path / "no-such-tool")]), 60, tmp_path)
    late = run_part(python("late", "print('never')"), 0, tmp_path)
    assert [part.result for part in (good, bad, absent, late)] == [
        "ok",
        "FAILED",
        "FAILED (could not start)",
        "FAILED (no time left)",
    ]
    assert (good.closing_line, bad.closing_line) == ("", "3 failed in 1.00s")
    shown = capsys.readouterr().out
    assert "hello" in shown
    assert "never" not in shown


def test_a_part_that_hangs_is_ended(tmp_path: Path) -> None:
    started = time.monotonic()
    outcome = run_part(
        python("stuck", "import threading; print('x', flush=True); threading.Event().wait(60)"), 0.5, tmp_path
    )
    assert outcome.result == "FAILED (out of time)"
    assert time.monotonic() - started < 20


def test_a_child_left_behind_does_not_hold_the_run(tmp_path: Path) -> None:
    child = "import threading; threading.Event().wait(60)"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}])"
    started = time.monotonic()
    assert run_part(python("leaky", code), 60, tmp_path).result == "ok"
    assert time.monotonic() - started < 20


def test_keys_and_state_of_the_user_stay_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", "/home/someone")
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("KEPT", "yes")
    code = "import os; print(sorted({'OPENCLAW_STATE_DIR', 'SOME_API_KEY', 'KEPT'} & set(os.environ)))"
    assert run_part(python("clean", code), 60, tmp_path).result == "ok"
    assert capsys.readouterr().out.splitlines()[-1] == "['KEPT']"


@pytest.mark.parametrize(
    "line",
    [
        "812 passed in 95.20s (0:01:35)",
        "===== 2 failed, 31 passed, 1 skipped in 4.56s =====",
        "1 error in 0.10s",
        "no tests ran in 0.01s",
        "3 deselected in 0.02s",
    ],
)
def test_every_closing_line_of_pytest_is_known(line: str) -> None:
    assert CLOSING_LINE.match(line)


@pytest.mark.parametrize(
    "line", ["Success: no issues found in 12 source files", "tests/test_a.py ..... [ 5%]"]
)
def test_other_lines_are_not_taken_for_it(line: str) -> None:
    assert not CLOSING_LINE.match(line)


def test_a_part_that_cannot_be_run_here_is_left_out(tmp_path: Path) -> None:
    """It must say why: the exit code alone could be anything."""
    code = "import sys; print('left out: no Chromium'); sys.exit(77)"
    assert LEFT_OUT == 77
    outcomes = [
        run_part(python("told", code), 60, tmp_path),
        run_part(python("silent", "import sys; sys.exit(77)"), 60, tmp_path),
        run_part(python("other", code.replace("77", "1")), 60, tmp_path),
        run_part(python("fine", "print('left out: nothing')"), 60, tmp_path),
    ]
    assert [outcome.result for outcome in outcomes] == ["left out (no Chromium)", "FAILED", "FAILED", "ok"]
    assert [outcome.is_good for outcome in outcomes] == [True, False, False, True]


def test_a_part_has_a_time_of_its_own(tmp_path: Path) -> None:
    stuck = python("stuck", "import threading; threading.Event().wait(60)")._replace(most_seconds=0.5)
    started = time.monotonic()
    assert run_part(stuck, 60, tmp_path).result == "FAILED (out of time)"
    assert time.monotonic() - started < 20


def test_a_run_with_parts_left_out_is_good(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left_out = python("web", "import sys; print('left out: no Chromium'); sys.exit(77)")
    monkeypatch.setattr(run_checks, "PARTS", (python("first", ""), left_out))
    assert main([]) == 0
    assert "left out (no Chromium)" in capsys.readouterr().out.splitlines()[-2]


def test_the_closing_line_of_the_tests_is_the_last_of_several() -> None:
    outcomes = [
        Outcome("tests", 30, "ok", "800 passed in 30.00s"),
        Outcome("web", 20, "ok", "60 passed, 2 deselected in 20.00s"),
        Outcome("coverage", 1, "ok"),
    ]
    assert format_table(outcomes).splitlines()[-2:] == [
        "web: 60 passed, 2 deselected in 20.00s",
        "800 passed in 30.00s",
    ]
    # A run that broke off before the end of its tests does not seem to be one that passed.
    broken = [outcomes[0]._replace(closing_line="", result="FAILED"), outcomes[1]]
    assert format_table(broken).splitlines()[-1] == "web: 60 passed, 2 deselected in 20.00s"


def test_the_table_ends_with_pytests_closing_line() -> None:
    outcomes = [
        Outcome("setup", 12, "ok"),
        Outcome("tests", 30.25, "FAILED", "1 failed, 2 passed in 30.00s"),
        Outcome("coverage", 0.5, "ok"),
    ]
    assert format_table(outcomes).splitlines() == [
        "",
        "part          seconds  result",
        "setup            12.0  ok",
        "tests            30.2  FAILED",
        "coverage          0.5  ok",
        "together         42.8",
        "1 failed, 2 passed in 30.00s",
    ]


def test_all_parts_run_even_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = python("tests", "print('5 passed in 0.10s')")._replace(fast=False)
    parts = (python("first", "import sys; sys.exit(1)"), python("second", ""), slow)
    monkeypatch.setattr(run_checks, "PARTS", parts)
    assert main(["--setup-seconds", "3"]) == 1
    closing = capsys.readouterr().out.splitlines()[-6:]
    assert [line.split()[0] for line in closing] == ["setup", "first", "second", "tests", "together", "5"]
    assert closing[1].endswith("FAILED")
    monkeypatch.setattr(run_checks, "PARTS", parts[1:])
    assert main(["--fast"]) == 0
    assert "tests" not in capsys.readouterr().out


def test_the_list_names_every_check_once() -> None:
    names = [part.name for part in run_checks.PARTS]
    assert len(names) == len(set(names))
    scripts = {part.command[2] for part in run_checks.PARTS if part.command[1:2] == ["-m"]}
    checks = {f"scripts.{path.stem}" for path in (run_checks.ROOT / "scripts").glob("check_*.py")}
    # The mutation run takes minutes and has a command of its own.
    assert checks - {"scripts.check_mutants"} <= scripts
