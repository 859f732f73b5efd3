"""Put values on the screen: JSON, tables, labelled lines. Colours only on a terminal.

`rich` draws on a terminal and honours NO_COLOR; everywhere else the text is plain
and complete, so that a pipe sees whole keys. Nothing here asks a gateway anything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
import msgspec
from msgspec import Struct

from openclaw.cli.text import one_line
from openclaw.protocol.frames import encode_json

_GAP = "  "


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


def say(text: str = "") -> None:
    click.echo(text)


def note(text: str) -> None:
    """A word to the person at the keyboard; stdout stays clean for whoever reads it."""
    click.echo(text, err=True)


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
        else:
            styled = _styled(text)
            styled.stylize("bold", 0, len(head))
            console.print(styled, soft_wrap=True)


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """A table. Cells are made safe to print; on a terminal it fits the width."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    if on_terminal():
        _draw_table(columns, cells)
        return
    widths = [
        max(len(column.title), *(len(row[at]) for row in cells)) if cells else len(column.title)
        for at, column in enumerate(columns)
    ]
    for row in ([column.title for column in columns], *cells):
        padded = (
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        )
        say(_GAP.join(padded).rstrip())


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

    return Console(highlight=False, emoji=False, markup=False)


def _styled(text: str) -> Any:
    """Text whose square brackets mean nothing."""
    from rich.text import Text

    return Text(text)
