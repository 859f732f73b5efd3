"""A conversation as lines for a terminal: who said what, tool calls folded to one line each.

Pure: from messages as the gateway shows them to pieces of text with a style. Colours
are chosen by whoever prints (`screen`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from openclaw.cli.text import one_line, printable

Json = dict[str, Any]
Style = Literal["plain", "dim", "person", "agent", "error", "mark"]

MAX_ARGUMENT_CHARS: Final = 100
MAX_RESULT_CHARS: Final = 200


class Piece(Struct, frozen=True):
    """Text to print. An `open` piece does not end its line: more of it may come."""

    text: str
    style: Style = "plain"
    open: bool = False


def marks_of(message: Mapping[str, Any]) -> Json:
    """The `__openclaw` object of a message, empty where there is none."""
    marks = message.get("__openclaw")
    return marks if isinstance(marks, dict) else {}


def blocks_of(message: Mapping[str, Any]) -> list[Json]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def text_of(message: Mapping[str, Any] | None) -> str:
    """Everything that was said in a message, without thoughts and tool calls."""
    return "" if message is None else "\n".join(_texts(message))


def streamed_text(message: Mapping[str, Any]) -> str:
    """The same text as a stream has it: nothing stands between its parts."""
    return "".join(_texts(message))


def _texts(message: Mapping[str, Any]) -> list[str]:
    said = (str(block.get("text") or "") for block in blocks_of(message) if block.get("type") == "text")
    return [text for text in said if text]


def attachments_of(message: Mapping[str, Any]) -> Iterator[Piece]:
    """One line for each thing in a message that is neither text nor a tool call."""
    for block in blocks_of(message):
        kind = str(block.get("type") or "")
        if kind in ("image", "audio", "file", "document", "video"):
            size = f", {block['bytes']} bytes" if block.get("bytes") else ""
            yield Piece(f"[{kind}{size}]", "dim")


def tool_calls_of(message: Mapping[str, Any]) -> Iterator[Piece]:
    """One line for each tool that an assistant message calls."""
    for block in blocks_of(message):
        if block.get("type") == "toolCall":
            name, arguments = one_line(str(block.get("name") or "tool")), _arguments(block.get("arguments"))
            yield Piece(f"· {name} {arguments}".rstrip(), "dim")


def _arguments(given: object) -> str:
    if not given:
        return ""
    if isinstance(given, dict):
        text = " ".join(f"{name}={_value(value)}" for name, value in list(given.items())[:8])
    else:
        text = _value(given)
    return clip(one_line(text), MAX_ARGUMENT_CHARS)


def _value(value: object) -> str:
    if isinstance(value, str):
        return value[: MAX_ARGUMENT_CHARS * 2]
    return msgspec.json.encode(value).decode("utf-8", "replace")[: MAX_ARGUMENT_CHARS * 2]


def clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def tool_failure(message: Mapping[str, Any]) -> Piece | None:
    """The line for a tool result, which only a failure has."""
    if not message.get("isError"):
        return None
    name = one_line(str(message.get("toolName") or "tool"))
    return Piece(f"  {name} failed: {clip(one_line(text_of(message)), MAX_RESULT_CHARS)}", "error")


# -- a whole message, for reading back -------------------------------------------------------------


def pieces_of(message: Mapping[str, Any]) -> list[Piece]:
    """A message of the past: a head with who and when, the text, tool calls folded."""
    role = str(message.get("role") or "")
    if role == "toolResult":
        failure = tool_failure(message)
        return [] if failure is None else [failure]
    text = printable(text_of(message))
    if role == "user":
        body = [Piece(text)] if text else []
        return [Piece(_head("you", message), "person"), *body, *attachments_of(message)]
    if role == "assistant":
        body = [Piece(text)] if text else []
        rest = [*attachments_of(message), *tool_calls_of(message)]
        if not body and rest:
            return rest
        return [Piece(_head("agent", message), "agent"), *body, *rest] if body else []
    return [Piece(f"— {one_line(text)} —", "mark")] if text else []


def _head(who: str, message: Mapping[str, Any]) -> str:
    seq, when = marks_of(message).get("seq"), moment(message.get("timestamp"))
    number = f"#{seq}" if isinstance(seq, int) else ""
    return "  ".join(part for part in (who, when, number) if part)


def moment(at_ms: object) -> str:
    """A time of the gateway in the time zone of this machine; "" when it is none."""
    if not isinstance(at_ms, int | float) or not 0 < at_ms < 253_402_300_799_000:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
