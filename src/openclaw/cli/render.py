"""Put values on the screen: JSON, tables, labelled lines. Colours only on a terminal.

`rich` draws on a terminal and honours NO_COLOR; everywhere else the text is plain
and complete, so that a pipe sees whole keys. Nothing here asks a gateway anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

import click
import msgspec
from msgspec import Struct

from openclaw.domain.terminaltext import one_line, wrapped
from openclaw.protocol.frames import encode_json

_GAP = "  "
_USUAL_WIDTH = 80
_LEAST_FOLDED = 16  # a folded column of fewer characters cannot be read


class Column(Struct, frozen=True):
    """One column of a table. Only a column with `fold` may be broken over lines when space is short."""

    title: str
    right: bool = False
    fold: bool = False


def on_terminal() -> bool:
    return sys.stdout.isatty()


def print_json(value: object, *, pretty: bool | None = None) -> None:
    """One JSON value on stdout: on one line or, by default on a terminal, indented."""
    encoded = encode_json(value)
    if on_terminal() if pretty is None else pretty:
        encoded = msgspec.json.format(encoded, indent=2)
    click.echo(encoded.decode())


def print_text(text: str) -> None:
    """Somebody's words exactly as they are; a terminal breaks them where it likes."""
    click.echo(text)


def say(text: str = "", *, hanging: int = 0, err: bool = False) -> None:
    """Sentences for a person: on a terminal broken between words, and further lines indented by `hanging`."""
    stream = sys.stderr if err else sys.stdout
    width = _width_of(stream) if stream.isatty() else None
    for line in text.split("\n"):
        for part in [line] if width is None else wrapped(line, width, hanging):
            click.echo(part, err=err)


def _width_of(stream: TextIO) -> int:
    told = os.environ.get("COLUMNS", "")
    if told.isascii() and told.isdigit() and int(told[:5]):
        return int(told[:5])
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except OSError:
        return _USUAL_WIDTH


def note(text: str) -> None:
    """A word to the person at the keyboard; stdout stays clean for whoever reads it."""
    say(text, err=True)


def print_labels(lines: Iterable[tuple[str, str]]) -> None:
    """`label: value` lines, values aligned; an empty label continues the value above."""
    listed = list(lines)
    width = max((len(label) for label, _ in listed), default=0) + 1
    console = _console() if on_terminal() else None
    for label, value in listed:
        head = f"{label}:" if label else ""
        text = f"{head.ljust(width)} {value}".rstrip()
        if console is None:
            say(text)
            continue
        for number, part in enumerate(wrapped(text, _width_of(sys.stdout), width + 1)):
            styled = _styled(part)
            styled.stylize("bold", 0, 0 if number else len(head))
            console.print(styled, soft_wrap=True)


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """A table. Cells are made safe to print.

    On a terminal it fits the width; where its columns would become too narrow to be read, each row
    stands as lines of its own.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [
        max(len(column.title), *(len(row[at]) for row in cells)) if cells else len(column.title)
        for at, column in enumerate(columns)
    ]
    if on_terminal():
        if _fits(columns, widths, _width_of(sys.stdout)):
            _draw_table(columns, cells)
        else:
            _print_records(columns, cells)
        return
    for row in ([column.title for column in columns], *cells):
        padded = (
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        )
        print_text(_GAP.join(padded).rstrip())


def _fits(columns: Sequence[Column], widths: Sequence[int], room: int) -> bool:
    least = (
        min(width, _LEAST_FOLDED) if column.fold else width
        for column, width in zip(columns, widths, strict=True)
    )
    return sum(least) + len(_GAP) * (len(columns) - 1) <= room


def _print_records(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> None:
    for number, row in enumerate(cells):
        if number:
            say()
        print_labels(
            [(column.title, cell) for column, cell in zip(columns, row, strict=True) if column.title and cell]
        )


def _draw_table(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, len(_GAP), 0, 0))
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            overflow="fold",
            no_wrap=not column.fold,
        )
    for row in cells:
        table.add_row(*(_styled(cell) for cell in row))
    _console().print(table)


def _console() -> Any:
    from rich.console import Console

    # A width counts on every terminal only together with a height, which nothing here uses.
    width = _width_of(sys.stdout)
    return Console(highlight=False, emoji=False, markup=False, width=width, height=25)


def _styled(text: str) -> Any:
    """Text whose square brackets mean nothing."""
    from rich.text import Text

    return Text(text)
