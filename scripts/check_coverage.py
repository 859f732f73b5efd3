"""Prints branch coverage by package and fails below the gates: `python -m scripts.check_coverage`.

Reads what the last test run measured (.coverage). A gate holds for all files of a package taken together; the
figure is that of coverage.py with branches: (lines and branches reached) / (lines and branches there).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# package -> the least percentage of lines and branches
GATES: Mapping[str, float] = {
    "openclaw/domain": 100.0,
    "openclaw/store": 95.0,
}


class Figures(NamedTuple):
    """Counts of one file or of several together."""

    files: int = 0
    lines: int = 0
    lines_reached: int = 0
    branches: int = 0
    branches_reached: int = 0

    def plus(self, other: Figures) -> Figures:
        return Figures(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    @property
    def percent(self) -> float:
        there = self.lines + self.branches
        return 100.0 if there == 0 else 100.0 * (self.lines_reached + self.branches_reached) / there


def _package(file: str) -> str:
    """`src/openclaw/domain/keys.py` -> `openclaw/domain`; files beside the packages count as `openclaw`."""
    parts = Path(file).parts
    inside = parts[parts.index("openclaw") :]
    return "/".join(inside[:2]) if len(inside) > 2 else "openclaw"


def _figures(summary: Mapping[str, int]) -> Figures:
    return Figures(
        1,
        summary["num_statements"],
        summary["covered_lines"],
        summary["num_branches"],
        summary["covered_branches"],
    )


def by_package(report: Mapping[str, Any]) -> dict[str, Figures]:
    """The figures of each package in a `coverage json` report."""
    packages: dict[str, Figures] = {}
    for file, data in sorted(report["files"].items()):
        package = _package(file)
        packages[package] = packages.get(package, Figures()).plus(_figures(data["summary"]))
    return packages


def _misses(report: Mapping[str, Any], package: str) -> Iterator[str]:
    for file, data in sorted(report["files"].items()):
        if _package(file) == package:
            for line in data["missing_lines"]:
                yield f"{file}:{line}: never run"
            for line, target in data["missing_branches"]:
                where = f"line {target}" if target > 0 else "the exit"
                yield f"{file}:{line}: never goes on to {where}"


def find_problems(report: Mapping[str, Any], gates: Mapping[str, float] = GATES) -> list[str]:
    """One line per gate that does not hold, followed by everything that no test reaches in that package."""
    packages = by_package(report)
    problems: list[str] = []
    if not report["meta"]["branch_coverage"]:
        problems.append("the run measured lines only, not branches")
    for package, least in gates.items():
        figures = packages.get(package)
        if figures is None:
            problems.append(f"{package}: nothing was measured")
        elif figures.percent < least:
            problems.append(f"{package}: {figures.percent:.2f} %, at least {least:g} % is needed")
            problems += _misses(report, package)
    return problems


def format_table(report: Mapping[str, Any], gates: Mapping[str, float] = GATES) -> str:
    packages = by_package(report)
    packages["together"] = _figures(report["totals"])._replace(files=len(report["files"]))
    lines = [f"{'package':<22} {'files':>5} {'lines':>6} {'branches':>8} {'reached':>8}  gate"]
    for package, figures in packages.items():
        gate = f"{gates[package]:g} %" if package in gates else ""
        counts = f"{figures.files:>5} {figures.lines:>6} {figures.branches:>8} {figures.percent:>6.2f} %"
        lines.append(f"{package:<22} {counts}  {gate}".rstrip())
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    root = Path(given[0]) if given else ROOT
    target = root / "build" / "coverage.json"
    target.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(target)]
    if subprocess.run(command, cwd=root).returncode != 0:
        print("no coverage data; run scripts/coverage or scripts/test first")
        return 1
    report = json.loads(target.read_text(encoding="utf-8"))
    problems = find_problems(report)
    print("\n".join([*problems, "", format_table(report)] if problems else [format_table(report)]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
