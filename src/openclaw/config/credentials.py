"""Which settings are secrets: for redaction everywhere, and for showing a config without them.

A setting is secret because its type says so or, inside sections whose keys are not ours
(channels, ignored sections), because its name does. Values behind `${NAME}` count too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from openclaw.config.json5 import parse
from openclaw.config.kinds import fields_of, is_secret
from openclaw.config.nodes import Array, Node, Object, Scalar
from openclaw.config.references import has_references
from openclaw.config.schema import Config
from openclaw.config.values import REDACTED as REDACTED
from openclaw.domain.redaction import is_secret_name

MIN_SECRET_LENGTH = 16
_FOREIGN_FIELDS = ("extra", "params")


def secrets(config: Config, referenced: frozenset[str] = frozenset()) -> frozenset[str]:
    """Every secret value long enough to be masked wherever it turns up (TRX-11).

    `referenced` are the values behind `${NAME}`, from the loaded file.
    """
    found = {*_secret_strings(config), *referenced}
    if config.store.url is not None:
        found.add(urlsplit(config.store.url).password or "")
    return frozenset(value for value in found if len(value) >= MIN_SECRET_LENGTH)


def _secret_strings(
    value: Any, name: str = "", *, secret: bool = False, foreign: bool = False
) -> Iterator[str]:
    """Strings whose type is secret; where the keys are not ours (`foreign`), whose name is."""
    if isinstance(value, Struct):
        for field in fields_of(type(value)):
            part = getattr(value, field.name)
            yield from _secret_strings(
                part, secret=is_secret(field.type), foreign=field.name in _FOREIGN_FIELDS
            )
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _secret_strings(part, key, secret=secret, foreign=foreign)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _secret_strings(part, name, secret=secret, foreign=foreign)
    elif isinstance(value, str) and (secret or (foreign and is_secret_name(name))):
        yield value


# -- showing a config without its secrets ----------------------------------------------------------


def redacted_text(text: str) -> str:
    """The text with every secret string replaced by a placeholder; references stay, they say nothing.

    A view, so it goes by name everywhere. Raises Json5Error for a broken text: what
    cannot be read cannot be shown safely.
    """
    placeholder = msgspec.json.encode(REDACTED).decode()
    parts: list[str] = []
    at = 0
    for scalar in _secret_scalars(parse(text).root, ""):
        parts += (text[at : scalar.start], placeholder)
        at = scalar.end
    return "".join((*parts, text[at:]))


def _secret_scalars(node: Node, name: str) -> Iterator[Scalar]:
    if isinstance(node, Object):
        for member in node.members:
            yield from _secret_scalars(member.value, member.key)
    elif isinstance(node, Array):
        for item in node.items:
            yield from _secret_scalars(item, name)
    elif isinstance(node.value, str) and node.value and _is_shown_secret(node.value, name):
        yield node


def _is_shown_secret(value: str, name: str) -> bool:
    if has_references(value):
        return False
    return is_secret_name(name) or (name.lower().endswith("url") and "://" in value and "@" in value)
