"""Writes docs/reference/spec-coverage.md: every requirement with the tests that prove it.

    python -m scripts.spec_coverage              write the page
    python -m scripts.spec_coverage --check      fail when the page is out of date
    python -m scripts.spec_coverage --missing P0 list what is not fully proved yet

The requirements stand in docs/reference/spec_ids.txt, those that wait for a later part in
docs/reference/spec_waiting.txt, and the proofs are the `spec` markers of the tests.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.generated_page import settle
from scripts.spec_markers import MarkerError, Proof, collect

ROOT = Path(__file__).resolve().parent.parent
IDS = "docs/reference/spec_ids.txt"
WAITING = "docs/reference/spec_waiting.txt"
PAGE = "docs/reference/spec-coverage.md"
PRIORITIES = ("P0", "P1", "P2")


class Requirement(NamedTuple):
    spec_id: str
    source: str
    priority: str
    title: str
    section: str


class Waiting(NamedTuple):
    """Why a requirement is open; `partly` when tests prove a piece of it already."""

    part: str
    why: str
    partly: bool


class Coverage(NamedTuple):
    sections: Mapping[str, str]
    requirements: Mapping[str, Requirement]
    waiting: Mapping[str, Waiting]
    proofs: Mapping[str, Sequence[Proof]]

    def status(self, spec_id: str) -> str:
        """`proved`, `partly`, `waiting` or `not yet`."""
        if spec_id in self.waiting:
            return "partly" if self.waiting[spec_id].partly else "waiting"
        return "proved" if self.proofs.get(spec_id) else "not yet"


class SpecError(Exception):
    """The data files or the markers contradict one another; one problem per line."""


def _rows(path: Path, columns: int) -> list[tuple[int, list[str]]]:
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            fields = [field.strip() for field in line.split("\t")]
            if len(fields) != columns or not all(fields):
                raise SpecError(f"{path}:{number}: expected {columns} fields with one tab between them")
            rows.append((number, fields))
    return rows


def read_requirements(path: Path) -> tuple[dict[str, str], dict[str, Requirement]]:
    """The sections (prefix -> title) and the requirements, both in the order of the file."""
    sections: dict[str, str] = {}
    requirements: dict[str, Requirement] = {}
    for number, (spec_id, source, priority, title) in _rows(path, 4):
        if source == "section":
            sections[spec_id] = title
            continue
        section = spec_id.rpartition("-")[0]
        if section not in sections or priority not in PRIORITIES or spec_id in requirements:
            raise SpecError(
                f"{path}:{number}: {spec_id} has no section, no known priority, or stands here twice"
            )
        requirements[spec_id] = Requirement(spec_id, source, priority, title, section)
    return sections, requirements


def read_coverage(root: Path) -> Coverage:
    """Everything the page needs. Raises SpecError with all contradictions, or MarkerError."""
    sections, requirements = read_requirements(root / IDS)
    proofs: dict[str, list[Proof]] = {}
    problems = []
    for proof in collect(root / "tests", root):
        proofs.setdefault(proof.spec_id, []).append(proof)
        if proof.spec_id not in requirements:
            problems.append(f"{proof.file}:{proof.line}: unknown requirement {proof.spec_id}")
    waiting: dict[str, Waiting] = {}
    for number, (spec_id, part, why) in _rows(root / WAITING, 3):
        line = Waiting(part, why, why.split()[0].strip(",:;").lower() == "partly")
        place = f"{WAITING}:{number}: {spec_id}"
        if spec_id not in requirements:
            problems.append(f"{place} is an unknown requirement")
        elif spec_id in waiting:
            problems.append(f"{place} stands here twice")
        elif line.partly and spec_id not in proofs:
            problems.append(f"{place} is said to be proved partly, but no test names it")
        elif not line.partly and spec_id in proofs:
            where = f"{proofs[spec_id][0].file}:{proofs[spec_id][0].line}"
            problems.append(
                f"{place} is proved in {where}; take the line out, or begin its reason with `partly`"
            )
        waiting[spec_id] = line
    if problems:
        raise SpecError("\n".join(dict.fromkeys(problems)))
    return Coverage(sections, requirements, waiting, proofs)


def render(coverage: Coverage) -> str:
    """The whole page."""
    lines = [
        "# Requirements and their tests",
        "",
        "This page is generated from the `spec` markers of the tests by `scripts/docs`; do not edit it.",
        "",
        "A requirement is *proved* when a test names it and nothing of it waits, *partly* proved when tests",
        "name it but a piece waits for a later part of the product. P0 must exist, P1 is expected, P2 is",
        "later growth. Sources: `seed` is a founding requirement, `design` a decision of this product,",
        "`upstream-…` the behaviour of an OpenClaw release.",
        "",
        *_summary(coverage),
    ]
    for section, title in coverage.sections.items():
        lines += ["", f"## {title} ({section})", "", "| ID | Pri | Source | Title | Tests |"]
        lines.append("| --- | --- | --- | --- | --- |")
        for requirement in coverage.requirements.values():
            if requirement.section == section:
                lines.append(_row(coverage, requirement))
    return "\n".join(lines) + "\n"


def _summary(coverage: Coverage) -> list[str]:
    counts: Counter[tuple[str, str, str]] = Counter()
    for requirement in coverage.requirements.values():
        status = coverage.status(requirement.spec_id)
        for scope in ("", requirement.section):
            counts[scope, requirement.priority, status] += 1

    def cells(scope: str) -> str:
        return " | ".join(_figure(counts, scope, priority) for priority in PRIORITIES)

    lines = ["| Section | P0 proved | P1 proved | P2 proved |", "| --- | --- | --- | --- |"]
    lines.append(f"| **all** | {cells('')} |")
    lines += [f"| {title} ({section}) | {cells(section)} |" for section, title in coverage.sections.items()]
    return lines


def _figure(counts: Counter[tuple[str, str, str]], scope: str, priority: str) -> str:
    total = sum(counts[scope, priority, status] for status in ("proved", "partly", "waiting", "not yet"))
    partly = counts[scope, priority, "partly"]
    if not total:
        return "–"
    return f"{counts[scope, priority, 'proved']}/{total}" + (f", {partly} partly" if partly else "")


def _row(coverage: Coverage, requirement: Requirement) -> str:
    by_file: dict[str, list[str]] = {}
    for proof in coverage.proofs.get(requirement.spec_id, ()):
        by_file.setdefault(proof.file, []).append(f"{proof.test} (long)" if proof.is_long else proof.test)
    cells = [f"[{file}](../../{file}): {', '.join(tests)}" for file, tests in by_file.items()]
    waiting = coverage.waiting.get(requirement.spec_id)
    if waiting:
        lead = "" if waiting.partly else "not yet: "
        cells.append(f"*{lead}{waiting.why} ({waiting.part})*")
    title = requirement.title.replace("|", "\\|")
    proof_cell = "<br>".join(cell.replace("|", "\\|") for cell in cells) or "*not yet*"
    fields = (requirement.spec_id, requirement.priority, requirement.source, title, proof_cell)
    return f"| {' | '.join(fields)} |"


def list_missing(coverage: Coverage, priority: str) -> list[str]:
    """One line per requirement of this priority that is not fully proved."""
    lines = []
    for requirement in coverage.requirements.values():
        status = coverage.status(requirement.spec_id)
        if requirement.priority == priority and status != "proved":
            waiting = coverage.waiting.get(requirement.spec_id)
            reason = f" ({waiting.part}: {waiting.why})" if waiting else ""
            lines.append(f"{requirement.spec_id:<9} {status:<8} {requirement.title}{reason}")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="spec_coverage", description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="fail when the page is out of date")
    parser.add_argument("--missing", choices=PRIORITIES, help="list what is not fully proved yet")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    try:
        coverage = read_coverage(chosen.root)
    except (SpecError, MarkerError) as error:
        print(error)
        return 1
    if chosen.missing:
        missing = list_missing(coverage, chosen.missing)
        total = sum(1 for known in coverage.requirements.values() if known.priority == chosen.missing)
        print("\n".join([*missing, f"{len(missing)} of {total} {chosen.missing} requirements are open"]))
        return 0
    return settle(chosen.root / PAGE, render(coverage), check=chosen.check)


if __name__ == "__main__":
    sys.exit(main())
