"""Session rows and transcript messages as clients see them.

Pure builders from plain arguments to plain objects; everything that has to be
looked up arrives as an argument, so that building a list never opens a
transcript (docs/topics/design.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from openclaw.domain.entry import SessionEntry, entry_to_wire
from openclaw.domain.patch import THINKING_LEVELS

Json = dict[str, Any]
RowKind = Literal["direct", "group", "global", "unknown"]

# Bulky or private parts of an entry that no list shows.
_NOT_IN_ROWS = ("skillsSnapshot", "systemPromptReport", "pendingFinalDelivery", "lastHeartbeatText")
_OFF: Final = ({"id": "off", "label": "off"},)
_THINKING: Final = tuple({"id": level, "label": level} for level in THINKING_LEVELS)

# Flat fields of change events that are null, not absent, once they are cleared.
CLEARABLE: Final = (
    "label",
    "displayName",
    "archivedAt",
    "pinnedAt",
    "thinkingLevel",
    "verboseLevel",
    "fastMode",
    "sendPolicy",
    "status",
    "startedAt",
    "endedAt",
    "runtimeMs",
    "lastRunId",
    "traceLevel",
    "reasoningLevel",
    "elevatedLevel",
    "responseUsage",
    "groupActivation",
    "providerOverride",
    "modelOverride",
    "subject",
)


def session_row(
    key: str,
    agent_id: str,
    entry: SessionEntry,
    *,
    kind: RowKind,
    is_main: bool,
    snapshot_at: int,
    model_provider: str,
    model: str,
    context_tokens: int,
    active_run_ids: Sequence[str] = (),
    classification: str | None = None,
    is_background: bool = False,
    unread: bool = False,
    derived_title: str | None = None,
    last_message_preview: str | None = None,
    child_sessions: Sequence[str] = (),
    thinking_levels: Sequence[Json] = _OFF,
    thinking_default: str = "off",
    active_leaf_entry_id: str | None = None,
) -> Json:
    """One session as lists, `describe` and change events show it (RPC-5).

    `model_provider`, `model` and `context_tokens` are what the next turn would
    use; they win over what the entry remembers of the last one.
    """
    row = {name: value for name, value in entry_to_wire(entry).items() if name not in _NOT_IN_ROWS}
    row |= {
        "key": key,
        "kind": kind,
        "classification": classification or ("main" if is_main else kind),
        "agentId": agent_id,
        "lifecycleRevision": entry.session_id,  # every reset mints an id
        "isMain": is_main,
        "isBackground": is_background,
        "archived": entry.archived_at is not None,
        "pinned": entry.pinned_at is not None,
        "unread": unread,
        "totalTokensFresh": bool(entry.total_tokens_fresh),
        "contextTokens": context_tokens,
        "modelProvider": model_provider,
        "model": model,
        **thinking_choices(thinking_levels, thinking_default),
        "hasActiveRun": bool(active_run_ids),
        "activeRunIds": list(active_run_ids),
        "snapshotAt": snapshot_at,
        "visibility": "shared",
        "sharingRole": "admin",
    }
    optional = {
        "displayName": entry.display_name or entry.label,
        "derivedTitle": derived_title,
        "lastMessagePreview": last_message_preview,
        "childSessions": list(child_sessions) or None,
        "activeLeafEntryId": active_leaf_entry_id,
    }
    row |= {name: value for name, value in optional.items() if value is not None}
    return row


def levels_of(reasoning: bool) -> Sequence[Json]:
    """How long a model may be asked to think; one that does not reason has no choice."""
    return _THINKING if reasoning else _OFF


def thinking_choices(levels: Sequence[Json], default: str) -> Json:
    """The levels as clients draw them, and the one in force when nobody chooses."""
    return {
        "thinkingLevels": list(levels),
        "thinkingOptions": [level["id"] for level in levels],
        "thinkingDefault": default,
    }


def flatten_row(row: Json) -> Json:
    """The row's fields for standing beside an event's own, without its key, cleared ones as null."""
    flat = dict.fromkeys(CLEARABLE) | row
    del flat["key"]
    return flat


def client_message(
    message: Json,
    *,
    entry_id: str,
    seq: int,
    run_id: str | None = None,
    idempotency_key: str | None = None,
    record_timestamp_ms: int | None = None,
    source: str | None = None,
    raw_seq: int | None = None,
    sender_is_owner: bool | None = None,
    kind: str | None = None,
) -> Json:
    """A transcript message with the `__openclaw` object that clients key on.

    `seq` counts visible messages from 1. Assistant messages need `run_id`, or the
    Control UI shows the reply twice.
    """
    marks: Json = {"id": entry_id, "seq": seq}
    optional = {
        "runId": run_id,
        "idempotencyKey": idempotency_key,
        "recordTimestampMs": record_timestamp_ms,
        "senderIsOwner": sender_is_owner,
        "kind": kind,
    }
    marks |= {name: value for name, value in optional.items() if value is not None}
    if source is not None and raw_seq is not None:
        marks["transcriptPosition"] = {"source": source, "rawSeq": raw_seq}
    shown = dict(message)
    if idempotency_key is not None:
        shown["idempotencyKey"] = idempotency_key
    shown["__openclaw"] = marks
    return shown


def system_message(
    text: str, *, kind: str, entry_id: str, seq: int, record_timestamp_ms: int | None = None
) -> Json:
    """A mark in the conversation that nobody said, such as a reset."""
    return client_message(
        {"role": "system", "content": [{"type": "text", "text": text}]},
        entry_id=entry_id,
        seq=seq,
        record_timestamp_ms=record_timestamp_ms,
        kind=kind,
    )
