"""A conversation as items to draw: who said what, what a tool was asked and what it answered.

Pure: from messages as the gateway shows them to values. All text in an item is safe
for a terminal already; how it looks is decided in `drawing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from openclaw.domain.terminaltext import moment
from openclaw.protocol.messages import arguments_of, calls_of, files_of, marks_of, text_of
from openclaw.tui.text import safe_line, safe_text

Json = dict[str, Any]
Kind = Literal["person", "agent", "tool", "mark", "note", "error"]
# Of a tool: running, done, failed. Of what was typed here: unsent (no connection), sent, queued.
State = Literal["", "running", "done", "failed", "unsent", "sent", "queued"]

MAX_RESULT_CHARS: Final = 4000
ARGUMENT_CHARS: Final = 120


class Item(Struct, frozen=True):
    """One thing on the screen. `details` is shown when a person unfolds it."""

    item_id: str
    kind: Kind
    text: str
    head: str = ""
    state: State = ""
    details: str = ""


def seq_of(message: Mapping[str, Any]) -> int:
    seq = marks_of(message).get("seq")
    return seq if isinstance(seq, int) else 0


def run_of(message: Mapping[str, Any]) -> str:
    """The run that a message belongs to; what a person said is known by its idempotency key."""
    marks = marks_of(message)
    return str(marks.get("runId") or str(marks.get("idempotencyKey") or "").removesuffix(":user"))


def items_of(message: Mapping[str, Any], zone: tzinfo | None = None) -> list[Item]:
    """What a message shows; a tool's answer belongs to its call and is read by `with_result`."""
    role, seq = message.get("role"), seq_of(message)
    text = "\n".join(part for part in (safe_text(text_of(message)), *files_of(message)) if part)
    when = moment(message.get("timestamp"), zone)
    if role == "user":
        return [Item(f"m{seq}", "person", text or "(nothing)", when)]
    if role == "assistant":
        said = [Item(f"m{seq}", "agent", text, when)] if text else []
        return [*said, *_calls(message, seq)]
    return [Item(f"m{seq}", "mark", safe_line(text))] if text else []


def call_places(message: Mapping[str, Any]) -> dict[str, str]:
    """The items of the tools that a message calls, by call id. Some models use an id again and again."""
    seq = seq_of(message)
    return {str(block.get("id")): f"m{seq}:{number}" for number, block in enumerate(calls_of(message))}


def _calls(message: Mapping[str, Any], seq: int) -> list[Item]:
    return [_call(block, f"m{seq}:{number}") for number, block in enumerate(calls_of(message))]


def _call(block: Mapping[str, Any], place: str) -> Item:
    given = block.get("arguments")
    name = safe_line(str(block.get("name") or "tool"), 60)
    short = safe_line(arguments_of(block, ARGUMENT_CHARS * 2), ARGUMENT_CHARS)
    details = "" if not given else safe_text(_json(given))[:MAX_RESULT_CHARS]
    return Item(place, "tool", f"{name} {short}".rstrip(), state="running", details=details)


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
