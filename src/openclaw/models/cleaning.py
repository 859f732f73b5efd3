"""Text and JSON from a provider, made safe to store and to send again.

Providers send lone surrogates, NUL and broken UTF-8; msgspec refuses them. This
room repairs what can be repaired and refuses the rest. It does no I/O and knows
no provider.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from openclaw.domain.doortext import clean_json, clean_text
from openclaw.errors import InvalidRequest

INVALID_JSON_KEY = "__invalid_json"
_INVALID_JSON_CHARS = 2000


def decode_leniently(data: bytes | str) -> Any:
    """Decode JSON that msgspec refuses for its text: broken UTF-8, lone surrogates, raw control characters.

    Raises ValueError when it is not JSON or is nested too deep.
    """
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    try:
        return clean_json(json.loads(text, strict=False, parse_constant=_refuse_constant))
    except (RecursionError, InvalidRequest):
        raise ValueError("nested too deep")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def parse_arguments(raw: str) -> dict[str, Any]:
    """The arguments of a tool call as an object.

    No text and `null` mean no arguments. Anything that is not an object is kept
    under one telling key, so that the tool answers with an error which the model
    can read and correct.
    """
    if not raw.strip():
        return {}
    value = _decode_or_none(raw)
    if isinstance(value, dict):
        return value
    if value is None and raw.strip() == "null":
        return {}
    return {INVALID_JSON_KEY: clean_text(raw[:_INVALID_JSON_CHARS])}


def _decode_or_none(raw: str) -> Any:
    try:
        return clean_json(msgspec.json.decode(raw))
    except (msgspec.DecodeError, UnicodeError):
        pass
    except (RecursionError, InvalidRequest):
        return None
    try:
        return decode_leniently(raw)
    except ValueError:
        return None
