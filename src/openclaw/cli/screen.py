"""The screen of a conversation: pieces of text in order, also while a person is typing.

Colours only on a terminal, and not with NO_COLOR. A prompt that is open is taken
away and drawn again around what is printed, so that nobody's half-typed line is torn.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

import click

from openclaw.cli.conversation import Piece, Style

STYLES: Final[dict[Style, dict[str, Any]]] = {
    "plain": {},
    "dim": {"dim": True},
    "person": {"fg": "cyan"},
    "agent": {"fg": "green"},
    "error": {"fg": "red"},
    "mark": {"fg": "yellow", "dim": True},
}
_ERASE_LINE: Final = "\r\x1b[K"


class Screen:
    """Prints pieces; safe to use from two threads."""

    def __init__(self, *, styled: bool | None = None) -> None:
        on_terminal = sys.stdout.isatty()
        self._styled = on_terminal and not os.environ.get("NO_COLOR") if styled is None else styled
        self._lock = threading.RLock()
        self._line_is_open = False
        self._prompt: str | None = None
        self._typed: Callable[[], str] = lambda: ""
        self._held: list[Piece] = []

    def show(self, pieces: Iterable[Piece]) -> None:
        """Print pieces. While a prompt is open, an unfinished line is held back until it is finished."""
        with self._lock:
            if self._prompt is None:
                self._print(pieces)
                return
            self._held += pieces
            if self._held and not self._held[-1].open:
                self._around_prompt(self._held)
                self._held = []

    def open_prompt(self, prompt: str, typed: Callable[[], str]) -> None:
        """A person types from now on; `typed` tells what stands on the line."""
        with self._lock:
            self._end_line()
            self._prompt, self._typed = prompt, typed

    def close_prompt(self) -> None:
        with self._lock:
            self._prompt = None
            self._print(self._held)
            self._held = []

    def end_line(self) -> None:
        with self._lock:
            self._end_line()

    def _around_prompt(self, pieces: Iterable[Piece]) -> None:
        click.echo(_ERASE_LINE, nl=False, color=True)
        self._print(pieces)
        click.echo(f"{self._prompt}{self._typed()}", nl=False)
        sys.stdout.flush()

    def _print(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            is_plain = piece.style == "plain"
            if not is_plain:
                self._end_line()
            text = (
                piece.text if is_plain or not self._styled else click.style(piece.text, **STYLES[piece.style])
            )
            # The text of an open line goes on where it stopped; an empty piece only ends it.
            ends_nothing = not piece.open and not piece.text and not self._line_is_open
            if not ends_nothing:
                click.echo(text, nl=not piece.open, color=self._styled or None)
            self._line_is_open = piece.open
        sys.stdout.flush()

    def _end_line(self) -> None:
        if self._line_is_open:
            click.echo()
            self._line_is_open = False
