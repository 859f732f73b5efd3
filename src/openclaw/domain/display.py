"""What `chat.history` shows to people (RPC-11) and the UI metadata of tool results (TRX-10).

A projection of transcript messages: bounded, without payloads that no client draws,
without rows that were never meant to be seen. It hides and shortens; it does not mask
secrets (`redaction`), and it never changes the messages that it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from openclaw.domain.doortext import TRUNCATION_MARK, clean_text, cut

DISPLAY_MAX_CHARS = 8000
DISPLAY_MAX_BYTES = 128 * 1024
DISPLAY_OMITTED = "[chat.history omitted: message too large]"
OVERSIZED = "oversized"
SILENT_REPLY = "NO_REPLY"
HEARTBEAT_ACK = "HEARTBEAT_OK"
HEARTBEAT_ACK_MAX_OTHER_CHARS = 300
DETAILS_MAX_BYTES = 8 * 1024

_MEDIA_TYPES = frozenset({"image", "audio"})
_HEARTBEAT_FILE = "HEARTBEAT.md"
_KEPT_META = ("id", "seq", "runId")
_encode = msgspec.json.Encoder().encode


def project_messages(
    messages: Sequence[dict[str, Any]], *, max_chars: int = DISPLAY_MAX_CHARS
) -> list[dict[str, Any]]:
    """The rows that a person sees, oldest first: silent replies and heartbeat ack pairs are left out."""
    projected = (project_message(message, max_chars=max_chars) for message in visible_rows(messages))
    return [message for message in projected if message is not None]


def project_message(
    message: dict[str, Any], *, max_chars: int = DISPLAY_MAX_CHARS, max_bytes: int = DISPLAY_MAX_BYTES
) -> dict[str, Any] | None:
    """One message as a client draws it, or None when the row is hidden (a silent reply)."""
    if is_silent(message):
        return None
    is_assistant = message.get("role") == "assistant"
    shown = {
        name: value
        for name, value in message.items()
        if name != "details" and (is_assistant or name not in ("usage", "cost"))
    }
    content = message.get("content")
    if isinstance(content, str):
        shown["content"] = _shorten(content, max_chars)
    elif isinstance(content, list | tuple):
        shown["content"] = [_project_block(block, max_chars) for block in content]
    if len(_encode(shown)) > max_bytes:
        return _oversized_row(message)
    return shown


def visible_rows(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages without silent replies and without each heartbeat prompt that was only acknowledged."""
    rows: list[dict[str, Any]] = []
    for message in messages:
        if rows and _is_heartbeat_ack(message) and _is_heartbeat_prompt(rows[-1]):
            rows.pop()
        elif not is_silent(message):
            rows.append(message)
    return rows


def is_silent(message: dict[str, Any]) -> bool:
    """An assistant row whose whole visible content is the silent token, in any case (LOOP-3)."""
    return _is_plain_reply(message) and text_of_content(message).strip().upper() == SILENT_REPLY


def text_of_content(message: dict[str, Any]) -> str:
    """The readable text of a message in wire form: text only, no thinking, tool calls or images."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    texts = (
        block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"
    )
    return "\n".join(text for text in texts if isinstance(text, str))


def omit_media(block: dict[str, Any]) -> dict[str, Any]:
    """An image or audio block with its data replaced by `omitted` and the number of bytes it had."""
    shown = {name: value for name, value in block.items() if name not in ("data", "source")}
    source = block.get("source")
    data = block.get("data", source.get("data") if isinstance(source, dict) else None)
    shown["omitted"] = True
    if isinstance(data, str):
        shown["bytes"] = _decoded_size(data)
    return shown


def is_media(block: dict[str, Any]) -> bool:
    return block.get("type") in _MEDIA_TYPES


def bound_details(details: dict[str, Any], max_bytes: int = DETAILS_MAX_BYTES) -> dict[str, Any]:
    """Tool result details as they are kept: whole, or the fields that fit, marked as cut (TRX-10)."""
    if len(_encode(details)) <= max_bytes:
        return details
    kept: dict[str, Any] = {"persistedDetailsTruncated": True}
    size = len(_encode(kept))
    for name, value in details.items():
        # The field without its two braces, and a comma before it.
        cost = len(_encode({name: value})) - 1
        if name not in kept and size + cost <= max_bytes:
            kept[name] = value
            size += cost
    return kept


# -- blocks ------------------------------------------------------------------------------------


def _project_block(block: Any, max_chars: int) -> Any:
    if not isinstance(block, dict):
        return block
    if is_media(block):
        return omit_media(block)
    # A signature is bound to the provider that made it; no client has a use for it.
    shown = {name: value for name, value in block.items() if name != "thinkingSignature"}
    for name in ("text", "thinking"):
        value = shown.get(name)
        if isinstance(value, str):
            shown[name] = _shorten(value, max_chars)
    return shown


def _shorten(text: str, max_chars: int) -> str:
    cleaned = clean_text(text)
    if len(cleaned) <= max_chars:
        return cleaned
    return f"{cut(cleaned, max_chars)}\n{TRUNCATION_MARK}"


def _oversized_row(message: dict[str, Any]) -> dict[str, Any]:
    meta = message.get("__openclaw")
    kept = {name: meta[name] for name in _KEPT_META if name in meta} if isinstance(meta, dict) else {}
    row: dict[str, Any] = {
        "role": message.get("role"),
        "content": [{"type": "text", "text": DISPLAY_OMITTED}],
    }
    if "timestamp" in message:
        row["timestamp"] = message["timestamp"]
    row["__openclaw"] = {**kept, "truncated": True, "reason": OVERSIZED}
    return row


def _decoded_size(data: str) -> int:
    """The size that base64 data decodes to, from its length alone; a data URL's head does not count."""
    payload = data.partition(",")[2] if data.startswith("data:") else data
    return len(payload.rstrip("=")) * 3 // 4


# -- hidden rows -------------------------------------------------------------------------------


def _is_plain_reply(message: dict[str, Any]) -> bool:
    """An assistant row of text alone: thinking is not drawn, a tool call or an image is."""
    if message.get("role") != "assistant":
        return False
    content = message.get("content")
    if not isinstance(content, list | tuple):
        return isinstance(content, str)
    return all(isinstance(block, dict) and block.get("type") in ("text", "thinking") for block in content)


def _is_heartbeat_ack(message: dict[str, Any]) -> bool:
    """A reply that starts or ends with the ack token and says at most 300 characters more (AUTO-7)."""
    if not _is_plain_reply(message):
        return False
    text = text_of_content(message).strip()
    if not text.startswith(HEARTBEAT_ACK) and not text.endswith(HEARTBEAT_ACK):
        return False
    return len(text.replace(HEARTBEAT_ACK, "", 1).strip()) <= HEARTBEAT_ACK_MAX_OTHER_CHARS


def _is_heartbeat_prompt(message: dict[str, Any]) -> bool:
    """A turn that the system made; without provenance (imported rows) one that reads like the prompt."""
    if message.get("role") != "user":
        return False
    provenance = message.get("provenance")
    if isinstance(provenance, dict):
        return provenance.get("kind") == "internal_system"
    text = text_of_content(message)
    return _HEARTBEAT_FILE in text and HEARTBEAT_ACK in text
