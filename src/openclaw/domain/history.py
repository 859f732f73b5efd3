"""The bounded, safety-filtered view behind `sessions_history` (SPEC §14).

Messages keep their transcript shape (HIST-3, AMB-5) but are normalised, masked, cut
and limited to 80 KiB of JSON. Rows are read from the newest backwards and reading
stops when the budget is full, so a long transcript costs no more than a short one.
Who may look is decided before this room; raw text leaves only through an export.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from openclaw.domain.display import is_media, omit_media
from openclaw.domain.doortext import MAX_JSON_DEPTH, TRUNCATION_MARK, clean_text, cut
from openclaw.domain.redaction import is_secret_name, mask, redact
from openclaw.domain.sanitise import sanitise_assistant_text

HISTORY_DEFAULT_LIMIT = 200
HISTORY_MAX_LIMIT = 1000
HISTORY_TEXT_MAX_CHARS = 4000
HISTORY_MAX_BYTES = 80 * 1024
HISTORY_OMITTED = "[sessions_history omitted: message too large]"

# Masking needs to see past the cut, but not all of a 50 MB tool output.
_READ_MAX_CHARS = 256 * 1024
_TOOL_ROLES = frozenset({"toolResult", "tool"})
_HEAVY_FIELDS = frozenset({"details", "usage", "cost"})
_encode = msgspec.json.Encoder().encode


class HistoryView(Struct, frozen=True, rename="camel"):
    """The rows, oldest first, what was done to them (HIST-12), and their size as JSON."""

    messages: list[dict[str, Any]]
    truncated: bool
    dropped_messages: bool
    content_truncated: bool
    content_redacted: bool
    bytes: int


def clamp_limit(limit: int | None) -> int:
    """The number of rows to return: 1 to 1000, 200 when not given (HIST-1)."""
    if limit is None:
        return HISTORY_DEFAULT_LIMIT
    return max(1, min(limit, HISTORY_MAX_LIMIT))


def is_tool_row(message: dict[str, Any]) -> bool:
    """Whether the row is a tool's result (HIST-2); the call itself sits in an assistant row (AMB-29)."""
    return message.get("role") in _TOOL_ROLES


def view_history(
    messages: Sequence[dict[str, Any]],
    *,
    limit: int | None = None,
    include_tools: bool = False,
    known_secrets: frozenset[str] = frozenset(),
) -> HistoryView:
    """The newest rows that fit the limit and the budget.

    The limit counts rows that are shown: with tools left out, tool rows do not use it up. Rows beyond
    the limit were not asked for and so are not called dropped.
    """
    limit = clamp_limit(limit)
    rows: list[dict[str, Any]] = []
    size = len(b"[]")
    dropped = content_truncated = content_redacted = False
    for message in reversed(messages):
        if len(rows) == limit:
            break
        if not include_tools and is_tool_row(message):
            continue
        view = _RowView(known_secrets)
        row = view.message(message)
        cost = len(_encode(row)) + (1 if rows else 0)
        if size + cost > HISTORY_MAX_BYTES:
            dropped = True
            if not rows:
                rows = [_placeholder(message)]
                size = len(_encode(rows))
            break
        rows.append(row)
        size += cost
        content_truncated |= view.truncated
        content_redacted |= view.redacted
    rows.reverse()
    return HistoryView(
        messages=rows,
        truncated=dropped or content_truncated,
        dropped_messages=dropped,
        content_truncated=content_truncated,
        content_redacted=content_redacted,
        bytes=size,
    )


def history_result(session_key: str, view: HistoryView) -> dict[str, Any]:
    """The tool's answer: the key as shown to the caller, the rows and the flags (HIST-13)."""
    fields: dict[str, Any] = msgspec.to_builtins(view)
    return {"sessionKey": session_key, **fields}


def _placeholder(message: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": HISTORY_OMITTED}]}
    timestamp = message.get("timestamp")
    if isinstance(timestamp, int):
        row["timestamp"] = timestamp
    return row


class _RowView:
    """Builds the view of one row and remembers whether anything in it was cut or masked."""

    def __init__(self, known_secrets: frozenset[str]) -> None:
        self.known_secrets = known_secrets
        self.truncated = False
        self.redacted = False

    def message(self, message: dict[str, Any]) -> dict[str, Any]:
        is_assistant = message.get("role") == "assistant"
        row: dict[str, Any] = {}
        for name, value in message.items():
            if name in _HEAVY_FIELDS:
                self.truncated = True
            elif name == "content":
                row[name] = self._content(value, is_assistant)
            else:
                row[name] = self._value(name, value, 1)
        return row

    def _content(self, content: Any, is_assistant: bool) -> Any:
        if isinstance(content, str):
            return self._text(content, sanitise=is_assistant)
        if isinstance(content, list | tuple):
            return [self._block(block, is_assistant) for block in content]
        return self._value("content", content, 1)

    def _block(self, block: Any, is_assistant: bool) -> Any:
        if not isinstance(block, dict):
            return self._value("content", block, 2)
        if is_media(block):
            self.truncated |= "data" in block or "source" in block
            block = omit_media(block)
        shown: dict[str, Any] = {}
        for name, value in block.items():
            if name == "thinkingSignature":
                self.truncated = True
            elif name == "text" and isinstance(value, str):
                shown[name] = self._text(value, sanitise=is_assistant)
            else:
                shown[name] = self._value(name, value, 2)
        return shown

    def _value(self, name: str, value: Any, depth: int) -> Any:
        """Any other value: strings masked and cut, a secret by its field's name masked whole."""
        if isinstance(value, dict | list | tuple):
            if depth > MAX_JSON_DEPTH:
                self.truncated = True
                return TRUNCATION_MARK
            if isinstance(value, dict):
                return {clean_text(key): self._value(key, item, depth + 1) for key, item in value.items()}
            return [self._value(name, item, depth + 1) for item in value]
        if isinstance(value, bool) or not isinstance(value, str | int):
            return value
        if is_secret_name(name) and value != "":
            masked = mask(str(value))
            self.redacted |= masked != value
            return masked
        return self._text(value, sanitise=False) if isinstance(value, str) else value

    def _text(self, text: str, *, sanitise: bool) -> str:
        """Normalise, mask, then cut: a cut first would hide half of a secret from the masks (HIST-9)."""
        if len(text) > _READ_MAX_CHARS:
            text = cut(text, _READ_MAX_CHARS)
            self.truncated = True
        text = clean_text(text)
        if sanitise:
            text = sanitise_assistant_text(text)
        redacted = redact(text, self.known_secrets)
        self.redacted |= redacted.count > 0
        if len(redacted.text) <= HISTORY_TEXT_MAX_CHARS:
            return redacted.text
        self.truncated = True
        return f"{cut(redacted.text, HISTORY_TEXT_MAX_CHARS)}\n{TRUNCATION_MARK}"
