"""Items as lines of a terminal: markdown, folded tool calls, marks. Knows colours by name only.

Links are written out and never made clickable: where they lead must be seen, and no text
of a model becomes an escape sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from openclaw.tui.items import Item

# Beyond this, finding out what is bold takes longer than a person wants to wait.
MAX_MARKDOWN_CHARS: Final = 24_000
_TOOL_SIGNS: Final = {"running": "◌", "done": "✓", "failed": "✗"}
_TYPED_WORDS: Final = {"unsent": "waiting for the connection", "sent": "sent", "queued": "in the queue"}


class Palette(Struct, frozen=True):
    """The colours of the theme, as Rich writes them."""

    person: str
    agent: str
    dim: str
    error: str
    warning: str
    code_theme: str


def palette_of(variables: Mapping[str, str], *, dark: bool) -> Palette:
    """Colours that can be read on the background of the theme."""

    def named(name: str, otherwise: str) -> str:
        colour = variables.get(name, "")
        return colour[:7] if colour.startswith("#") else otherwise

    return Palette(
        person=named("primary-lighten-2" if dark else "primary-darken-2", "blue"),
        agent=named("success-lighten-1" if dark else "success-darken-2", "green"),
        dim="#8f99a3" if dark else "#5f6770",
        error=named("error-lighten-2" if dark else "error-darken-1", "red"),
        warning=named("warning" if dark else "warning-darken-3", "yellow"),
        code_theme="monokai" if dark else "friendly",
    )


def draw(item: Item, palette: Palette, *, unfolded: bool, title: str = "agent") -> RenderableType:
    """How an item looks. `title` is the name of who answers."""
    if item.kind == "person":
        return _said("you", item, palette.person, Text(item.text), palette)
    if item.kind == "agent":
        return _said(title, item, palette.agent, _markdown(item.text, palette), palette)
    if item.kind == "tool":
        return _tool(item, palette, unfolded)
    if item.kind == "error":
        return Padding(Text(item.text, style=palette.error), (1, 0, 0, 0))
    text = Text(f"— {item.text} —" if item.kind == "mark" else item.text, style=f"italic {palette.dim}")
    return Padding(text, (1, 0, 0, 0))


def _said(who: str, item: Item, colour: str, body: RenderableType, palette: Palette) -> RenderableType:
    head = Text(who, style=f"bold {colour}")
    if item.head:
        head.append(f"  {item.head}", style=f"not bold {palette.dim}")
    if item.kind == "person" and item.state:
        head.append(
            f"  {_TYPED_WORDS.get(item.state, item.state)}", style=f"not bold italic {palette.warning}"
        )
    return Group(Padding(head, (1, 0, 0, 0)), Padding(body, (0, 0, 0, 2)))


def _markdown(text: str, palette: Palette) -> RenderableType:
    if len(text) > MAX_MARKDOWN_CHARS:
        return Text(text)
    return Markdown(text, code_theme=palette.code_theme, hyperlinks=False)


def _tool(item: Item, palette: Palette, unfolded: bool) -> RenderableType:
    colour = palette.error if item.state == "failed" else palette.dim
    arrow = "▾" if unfolded else "▸"
    line = Text(
        f"  {arrow} {_TOOL_SIGNS.get(item.state, '·')} {item.text}",
        style=colour,
        no_wrap=True,
        overflow="ellipsis",
    )
    if not unfolded or not item.details:
        return line
    return Group(line, Padding(Text(item.details, style=palette.dim), (0, 0, 0, 6)))


def lines_of(drawn: RenderableType, console: Console, width: int, base: Style) -> list[Strip]:
    """The finished lines, each exactly `width` cells wide."""
    options = console.options.update(width=max(width, 1), height=None, highlight=False)
    lines = Segment.split_lines(console.render(drawn, options))
    return [
        Strip(_without_links(line)).adjust_cell_length(width, base).apply_style(base).simplify()
        for line in lines
    ]


def _without_links(line: list[Segment]) -> list[Segment]:
    """No text from elsewhere may bring a link or a control code of the terminal along."""
    return [
        Segment(segment.text, segment.style.update_link(None) if segment.style else None)
        for segment in line
        if not segment.control
    ]
