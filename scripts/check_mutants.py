"""Reads what a mutation run left in mutants/ and prints the share of changes that the tests caught.

    python -m scripts.check_mutants

Fails when a module is below its bar, or when there is nothing to read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

BAR = 0.80
SURVIVED = 0
NO_TESTS = 33


def count_caught(codes: Mapping[str, int | None]) -> tuple[int, int, list[str]]:
    """How many changes were caught, of how many, and the names of those that were not.

    The exit code of the tests says it: zero means that they passed in spite of the change, 33
    that no test touches it; anything else, a time-out included, is a change that was noticed.
    """
    missed = sorted(name for name, code in codes.items() if code in (SURVIVED, NO_TESTS, None))
    return len(codes) - len(missed), len(codes), missed


def read_codes(folder: Path) -> dict[str, dict[str, int | None]]:
    """Exit codes by module, for modules that were changed at all."""
    found: dict[str, dict[str, int | None]] = {}
    for path in sorted(folder.rglob("*.py.meta")):
        codes = json.loads(path.read_text(encoding="utf-8")).get("exit_code_by_key", {})
        if codes:
            found[path.name.removesuffix(".py.meta")] = codes
    return found


def main(arguments: Sequence[str] = ()) -> int:
    folder = Path(arguments[0]) if arguments else Path("mutants")
    modules = read_codes(folder)
    if not modules:
        print(f"{folder}: no mutation run found; start one with scripts/mutate", file=sys.stderr)
        return 1
    failed = False
    for module, codes in modules.items():
        caught, total, missed = count_caught(codes)
        share = caught / total
        failed = failed or share < BAR
        verdict = "ok" if share >= BAR else f"below {BAR:.0%}"
        print(f"{module:<12} {caught:>4}/{total:<4} {share:>6.1%}  {verdict}")
        for name in missed:
            print(f"    missed {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
