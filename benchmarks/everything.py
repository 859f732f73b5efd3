"""Every benchmark in turn, as `scripts/bench` runs them, and the check against the baseline.

    python -m benchmarks.everything [--quick] [--keep] [--rebase] [--only NAME ...] [--peers PYTHON]

Each is a process of its own. With `--keep` the figures become `benchmarks/results.json`,
and the pictures and the block of the README are drawn from them. `--rebase` makes them
the baseline. Without it the run fails when a ratio or a count is worse than the baseline
by more than a quarter. The stores of other projects are measured by the Python that
`--peers` names, in whose environment they are installed; without it, by this one.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import apsw
import msgspec

from benchmarks.measuring import OUT, Result
from benchmarks.results import (
    BASELINE,
    RESULTS,
    Machine,
    Results,
    comparable,
    compare,
    read_baseline,
    read_results,
    write,
)

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("store", "peers", "engine", "wire", "growth", "search", "subagents", "maintenance", "commandline")
LIMIT_S = 300  # each of them, on two cores


def run_one(name: str, python: str, quick: bool) -> Result | None:
    """One benchmark with its table on the screen. None: it failed or took too long."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        paths = os.pathsep.join((str(ROOT), str(ROOT / "src")))
        env = {**os.environ, OUT: str(out), "PYTHONPATH": paths}
        command = [python, "-m", f"benchmarks.{name}", *(["--quick"] if quick else [])]
        try:
            subprocess.run(command, cwd=ROOT, env=env, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            print(f"{name}: not done after {LIMIT_S} s")
            return None
        if not out.exists():
            print(f"{name}: failed")
            return None
        return msgspec.json.decode(out.read_bytes(), type=Result)


def this_machine() -> Machine:
    return Machine(
        os.cpu_count() or 0, platform.python_version(), apsw.sqlite_lib_version(), platform.system()
    )


def gather(names: Sequence[str], quick: bool, peers: str | None) -> tuple[Results, list[str]]:
    """The figures, and the names of the benchmarks that gave none."""
    found: dict[str, Result] = {}
    for name in names:
        result = run_one(name, peers if peers and name == "peers" else sys.executable, quick)
        if result is not None:
            found[name] = result
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Results(day, this_machine(), found), [name for name in names if name not in found]


def keep(results: Results) -> None:
    """Make these the last results; what was not measured this time stays."""
    if RESULTS.exists():
        before = read_results()
        results = msgspec.structs.replace(
            results, benchmarks={**before.benchmarks, **results.benchmarks}, soak=before.soak
        )
    write(RESULTS, results)
    subprocess.run([sys.executable, "-m", "scripts.gen_figures"], cwd=ROOT, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--keep", action="store_true", help="keep the figures, draw pictures and README")
    parser.add_argument("--rebase", action="store_true", help="make the figures the baseline")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    parser.add_argument("--peers", metavar="PYTHON", help="a Python that has the stores of other projects")
    options = parser.parse_args()
    results, missing = gather(options.only, options.quick, options.peers)
    if options.keep:
        keep(results)
    if options.rebase:
        before = read_baseline() if BASELINE.exists() else {}
        write(BASELINE, dict(sorted({**before, **comparable(results)}.items())))
    worse = compare(read_baseline(), results) if BASELINE.exists() else []
    print("\nbeside the baseline: " + ("nothing got worse by more than a quarter" if not worse else ""))
    for one in worse:
        print(f"  WORSE  {one}")
    return 1 if worse or missing else 0


if __name__ == "__main__":
    sys.exit(main())
