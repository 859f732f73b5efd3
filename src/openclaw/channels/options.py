"""A connector's own keys of the configuration as a typed value, refused with the fix named."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from openclaw.errors import InvalidRequest

log = logging.getLogger("openclaw.channels")
# Read elsewhere: whether a reply grows while it is written is decided for all platforms in one place.
_FOR_OTHERS = frozenset({"streaming"})
Options = TypeVar("Options", bound=Struct)


def place_of(channel: str, account_id: str) -> str:
    """Where these keys stand, as a message names it."""
    return f"channels.{channel}" if account_id == "default" else f"channels.{channel}.accounts.{account_id}"


def read_keys(
    given: Mapping[str, Any], kind: type[Options], where: str, must: Sequence[tuple[str, str]]
) -> Options:
    """The keys as a value of `kind`. `must` names keys that have to be there, each with what to put there.

    Raises InvalidRequest that says what to change. A key that nobody knows is warned about: it may be
    a slip of the pen.
    """
    known = frozenset(kind.__struct_encode_fields__)
    unknown = sorted(set(given) - known - _FOR_OTHERS)
    if unknown:
        log.warning("%s: these keys are not known and do nothing: %s", where, ", ".join(unknown)[:300])
    for name, fix in must:
        if not given.get(name):
            raise InvalidRequest(f"{where}.{name} is missing: {fix}")
    try:
        return msgspec.convert({name: given[name] for name in given if name in known}, kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{where}: {_plain(error)}") from None


def _plain(error: msgspec.ValidationError) -> str:
    text, _, path = str(error).partition(" - at ")
    return f"{path.strip('`').removeprefix('$.')}: {text}" if path else text
