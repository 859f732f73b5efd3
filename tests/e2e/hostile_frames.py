"""Frames that no client sends: made from the table of methods, then bent, cut and broken.

Everything comes from one `random.Random`, so that a seed gives the same frames again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from msgspec import inspect

from openclaw.protocol.connect import ConnectParams
from openclaw.protocol.methods import METHODS
from tests.e2e.raw_socket import BINARY, CLOSE, PING, TEXT, frame

# What would stop or rebuild the gateway under test, or fill its disk, when a frame happens to be right.
LEFT_OUT = ("config.", "backup.", "update.", "gateway.", "sessions.erase", "dashboard.")
_DEEPEST = 4
_KEYS = ("main", "agent:main:fuzz", "agent:main:main", "agent:bob:x", "global", "agent::", ":", "unknown")
_WORDS = (
    "", " ", "x", "\0", "a\0b", "\ud800", "\udfff\ud800", "\ue000", "ｍａｉｎ", "ﬁ", "\u202eevil", "ééé",
    "🙂", "../../etc/passwd", "'; DROP TABLE sessions; --", "{{7*7}}", "%s%n", "-1", "1e9", "null",
    "/stop", "/new",
    "agent:main:" + "k" * 10_000, ":" * 500, "operator.admin", "[" * 40, "\r\nX: y", "\x7f\x1b[2J",
)  # fmt: skip
_NUMBERS = (0, 1, -1, 2**31, 2**53, 2**63 - 1, -(2**63), 2**64, 10**30, 0.5, -0.0, 1e308, 5e-324)


def _deep(levels: int) -> Any:
    value: Any = 1
    for number in range(levels):
        value = [value] if number % 2 else {"a": value}
    return value


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@cache
def _fields(kind: type) -> inspect.StructType:
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    return found


class Fuzzer:
    def __init__(self, seed: int, left_out: Sequence[str] = LEFT_OUT) -> None:
        self._chance = random.Random(seed)
        self._methods = [name for name in METHODS if not name.startswith(tuple(left_out))]
        self._numbers = 0

    # -- values --------------------------------------------------------------------------------

    def _junk(self) -> Any:
        chance = self._chance
        return chance.choice((
            lambda: chance.choice(_WORDS), lambda: chance.choice(_NUMBERS), lambda: None, lambda: True,
            list, dict, lambda: [chance.choice(_WORDS)] * chance.randrange(1, 40),
            lambda: {chance.choice(_WORDS): chance.choice(_NUMBERS)}, lambda: _deep(chance.randrange(1, 90)),
        ))()  # fmt: skip

    def _value(self, kind: inspect.Type, depth: int = 0) -> Any:
        """Something that fits a type, or nearly; now and then something that does not at all."""
        chance = self._chance
        if depth > _DEEPEST or chance.random() < 0.08:
            return self._junk()
        match kind:
            case inspect.StructType():
                return self._struct(kind, depth)
            case inspect.UnionType():
                return self._value(chance.choice(kind.types), depth + 1)
            case inspect.LiteralType():
                return chance.choice(tuple(kind.values))
            case inspect.StrType():
                return chance.choice(_KEYS if chance.random() < 0.5 else _WORDS)
            case inspect.BoolType():
                return chance.random() < 0.5
            case inspect.IntType() | inspect.FloatType():
                return chance.choice((1, 5, 100, *_NUMBERS))
            case inspect.ListType() | inspect.VarTupleType():
                return [self._value(kind.item_type, depth + 1) for _ in range(chance.randrange(4))]
            case inspect.DictType():
                return {chance.choice(_WORDS): self._value(kind.value_type, depth + 1)}
            case inspect.NoneType():
                return None
            case _:
                return self._junk()

    def _struct(self, kind: inspect.StructType, depth: int = 0) -> dict[str, Any]:
        chance, made = self._chance, {}
        for field in kind.fields:
            if field.required or chance.random() < 0.4:
                made[field.encode_name] = self._value(field.type, depth + 1)
        if chance.random() < 0.1:
            made[chance.choice(_WORDS)] = self._junk()
        if made and chance.random() < 0.1:
            made.pop(chance.choice(list(made)))
        return made

    # -- text ----------------------------------------------------------------------------------

    def connect(self) -> bytes:
        """A first request that is almost one. It never knows the secret."""
        return self._request("connect", self._struct(_fields(ConnectParams)))

    def request(self) -> bytes:
        method = self._chance.choice(self._methods)
        if self._chance.random() < 0.03:
            method = self._chance.choice(_WORDS)
            return self._request(method, self._junk())
        return self._request(method, self._struct(_fields(METHODS[method].params)))

    def _request(self, method: str, params: Any) -> bytes:
        chance = self._chance
        self._numbers += 1
        made: dict[str, Any] = {"type": "req", "id": f"f{self._numbers}", "method": method, "params": params}
        if chance.random() < 0.1:
            made[chance.choice(("type", "id", "method", "params", "traceparent", "x"))] = self._junk()
        if chance.random() < 0.03:
            made.pop(chance.choice(("type", "id", "method", "params")), None)
        text = json.dumps(made, ensure_ascii=chance.random() < 0.9).encode("utf-8", "surrogatepass")
        return self._bent(text) if chance.random() < 0.2 else text

    def _bent(self, text: bytes) -> bytes:
        """The text with one injury: cut, flipped, doubled, deep, or not UTF-8."""
        chance = self._chance
        at = chance.randrange(len(text))
        return chance.choice((
            text[:at], text[at:], text[:at] + b"\xff\xfe" + text[at:], text[:at] + b"\0" + text[at:],
            text[:at] + bytes((chance.randrange(256),)) + text[at + 1 :], text + text, text * 3 + b"{",
            b"[" * chance.randrange(1, 2000) + text, b'{"a":' * chance.randrange(1, 600) + text, b"",
            text.replace(b"1", b"1e400"), text.replace(b'"', b"'"), b"\xef\xbb\xbf" + text,
            text[:at] + b"\\ud8",
        ))  # fmt: skip

    # -- frames --------------------------------------------------------------------------------

    def framed(self, text: bytes) -> bytes:
        """A text in a legal frame: whole, in pieces with a ping between them, or as binary."""
        way = self._chance.random()
        if way < 0.06 or (not _is_utf8(text) and way < 0.99):
            return frame(text, BINARY)  # as text it would end the connection, and what comes after it
        if way < 0.92:
            return frame(text)
        middle = self._chance.randrange(len(text) + 1)
        parts = frame(text[:middle], fin=False), frame(b"?", PING), frame(text[middle:], 0x0)
        return b"".join(parts)

    def violation(self) -> bytes:
        """What RFC 6455 forbids, or nearly: the gateway may close, and must do nothing else."""
        chance = self._chance
        text = self.connect()
        ways: tuple[Callable[[], bytes], ...] = (
            lambda: frame(text, reserved=chance.randrange(1, 8)),
            lambda: frame(text, chance.choice((0x3, 0x4, 0x7, 0xB, 0xF))),
            lambda: frame(text, masked=False),
            lambda: frame(text, 0x0),
            lambda: frame(text, fin=False) + frame(text),
            lambda: frame(b"x" * 126, PING),
            lambda: frame(b"x", PING, fin=False),
            lambda: frame(b"\x03", CLOSE),
            lambda: frame((999).to_bytes(2, "big"), CLOSE),
            lambda: frame((1000).to_bytes(2, "big") + b"\xff\xfe", CLOSE),
            lambda: bytes((0x81, 0xFF)) + (1 << 63).to_bytes(8, "big") + b"\0\0\0\0" + text,
            lambda: bytes((0x81, 0xFF)) + (1 << 40).to_bytes(8, "big") + b"\0\0\0\0" + text,
            lambda: frame(b"", fin=False) + frame(b"", 0x0, fin=False) * 200 + frame(text, 0x0),
            lambda: frame(b"p", PING) * 50 + frame(text),
            lambda: frame(b"\xff\xfe\xfd", TEXT),
            lambda: frame(b"x" * 70_000),
            lambda: frame(text)[: chance.randrange(1, 12)],
            lambda: bytes(chance.randrange(256) for _ in range(64)),
        )
        return chance.choice(ways)()
