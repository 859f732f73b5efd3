"""Runs pytest, and looks a second time at a few failures: `python -m scripts.second_look ARGUMENTS`.

Ten thousand tests start real servers, databases and browsers on whatever machine there is; one that fails
among them and then passes twice alone says more about the moment than about the change. It is told by name
as shaky and does not fail the run. Never so for what must not happen even once: a lost row, a secret that
got out, a right that nobody has. More than a few failures are not looked at again either.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

MOST = 3
TIMES = 2
OUT = "SECOND_LOOK_OUT"
# Rooms and words of tests about promises that one failure breaks.
NEVER = re.compile(
    r"^tests/(conformance|faults|simulation|unit/domain)/|kill|crash|lost|secret|canar|authoris|"
    r"attack|escape|leak|fuzz|visib|forbid|refus"
)


class Failed:
    """Notes what failed, on the process that hears of all tests. Part of pytest while it runs."""

    def __init__(self, into: Path) -> None:
        self._into = into
        self._ids: dict[str, None] = {}
        self._hopeless = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._ids[report.nodeid] = None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._hopeless = self._hopeless or report.failed

    def pytest_sessionfinish(self) -> None:
        told = [*self._ids, *(["a file that could not be read"] if self._hopeless else [])]
        self._into.write_text("\0".join(told), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if OUT in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failed(Path(os.environ[OUT])))


def may_be_looked_at(failed: Sequence[str]) -> bool:
    """Whether a second look may excuse these."""
    return 0 < len(failed) <= MOST and all("::" in one and not NEVER.search(one) for one in failed)


def look_again(failed: Sequence[str]) -> bool:
    """Whether they pass alone, more than once. What pytest says is indented: it is not the closing line."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "", *failed]
    for _ in range(TIMES):
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        for line in done.stdout.splitlines():
            print(f"  | {line}", flush=True)
        if done.returncode != 0:
            return False
    return True


def main(arguments: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "failed"
        env = {**os.environ, OUT: str(out)}
        command = [sys.executable, "-m", "pytest", "-p", "scripts.second_look", *arguments]
        code = subprocess.run(command, env=env, check=False).returncode
        told = out.read_text(encoding="utf-8") if out.exists() else ""
    failed = told.split("\0") if told else []
    if code != pytest.ExitCode.TESTS_FAILED or not may_be_looked_at(failed):
        return code
    print(f"\nlooking a second time at {len(failed)} of them, alone:", flush=True)
    if not look_again(failed):
        return code
    for one in failed:
        print(f"SHAKY: {one} failed once and then passed {TIMES} times alone", flush=True)
    print(f"shaky: {len(failed)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
