"""From transcript entries to the message list of a model call, and a bounded cache of it.

The cache holds decoded messages of sessions that run, so that a turn reads only
what is new. It is derived from rows, keyed by window, and may be dropped at any
time (docs/topics/design.md).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from openclaw.domain.context import rebuild_context
from openclaw.domain.sanitise import sanitise_assistant_text
from openclaw.domain.searchtext import index_text
from openclaw.domain.transcript import (
    AssistantMessage,
    Message,
    MessageRecord,
    Record,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    decode_message,
    decode_record,
    encode,
    text_of,
    tool_calls_of,
)
from openclaw.store.records import EntryDraft, QueuedInput, StoredEntry
from openclaw.store.store import Store

CACHE_BYTES = 32 << 20


def record_of(entry: StoredEntry, parent_id: str | None) -> Record:
    """A stored entry as a transcript record. The body of a message entry is the message itself."""
    if entry.type == "message":
        return MessageRecord(
            id=entry.entry_id, parent_id=parent_id, timestamp="", message=decode_message(entry.body)
        )
    head = encode({"type": entry.type, "id": entry.entry_id, "parentId": parent_id, "timestamp": ""})
    body = entry.body[1:] if len(entry.body) > 2 else b"}"
    record: Record = decode_record(head[:-1] + (b"," if len(entry.body) > 2 else b"") + body)
    return record


def draft_message(message: Message, run_id: str, *, hidden: bool = False) -> EntryDraft:
    """A message as an entry to append: body, columns and folded search text made once."""
    text = text_of(message)
    words = "" if hidden or isinstance(message, ToolResultMessage) else index_text(_said(message, text))
    provenance = message.provenance if isinstance(message, UserMessage) else None
    return EntryDraft(
        "message",
        encode(message),
        role_of(message),
        provenance.kind if provenance else None,
        "model" if hidden else "people",
        run_id,
        text,
        words,
    )


def _said(message: Message, text: str) -> str:
    return sanitise_assistant_text(text) if isinstance(message, AssistantMessage) else text


def draft_input(queued: QueuedInput) -> EntryDraft:
    """An accepted input as the user turn it becomes (TRX-8)."""
    body = queued.body
    message = UserMessage(body.content, body.timestamp, body.provenance)
    return draft_message(message, queued.run_id, hidden=body.hidden_prompt)


def role_of(message: Message) -> str:
    if isinstance(message, UserMessage):
        return "user"
    return "assistant" if isinstance(message, AssistantMessage) else "toolResult"


def open_calls(messages: Sequence[Message], now_ms: int) -> tuple[ToolResultMessage, ...]:
    """One "interrupted" result for each tool call that has none: what a crash left open (PITFALLS B1)."""
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolResultMessage)}
    return tuple(
        interrupted_result(call.id, call.name, now_ms)
        for message in messages
        for call in tool_calls_of(message)
        if call.id not in answered
    )


def interrupted_result(call_id: str, name: str, now_ms: int) -> ToolResultMessage:
    text = "interrupted: the gateway stopped while this tool ran; it may or may not have taken effect"
    return ToolResultMessage(call_id, name, (TextBlock(text),), now_ms, is_error=True)


class _Cached(msgspec.Struct):
    last_seq: int
    records: list[Record]
    size: int


class ContextCache:
    """Decoded transcripts of running sessions, least recently used out first, bounded in bytes."""

    def __init__(self, store: Store, limit_bytes: int = CACHE_BYTES) -> None:
        self._store = store
        self._limit = limit_bytes
        self._windows: OrderedDict[int, _Cached] = OrderedDict()
        self._size = 0

    async def messages(self, window_no: int, last_seq: int) -> tuple[Message, ...]:
        """The active context of a window up to `last_seq`; reads only entries that are not cached."""
        cached = self._windows.setdefault(window_no, _Cached(0, [], 0))
        if cached.last_seq < last_seq:
            self.extend(window_no, await self._store.context(window_no, after_seq=cached.last_seq))
        records = cached.records
        return rebuild_context(records, records[-1].id if records else None)

    def extend(self, window_no: int, entries: Sequence[StoredEntry]) -> None:
        """Add committed entries that follow what is cached."""
        cached = self._windows.setdefault(window_no, _Cached(0, [], 0))
        for entry in entries:
            if entry.seq != cached.last_seq + 1:
                continue
            parent = cached.records[entry.parent_seq - 1].id if entry.parent_seq else None
            cached.records.append(record_of(entry, parent))
            cached.last_seq = entry.seq
            cached.size += len(entry.body)
            self._size += len(entry.body)
        self._windows.move_to_end(window_no)
        self._trim(window_no)

    def _trim(self, keep: int) -> None:
        while self._size > self._limit and len(self._windows) > 1:
            oldest = next(number for number in self._windows if number != keep)
            self._size -= self._windows.pop(oldest).size
