"""Counting CPU and time, and printing or keeping a table with its bars."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

OUT = "BENCH_OUT"


class Figure(Struct, frozen=True):
    """One line of the result: what, the figure, and the bar it is held against."""

    name: str
    value: float
    unit: str
    bar: str = ""
    ok: bool | None = None


class Result(Struct, frozen=True):
    """What one benchmark found, and under which load."""

    title: str
    load: float
    figures: tuple[Figure, ...]


def cpu_s() -> float:
    """CPU seconds of this process, all threads, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def cpu_us_each(work: Callable[[], Awaitable[None]], count: int) -> float:
    began = cpu_s()
    await work()
    return (cpu_s() - began) / count * 1e6


async def seconds(work: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def at_most(name: str, value: float, bar: float, unit: str) -> Figure:
    return Figure(name, value, unit, f"<= {bar:g}", value <= bar)


def at_least(name: str, value: float, bar: float, unit: str) -> Figure:
    return Figure(name, value, unit, f">= {bar:g}", value >= bar)


def show(title: str, figures: Sequence[Figure]) -> bool:
    """Print the table; True when no bar was missed. Kept as JSON too in the file that `OUT` names."""
    if OUT in os.environ:
        result = Result(title, round(os.getloadavg()[0], 1), tuple(figures))
        Path(os.environ[OUT]).write_bytes(msgspec.json.encode(result))
    print(f"\n{title}  (load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores)")
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        verdict = {True: "ok", False: "MISSED", None: ""}[figure.ok]
        print(f"  {figure.name:<{width}}  {figure.value:>10.2f} {figure.unit:<6} {figure.bar:<9} {verdict}")
    return all(figure.ok is not False for figure in figures)
