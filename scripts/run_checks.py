"""Runs every check and the tests, one part after the other, and says how long each took.

`python -m scripts.run_checks [--fast]`, started by `scripts/test`, `scripts/check` and `.ci/run`. This is
the one list of what must hold before a change lands. It decides nothing itself: each part is a command with
an exit code. A failed part does not stop the others, so that one run shows every problem. A part that this
machine cannot run says so and is left out; that is told in the table and is no failure.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
TOOLS = Path(sys.executable).parent

# `2 failed, 31 passed in 4.56s`, with or without the rule of equal signs around it.
CLOSING_LINE = re.compile(
    r"^(=+ )?(\d+ (passed|failed|error|skipped|deselected|xfailed)|no tests ran).* in [\d.]+s"
)

# A user's keys and state directory must not leak into the tests.
PRIVATE_VARIABLE = re.compile(r"OPENCLAW_|[A-Z0-9_]*API_KEY$")

# The exit code of a part that cannot be run here. It says why in a line of its own: `left out: no Chromium`.
LEFT_OUT = 77
LEFT_OUT_LINE = re.compile(r"^left out: (.+)$")
# How many tests failed once and passed when they were looked at again.
SHAKY_LINE = re.compile(r"^shaky: (\d+)$")
# The part whose closing line is the last line of all.
MAIN_PART = "tests"


class Part(NamedTuple):
    """One line of the closing table."""

    name: str
    command: Sequence[str]
    fast: bool = True
    most_seconds: float = math.inf


class Outcome(NamedTuple):
    name: str
    seconds: float
    result: str
    closing_line: str = ""

    @property
    def is_good(self) -> bool:
        return self.result.startswith(("ok", "left out"))


class Told(NamedTuple):
    """What the output of a part said, and whether its time sufficed."""

    closing_line: str
    left_out: str
    shaky: str
    in_time: bool


def _script(name: str, *arguments: str) -> list[str]:
    return [PYTHON, "-m", f"scripts.{name}", *arguments]


PARTS = (
    Part("format", [str(TOOLS / "ruff"), "format", "--check", "."]),
    Part("lint", [str(TOOLS / "ruff"), "check", "."]),
    Part("types", [str(TOOLS / "mypy")]),
    Part("layers", [str(TOOLS / "lint-imports")]),
    Part("sizes", _script("check_sizes")),
    Part("modules", _script("check_imports")),
    Part("words", _script("check_words")),
    Part("changelog", _script("check_changelog")),
    Part("spec table", _script("spec_coverage", "--check")),
    Part("config page", _script("gen_config_docs", "--check")),
    Part("cli page", _script("gen_cli_docs", "--check")),
    Part("chat page", _script("gen_chat_docs", "--check")),
    Part("figures", _script("gen_figures", "--check")),
    Part("docs", _script("check_docs")),
    Part("citations", _script("check_citations")),
    Part("wheel", _script("check_wheel"), fast=False),
    Part(
        "tests",
        _script("second_look", "-m", "not long and not interop and not web")
        + ["-n", "2", "--dist", "worksteal"]
        + ["--cov", "--cov-branch", "--cov-report=", "--durations=10", "-q"]
        + ["-o", "faulthandler_timeout=180"],
        fast=False,
    ),
    Part("web", _script("check_web"), fast=False, most_seconds=600),
    Part("coverage", _script("check_coverage"), fast=False),
)


def run_part(part: Part, seconds_left: float, root: Path = ROOT) -> Outcome:
    """Runs one part, its output passed through. A part that outlives its time is ended and failed."""
    print(f"\n── {part.name}", flush=True)
    started = time.monotonic()
    if seconds_left <= 0:
        return Outcome(part.name, 0.0, "FAILED (no time left)")
    environment = {name: value for name, value in os.environ.items() if not PRIVATE_VARIABLE.match(name)}
    try:
        process = subprocess.Popen(
            part.command,
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        print(error)
        return Outcome(part.name, time.monotonic() - started, "FAILED (could not start)")
    told = _follow(process, min(seconds_left, part.most_seconds))
    result = _judge(process.returncode, told)
    return Outcome(part.name, time.monotonic() - started, result, told.closing_line)


def _judge(code: int, told: Told) -> str:
    if not told.in_time:
        return "FAILED (out of time)"
    if code == LEFT_OUT and told.left_out:
        return f"left out ({told.left_out})"
    if code == 0 and told.shaky:
        return f"ok, but {told.shaky} SHAKY: see above"
    return "ok" if code == 0 else "FAILED"


def _follow(process: subprocess.Popen[str], seconds_left: float) -> Told:
    """Copies the output until the process ends, and remembers what matters of it."""
    closing_line = left_out = shaky = ""
    in_time = True

    def wait_then_sweep() -> None:
        nonlocal in_time
        try:
            process.wait(seconds_left)
        except subprocess.TimeoutExpired:
            in_time = False
        # Also ends what the part left running: a forgotten child would hold the pipe open for ever.
        _signal_group(process, signal.SIGKILL)
        process.wait()

    assert process.stdout is not None
    watcher = threading.Thread(target=wait_then_sweep, daemon=True)
    watcher.start()
    try:
        with process.stdout:
            for line in process.stdout:
                sys.stdout.write(line)
                sys.stdout.flush()
                if CLOSING_LINE.match(line):
                    closing_line = line.strip()
                elif told := LEFT_OUT_LINE.match(line):
                    left_out = told[1]
                elif told := SHAKY_LINE.match(line):
                    shaky = told[1]
        watcher.join()
    except KeyboardInterrupt:
        _signal_group(process, signal.SIGINT)
        watcher.join(10)
        _signal_group(process, signal.SIGKILL)
        raise
    return Told(closing_line, left_out, shaky, in_time)


def _signal_group(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def format_table(outcomes: Sequence[Outcome]) -> str:
    """The closing table, and pytest's closing lines under it: that of the main part last, as it came."""
    rows = [f"{outcome.name:<12} {outcome.seconds:>8.1f}  {outcome.result}" for outcome in outcomes]
    total = sum(outcome.seconds for outcome in outcomes)
    lines = ["", f"{'part':<12} {'seconds':>8}  result", *rows, f"{'together':<12} {total:>8.1f}"]
    closed = [outcome for outcome in outcomes if outcome.closing_line]
    lines += [f"{one.name}: {one.closing_line}" for one in closed if one.name != MAIN_PART]
    lines += [one.closing_line for one in closed if one.name == MAIN_PART]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/test", description=__doc__.split("\n\n")[0])
    parser.add_argument("--fast", action="store_true", help="only the checks, not the wheel and the tests")
    parser.add_argument("--minutes", type=float, default=60.0, help="fail what is not done after this time")
    parser.add_argument("--setup-seconds", type=float, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    outcomes: list[Outcome] = []
    if chosen.setup_seconds is not None:
        outcomes.append(Outcome("setup", chosen.setup_seconds, "ok"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    deadline = time.monotonic() + chosen.minutes * 60 - (chosen.setup_seconds or 0.0)
    try:
        for part in PARTS:
            if part.fast or not chosen.fast:
                outcomes.append(run_part(part, deadline - time.monotonic()))
    except KeyboardInterrupt:
        print(format_table(outcomes))
        print("interrupted")
        return 130
    print(format_table(outcomes), flush=True)
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
