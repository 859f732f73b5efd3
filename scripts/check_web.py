"""Tries the page in a real browser, as a part of the checks: `python -m scripts.check_web`.

It becomes pytest, with the arguments that it is given. Without Chromium the part is left out, and without
axe-core the tests that need it are: a machine that cannot have them has nothing wrong with its code.
`scripts/web_tools.py` gets both.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from scripts.run_checks import LEFT_OUT
from scripts.web_tools import AXE, ROOT, find_chromium

# All tests that ask axe-core have this word in their names.
AXE_TESTS = "findings"
WORKERS = 2


def build_command(arguments: Sequence[str], *, axe: bool) -> list[str]:
    """How pytest is called. The long tests are for `scripts/test-web` alone."""
    command = [sys.executable, "-m", "scripts.second_look", "tests/web", "-m", "web and not long", "-q"]
    command += ["-n", str(WORKERS), "--dist", "worksteal", "-o", "faulthandler_timeout=180"]
    if not axe:
        command += ["-k", f"not {AXE_TESTS}"]
    return [*command, *arguments]


def main(arguments: Sequence[str]) -> int:
    """Does not come back when the tests can be run."""
    if find_chromium() is None:
        print("CHROMIUM IS MISSING: the page is not tried in a browser (Debian: apt install chromium).")
        print("left out: no Chromium", flush=True)
        return LEFT_OUT
    axe = AXE.exists()
    if not axe:
        print("AXE-CORE IS MISSING: its rules are not tried (scripts/test-web fetches it).", flush=True)
    os.chdir(ROOT)
    return os.execv(sys.executable, build_command(arguments, axe=axe))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
