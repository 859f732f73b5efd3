"""The figures of the last whole run, and the baseline that later runs are held against.

`results.json` is what the README and the pictures are made of. `baseline.json` names
the ratios and counts that must not get worse by more than a quarter; wall-clock times
and absolute CPU are not in it, because another machine has others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.measuring import Figure, Result

HERE = Path(__file__).resolve().parent
RESULTS, BASELINE = HERE / "results.json", HERE / "baseline.json"
TOLERANCE = 1.25
CLOCKED = ("rate", "p99")  # ratios that the load of the moment decides
COUNTS = frozenset({"system calls per turn", "written per plain turn", "idle memory"})


class Machine(Struct, frozen=True):
    cores: int
    python: str
    sqlite: str
    system: str


class Results(Struct, frozen=True):
    """One whole run."""

    day: str
    machine: Machine
    benchmarks: dict[str, Result]
    soak: Result | None = None

    def find(self, benchmark: str, name: str) -> Figure | None:
        found = self.soak if benchmark == "soak" else self.benchmarks.get(benchmark)
        return next((figure for figure in found.figures if figure.name == name), None) if found else None


class Worse(Struct, frozen=True):
    """A figure of the baseline that got worse by more than is tolerated, or that nobody measures now."""

    name: str
    was: float
    now: float | None

    def __str__(self) -> str:
        if self.now is None:
            return f"{self.name}: was {self.was:g}, is not measured any more"
        return f"{self.name}: was {self.was:g}, is {self.now:g} ({self.now / self.was:.2f} times as much)"


def read_results(path: Path = RESULTS) -> Results:
    return msgspec.json.decode(path.read_bytes(), type=Results)


def read_baseline(path: Path = BASELINE) -> dict[str, float]:
    return msgspec.json.decode(path.read_bytes(), type=dict[str, float])


def write(path: Path, value: object) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def comparable(results: Results) -> dict[str, float]:
    """What a baseline may hold: ratios in which less is better, and counts."""
    return {
        f"{name}: {figure.name}": round(figure.value, 3)
        for name, result in sorted(results.benchmarks.items())
        for figure in result.figures
        if (figure.unit == "x" and not any(word in figure.name for word in CLOCKED)) or figure.name in COUNTS
    }


def compare(baseline: Mapping[str, float], results: Results) -> list[Worse]:
    """What got worse. Only benchmarks that were run are looked at."""
    now = comparable(results)
    ran = set(results.benchmarks)
    worse = []
    for name, was in baseline.items():
        if name.partition(":")[0] not in ran:
            continue
        found = now.get(name)
        if found is None or found > was * TOLERANCE:
            worse.append(Worse(name, was, found))
    return worse
