"""Writes the figures of the last benchmark run into README.md, and the pictures into docs/pictures.

    python -m scripts.gen_figures              write them
    python -m scripts.gen_figures --check      fail when they are out of date or worse than the baseline

Everything is made from `benchmarks/results.json`; nothing is measured here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.pictures import pictures
from benchmarks.plots import number_text
from benchmarks.results import Results, compare, read_baseline, read_results
from scripts.generated_page import settle

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PICTURES = ROOT / "docs" / "pictures"
BEGIN = "<!-- the figures are made by scripts/bench --keep from benchmarks/results.json; do not edit them -->"
END = "<!-- end of the figures -->"


class MarksError(Exception):
    """The README has lost the marks between which its figures stand."""


class Row(NamedTuple):
    """One line of the table: what people read, and where its figure is."""

    text: str
    benchmark: str
    figure: str
    command: str


ROWS = (
    Row("a durable turn over the wire", "wire", "turn over the wire", "scripts/bench wire"),
    Row("the same, beside a bare gateway without any rules", "wire", "turn over the wire / spike",
        "scripts/bench wire"),
    Row("written to disk per turn", "wire", "written per plain turn", "scripts/bench wire"),
    Row("a durable message, beside bare SQLite", "peers", "append, ours / bare apsw", "scripts/bench peers"),
    Row("beside OpenAI Agents `SQLiteSession`", "peers", "append, ours / OpenAI Agents SQLiteSession",
        "scripts/bench peers"),
    Row("newest 100 of 100,000 sessions", "growth", "newest 100 sessions, at 100,000",
        "scripts/bench growth"),
    Row("last 200 of 10,000 messages", "growth", "last 200 of 10,000 messages, at 100,000",
        "scripts/bench growth"),
    Row("search in 110,000 messages", "growth", "search, a rare word, at 100,000", "scripts/bench growth"),
    Row("start, until the first answer", "wire", "cold start, CPU", "scripts/bench wire"),
    Row("memory of an idle gateway", "wire", "idle memory", "scripts/bench wire"),
    Row("turns in the soak", "soak", "turns", "scripts/soak"),
    Row("memory growth in the soak, by work", "soak", "growth of memory after the warm-up", "scripts/soak"),
)  # fmt: skip


def render(page: str, results: Results) -> str:
    """The page with fresh figures between its marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise MarksError(f"the page needs the lines {BEGIN!r} and {END!r}, in this order")
    return f"{head}{BEGIN}\n\n{block(results)}\n\n{END}{tail}"


def block(results: Results) -> str:
    """The table, and under it the day and the machine. What was not measured has no line."""
    lines = ["| what | figure | measured by |", "| --- | --- | --- |"]
    for row in ROWS:
        figure = results.find(row.benchmark, row.figure)
        if figure is not None:
            value = f"{number_text(figure.value)} {figure.unit}".strip()
            lines.append(f"| {row.text} | {value} | `{row.command}` |")
    loads = [result.load for result in results.benchmarks.values()]
    machine = results.machine
    note = (
        f"{results.day}, {machine.cores} cores, Python {machine.python}, SQLite {machine.sqlite}, "
        f"load {min(loads):g} to {max(loads):g}. `x`: times as much CPU, in the same run."
    )
    return "\n".join((*lines, "", note))


def check_baseline(results: Results) -> int:
    worse = compare(read_baseline(), results)
    for one in worse:
        print(f"worse than benchmarks/baseline.json by more than a quarter: {one}")
    return 1 if worse else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gen_figures", description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="fail when something is out of date")
    chosen = parser.parse_args(arguments)
    results = read_results()
    codes = [settle(README, render(README.read_text(encoding="utf-8"), results), check=chosen.check)]
    for name, text in pictures(results).items():
        codes.append(settle(PICTURES / name, text, check=chosen.check))
    if chosen.check:
        codes.append(check_baseline(results))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
