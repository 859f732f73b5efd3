"""From transcript entries to the message list of a model call, and a bounded cache of it.

The cache holds decoded messages of sessions that run, so that a turn reads only
what is new. It is derived from rows, keyed by window, and may be dropped at any
time (docs/topics/design.md).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from openclaw.domain.context import messages_of, rebuild_context
from openclaw.domain.pruning import PruneState
from openclaw.domain.quarantine import leave_out, quarantined_ids, suspects
from openclaw.domain.transcript import (
    CustomMessageRecord,
    CustomRecord,
    Message,
    MessageRecord,
    Record,
    decode_message,
    decode_record,
    encode,
)
from openclaw.store.compactions import Compactions
from openclaw.store.records import StoredEntry
from openclaw.store.store import Store

log = logging.getLogger("openclaw.runs")
CACHE_BYTES = 32 << 20
# What an entry and a window cost in memory beside the bodies, as measured: a limit counts what is there.
ENTRY_BYTES = 450
WINDOW_BYTES = 2000


def record_of(entry: StoredEntry, parent_id: str | None) -> Record:
    """A stored entry as a transcript record. The body of a message entry is the message itself.

    An entry that cannot be read says nothing: one damaged row must not cost the conversation.
    """
    try:
        return _read(entry, parent_id)
    except (msgspec.MsgspecError, UnicodeError):
        log.error("entry %s cannot be read; it is left out of the context", entry.entry_id)
        return CustomRecord(id=entry.entry_id, parent_id=parent_id, timestamp="", custom_type="unreadable")


def _read(entry: StoredEntry, parent_id: str | None) -> Record:
    if entry.type == "message":
        return MessageRecord(
            id=entry.entry_id, parent_id=parent_id, timestamp="", message=decode_message(entry.body)
        )
    head = encode({"type": entry.type, "id": entry.entry_id, "parentId": parent_id, "timestamp": ""})
    body = entry.body[1:] if len(entry.body) > 2 else b"}"
    record: Record = decode_record(head[:-1] + (b"," if len(entry.body) > 2 else b"") + body)
    return record


class _Window(msgspec.Struct):
    """What is known of one window. `messages` None: something came that changes what came before."""

    last_seq: int = 0
    ids: dict[int, str] = msgspec.field(default_factory=dict)
    records: list[Record] = msgspec.field(default_factory=list)
    messages: list[Message] | None = msgspec.field(default_factory=list)
    size: int = 0  # of the bodies
    weight: int = WINDOW_BYTES  # of the bodies and of what holds them
    pruned: PruneState | None = None
    called_ms: int | None = None

    def add(self, entry: StoredEntry) -> None:
        # The context may begin in the middle of a transcript: its first entry has no parent here.
        parent = self.ids.get(entry.parent_seq or 0)
        record = record_of(entry, parent)
        self.ids[entry.seq] = entry.entry_id
        follows = parent == (self.records[-1].id if self.records else None)
        self.records.append(record)
        self.last_seq = entry.seq
        self.size += len(entry.body)
        self.weight += len(entry.body) + ENTRY_BYTES
        if follows and isinstance(record, MessageRecord | CustomMessageRecord):
            if self.messages is not None:
                self.messages.extend(messages_of(record))
        else:
            self.messages = None

    def active(self) -> Sequence[Message]:
        if self.messages is None:
            left_out = quarantined_ids(self.records)
            records = [leave_out(one) if one.id in left_out else one for one in self.records]
            self.messages = list(rebuild_context(records, records[-1].id if records else None))
        return self.messages


class ContextCache:
    """Decoded transcripts of running sessions, least recently used out first, bounded in bytes."""

    def __init__(self, store: Store, compactions: Compactions, limit_bytes: int = CACHE_BYTES) -> None:
        self._store = store
        self._compactions = compactions
        self._limit = limit_bytes
        self._windows: OrderedDict[int, _Window] = OrderedDict()
        self._weight = 0

    async def messages(self, window_no: int, last_seq: int) -> tuple[Message, ...]:
        """The active context of a window up to `last_seq`; reads only entries that are not cached.

        What a compaction put away is never read (docs/topics/design.md).
        """
        while True:
            cached = self._window(window_no)
            if cached.last_seq >= last_seq:
                return tuple(cached.active())
            if cached.last_seq == 0:
                entries = (await self._compactions.context(window_no)).entries
                first = entries[0].seq if entries else 1
            else:
                entries = await self._store.context(window_no, after_seq=cached.last_seq)
                first = cached.last_seq + 1
            if self._windows.get(window_no) is cached:
                cached.last_seq = max(cached.last_seq, first - 1)
                self.extend(window_no, entries)
                return tuple(cached.active())
            # It was dropped while the rows were read: what was read does not follow what is known now.

    def prune_state(self, window_no: int) -> tuple[PruneState | None, int | None]:
        """What was pruned before, and when a model was last asked; both unknown after a restart."""
        cached = self._windows.get(window_no)
        return (cached.pruned, cached.called_ms) if cached else (None, None)

    def keep_pruned(self, window_no: int, state: PruneState, now_ms: int) -> None:
        cached = self._windows.get(window_no)
        if cached is not None:
            cached.pruned, cached.called_ms = state, now_ms

    def suspects(self, window_no: int, new_ids: frozenset[str]) -> tuple[str, ...]:
        """Which entries of a loaded window a provider may have refused."""
        cached = self._windows.get(window_no)
        return suspects(cached.records, new_ids) if cached else ()

    def extend(self, window_no: int, entries: Sequence[StoredEntry]) -> None:
        """Add committed entries that follow what is cached."""
        cached = self._window(window_no)
        before = cached.weight
        for entry in entries:
            if entry.seq == cached.last_seq + 1:
                cached.add(entry)
        self._weight += cached.weight - before
        self._windows.move_to_end(window_no)
        self._trim(window_no)

    def size_of(self, window_no: int) -> int | None:
        """Bytes of a window's active context; None when it is not known."""
        cached = self._windows.get(window_no)
        return cached.size if cached else None

    def forget(self, window_no: int) -> None:
        """Drop what is known of a window: its rows were changed or removed."""
        dropped = self._windows.pop(window_no, None)
        if dropped is not None:
            self._weight -= dropped.weight

    def clear(self) -> None:
        """Drop everything: an erase may have changed any window, and those that are based on it."""
        self._windows.clear()
        self._weight = 0

    def _window(self, window_no: int) -> _Window:
        cached = self._windows.get(window_no)
        if cached is None:
            cached = self._windows[window_no] = _Window()
            self._weight += cached.weight
        return cached

    def _trim(self, keep: int) -> None:
        while self._weight > self._limit and len(self._windows) > 1:
            self.forget(next(number for number in self._windows if number != keep))
