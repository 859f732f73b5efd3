"""The JSON Schema of the config, generated from the same types that validation walks.

For editors and for `openclaw config schema`. Every object is closed; sections that are
open to connectors say so. Nothing is written by hand, so it cannot drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, inspect

from openclaw.config.foreign import FOREIGN_KEYS, foreign_reason
from openclaw.config.kinds import describe, fields_of, options_of, unwrap
from openclaw.config.schema import Config
from openclaw.config.values import OpenSection, format_duration

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_UNIT_SUFFIX = {"duration": "(ms|s|m|h|d)", "size": "(b|kb|mb|gb)"}


def config_schema() -> dict[str, Any]:
    """The schema of a whole config file."""
    definitions: dict[str, Any] = {}
    _define(Config, definitions)
    root = definitions.pop("Config")
    root["properties"] = {
        "$schema": {"type": "string"},
        **root["properties"],
        **{
            key: {"deprecated": True, "description": foreign_reason((), key)}
            for key in sorted(FOREIGN_KEYS[()])
        },
    }
    return {
        "$schema": DIALECT,
        **root,
        "title": "OpenClaw configuration",
        "$defs": dict(sorted(definitions.items())),
    }


def _define(section: type[Struct], definitions: dict[str, Any]) -> None:
    """Add the schema of a section, and of all it refers to, under its name."""
    name = section.__name__
    if name in definitions:
        return
    schema: dict[str, Any] = {"title": name, "type": "object"}
    definitions[name] = schema
    if section.__doc__ and not section.__doc__.startswith(f"{name}("):
        schema["description"] = " ".join(section.__doc__.split())
    is_open = issubclass(section, OpenSection)
    properties: dict[str, Any] = {}
    for field in fields_of(section):
        if not (is_open and field.name == "extra"):
            properties[field.encode_name] = _field_schema(field, definitions)
    for alias, canonical in getattr(section, "key_aliases", {}).items():
        properties[alias] = {**properties[canonical], "deprecated": True}
    schema["properties"] = properties
    required = [field.encode_name for field in fields_of(section) if field.required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = is_open


def _field_schema(field: inspect.Field, definitions: dict[str, Any]) -> dict[str, Any]:
    schema = _schema(field.type, definitions)
    default = field.default
    if default is None or default is msgspec.NODEFAULT or isinstance(default, Struct):
        return schema
    units = [unwrap(option)[1] for option in options_of(field.type)]
    if any("duration" in extra and extra["duration"] != extra["keep"] for extra in units):
        default = format_duration(default)
    return {**schema, "default": msgspec.json.decode(msgspec.json.encode(default))}


def _schema(kind: inspect.Type, definitions: dict[str, Any]) -> dict[str, Any]:
    options = [_plain_schema(option, definitions) for option in options_of(kind)]
    return options[0] if len(options) == 1 else {"anyOf": options}


def _plain_schema(kind: inspect.Type, definitions: dict[str, Any]) -> dict[str, Any]:
    described = describe(kind)
    kind, extra = unwrap(kind)
    if isinstance(kind, inspect.StructType):
        _define(kind.cls, definitions)
        return {"$ref": f"#/$defs/{kind.cls.__name__}"}
    if isinstance(kind, inspect.DictType):
        return {"type": "object", "additionalProperties": _schema(kind.value_type, definitions)}
    if isinstance(kind, inspect.VarTupleType):
        return {"type": "array", "items": _schema(kind.item_type, definitions)}
    if isinstance(kind, inspect.LiteralType):
        return {"enum": [*kind.values, *extra.get("aliases", {})]}
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return _number_schema(kind, extra, described)
    if isinstance(kind, inspect.StrType):
        return _string_schema(kind, extra)
    words = {inspect.BoolType: "boolean", inspect.NoneType: "null"}
    return {"type": words[type(kind)]} if type(kind) in words else {}


def _number_schema(
    kind: inspect.IntType | inspect.FloatType, extra: Mapping[str, Any], described: str
) -> dict[str, Any]:
    name = "integer" if isinstance(kind, inspect.IntType) else "number"
    schema: dict[str, Any] = {"type": name, "minimum": kind.ge}
    if kind.le is not None:
        schema["maximum"] = kind.le
    for marker, suffix in _UNIT_SUFFIX.items():
        if marker in extra:
            written = {"type": "string", "pattern": rf"^\s*[0-9]+(\.[0-9]+)?\s*{suffix}?\s*$"}
            return {"anyOf": [{**schema, "type": "number"}, written], "description": described}
    return schema


def _string_schema(kind: inspect.StrType, extra: Mapping[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": ["string", "integer"] if "digits" in extra else "string"}
    if kind.min_length:
        schema["minLength"] = kind.min_length
    # A value may be a reference to the environment, which no pattern of ours describes.
    if kind.pattern:
        schema["pattern"] = rf"{kind.pattern}|\$\{{"
    if "secret" in extra:
        schema["writeOnly"] = True
    return schema
