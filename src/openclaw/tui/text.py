"""Text from elsewhere as the terminal's widgets take it. Pure; draws nothing."""

from __future__ import annotations

from typing import Final

from openclaw.domain.terminaltext import printable

_TAB: Final = "    "


def safe_text(text: str) -> str:
    """What a terminal may show, with blanks for tabs: a widget counts every character as a column."""
    return printable(text).replace("\t", _TAB)


def safe_line(text: str, limit: int = 200) -> str:
    """The beginning of a text as one line of at most `limit` characters."""
    # Cut first, so that a title of a megabyte costs what a short one does.
    line = " ".join(safe_text(text[: limit * 4]).split())
    return line if len(line) <= limit and len(text) <= limit * 4 else line[: limit - 1] + "…"
