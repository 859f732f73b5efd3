"""What is kept of a command: the rows that history shows, and the delivery of the answer.

The rows are `custom` entries, which no model is ever sent (TRX-5). Their data has the
shape of a message, so that whoever shows messages can show these as well.
"""

from __future__ import annotations

from typing import Any

import msgspec

from openclaw.domain.doortext import clean_text
from openclaw.domain.transcript import encode
from openclaw.store.commands import CommandAnswer
from openclaw.store.records import DeliveryDraft, EntryDraft, StoredEntry, UserInput

DELIVERY_TTL_MS = 15 * 60 * 1000
CUSTOM_TYPE = "openclaw.command"
_decode: Any = msgspec.json.Decoder().decode


def answer_of(
    run_id: str, body: UserInput, text: str, now_ms: int, *, shown: bool = True, with_message: bool = True
) -> CommandAnswer:
    """The answer as it is stored: shown in history after the message, and delivered where that came from."""
    text = clean_text(text)
    entries: tuple[EntryDraft, ...] = ()
    if shown:
        entries = (_shown_reply(text, now_ms, run_id),)
        if with_message:
            entries = (_shown_message(body, run_id), *entries)
    return CommandAnswer(text, entries, _delivery(run_id, body, text, now_ms))


def _delivery(run_id: str, body: UserInput, text: str, now_ms: int) -> DeliveryDraft | None:
    route = body.route
    if not body.deliver or route is None or not route.channel or not route.to:
        return None
    return DeliveryDraft(f"{run_id}:reply", route, encode({"text": text}), now_ms + DELIVERY_TTL_MS)


def _shown_message(body: UserInput, run_id: str) -> EntryDraft:
    return _custom({"role": "user", "content": body.content, "timestamp": body.timestamp}, "user", run_id)


def _shown_reply(text: str, now_ms: int, run_id: str) -> EntryDraft:
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "timestamp": now_ms,
        "provider": "openclaw",
        "model": "gateway-injected",
        "stopReason": "stop",
    }
    return _custom(message, "assistant", run_id)


def _custom(message: dict[str, Any], role: str, run_id: str) -> EntryDraft:
    body = {"customType": CUSTOM_TYPE, "data": {**message, "excludeFromContext": True}}
    return EntryDraft("custom", encode(body), role, run_id=run_id)


def message_of(entry: StoredEntry) -> dict[str, Any] | None:
    """The message that a row of a command shows; None when the entry is no such row."""
    if entry.type != "custom":
        return None
    body = _decode(entry.body)
    if not isinstance(body, dict) or body.get("customType") != CUSTOM_TYPE:
        return None
    data = body.get("data")
    return data if isinstance(data, dict) else None
