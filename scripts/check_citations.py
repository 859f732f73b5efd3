"""Finds citations that lead nowhere: `python -m scripts.check_citations`.

Comments, tests and pages cite requirements (LIFE-11), settled questions (AMB-8) and pitfalls (PITFALLS A3).
Each must stand in docs/reference/spec_ids.txt, docs/reference/settled.md or docs/topics/pitfalls.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDERS = ("src", "tests", "docs", "benchmarks")
SUFFIXES = (".py", ".sql", ".md")
IDS = "docs/reference/spec_ids.txt"
SETTLED = "docs/reference/settled.md"
PITFALLS = "docs/topics/pitfalls.md"
# Trees that are planted by tests have requirements of their own.
SKIPPED = "tests/tooling"


def read_known(root: Path) -> set[str]:
    """Every code that may be cited; pitfalls with their word in front."""
    ids = [line.split("\t")[0] for line in (root / IDS).read_text(encoding="utf-8").splitlines()]
    settled = re.findall(r"^\| (AMB-\d+) \|", (root / SETTLED).read_text(encoding="utf-8"), re.MULTILINE)
    pitfalls = re.findall(r"^\| ([A-H]\d+) \|", (root / PITFALLS).read_text(encoding="utf-8"), re.MULTILINE)
    return {*ids, *settled, *(f"PITFALLS {code}" for code in pitfalls)}


def cited(line: str, prefixes: Sequence[str]) -> Iterator[str]:
    """The codes in one line. Only known prefixes count, so that SHA-256 and UTF-8 are no citations."""
    yield from re.findall(rf"(?<![\w-])(?:{'|'.join(prefixes)})-\d+(?![\w-])", line)
    for codes in re.findall(r"PITFALLS ([A-H]\d+(?:(?:, ?| and )[A-H]\d+)*)", line):
        yield from (f"PITFALLS {code}" for code in re.findall(r"[A-H]\d+", codes))


def find_problems(root: Path) -> list[str]:
    known = read_known(root)
    prefixes = sorted({code.rpartition("-")[0] for code in known if "-" in code})
    problems = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in SUFFIXES and not name.startswith(SKIPPED):
                for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                    wrong = [code for code in cited(line, prefixes) if code not in known]
                    problems += [f"{name}:{number}: there is no {code}" for code in wrong]
    return problems


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    root = Path(given[0]) if given else Path(__file__).resolve().parent.parent
    problems = find_problems(root)
    print("\n".join(problems) if problems else "every citation leads somewhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
