"""Stored messages as values, no more of them than are worth the work of a view.

Normalising and masking costs time for every character, also for those that vanish
in it: hostile text can be long and leave nothing. So a page has a room of characters
that are looked at, beside the limits of what it shows. Pictures cost nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from openclaw.domain.display import is_media
from openclaw.store.records import StoredEntry

# Of one call, over all sessions that it shows.
VIEW_MAX_CHARS = 1 << 20
# No view looks further into one text.
_TEXT_MAX_CHARS = 256 * 1024
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class ReadPage(Struct, frozen=True):
    """Messages, oldest first; what they took of the room; whether older ones had none."""

    messages: list[dict[str, Any]]
    chars: int
    cut: bool


def read_messages(entries: Sequence[StoredEntry], room: int) -> ReadPage:
    """The newest entries whose texts fit the room; the newest one always does."""
    messages: list[dict[str, Any]] = []
    used = 0
    for entry in reversed(entries):
        message = _decode(entry.body)
        chars = _weigh(message.get("content"))
        if messages and used + chars > room:
            break
        used += chars
        messages.append(message)
    return ReadPage(messages[::-1], used, len(messages) < len(entries))


def _weigh(content: Any) -> int:
    if isinstance(content, str):
        return min(len(content), _TEXT_MAX_CHARS)
    if not isinstance(content, list):
        return 0
    return sum(_weigh_block(block) for block in content)


def _weigh_block(block: Any) -> int:
    if not isinstance(block, dict) or is_media(block):
        return 0
    text = block.get("text")
    return min(len(text), _TEXT_MAX_CHARS) if isinstance(text, str) else len(_encode(block))
