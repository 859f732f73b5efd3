"""Values and text as a terminal may show them: ages, counts, and what somebody else wrote, made safe (pure).

What a model, a tool or another person wrote must never reach a terminal as an instruction: no escape
sequence, no movement of the cursor, no reordering of a line. Nothing is printed or drawn here.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, tzinfo
from typing import Final

_SECOND: Final = 1000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_LATEST_MS: Final = 253_402_300_799_000  # the end of the year 9999

# C0 and C1 without line feed and tab, the separators that break lines, everything that turns the
# direction of writing, and halves of surrogate pairs, which no terminal can show.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# What no line break comes into: a word, or a command between backticks.
_WORD: Final = re.compile(r"(\s*)((?:`[^`\n]{1,80}`|\S)+)")


def printable(text: str) -> str:
    """Text from elsewhere, safe to print: control characters become U+FFFD, line breaks and tabs stay."""
    return _UNSAFE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """Like `printable`, for a cell or a label: line breaks and tabs become blanks."""
    return " ".join(printable(text).split())


def wrapped(line: str, width: int, hanging: int = 0) -> list[str]:
    """A line, broken between words so that each part has at most `width` columns.

    All parts but the first begin with `hanging` blanks. A command between backticks is one word. A word
    that is too long for any line stays where it is.
    """
    if len(line) * 2 <= width:
        return [line]
    margin = " " * (hanging if hanging <= width // 2 else 0)
    parts, room, is_empty = [""], width, True
    for gap, word in _WORD.findall(line):
        needed, alone = _columns(gap + word), _columns(word)
        if needed > room and not is_empty and alone <= width - len(margin):
            parts.append(margin)
            gap, needed, room = "", alone, width - len(margin)
        parts[-1] += gap + word
        room -= needed
        is_empty = False
    return parts


def _columns(text: str) -> int:
    return len(text) + sum(unicodedata.east_asian_width(character) in "WF" for character in text)


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


def moment(at_ms: object, zone: tzinfo | None = None) -> str:
    """A time of the gateway as people read it here, to the minute; "" when it is none."""
    if isinstance(at_ms, bool) or not isinstance(at_ms, int | float) or not 0 < at_ms < _LATEST_MS:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M")


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
