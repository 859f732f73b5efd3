"""A config as it is shown to somebody, and taken back from them: secrets leave and return as a placeholder.

What is sent back with the placeholder in it means "as it was". Comments and the order of
the text are the sender's. Pure functions over texts and values; files are `write`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from openclaw.config.json5 import parse
from openclaw.config.kinds import fields_of, is_secret
from openclaw.config.nodes import Array, Node, Object, Path, Scalar, find, format_path
from openclaw.config.schema import Config
from openclaw.config.values import REDACTED
from openclaw.domain.redaction import is_secret_name

Json = dict[str, Any]


class Unrestorable(ValueError):
    """A placeholder stands where no secret is stored."""


def shown_values(config: Config) -> Json:
    """Every setting with its value in force, secrets replaced by the placeholder."""
    shown = _shown(config, "", secret=False)
    assert isinstance(shown, dict)
    return shown


def shown_text(config: Config, path: str) -> str | None:
    """The settings below a dotted path as indented JSON without secrets; None when there is no such place."""
    place: Any = shown_values(config)
    for step in path.replace("[", ".").replace("]", "").split("."):
        if not step:
            continue
        if isinstance(place, list) and step.isascii() and step.isdigit() and int(step[:9]) < len(place):
            place = place[int(step)]
        elif isinstance(place, dict) and step in place:
            place = place[step]
        else:
            return None
    return msgspec.json.format(msgspec.json.encode(place), indent=2).decode()


def _shown(value: Any, name: str, *, secret: bool) -> Any:
    if isinstance(value, Struct):
        parts: Json = {}
        for field in fields_of(type(value)):
            part = getattr(value, field.name)
            shown = _shown(part, field.encode_name, secret=is_secret(field.type))
            if field.name == "extra" and isinstance(shown, dict):
                parts.update(shown)
            elif part is not None:
                parts[field.encode_name] = shown
        return parts
    if isinstance(value, dict):
        return {str(key): _shown(part, str(key), secret=secret) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(part, name, secret=secret) for part in value]
    if isinstance(value, str) and value and (secret or is_secret_name(name) or _has_password(value, name)):
        return REDACTED
    return msgspec.to_builtins(value)


def _has_password(value: str, name: str) -> bool:
    return name.lower().endswith("url") and "://" in value and "@" in value


def restore_secrets(new_text: str, stored_text: str) -> str:
    """The new text with every placeholder replaced by what stands at the same place of the stored text.

    Items of a list are the same when they have the same `id`, or when the lists are equally long.
    Raises Unrestorable for a placeholder without such a place, Json5Error for a broken text.
    """
    new_root = parse(new_text).root
    stored_root = parse(stored_text).root if stored_text.strip() else None
    parts: list[str] = []
    at = 0
    for scalar, path, origin in _placeholders(new_root, stored_root, ()):
        if origin is None:
            raise Unrestorable(f"{format_path(path)}: no secret is stored here; send its value")
        parts += (new_text[at : scalar.start], stored_text[origin.start : origin.end])
        at = scalar.end
    return "".join((*parts, new_text[at:]))


def find_placeholder(text: str) -> str | None:
    """Where a placeholder stands in a text, as a dotted path; None when there is none."""
    found = next(iter(_placeholders(parse(text).root, None, ())), None)
    return None if found is None else format_path(found[1])


def _placeholders(
    node: Node, stored: Node | None, path: Path
) -> Iterator[tuple[Scalar, Path, Scalar | None]]:
    """Each placeholder below a node, where it stands, and the stored string that it stands for."""
    if isinstance(node, Object):
        twins = {one.key: one.value for one in stored.members} if isinstance(stored, Object) else {}
        for member in node.members:
            yield from _placeholders(member.value, twins.get(member.key), (*path, member.key))
    elif isinstance(node, Array):
        for index, (item, twin) in enumerate(_pairs(node, stored)):
            yield from _placeholders(item, twin, (*path, index))
    elif node.value == REDACTED:
        known = isinstance(stored, Scalar) and isinstance(stored.value, str) and stored.value != REDACTED
        yield node, path, stored if known and isinstance(stored, Scalar) else None


def _pairs(items: Array, stored: Node | None) -> Iterator[tuple[Node, Node | None]]:
    """Each item of a list with the stored item that it continues."""
    others = stored.items if isinstance(stored, Array) else ()
    by_id = {name: other for other in others if (name := _id_of(other)) is not None}
    same_length = len(items.items) == len(others)
    for index, item in enumerate(items.items):
        name = _id_of(item)
        if name is not None:
            yield item, by_id.get(name)
        else:
            yield item, others[index] if same_length else None


def _id_of(item: Node) -> str | None:
    name = find(item, ("id",))
    return name.value if isinstance(name, Scalar) and isinstance(name.value, str) else None
