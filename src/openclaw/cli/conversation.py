"""A conversation as lines for a terminal: who said what, tool calls folded to one line each.

Pure: from messages as the gateway shows them to pieces of text with a style. Colours
are chosen by whoever prints (`screen`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from openclaw.domain.terminaltext import moment, one_line, printable
from openclaw.protocol.messages import arguments_of, calls_of, files_of, marks_of, text_of

Style = Literal["plain", "dim", "person", "agent", "error", "mark"]

MAX_ARGUMENT_CHARS: Final = 100
MAX_RESULT_CHARS: Final = 200


class Piece(Struct, frozen=True):
    """Text to print. An `open` piece does not end its line: more of it may come."""

    text: str
    style: Style = "plain"
    open: bool = False


def attachments_of(message: Mapping[str, Any]) -> Iterator[Piece]:
    """One line for each thing in a message that is neither text nor a tool call."""
    for words in files_of(message):
        yield Piece(words, "dim")


def tool_calls_of(message: Mapping[str, Any]) -> Iterator[Piece]:
    """One line for each tool that an assistant message calls."""
    for call in calls_of(message):
        name = one_line(str(call.get("name") or "tool"))
        arguments = clip(one_line(arguments_of(call, MAX_ARGUMENT_CHARS * 2)), MAX_ARGUMENT_CHARS)
        yield Piece(f"· {name} {arguments}".rstrip(), "dim")


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
