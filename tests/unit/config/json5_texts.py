"""Strategies: JSON values, and texts that spell a value in a randomly chosen JSON5 style."""

from __future__ import annotations

import math
from random import Random
from typing import Any

from hypothesis import strategies as st

from openclaw.config.json5 import is_identifier

CHARS = st.characters(exclude_categories=["Cs"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(CHARS, max_size=12)
)
KEYS = st.text(CHARS, max_size=6) | st.from_regex(r"[a-z$_][a-z0-9_]{0,5}", fullmatch=True)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=5)

BLANKS = ["", "", "", " ", "\n", "\t", "\r\n", "\u00a0"] + [
    "/* c */",
    "// line\n",
    "/* *\n* / ' \" */ ",
    "// ' \" } ]\r\n",
]
_SHORT_ESCAPES = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v"}


def spelled(value: Any) -> st.SearchStrategy[str]:
    """Documents that mean this value. The style comes from one seed, which keeps drawing cheap."""
    return st.integers(0, 2**32).map(lambda seed: _Speller(seed).document(value))


class _Speller:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def document(self, value: Any) -> str:
        mark = self.random.choice(["", "\ufeff"])
        return mark + self.blank() + self.spell(value) + self.blank()

    def blank(self) -> str:
        return self.random.choice(BLANKS)

    def coin(self) -> bool:
        return self.random.random() < 0.5

    def spell(self, value: Any) -> str:
        if isinstance(value, dict):
            return self.enclose("{", [self.member(key, part) for key, part in value.items()], "}")
        if isinstance(value, list):
            return self.enclose("[", [self.spell(part) for part in value], "]")
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool) or value is None:
            return {True: "true", False: "false", None: "null"}[value]
        return self.number(value)

    def enclose(self, opening: str, parts: list[str], closing: str) -> str:
        spaced = [self.blank() + part + self.blank() for part in parts]
        trailing = "," if parts and self.coin() else ""
        return opening + ",".join(spaced) + trailing + self.blank() + closing

    def member(self, key: str, value: Any) -> str:
        return f"{self.key(key)}{self.blank()}:{self.blank()}{self.spell(value)}"

    def key(self, key: str) -> str:
        if not is_identifier(key) or self.coin():
            return self.text(key)
        if ord(key[0]) < 0x10000 and self.coin():
            return f"\\u{ord(key[0]):04x}{key[1:]}"
        return key

    def text(self, text: str) -> str:
        quote = self.random.choice("\"'")
        return quote + "".join(self.char(char, quote) for char in text) + quote

    def char(self, char: str, quote: str) -> str:
        code = ord(char)
        style = self.random.randrange(6)
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

    def number(self, number: float) -> str:
        sign = "-" if math.copysign(1, number) < 0 else self.random.choice(["", "+"])
        size = abs(number)
        if isinstance(size, int):
            return sign + self.random.choice([str(size), hex(size), "0X" + hex(size)[2:].upper()])
        if math.isinf(size):
            return sign + "Infinity"
        text = repr(size)
        if text.endswith(".0") and "e" not in text and self.coin():
            text = text[:-1]
        elif text.startswith("0.") and self.coin():
            text = text[1:]
        return sign + text.replace("e", self.random.choice("eE"))
