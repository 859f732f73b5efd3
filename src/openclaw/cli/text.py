"""Small pure functions from values to text: ages, token counts, safe text for a terminal."""

from __future__ import annotations

import re
from typing import Final

_SECOND: Final = 1000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR

# Escape sequences can move the cursor, rename the window or reach the clipboard; line breaks and tabs
# are all that text from elsewhere may do. The two separators and the direction marks rearrange a line.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Text from elsewhere, safe to print: control characters become U+FFFD, line breaks and tabs stay."""
    return _UNSAFE.sub("\ufffd", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Like `printable`, for a cell or a label: line breaks and tabs become blanks."""
    return " ".join(printable(text).split())


def age(duration_ms: int | None) -> str:
    """A duration as one rounded-down word: "12s", "3m", "2h", "5d"; "-" when it is not known."""
    if duration_ms is None:
        return "-"
    if duration_ms < _MINUTE:
        return f"{max(duration_ms, 0) // _SECOND}s"
    if duration_ms < _HOUR:
        return f"{duration_ms // _MINUTE}m"
    if duration_ms < 2 * _DAY:
        return f"{duration_ms // _HOUR}h"
    return f"{duration_ms // _DAY}d"


def tokens(count: int | None) -> str:
    """A token count in at most five characters: "950", "12.3k", "1.2m"; "-" when it is not known."""
    if count is None:
        return "-"
    if count < 1000:
        return str(count)
    # What would round up to a thousand thousands is a million.
    unit, suffix = (1000, "k") if count < 999_500 else (1_000_000, "m")
    amount = count / unit
    shown = f"{amount:.1f}".removesuffix(".0") if amount < 99.95 else f"{amount:.0f}"
    return shown + suffix


def context_use(total: int | None, context: int | None, *, fresh: bool = True) -> str:
    """How full a context is: "12.3k/200k (6%)"; "~" marks a count that is older than the last turn."""
    used = ("" if fresh or total is None else "~") + tokens(total)
    if not context:
        return used
    share = "" if total is None else f" ({round(100 * total / context)}%)"
    return f"{used}/{tokens(context)}{share}"


def counted(count: int, noun: str) -> str:
    """ "1 session", "2 sessions"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
