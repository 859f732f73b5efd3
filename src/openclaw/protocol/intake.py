"""What bytes must satisfy before a JSON decoder may see them.

Three checks at the door, each linear in the size of the frame: UTF-8, nesting,
lone surrogates. The decoder itself raises on lone surrogates and would follow
any nesting up to the interpreter's limit. Nothing here knows what a frame is.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any

import msgspec

MAX_DEPTH = 64
MAX_NUMBER = (1 << 53) - 1
_LONG_NUMBER = re.compile(rb"[0-9]{16}")

_CHUNK = 65_536
_OPEN, _CLOSE = b"[{", b"]}"
_AS_STEPS = bytes.maketrans(_OPEN + _CLOSE, b"\x01\x01\xff\xff")
_NOT_BRACKETS = bytes(code for code in range(256) if code not in _OPEN + _CLOSE)

_HIGH = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW = rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE_SURROGATE = re.compile(_HIGH + rb"(?!" + _LOW + rb")|(?<!" + _HIGH + rb")" + _LOW)
# 0xFF never occurs in UTF-8, so it can stand for an escaped backslash for a moment.
_STAND_IN = b"\xff"


def to_utf8(data: bytes | str) -> bytes | None:
    """The frame as UTF-8 bytes, lone surrogates in text replaced; None when bytes are not UTF-8."""
    if isinstance(data, str):
        return replace_surrogates_in_text(data).encode()
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    return data


def replace_surrogates_in_text(text: str) -> str:
    """The text with every lone surrogate turned into U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def replace_surrogates_in_value(value: Any) -> Any:
    """The same for every string, keys included, of a plain JSON-like value."""
    if isinstance(value, str):
        return replace_surrogates_in_text(value)
    if isinstance(value, dict):
        return {replace_surrogates_in_value(k): replace_surrogates_in_value(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [replace_surrogates_in_value(item) for item in value]
    return value


def replace_escaped_surrogates(data: bytes) -> bytes:
    """JSON text with every lone surrogate escape turned into an escaped U+FFFD; `data` is UTF-8."""
    if b"\\ud" not in data and b"\\uD" not in data:
        return data
    guarded = data.replace(b"\\\\", _STAND_IN)
    return _LONE_SURROGATE.sub(rb"\\ufffd", guarded).replace(_STAND_IN, b"\\\\")


def contains_nul(data: bytes) -> bool:
    """True when a string in this JSON text holds the character U+0000."""
    return b"\\u0000" in data and b"\\u0000" in data.replace(b"\\\\", b"")


def holds_huge_number(data: bytes) -> bool:
    """True when this JSON text, nested no deeper than `MAX_DEPTH`, holds a whole number beyond 53 bits.

    Other readers of JSON lose digits there, and a sum of two such numbers fits no database.
    """
    if _LONG_NUMBER.search(data) is None:
        return False
    waiting: list[Any] = [msgspec.json.decode(data)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, int) and abs(value) > MAX_NUMBER:
            return True
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return False


def is_too_deep(data: bytes, max_depth: int = MAX_DEPTH) -> bool:
    """True when valid JSON text nests deeper than `max_depth`; malformed text may give either answer.

    All loops over bytes run inside the interpreter's own C code.
    """
    if data.count(b"[") + data.count(b"{") <= max_depth:
        return False
    steps = memoryview(_steps_outside_strings(data)).cast("b")
    return max(accumulate(steps, initial=0)) > max_depth


def _steps_outside_strings(data: bytes) -> bytes:
    """One signed byte for each bracket that is not inside a string: 1 to go in, -1 to come out."""
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    kept = bytearray()
    in_string = 0
    # In chunks, because splitting a frame made of quotes would cost many times its size in memory.
    for start in range(0, len(plain), _CHUNK):
        parts = plain[start : start + _CHUNK].split(b'"')
        kept += b"".join(parts[in_string::2]).translate(_AS_STEPS, _NOT_BRACKETS)
        in_string ^= (len(parts) - 1) & 1
    return bytes(kept)
