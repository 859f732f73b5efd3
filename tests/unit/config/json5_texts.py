"""Strategies: JSON values, and texts that spell a value in a randomly chosen JSON5 style."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from openclaw.config.json5 import is_identifier

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
)
KEYS = st.text(st.characters(exclude_categories=("Cs",)), max_size=6) | st.from_regex(
    r"[a-z$_][a-z0-9_]{0,5}", fullmatch=True
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=5)

BLANKS = st.sampled_from(
    [
        "",
        "",
        "",
        " ",
        "\n",
        "\t",
        "\r\n",
        "\u00a0",
        "/* c */",
        "// line\n",
        "/* *\n* / ' \" */ ",
        "// ' \" } ]\r\n",
    ]
)
_SHORT_ESCAPES = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v"}


@st.composite
def spelled(draw: st.DrawFn, value: Any) -> str:
    """A whole document: the value with blanks and comments around it, perhaps a byte order mark."""
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return mark + draw(BLANKS) + _spell(draw, value) + draw(BLANKS)


def _spell(draw: st.DrawFn, value: Any) -> str:
    if isinstance(value, dict):
        members = (
            f"{_spell_key(draw, key)}{draw(BLANKS)}:{draw(BLANKS)}{_spell(draw, part)}"
            for key, part in value.items()
        )
        return _enclose(draw, "{", list(members), "}")
    if isinstance(value, list):
        return _enclose(draw, "[", [_spell(draw, part) for part in value], "]")
    if isinstance(value, str):
        return _spell_text(draw, value, draw(st.sampled_from("\"'")))
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return _spell_number(draw, value)


def _enclose(draw: st.DrawFn, opening: str, parts: list[str], closing: str) -> str:
    spaced = [f"{draw(BLANKS)}{part}{draw(BLANKS)}" for part in parts]
    trailing = "," if parts and draw(st.booleans()) else ""
    return f"{opening}{','.join(spaced)}{trailing}{draw(BLANKS)}{closing}"


def _spell_key(draw: st.DrawFn, key: str) -> str:
    if is_identifier(key) and draw(st.booleans()):
        if draw(st.booleans()) and ord(key[0]) < 0x10000:
            return f"\\u{ord(key[0]):04x}{key[1:]}"
        return key
    return _spell_text(draw, key, draw(st.sampled_from("\"'")))


def _spell_text(draw: st.DrawFn, text: str, quote: str) -> str:
    return quote + "".join(_spell_char(draw, char, quote) for char in text) + quote


def _spell_char(draw: st.DrawFn, char: str, quote: str) -> str:
    code = ord(char)
    style = draw(st.integers(0, 5))
    if char in _SHORT_ESCAPES and style:
        return "\\" + _SHORT_ESCAPES[char]
    if style == 0 and code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04X}"
    if (style == 0 and code <= 0xFFFF) or char in "\n\r\0":
        return f"\\u{code:04x}"
    if char in (quote, "\\"):
        return "\\" + char
    if style == 1 and code < 0x100:
        return f"\\x{code:02x}"
    return ("\\\n" if style == 2 else "") + char


def _spell_number(draw: st.DrawFn, number: float) -> str:
    sign = "-" if math.copysign(1, number) < 0 else draw(st.sampled_from(["", "+"]))
    size = abs(number)
    if isinstance(size, int):
        return sign + draw(st.sampled_from([str(size), hex(size), "0X" + hex(size)[2:].upper()]))
    if math.isinf(size):
        return sign + "Infinity"
    text = repr(size)
    if text.endswith(".0") and "e" not in text and draw(st.booleans()):
        text = text[:-1]
    elif text.startswith("0.") and draw(st.booleans()):
        text = text[1:]
    return sign + text.replace("e", draw(st.sampled_from("eE")))
