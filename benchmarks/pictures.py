"""The pictures of the last results, `docs/pictures/bench-*.svg`. Draws what is there; measures nothing."""

from __future__ import annotations

from benchmarks.plots import Bar, Line, bar_chart, line_chart
from benchmarks.results import Results

SIZES = (1_000, 10_000, 100_000)


def pictures(results: Results) -> dict[str, str]:
    """File name -> SVG text, for every picture whose figures were measured."""
    drawn = {
        "bench-peers.svg": _bars(results, "peers", "append, ", "us CPU", "CPU of one durable message"),
        "bench-turn.svg": _turn(results),
        "bench-growth.svg": _growth(results),
    }
    return {name: text for name, text in drawn.items() if text is not None}


def _bars(results: Results, benchmark: str, prefix: str, unit: str, title: str) -> str | None:
    result = results.benchmarks.get(benchmark)
    if result is None:
        return None
    bars = [
        Bar(figure.name.removeprefix(prefix), figure.value)
        for figure in result.figures
        if figure.name.startswith(prefix) and figure.unit == unit
    ]
    return bar_chart(title, bars, unit=unit) if bars else None


def _turn(results: Results) -> str | None:
    """A turn beside its limits."""
    names = (
        "limit: the frames of a turn, msgspec",
        "limit: one frame there and back, bare aiohttp",
        "turn over the wire, spike",
        "turn over the wire",
        "turn heard by 50 more listeners",
    )
    found = [figure for name in names if (figure := results.find("wire", name)) is not None]
    bars = [Bar(figure.name, figure.value) for figure in found]
    return bar_chart("CPU of a durable turn, beside its limits", bars, unit="ms") if bars else None


def _growth(results: Results) -> str | None:
    """What a question costs as the number of sessions grows."""
    lines = []
    for name in ("newest 100 sessions", "last 200 of 10,000 messages", "search, a rare word"):
        found = [(size, results.find("growth", f"{name}, at {size:,}")) for size in SIZES]
        points = [(size / 1000, figure.value) for size, figure in found if figure is not None]
        if points:
            lines.append(Line(name, [x for x, _ in points], [y for _, y in points]))
    if not lines:
        return None
    return line_chart("CPU of a question as sessions grow", lines, x_name="thousand sessions", y_name="ms")
