"""Writes docs/reference/config.md from the JSON Schema of the configuration.

    python -m scripts.gen_config_docs            write the page
    python -m scripts.gen_config_docs --check    fail when the page is out of date

The schema comes from `openclaw.config.jsonschema.config_schema()`; nothing about a key is written down here.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from openclaw.config.jsonschema import config_schema
from scripts.generated_page import settle

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/config.md"
Schema = Mapping[str, Any]


class Row(NamedTuple):
    """One key: its dotted path, what it takes, what it is when absent, what it is for."""

    path: str
    values: str
    default: str
    meaning: str


class Reader:
    """Walks one schema, following its references."""

    def __init__(self, schema: Schema) -> None:
        self._definitions: Schema = schema.get("$defs", {})
        self.root = self.resolve(schema)

    def resolve(self, schema: Schema) -> Schema:
        """The schema itself behind `$ref` and behind "or null"; what stands beside a reference is kept."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            beside = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
            return {**self.resolve(self._definitions[name]), **beside}
        choices = [choice for choice in self._choices(schema) if choice.get("type") != "null"]
        if len(choices) == 1:
            beside = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
            return {**self.resolve(choices[0]), **beside}
        return schema

    def _choices(self, schema: Schema) -> Sequence[Schema]:
        return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]

    def rows(self, schema: Schema, path: str, outer: tuple[Any, ...] = ()) -> Iterator[Row]:
        """The rows of a key and of everything below it, in the order of the schema."""
        schema = self.resolve(schema)
        if schema.get("deprecated"):
            known = "type" in schema or "enum" in schema
            meaning = "older spelling, still read" if known else schema.get("description", "")
            yield Row(path, self.values(schema), "", _one_line(meaning))
            return
        yield Row(path, self.values(schema), _default(schema), _one_line(schema.get("description", "")))
        for branch in [schema, *map(self.resolve, self._choices(schema))]:
            shape = tuple(branch.get("properties", ()))
            # A shape that holds itself is spelled out once.
            if not shape or shape not in outer:
                yield from self._below(branch, path, (*outer, shape))

    def _below(self, schema: Schema, path: str, outer: tuple[Any, ...]) -> Iterator[Row]:
        for name, value in schema.get("properties", {}).items():
            yield from self.rows(value, f"{path}.{name}", outer)
        more = schema.get("additionalProperties")
        if isinstance(more, Mapping) and more:
            yield from self._nested(more, f"{path}.<name>", outer)
        items = schema.get("items")
        if isinstance(items, Mapping):
            yield from self._nested(items, f"{path}[]", outer)

    def _nested(self, schema: Schema, path: str, outer: tuple[Any, ...]) -> Iterator[Row]:
        """Rows for the values of a map or list, only where these have keys of their own."""
        if self._has_keys(schema):
            yield from self.rows(schema, path, outer)

    def _has_keys(self, schema: Schema) -> bool:
        schema = self.resolve(schema)
        parts = [schema.get("items"), schema.get("additionalProperties"), *self._choices(schema)]
        inner = [part for part in parts if isinstance(part, Mapping) and part]
        return bool(schema.get("properties")) or any(map(self._has_keys, inner))

    def values(self, schema: Schema) -> str:
        """What a key takes, in words: a type, or the allowed values."""
        schema = self.resolve(schema)
        if "const" in schema:
            return _code(schema["const"])
        if "enum" in schema:
            return ", ".join(_code(value) for value in schema["enum"] if value is not None)
        choices = [choice for choice in self._choices(schema) if choice.get("type") != "null"]
        if choices:
            return " or ".join(dict.fromkeys(self.values(choice) for choice in choices))
        kinds = schema.get("type", "any")
        kind = " or ".join(k for k in kinds if k != "null") if isinstance(kinds, list) else kinds
        if kind == "array":
            items = schema.get("items") or {}
            return f"list of {self.values(items)}" if items else "list"
        if kind == "object":
            more = schema.get("additionalProperties")
            return f"map of {self.values(more)}" if isinstance(more, Mapping) and more else "object"
        return f"{kind}{_limits(schema)}"


def _limits(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if high is not None and high >= 2**31:
        high = None  # a technical bound, of no interest to a reader
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f" {low}–{high}"
    named = (("≥", low), ("≤", high), (">", above), ("<", below))
    return "".join(f" {sign} {limit}" for sign, limit in named if limit is not None)


def _default(schema: Schema) -> str:
    """The default in code marks; nothing where it is "not set", empty, or told by the rows below."""
    value = schema.get("default")
    return "" if value is None or isinstance(value, dict) or value in ([], ()) else _code(value)


def _code(value: object) -> str:
    return f"`{json.dumps(value, ensure_ascii=False).replace('|', chr(92) + '|')}`"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def render(schema: Schema) -> str:
    """The whole page: one chapter per top-level section."""
    reader = Reader(schema)
    lines = [
        "# Configuration keys",
        "",
        "This page is generated from the configuration's JSON Schema by `scripts/docs`; do not edit it.",
        "How to write the file is told in [Configure](../howto/configure.md).",
        "",
        "An empty default means: not set. `<name>` stands for a name of your choice, `[]` for a list's item.",
    ]
    sections = reader.root.get("properties", {})
    for name, value in sections.items():
        if not value.get("deprecated"):
            lines += _chapter(name, list(reader.rows(value, name)))
    ignored = [f"`{name}`" for name, value in sections.items() if value.get("deprecated")]
    if ignored:
        lines += [
            "",
            "## Ignored sections",
            "",
            "Other implementations of OpenClaw know these. Here each gives one",
        ]
        lines += ["warning and has no effect:", "", *textwrap.wrap(", ".join(ignored) + ".", 110)]
    return "\n".join(lines) + "\n"


def _chapter(name: str, rows: Sequence[Row]) -> list[str]:
    """The lines of one section; its own row becomes the text under the heading."""
    head, below = rows[0], rows[1:] or rows
    lines = ["", f"## `{name}`", ""]
    lines += [head.meaning, ""] if head.meaning else []
    lines += ["| Key | Takes | Default | Meaning |", "| --- | --- | --- | --- |"]
    for row, following in zip_longest(below, below[1:], fillvalue=Row("", "", "", "")):
        # A key that only holds the keys of the next rows, and has nothing said about it, needs no row.
        only_holds = following.path.startswith((f"{row.path}.", f"{row.path}[")) and " or " not in row.values
        if row.meaning or not only_holds:
            lines.append(f"| `{row.path}` | {row.values} | {row.default} | {row.meaning} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gen_config_docs", description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="fail when the page is out of date")
    return settle(PAGE, render(config_schema()), check=parser.parse_args(arguments).check)


if __name__ == "__main__":
    sys.exit(main())
