"""Turns a decoder's complaint into the sentence that clients of this wire know.

The decoder names a type and a path; the wire names a JSON pointer and a rule.
Only the first problem is told. Nothing is decoded here.
"""

from __future__ import annotations

import re
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from openclaw.protocol.errors import clip

MAX_NAME_CHARS = 80

_PATH = re.compile(r"\$(?:\.\w+|\[\d+\]|\[\.\.\.\])*")
_STEP = re.compile(r"\.(\w+)|\[([\d.]+)\]")
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_WRONG_TYPE = re.compile(r"Expected `([^`]+)`, got `[^`]+`")
_RANGE = re.compile(r"Expected `\w+` (>=|<=|>|<) (\S+)")
_LENGTH = re.compile(r"Expected `(\w+)` of length (>=|<=) (\d+)")
_WORDS = {"int": "integer", "str": "string", "bool": "boolean", "float": "number"}


def describe_violation(error: msgspec.ValidationError, kind: Any = None) -> str:
    """The rule that was broken and where, without the name of the method.

    With `kind`, the type that was being decoded, a wrong enum value is answered
    with the allowed ones (RPC-7).
    """
    text, path = _split(str(error))
    pointer = "".join(f"/{'*' if step == '...' else step}" for step in path)
    if unknown := _UNKNOWN.fullmatch(text):
        return f"at {pointer or 'root'}: unexpected property '{clip(unknown[1], MAX_NAME_CHARS)}'"
    return (f"at {pointer}: " if pointer else "") + _rule(text, path, kind)


def _rule(text: str, path: list[str], kind: Any) -> str:
    if missing := _MISSING.fullmatch(text):
        return f"must have required property '{missing[1]}'"
    if wrong := _WRONG_TYPE.fullmatch(text):
        names = [name for name in wrong[1].split(" | ") if name != "null"] or ["null"]
        return "must be " + " or ".join(_WORDS.get(name, name) for name in names)
    if length := _LENGTH.fullmatch(text):
        bound = "fewer" if length[2] == ">=" else "more"
        unit = "characters" if length[1] == "str" else "items"
        return f"must NOT have {bound} than {length[3]} {unit}"
    if limit := _RANGE.fullmatch(text):
        return f"must be {limit[1]} {limit[2]}"
    if text.startswith("Invalid enum value"):
        allowed = _allowed_values(kind, path) if kind is not None else []
        return "must be equal to one of the allowed values" + (": " + ", ".join(allowed) if allowed else "")
    return text


def _split(text: str) -> tuple[str, list[str]]:
    head, separator, tail = text.rpartition(" - at `")
    if separator and tail.endswith("`") and _PATH.fullmatch(tail[:-1]):
        return head, [name or index for name, index in _STEP.findall(tail)]
    return text, []


def _allowed_values(kind: Any, path: list[str]) -> list[str]:
    options = _alternatives(kind)
    for step in path:
        options = [inner for option in options for inner in _inside(option, step)]
    words = [str(value) for option in options if get_origin(option) is Literal for value in get_args(option)]
    return words + (["true", "false"] if bool in options else [])


def _alternatives(kind: Any) -> list[Any]:
    origin = get_origin(kind)
    if origin is Annotated:
        return _alternatives(get_args(kind)[0])
    if origin in (Union, types.UnionType):
        return [inner for option in get_args(kind) for inner in _alternatives(option)]
    return [kind]


def _inside(kind: Any, step: str) -> list[Any]:
    if isinstance(kind, type) and issubclass(kind, Struct):
        return [
            inner
            for field in msgspec.structs.fields(kind)
            if field.encode_name == step
            for inner in _alternatives(field.type)
        ]
    arguments = get_args(kind)
    return (
        _alternatives(arguments[-1] if arguments[-1] is not Ellipsis else arguments[0]) if arguments else []
    )
