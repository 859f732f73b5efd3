"""Messages as the gateway shows them, read by a client: their marks, their words and what else they hold.

The counterpart of `rows`, which makes them. Nothing is believed: what has another shape than it should
counts as missing. Texts come as they are; making them safe to show is up to the surface.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

Json = dict[str, Any]
MOST_ARGUMENTS: Final = 8
_FILES: Final = ("image", "audio", "file", "document", "video")


def marks_of(message: Mapping[str, Any]) -> Json:
    """The `__openclaw` object of a message, empty where there is none."""
    marks = message.get("__openclaw")
    return marks if isinstance(marks, dict) else {}


def blocks_of(message: Mapping[str, Any]) -> list[Json]:
    """The content of a message, which may be a plain text, as blocks."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def text_of(message: Mapping[str, Any] | None, between: str = "\n") -> str:
    """What was said, without thoughts, tool calls and files; a stream has nothing `between` the parts."""
    blocks = [] if message is None else blocks_of(message)
    said = (str(block.get("text") or "") for block in blocks if block.get("type") == "text")
    return between.join(text for text in said if text)


def files_of(message: Mapping[str, Any]) -> list[str]:
    """A word for each thing in a message that is neither text nor a tool call: "[image, 512 bytes]"."""
    found = []
    for block in blocks_of(message):
        kind, size = block.get("type"), block.get("bytes")
        if kind in _FILES:
            found.append(f"[{kind}, {size} bytes]" if isinstance(size, int) and size else f"[{kind}]")
    return found


def calls_of(message: Mapping[str, Any]) -> list[Json]:
    """The tool calls of a message."""
    return [block for block in blocks_of(message) if block.get("type") == "toolCall"]


def arguments_of(call: Mapping[str, Any], most_chars: int) -> str:
    """The arguments of a tool call in few words: `path=notes.md limit=5`, each value cut at `most_chars`."""
    given = call.get("arguments")
    if not given:
        return ""
    if not isinstance(given, dict):
        return _value(given, most_chars)
    pairs = list(given.items())[:MOST_ARGUMENTS]
    return " ".join(f"{name}={_value(value, most_chars)}" for name, value in pairs)


def _value(value: object, most_chars: int) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
    return text[:most_chars]
