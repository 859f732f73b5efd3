"""A conversation as items to draw: who said what, what a tool was asked and what it answered.

Pure: from messages as the gateway shows them to values. All text in an item is safe
for a terminal already; how it looks is decided in `drawing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from openclaw.tui.text import safe_line, safe_text

Json = dict[str, Any]
Kind = Literal["person", "agent", "tool", "mark", "note", "error"]
# Of a tool: running, done, failed. Of what was typed here: unsent (no connection), sent, queued.
State = Literal["", "running", "done", "failed", "unsent", "sent", "queued"]

MAX_RESULT_CHARS: Final = 4000
ARGUMENT_CHARS: Final = 120
_LATEST_MS: Final = 253_402_300_799_000


class Item(Struct, frozen=True):
    """One thing on the screen. `details` is shown when a person unfolds it."""

    item_id: str
    kind: Kind
    text: str
    head: str = ""
    state: State = ""
    details: str = ""


def marks_of(message: Mapping[str, Any]) -> Json:
    """The `__openclaw` object of a message, empty where there is none."""
    marks = message.get("__openclaw")
    return marks if isinstance(marks, dict) else {}


def seq_of(message: Mapping[str, Any]) -> int:
    seq = marks_of(message).get("seq")
    return seq if isinstance(seq, int) else 0


def blocks_of(message: Mapping[str, Any]) -> list[Json]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def text_of(message: Mapping[str, Any] | None) -> str:
    """What was said, without thoughts, tool calls and attachments."""
    blocks = [] if message is None else blocks_of(message)
    said = (str(block.get("text") or "") for block in blocks if block.get("type") == "text")
    return "\n".join(text for text in said if text)


def run_of(message: Mapping[str, Any]) -> str:
    """The run that a message belongs to; what a person said is known by its idempotency key."""
    marks = marks_of(message)
    return str(marks.get("runId") or str(marks.get("idempotencyKey") or "").removesuffix(":user"))


def items_of(message: Mapping[str, Any], zone: tzinfo | None = None) -> list[Item]:
    """What a message shows; a tool's answer belongs to its call and is read by `with_result`."""
    role, seq = message.get("role"), seq_of(message)
    text = "\n".join(part for part in (safe_text(text_of(message)), *_attachments(message)) if part)
    when = moment(message.get("timestamp"), zone)
    if role == "user":
        return [Item(f"m{seq}", "person", text or "(nothing)", when)]
    if role == "assistant":
        said = [Item(f"m{seq}", "agent", text, when)] if text else []
        return [*said, *_calls(message, seq)]
    return [Item(f"m{seq}", "mark", safe_line(text))] if text else []


def _attachments(message: Mapping[str, Any]) -> list[str]:
    found = []
    for block in blocks_of(message):
        kind = str(block.get("type") or "")
        if kind in ("image", "audio", "file", "document", "video"):
            size = f", {block['bytes']} bytes" if isinstance(block.get("bytes"), int) else ""
            found.append(f"[{kind}{size}]")
    return found


def call_places(message: Mapping[str, Any]) -> dict[str, str]:
    """The items of the tools that a message calls, by call id. Some models use an id again and again."""
    seq = seq_of(message)
    return {str(block.get("id")): f"m{seq}:{number}" for number, block in enumerate(_call_blocks(message))}


def _call_blocks(message: Mapping[str, Any]) -> list[Json]:
    return [block for block in blocks_of(message) if block.get("type") == "toolCall"]


def _calls(message: Mapping[str, Any], seq: int) -> list[Item]:
    return [_call(block, f"m{seq}:{number}") for number, block in enumerate(_call_blocks(message))]


def _call(block: Mapping[str, Any], place: str) -> Item:
    given = block.get("arguments")
    name = safe_line(str(block.get("name") or "tool"), 60)
    short = safe_line(_short(given), ARGUMENT_CHARS)
    details = "" if not given else safe_text(_json(given))[:MAX_RESULT_CHARS]
    return Item(place, "tool", f"{name} {short}".rstrip(), state="running", details=details)


def _short(given: object) -> str:
    if not given:
        return ""
    if not isinstance(given, dict):
        return _json(given)
    return " ".join(f"{name}={_value(value)}" for name, value in list(given.items())[:8])


def _value(value: object) -> str:
    return value[: ARGUMENT_CHARS * 2] if isinstance(value, str) else _json(value)[: ARGUMENT_CHARS * 2]


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode("utf-8", "replace")


def with_result(call: Item | None, message: Mapping[str, Any]) -> Item:
    """A tool call with its answer; an answer whose call is not on the screen stands for itself."""
    if call is None:
        name = safe_line(str(message.get("toolName") or "tool"), 60)
        call = Item(f"m{seq_of(message)}", "tool", name)
    answer = safe_text(text_of(message)[: MAX_RESULT_CHARS + 1])
    if len(answer) > MAX_RESULT_CHARS:
        answer = answer[:MAX_RESULT_CHARS] + "\n…"
    failed = bool(message.get("isError"))
    details = "\n".join(part for part in (call.details, "→ " + answer if answer else "") if part)
    return msgspec.structs.replace(call, state="failed" if failed else "done", details=details)


def moment(at_ms: object, zone: tzinfo | None = None) -> str:
    """A time of the gateway as people read it here, "" when it is none."""
    if isinstance(at_ms, bool) or not isinstance(at_ms, int | float) or not 0 < at_ms < _LATEST_MS:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M")
