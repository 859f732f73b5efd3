"""A transcript for people: one record as Markdown or HTML, and lines without secrets (TRX-11).

Text of people and models is data: in HTML everything is escaped, in Markdown it keeps
the form that its writer gave it. This room renders; it does not decide who may read.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from openclaw.domain.jsonl import Json, UnreadableLine, iso_of, ms_of, read_object
from openclaw.domain.redaction import MASK, is_secret_name, redact
from openclaw.domain.transcript import encode

_NAMES = {"user": "User", "assistant": "Assistant", "toolResult": "Tool result"}
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
    "section{border-top:1px solid #ccc;padding:.5rem 0}h2{font-size:1rem}time{color:#666;font-weight:400}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit}"
)


def objects_of(piece: bytes) -> Iterator[Json]:
    """The records of a piece of a transcript; what cannot be read is left out."""
    for line in piece.split(b"\n"):
        if line.strip():
            try:
                yield read_object(line)
            except UnreadableLine:
                continue


def redacted(value: Any, known_secrets: frozenset[str]) -> Any:
    """A copy with every secret masked, in text and in fields that are named like one."""
    if isinstance(value, str):
        return redact(value, known_secrets).text
    if isinstance(value, list):
        return [redacted(part, known_secrets) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        name: MASK
        if isinstance(part, str) and part and is_secret_name(name)
        else redacted(part, known_secrets)
        for name, part in value.items()
    }


def line_of(record: Json) -> bytes:
    return encode(record) + b"\n"


# -- what a record says -------------------------------------------------------------------------------


class _Said:
    """A record as a heading, a time and paragraphs; None of them when it says nothing to people."""

    def __init__(self, record: Json) -> None:
        message = record.get("message")
        self.at_ms = ms_of(record.get("timestamp"))
        self.heading = ""
        self.parts: list[tuple[str, str]] = []
        if record.get("type") == "message" and isinstance(message, dict):
            self._read_message(message)
        elif record.get("type") in ("compaction", "branch_summary"):
            self.heading = "Summary"
            self.parts = [("text", str(record.get("summary", "")))]
        elif record.get("type") == "custom_message" and record.get("display", True):
            self.heading = "Note"
            self.parts = list(_parts_of(record.get("content")))

    def _read_message(self, message: Json) -> None:
        role = str(message.get("role"))
        self.heading = _NAMES.get(role, role[:40])
        if role == "toolResult":
            self.heading += f": {str(message.get('toolName'))[:80]}"
        self.parts = list(_parts_of(message.get("content")))
        if message.get("errorMessage"):
            self.parts.append(("text", f"Error: {message['errorMessage']}"))

    @property
    def time(self) -> str:
        return "" if self.at_ms is None else iso_of(self.at_ms)


def _parts_of(content: Any) -> Iterator[tuple[str, str]]:
    """(kind, text) of each block; thinking stays private, an image is named only."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        if kind == "text" and str(block.get("text", "")).strip():
            yield "text", str(block["text"])
        elif kind == "image":
            yield "text", f"[image, {str(block.get('mimeType'))[:40]}]"
        elif kind == "toolCall":
            arguments = encode(block.get("arguments")).decode()
            yield "code", f"{block.get('name')} {arguments}"


# -- Markdown -----------------------------------------------------------------------------------------


def markdown_head(session_key: str, session_id: str) -> str:
    return f"# {session_key}\n\nSession `{session_id}`\n"


def markdown_of(record: Json) -> str:
    """A record as Markdown; empty when it says nothing to people."""
    said = _Said(record)
    if not said.parts:
        return ""
    lines = [f"\n## {said.heading}" + (f" · {said.time}" if said.time else "")]
    for kind, text in said.parts:
        lines.append(f"\n{_fenced(text) if kind == 'code' else text}")
    return "\n".join(lines) + "\n"


def _fenced(text: str) -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    longest = run = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


# -- HTML ---------------------------------------------------------------------------------------------


def html_head(session_key: str, session_id: str) -> str:
    """A page that needs nothing from elsewhere and runs nothing."""
    key, name = html.escape(session_key), html.escape(session_id)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{key}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>{_STYLE}</style></head><body>\n<h1>{key}</h1>\n<p>Session <code>{name}</code></p>\n"
    )


def html_of(record: Json) -> str:
    """A record as a section of the page; empty when it says nothing to people."""
    said = _Said(record)
    if not said.parts:
        return ""
    time = f" <time>{html.escape(said.time)}</time>" if said.time else ""
    parts = "".join(f"<pre>{html.escape(text)}</pre>\n" for _, text in said.parts)
    return f"<section><h2>{html.escape(said.heading)}{time}</h2>\n{parts}</section>\n"


HTML_END = "</body></html>\n"
