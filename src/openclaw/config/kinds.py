"""What a type of the schema accepts, how its values are read and how it is described to a person.

Works on the type descriptions of `msgspec.inspect`; knows nothing of files or paths.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, inspect

from openclaw.config.nodes import Array, Node, Object
from openclaw.config.values import MS_PER_UNIT, parse_duration_ms, parse_size

_SHOWN = 40
_UNIT_NAMES = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SMALL_BOUND = 1_000_000


def unwrap(kind: inspect.Type) -> tuple[inspect.Type, Mapping[str, Any]]:
    """A type without its annotations, and the `extra` that they carried."""
    if isinstance(kind, inspect.Metadata):
        return kind.type, kind.extra or {}
    return kind, {}


@functools.cache
def fields_of(cls: type[Struct]) -> tuple[inspect.Field, ...]:
    """The fields of a section, with their types described."""
    kind = inspect.type_info(cls)
    assert isinstance(kind, inspect.StructType)
    return kind.fields


def options_of(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    """The alternatives of a type: one, unless it is a union."""
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def is_secret(kind: inspect.Type) -> bool:
    """Whether a value of this type must stay out of messages and views."""
    return any(unwrap(option)[1].get("secret") for option in options_of(kind))


def accepts(kind: inspect.Type, node: Node) -> bool:
    """Whether a node has the right shape for a type; its value may still be out of range."""
    kind, extra = unwrap(kind)
    if isinstance(kind, inspect.AnyType):
        return True
    if isinstance(node, Object):
        return isinstance(kind, inspect.StructType | inspect.DictType)
    if isinstance(node, Array):
        return isinstance(kind, inspect.VarTupleType)
    value = node.value
    if value is None:
        return isinstance(kind, inspect.NoneType)
    if isinstance(value, bool):
        return isinstance(kind, inspect.BoolType)
    if isinstance(value, str):
        written_with_unit = "duration" in extra or "size" in extra
        return isinstance(kind, inspect.StrType | inspect.LiteralType) or written_with_unit
    return isinstance(kind, inspect.IntType | inspect.FloatType) or "digits" in extra


def read_number(
    value: Any, kind: inspect.IntType | inspect.FloatType, extra: Mapping[str, Any]
) -> int | float | None:
    """The number that was meant, in the unit that is kept; None when it is unreadable or out of range."""
    number: int | float | None = value
    if "duration" in extra:
        in_ms = parse_duration_ms(value, extra["duration"])
        number = None if in_ms is None else in_ms // MS_PER_UNIT[extra["keep"]]
    elif "size" in extra:
        number = parse_size(value)
    if number is None or not math.isfinite(number):
        return None
    if isinstance(kind, inspect.IntType):
        if number != math.floor(number):
            return None
        number = math.floor(number)
    too_small = kind.ge is not None and number < kind.ge
    too_large = kind.le is not None and number > kind.le
    return None if too_small or too_large else number


def read_text(
    value: Any, kind: inspect.StrType | inspect.LiteralType, extra: Mapping[str, Any]
) -> str | None:
    """The string or word that was meant; None when it is not allowed."""
    if isinstance(kind, inspect.LiteralType):
        word = extra.get("aliases", {}).get(value, value)
        return word if word in kind.values else None
    text = value if isinstance(value, str) else _digits(value)
    if text is None or (kind.min_length and len(text.strip()) < kind.min_length):
        return None
    return None if kind.pattern and not re.search(kind.pattern, text) else text


def _digits(value: int | float) -> str | None:
    """An id that was written as a number. Beyond 2^53 a float has already lost digits."""
    return str(value) if isinstance(value, int) else None


def describe(kind: inspect.Type) -> str:
    """What is expected, to be read after the word "expected"."""
    kind, extra = unwrap(kind)
    if "expected" in extra:
        return str(extra["expected"])
    if isinstance(kind, inspect.UnionType):
        options = (option for option in kind.types if not isinstance(option, inspect.NoneType))
        return " or ".join(describe(option) for option in options)
    if isinstance(kind, inspect.LiteralType):
        words = ", ".join(f'"{word}"' for word in kind.values)
        return f"one of {words}" if len(kind.values) > 1 else words
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return _describe_number(kind, extra)
    if isinstance(kind, inspect.StrType):
        return "a non-empty string" if kind.min_length else "a string"
    if isinstance(kind, inspect.BoolType):
        return "true or false"
    if isinstance(kind, inspect.VarTupleType):
        return "a list"
    return "an object"


def _describe_number(kind: inspect.IntType | inspect.FloatType, extra: Mapping[str, Any]) -> str:
    if "size" in extra:
        return 'a size such as "512mb"'
    if "duration" in extra:
        unit = _UNIT_NAMES[extra["duration"]]
        least = f" (at least {kind.ge})" if kind.ge else ""
        return f'a number of {unit}{least} or a duration such as "30m"'
    what = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
    if kind.le is not None and kind.le < _SMALL_BOUND:
        return f"{what} from {kind.ge} to {kind.le}"
    return f"{what} of at least {kind.ge}"


def found(node: Node, *, secret: bool = False) -> str:
    """What stands in the file, short and safe to print; a secret only by its kind."""
    if isinstance(node, Object):
        return "an object"
    if isinstance(node, Array):
        return "a list"
    value = node.value
    if secret and value is not None:
        return "a string" if isinstance(value, str) else "something else"
    if isinstance(value, str):
        shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
        return msgspec.json.encode(shown).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return msgspec.json.encode(value).decode() if abs(value or 0) < 2**53 else "a very large number"
