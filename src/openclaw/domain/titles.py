"""Titles, previews and inline messages of a session list (LIST-5, LIST-9, LIST-10).

What a mailbox shows of a conversation at a glance: short, on one line, without
scaffolding or secrets. Rows reach this room only after the visibility check (VIS-6);
it shortens texts that it is handed and never looks for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from openclaw.domain.display import visible_rows
from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.history import is_tool_row, view_history
from openclaw.domain.redaction import redact
from openclaw.domain.sanitise import sanitise_assistant_text

TITLE_MAX_CHARS = 60
NAME_MAX_CHARS = 200
PREVIEW_MAX_CHARS = 160
LIST_MESSAGES_MAX = 20

# Only the head of a text can reach a title or a preview, so only the head is read.
_READ_MAX_CHARS = 16 * 1024
_SHORT_ID_CHARS = 8
_ELLIPSIS = "…"


def derive_title(
    display_name: str | None,
    subject: str | None,
    first_user_text: str | None,
    session_id: str,
    updated_at_ms: int,
    zone: tzinfo = UTC,
    known_secrets: frozenset[str] = frozenset(),
) -> str:
    """Display name, else subject, else the first user message, else short id and date (LIST-9)."""
    for name in (display_name, subject):
        title = _one_line(name or "", known_secrets)
        if title:
            return shorten(title, NAME_MAX_CHARS)
    title = _one_line(first_user_text or "", known_secrets)
    if title:
        return shorten(title, TITLE_MAX_CHARS)
    short_id = session_id[:_SHORT_ID_CHARS]
    try:
        date = datetime.fromtimestamp(updated_at_ms / 1000, zone).date()
    except (OverflowError, ValueError):
        # An imported row may carry a time that no calendar knows.
        return short_id
    return f"{short_id} ({date.isoformat()})"


def preview(
    text: str, max_chars: int = PREVIEW_MAX_CHARS, known_secrets: frozenset[str] = frozenset()
) -> str:
    """A message on one line for a list: normalised, masked, whitespace collapsed, cut at a word."""
    head = sanitise_assistant_text(clean_text(cut(text, _READ_MAX_CHARS)))
    return shorten(_one_line(head, known_secrets), max_chars)


def shorten(text: str, max_chars: int) -> str:
    """At most `max_chars` characters; a longer text ends at a word, where one is near, and an ellipsis."""
    if len(text) <= max_chars:
        return text
    if max_chars <= 0:
        return ""
    head = cut(text, max_chars - len(_ELLIPSIS))
    # The character after the head tells whether its last word is whole.
    at_word = head if text[len(head)] == " " else head[: head.rfind(" ") + 1]
    if len(at_word) * 2 > len(head):
        head = at_word
    return head.rstrip() + _ELLIPSIS


def list_messages(
    messages: Sequence[dict[str, Any]], limit: int, known_secrets: frozenset[str] = frozenset()
) -> list[dict[str, Any]]:
    """The last messages of a conversation for a list row, at most 20 (LIST-2, LIST-5).

    Tool results go, tool-call blocks are dropped (AMB-29), and a row that has nothing else does not
    count. The rest is the same bounded view as that of `sessions_history`.
    """
    if limit <= 0:
        return []
    wanted = min(limit, LIST_MESSAGES_MAX)
    rows: list[dict[str, Any]] = []
    for message in reversed(visible_rows(messages)):
        if len(rows) == wanted:
            break
        row = _without_tool_calls(message)
        if not is_tool_row(message) and row["content"]:
            rows.append(row)
    rows.reverse()
    return view_history(rows, limit=wanted, known_secrets=known_secrets).messages


def _without_tool_calls(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content", "")
    if isinstance(content, list | tuple):
        content = [
            block for block in content if not (isinstance(block, dict) and block.get("type") == "toolCall")
        ]
    return {**message, "content": content}


def _one_line(text: str, known_secrets: frozenset[str]) -> str:
    head = clean_text(cut(text, _READ_MAX_CHARS))
    return " ".join(redact(head, known_secrets).text.split())
