"""Charts as SVG text: lines and bars, readable on a light and on a dark page. Draws; decides nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from msgspec import Struct

WIDTH, HEIGHT = 720, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 44
COLOURS = ("#2f6fbf", "#c2571a", "#2b8a57", "#8a4fbf", "#8a7a1a")
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}.t{font-size:14px;font-weight:600}"
    ".g{stroke:#8884;stroke-width:1}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}}"
)


class Line(Struct, frozen=True):
    """One line of a chart: x and y of the same length, at least one point."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


class Bar(Struct, frozen=True):
    name: str
    value: float


def ticks(highest: float, wanted: int = 5) -> list[float]:
    """Round numbers from zero up to the first one that is not below `highest`."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / wanted
    size: float = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough * 0.999)
    count = math.ceil(highest / step - 1e-9)
    return [step * number for number in range(count + 1)]


def number_text(value: float) -> str:
    """As short as it can be said: 12,000 and 0.25, not 12000.0 and 0.250."""
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def _page(title: str, height: int, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
    return (
        f'{head} aria-label="{escape(title)}">\n<style>{_STYLE}</style>\n'
        f'<text class="t" x="{LEFT}" y="20">{escape(title)}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _thinned(line: Line, points: int = 400) -> Line:
    step = max(1, len(line.x) // points)
    return Line(line.name, line.x[::step], line.y[::step])


def line_chart(title: str, lines: Sequence[Line], *, x_name: str, y_name: str) -> str:
    """A chart of lines that share their axes, both from zero."""
    across = ticks(max(max(line.x) for line in lines))
    up = ticks(max(max(line.y) for line in lines))

    def place_x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / across[-1]

    def place_y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / up[-1]

    parts = []
    for tick in up:
        y = place_y(tick)
        parts.append(f'<line class="g" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(LEFT - 6, y + 4, number_text(tick), "end"))
    parts += [_text(place_x(tick), HEIGHT - BOTTOM + 18, number_text(tick), "middle") for tick in across]
    parts.append(_text(WIDTH - RIGHT, HEIGHT - 8, x_name, "end"))
    parts.append(_text(8, TOP - 6, y_name))
    for number, line in enumerate(lines):
        colour, drawn = COLOURS[number % len(COLOURS)], _thinned(line)
        points = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in zip(drawn.x, drawn.y, strict=True))
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>')
        parts.append(
            f'<text x="{WIDTH - RIGHT - 130 * (len(lines) - number - 1):.1f}" y="{TOP - 6}" '
            f'text-anchor="end" style="fill:{colour}">{escape(line.name)}</text>'
        )
    return _page(title, HEIGHT, parts)


def bar_chart(title: str, bars: Sequence[Bar], *, unit: str) -> str:
    """Bars from left to right, one under the other, each with its figure."""
    longest = max(bar.value for bar in bars)
    room = WIDTH - 260 - 110
    parts = []
    for number, bar in enumerate(bars):
        y, width = TOP + 28 * number, max(1.0, room * bar.value / longest)
        parts.append(_text(250, y + 14, bar.name, "end"))
        parts.append(f'<rect x="260" y="{y}" width="{width:.1f}" height="20" rx="2" fill="{COLOURS[0]}"/>')
        parts.append(_text(266 + width, y + 14, f"{number_text(bar.value)} {unit}"))
    return _page(title, TOP + 28 * len(bars) + 10, parts)
