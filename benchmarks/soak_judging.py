"""What the samples of a soak say: flat or growing. Decides with values in hand; reads no process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.measuring import Figure, at_most, median
from benchmarks.soak_gateway import Sample

WARM_UP = 0.2  # this share of the work fills caches and pools, and is not judged
GROWTH_PERCENT = 5.0
WAL_MIB = 64
MIB = 1 << 20


class Record(msgspec.Struct, frozen=True):
    """What one soak did and saw."""

    turns: int
    took_s: float
    done: dict[str, int]
    errors: list[str]  # the first of them
    samples: list[Sample]


def read_samples(path: Path) -> list[Sample]:
    """The samples of a soak; a line that was cut by the end of the process is left out."""
    lines = path.read_bytes().split(b"\n")
    return [msgspec.json.decode(line, type=Sample) for line in lines[:-1]]


def growth(values: Sequence[float]) -> float:
    """Percent by which the last tenth stands above the tenth after the warm-up, by their medians."""
    first = int(len(values) * WARM_UP)
    tenth = max(1, len(values) // 10)
    begun = median(values[first : first + tenth])
    return (median(values[-tenth:]) / begun - 1) * 100 if begun else 0.0


def creep(values: Sequence[int]) -> int:
    """By how much the lowest of the last third stands above the lowest of the third after the warm-up.

    Work in hand comes and goes; what leaks lifts the floor.
    """
    judged = values[int(len(values) * WARM_UP) :]
    third = max(1, len(judged) // 3)
    return min(judged[-third:]) - min(judged[:third])


def by_work(samples: Sequence[Sample], points: int = 100) -> list[Sample]:
    """As many samples, evenly spread over the CPU that was used.

    A busy machine stretches some minutes of a soak and not others; what was done is what counts.
    """
    first, last = samples[0].cpu_s, samples[-1].cpu_s
    spread, at = [], 0
    for point in range(points):
        wanted = first + (last - first) * point / (points - 1)
        while samples[at].cpu_s < wanted - 1e-6:
            at += 1
        spread.append(samples[at])
    return spread


def judge(record: Record) -> list[Figure]:
    """Every figure of a soak with its bar."""
    done, turns = record.done, record.turns
    cpu_s = record.samples[-1].cpu_s - record.samples[0].cpu_s
    samples = by_work(record.samples)
    return [
        Figure("turns", turns, ""),
        Figure("rate", turns / record.took_s, "/s"),
        Figure("CPU of the gateway per turn, everything included", cpu_s / turns * 1000, "ms"),
        *(Figure(name, count, "") for name, count in sorted(done.items()) if name not in ("turns", "errors")),
        Figure("memory after the warm-up", samples[int(len(samples) * WARM_UP)].rss_bytes / MIB, "MiB"),
        Figure("memory at the end", samples[-1].rss_bytes / MIB, "MiB"),
        at_most(
            "growth of memory after the warm-up", growth([s.rss_bytes for s in samples]), GROWTH_PERCENT, "%"
        ),
        at_most("descriptors that stay", creep([s.descriptors for s in samples]), 0, ""),
        at_most("tasks that stay", creep([s.tasks for s in samples]), 0, ""),
        at_most("threads that stay", creep([s.threads for s in samples]), 0, ""),
        at_most(
            "largest log of the database", max(s.wal_bytes for s in record.samples) / MIB, WAL_MIB, "MiB"
        ),
        Figure("database at the end", samples[-1].database_bytes / MIB, "MiB"),
        at_most("errors", done.get("errors", len(record.errors)), 0, ""),
    ]
