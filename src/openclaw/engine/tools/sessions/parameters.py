"""Parameters and answers of session tools: one type gives the reader and the schema, one form the answer.

A parameter type is a Struct whose fields carry their description. What a model is
told and what is accepted can therefore not drift apart. No tool's meaning lives here.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import ToolOutcome, ToolSpec
from openclaw.errors import InvalidRequest

T = TypeVar("T", bound="Parameters")
_PLACE = re.compile(r" - at `\$\.(\w+)[^`]*`$")
_SHOWN_CHARS = 300


class Parameters(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The base of a tool's parameters. One that is not named is a mistake worth telling."""


def read_parameters(arguments: dict[str, Any], kind: type[T]) -> T:
    """The arguments as a value. Raises InvalidRequest that names the parameter (TOOL-7).

    A `null` counts as not given, and a whole number may be written `5.0`: both are common in what
    models write, and neither can mean anything else.
    """
    given = {clean_text(name): _whole(value) for name, value in arguments.items() if value is not None}
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"invalid arguments: {_problem(str(error))}")


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _problem(text: str) -> str:
    """The reader's complaint with the parameter in front."""
    cleaned = cut(clean_text(text), _SHOWN_CHARS)
    place = _PLACE.search(cleaned)
    return cleaned if place is None else f"{place[1]}: {cleaned[: place.start()]}"


def schema_of(kind: type[Parameters]) -> dict[str, Any]:
    """The JSON Schema of a parameter type: one closed object, plain enough for every provider."""
    _, components = msgspec.json.schema_components([kind], ref_template="{name}")
    described = components[kind.__name__]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _plain(field) for name, field in described["properties"].items()},
        "additionalProperties": False,
    }
    if described["required"]:
        schema["required"] = described["required"]
    return schema


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    """A field without its default, and without the `null` that an optional one accepts."""
    plain = {name: value for name, value in field.items() if name not in ("default", "anyOf")}
    for option in field.get("anyOf", ()):
        if option != {"type": "null"}:
            plain |= option
    if "enum" in plain:
        plain.setdefault("type", "string")  # some providers insist on it
        # What an optional choice accepts besides its words is not for a model to write.
        plain["enum"] = [word for word in plain["enum"] if word is not None]
    return plain


def tool_spec(name: str, description: str, kind: type[Parameters], *, parallel: bool = True) -> ToolSpec:
    return ToolSpec(name, description, schema_of(kind), parallel)


def answer(value: dict[str, Any], details: dict[str, Any] | None = None) -> ToolOutcome:
    """An answer as JSON text. `details` is what a client draws; the whole answer unless it is given."""
    text = msgspec.json.encode(value).decode()
    return ToolOutcome((TextBlock(text),), details=value if details is None else details)
