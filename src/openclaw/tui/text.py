"""Text from elsewhere, made safe for a terminal. Pure; draws nothing.

What a model, a tool or another person wrote must never reach the terminal as an
instruction: no escape sequence, no cursor movement, no reordering of a line.
"""

from __future__ import annotations

import re
from typing import Final

REPLACEMENT: Final = "\ufffd"

# C0 and C1 without line feed and tab, the separators that break lines, everything that turns the
# direction of writing, and halves of surrogate pairs, which no terminal can show.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_TAB: Final = "    "


def safe_text(text: str) -> str:
    """Control characters become U+FFFD; line breaks stay, tabs become blanks."""
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSAFE.sub(REPLACEMENT, unix).replace("\t", _TAB)


def safe_line(text: str, limit: int = 200) -> str:
    """The beginning of a text as one line of at most `limit` characters."""
    # Cut first, so that a title of a megabyte costs what a short one does.
    line = " ".join(safe_text(text[: limit * 4]).split())
    return line if len(line) <= limit and len(text) <= limit * 4 else line[: limit - 1] + "…"


def age(duration_ms: int) -> str:
    """A duration as one short word: "now", "5m", "3h", "12d"."""
    minutes = max(duration_ms, 0) // 60_000
    if minutes < 1:
        return "now"
    if minutes < 60:
        return f"{minutes}m"
    if minutes < 48 * 60:
        return f"{minutes // 60}h"
    return f"{minutes // (24 * 60)}d"


def thousands(count: int) -> str:
    """A count of tokens in few characters: "950", "12k", "1.2m"."""
    if count < 1000:
        return str(count)
    if count < 999_500:
        return f"{round(count / 1000)}k"
    return f"{count / 1_000_000:.1f}m"
