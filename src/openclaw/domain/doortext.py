"""Text at the door: what may enter a transcript, and how text is cut.

A lone surrogate or a NUL in one entry can brick a session for good (PITFALLS B2),
so every frame, provider chunk and platform text passes here once before it is
stored. This room repairs; it does not judge meaning, mask secrets or strip tags.
"""

from __future__ import annotations

import re
from typing import Any

from openclaw.errors import InvalidRequest

MAX_JSON_DEPTH = 64
TRUNCATION_MARK = "…(truncated)…"

_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")


def clean_text(text: str) -> str:
    """The text without control characters (tab, newline and return stay) and without lone surrogates.

    A lone surrogate becomes U+FFFD; a high and a low one side by side are the character that they
    spell. Clean text comes back as the same object.
    """
    if _UNWANTED.search(text) is None:
        return text
    if _SURROGATE.search(text) is not None:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROL.sub("", text)


def cut(text: str, limit: int) -> str:
    """At most the first `limit` characters, never half of a surrogate pair."""
    if len(text) <= limit:
        return text
    if limit <= 0:
        return ""
    if "\ud800" <= text[limit - 1] <= "\udbff" and "\udc00" <= text[limit] <= "\udfff":
        limit -= 1
    return text[:limit]


def clean_json(value: Any) -> Any:
    """A copy of decoded JSON with every string and every key cleaned as `clean_text` does.

    More than 64 levels of lists and objects are refused. Of two keys that become the same, the
    later one wins, as with a repeated key in JSON.
    """
    return _clean_level(value, 1)


def _clean_level(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if not isinstance(value, dict | list | tuple):
        return value
    if depth > MAX_JSON_DEPTH:
        raise InvalidRequest(
            f"JSON is nested more than {MAX_JSON_DEPTH} levels deep; send a flatter value.",
            max_depth=MAX_JSON_DEPTH,
        )
    if isinstance(value, dict):
        return {
            clean_text(name) if isinstance(name, str) else name: _clean_level(item, depth + 1)
            for name, item in value.items()
        }
    return [_clean_level(item, depth + 1) for item in value]
