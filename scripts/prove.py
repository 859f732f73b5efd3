"""Every bar that this project holds itself to, measured in one run and shown in one table.

    python -m scripts.prove [--long] [--quick] [--keep] [--only PART ...] [--peers PYTHON] [--list]

Three kinds of proof: campaigns, which are tests (a slice of each is part of CI; `--long` runs
the whole), suites that need programs of other people (only with `--long`), and figures of the
benchmarks. It measures nothing itself and knows no figure: a bar stands where it is measured.
A bar that was not held makes the exit code 1; one that was not tried is said to be so.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.run_checks import CLOSING_LINE, PYTHON, ROOT

LIMIT_S = 6 * 3600.0


class Campaign(NamedTuple):
    """A bar that tests hold. `slice` is what CI runs of it, `whole` what `--long` runs instead."""

    part: str
    what: str
    bar: str
    slice: tuple[str, ...]
    whole: tuple[str, ...] = ()


class Suite(NamedTuple):
    """A bar that a script of this project holds, with programs that it installs first."""

    part: str
    what: str
    bar: str
    script: str


class Row(NamedTuple):
    part: str
    what: str
    bar: str
    measured: str
    verdict: str  # ok, MISSED or not tried
    seconds: float | None = None


_FAULTS, _E2E, _TOOLS = "tests/faults", "tests/e2e", "tests/integration/tools"
_STOPS = tuple(
    f"tests/integration/test_{name}.py"
    for name in ("turns", "commands", "engine_context", "engine_recovery", "wire_sessions_messages")
)
CAMPAIGNS = (
    Campaign("store", "faults of the disk and of connections, at every call", "0 lost, 0 damaged",
             (f"{_FAULTS}/test_disk_faults.py", f"{_FAULTS}/test_connections.py"),
             (f"{_FAULTS}/test_disk_faults.py", f"{_FAULTS}/test_connections.py")),
    Campaign("store", "kills at every named point and at any moment", "0 lost",
             (f"{_FAULTS}/test_kill.py",), (f"{_FAULTS}/test_kill.py",)),
    Campaign("store", "planted bugs of the store", "each found", (f"{_FAULTS}/test_planted_bugs.py",)),
    Campaign("store", "the store agrees with a model, on each database", "0 differences",
             ("tests/conformance/test_state_machine.py",), ("tests/conformance/test_state_machine.py",)),
    Campaign("store", "import of a founding store, killed on the way", "equal hashes, twice the same",
             ("tests/integration/test_import_kill.py",), ("tests/integration/test_import_kill.py",)),
    Campaign("store", "erase of one person, then a scan of all bytes", "0 of 50 markers",
             ("tests/conformance/test_erasing_bytes.py",)),
    Campaign("engine", "simulation with crashes, cancels, steers, resets", "0 broken promises",
             ("tests/simulation",), ("tests/simulation",)),
    Campaign("engine", "a stop, wherever the turn is", "nothing runs on", _STOPS),
    Campaign("tools", "kills while helpers work", "0 results lost or doubled",
             (f"{_E2E}/test_subagent_kill.py",), (f"{_E2E}/test_subagent_kill.py",)),
    Campaign("tools", "who may see what: every tool, level and relation", "every cell",
             (f"{_TOOLS}/test_authorisation_matrix.py",)),
    Campaign("tools", "secrets of a hundred people", "0 seen by others",
             (f"{_TOOLS}/test_canaries.py",), (f"{_TOOLS}/test_canaries.py",)),
    Campaign("tools", "bad input, storms of spawns", "an answer, never an exception",
             (f"{_TOOLS}/test_bad_input.py",), (f"{_TOOLS}/test_bad_input.py",)),
    Campaign("tools", "MCP over stdio with a client library", "works", (f"{_E2E}/test_mcp.py",)),
    Campaign("gateway", "every method with every scope", "every cell", ("tests/unit/protocol",)),
    Campaign("gateway", "attacks from a browser, each shown without its guard", "all refused",
             (f"{_E2E}/test_browser_attacks.py",), (f"{_E2E}/test_browser_attacks_chromium.py",)),
    Campaign("gateway", "hostile frames", "0 crashes, 0 hangs",
             (f"{_E2E}/test_fuzz_wire.py",), (f"{_E2E}/test_fuzz_wire.py",)),
    Campaign("gateway", "kill -9 under load over the wire", "0 lost, 0 doubled",
             (f"{_E2E}/test_kill.py",), (f"{_E2E}/test_kill_mixed.py",)),
    Campaign("channels", "Telegram: updates three times, shuffled, with kills", "each once, in order",
             (f"{_E2E}/test_telegram_kill.py", f"{_E2E}/test_telegram_trouble.py"),
             (f"{_E2E}/test_telegram_kill.py", f"{_E2E}/test_telegram_trouble.py")),
    Campaign("channels", "interleaved chats with helpers and schedules", "0 wrong recipients",
             ("tests/channels/test_recipients.py",), ("tests/channels/test_recipients.py",)),
    Campaign("channels", "schedules over a simulated year", "each run once",
             ("tests/integration/test_cron_year.py",), ("tests/integration/test_cron_year.py",)),
    Campaign("channels", "escapes from the sandbox, each shown without it", "all refused",
             ("tests/integration/test_sandbox_escapes.py",)),
    Campaign("proof", "a small soak", "flat, 0 errors", (f"{_E2E}/test_soak_small.py",)),
)  # fmt: skip
SUITES = (
    Suite("gateway", "published clients of the existing system", "all green", "interop"),
    Suite("channels", "Matrix on a real Synapse", "right keys, one reply each", "test-matrix"),
    Suite("surfaces", "the page in a real browser", "all green", "test-web"),
    Suite("proof", "soak of 200,000 turns", "growth <= 5 %, flat, 0 errors", "soak"),
)
FIGURES = "figures"
PARTS = ("store", "engine", "tools", "gateway", "channels", "surfaces", "proof", FIGURES)


def pytest_command(campaign: Campaign, whole: bool) -> list[str]:
    """What proves a campaign: its slice, or with `whole` the tests that are marked long."""
    long = whole and campaign.whole
    chosen = campaign.whole if long else campaign.slice
    marks = "long" if long else "not long and not web and not interop"
    return [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marks, *chosen]


def run(command: Sequence[str]) -> tuple[bool, str, float]:
    """(whether it succeeded, its closing line, seconds). What it says is shown as it says it."""
    began, closing = time.monotonic(), ""
    env = {**os.environ, "HYPOTHESIS_PROFILE": "long"} if "long" in command else None
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", env=env,
    )  # fmt: skip
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            sys.stderr.write(line)
            if CLOSING_LINE.match(line):
                closing = line.strip(" =\n")
    return process.wait(LIMIT_S) == 0, closing, time.monotonic() - began


def campaigns(parts: Sequence[str], whole: bool) -> Iterator[Row]:
    for one in CAMPAIGNS:
        if one.part in parts:
            held, closing, seconds = run(pytest_command(one, whole))
            cut = ", the slice of CI" if one.whole and not whole else ""
            told = (closing or "no closing line") + cut
            yield Row(one.part, one.what, one.bar, told, "ok" if held else "MISSED", seconds)


def suites(parts: Sequence[str], whole: bool) -> Iterator[Row]:
    for one in SUITES:
        if one.part not in parts:
            continue
        if not whole:
            yield Row(one.part, one.what, one.bar, f"`scripts/{one.script}`", "not tried")
            continue
        held, closing, seconds = run([str(ROOT / "scripts" / one.script)])
        yield Row(one.part, one.what, one.bar, closing, "ok" if held else "MISSED", seconds)


def figures(quick: bool, peers: str | None, keeping: bool) -> Iterator[Row]:
    """Every figure of every benchmark that has a bar."""
    from benchmarks.everything import NAMES, gather, keep

    results, missing = gather(NAMES, quick, peers)
    if keeping:
        keep(results)
    for name, result in results.benchmarks.items():
        for figure in result.figures:
            if figure.bar:
                measured = f"{figure.value:.3g} {figure.unit} (load {result.load:g})"
                yield Row(name, figure.name, figure.bar, measured, "ok" if figure.ok else "MISSED")
    for name in missing:
        yield Row(name, "the benchmark", "runs", "failed", "MISSED")


def format_rows(rows: Sequence[Row]) -> str:
    """The table, as Markdown."""
    lines = ["| part | what | bar | measured | |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        took = f" in {row.seconds:.0f} s" if row.seconds is not None and " in " not in row.measured else ""
        lines.append(f"| {row.part} | {row.what} | {row.bar} | {row.measured}{took} | {row.verdict} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/prove", description=__doc__.split("\n\n")[0])
    parser.add_argument("--long", action="store_true", help="whole campaigns and suites: hours")
    parser.add_argument("--quick", action="store_true", help="benchmarks with fewer repeats")
    parser.add_argument("--keep", action="store_true", help="keep the figures, as scripts/bench --keep does")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--peers", metavar="PYTHON", help="a Python that has the stores of other projects")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table here too")
    parser.add_argument("--list", action="store_true", help="only say what would be run")
    chosen = parser.parse_args(arguments)
    if chosen.list:
        for one in CAMPAIGNS:
            print(f"{one.part:<9} {one.what}: {' '.join(pytest_command(one, chosen.long)[8:])}")
        when = "" if chosen.long else " (with --long)"
        for suite in SUITES:
            print(f"{suite.part:<9} {suite.what}: scripts/{suite.script}{when}")
        return 0
    rows: list[Row] = []
    try:
        # The figures first: what follows warms the machine.
        rows += figures(chosen.quick, chosen.peers, chosen.keep) if FIGURES in chosen.only else ()
        for row in (*campaigns(chosen.only, chosen.long), *suites(chosen.only, chosen.long)):
            rows.append(row)
    except KeyboardInterrupt:
        print("interrupted; so far:", file=sys.stderr)
    table = format_rows(rows)
    print(table)
    if chosen.out is not None:
        chosen.out.write_text(table + "\n", encoding="utf-8")
    missed = [row for row in rows if row.verdict == "MISSED"]
    untried = sum(row.verdict == "not tried" for row in rows)
    print(
        f"\n{len(rows) - len(missed) - untried} held, {len(missed)} missed, {untried} not tried",
        file=sys.stderr,
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
