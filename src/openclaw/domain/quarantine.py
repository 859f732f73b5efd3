"""Entries that a provider refuses again and again are left out of the context, visibly (PITFALLS B2).

A conversation must never be lost because one message in it cannot be sent. What
is left out stays in the transcript; a `custom` record names it, and the model
finds a short note in its place.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from openclaw.domain.transcript import (
    AssistantMessage,
    CustomRecord,
    MessageRecord,
    Record,
    TextBlock,
    UserMessage,
)

QUARANTINE = "quarantine"
LEFT_OUT = "[A message was left out here: the model's provider refused it.]"
_ACCEPTED = ("stop", "toolUse", "length")


def quarantined_ids(records: Sequence[Record]) -> frozenset[str]:
    """The ids that quarantine records name. A record that is not understood names none."""
    found: set[str] = set()
    for record in records:
        if isinstance(record, CustomRecord) and record.custom_type == QUARANTINE:
            data = record.data if isinstance(record.data, dict) else {}
            ids = data.get("entryIds")
            found.update(str(name) for name in (ids if isinstance(ids, list) else ()))
    return frozenset(found)


def leave_out(record: Record) -> Record:
    """The record with a note in place of what it said. Calls of tools go with it; their results fall away."""
    if not isinstance(record, MessageRecord):
        return record
    message = record.message
    content = LEFT_OUT if isinstance(message, UserMessage) else (TextBlock(LEFT_OUT),)
    return msgspec.structs.replace(record, message=msgspec.structs.replace(message, content=content))


def suspects(records: Sequence[Record], new_ids: frozenset[str]) -> tuple[str, ...]:
    """Which entries may be what a provider refused: those added since it last accepted a request.

    `new_ids` are what the person said just now. It is not left out at its first refusal: the person
    is told, and it becomes a suspect when the next message fails too.
    """
    left_out = quarantined_ids(records)
    found: list[str] = []
    for record in reversed(records):
        if not isinstance(record, MessageRecord):
            continue
        message = record.message
        if isinstance(message, AssistantMessage):
            if message.stop_reason in _ACCEPTED:
                break
            continue
        if record.id not in new_ids and record.id not in left_out:
            found.append(record.id)
    return tuple(reversed(found))
