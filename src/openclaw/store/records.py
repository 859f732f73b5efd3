"""Rows as values: what the Store takes and gives, and the one border between columns and entries.

A session row is written as typed columns plus `more`, the JSON of every entry
field that has no column of its own. Nothing is kept twice, but for the folded names
that a list is searched by.
"""

from __future__ import annotations

import unicodedata
from typing import Any, Literal

import msgspec
from msgspec import Struct

from openclaw.domain.entry import DeliveryContext, SessionEntry, entry_from_stored
from openclaw.domain.exchange import Exchange
from openclaw.domain.lifecycle import TurnSource
from openclaw.domain.transcript import Provenance, UserBlock

SessionType = Literal["direct", "group", "thread"]
Audience = Literal["people", "model", "internal"]
Purpose = Literal["flush", "announce", "completion", "exchange"]
RunOutcome = Literal["ok", "error", "aborted", "timeout", "interrupted"]

# The columns of `sessions` in the order of the schema (a test compares them).
SESSION_COLUMNS = (
    "session_no", "session_key", "agent_id", "kind", "session_type", "window_no", "session_id", "id_salt",
    "version", "last_seq", "message_count", "read_seq", "first_text", "last_text", "created_at",
    "updated_at", "session_started_at", "last_interaction_at", "archived_at", "pinned_at", "chat_type",
    "channel", "label", "display_name", "subject", "spawned_by", "parent_session_key", "route_channel",
    "route_to", "route_account", "route_thread", "send_policy", "status", "last_run_id", "started_at",
    "ended_at", "runtime_ms", "system_sent", "aborted_last_run", "model_provider", "model", "input_tokens",
    "output_tokens", "total_tokens", "total_tokens_fresh", "context_tokens", "cache_read", "cache_write",
    "estimated_cost_usd", "folded", "more",
)  # fmt: skip
_ENTRY_FIELDS = frozenset(SessionEntry.__struct_fields__)
# Columns that are fields of the entry under the same name.
_ENTRY_COLUMNS = tuple((name, at) for at, name in enumerate(SESSION_COLUMNS) if name in _ENTRY_FIELDS)
_ROUTE = SESSION_COLUMNS.index("route_channel")
_SESSION_ID = SESSION_COLUMNS.index("session_id")
_UPDATED_AT = SESSION_COLUMNS.index("updated_at")
_BOOLEANS = {"system_sent", "aborted_last_run", "total_tokens_fresh"}
_ENUMS = {"chat_type", "send_policy", "status"}
_WIRE_NAMES = {field.name: field.encode_name for field in msgspec.structs.fields(SessionEntry)}
_COLUMN_WIRE_NAMES = tuple(_WIRE_NAMES[name] for name, _ in _ENTRY_COLUMNS) + ("deliveryContext",)
_NO_ROUTE = (None, None, None, None)
_LONGEST_NAME = 1000
_encode = msgspec.json.Encoder().encode
_decode_any = msgspec.json.Decoder().decode


class SessionSeed(Struct, frozen=True):
    """What a session is, read once from its key and its first message (AMB-38)."""

    session_key: str
    agent_id: str
    kind: str = "other"
    session_type: SessionType = "direct"
    chat_type: str | None = None
    channel: str | None = None
    parent_session_key: str | None = None
    spawned_by: str | None = None


class SessionRow(Struct, frozen=True):
    """One session: identity, counters kept by writes, and the entry."""

    session_no: int
    session_key: str
    agent_id: str
    kind: str
    session_type: SessionType
    window_no: int
    id_salt: int
    version: int
    last_seq: int
    message_count: int
    read_seq: int
    first_text: str | None
    last_text: str | None
    entry: SessionEntry


def session_from_columns(row: tuple[Any, ...]) -> SessionRow:
    """Read `SELECT * FROM sessions`. Unknown enum words in columns count as unset (ENT-11)."""
    values: dict[str, Any] = {name: row[at] for name, at in _ENTRY_COLUMNS if row[at] is not None}
    for name in _BOOLEANS & values.keys():
        values[name] = bool(values[name])
    for name in _ENUMS & values.keys():
        if values[name] not in ENUM_WORDS[name]:
            del values[name]
    route = row[_ROUTE : _ROUTE + 4]
    if route != _NO_ROUTE:
        values["delivery_context"] = DeliveryContext(*route)
    if row[-1] == b"{}":
        entry = SessionEntry(**values)
    else:
        stored: dict[str, Any] = _decode_any(row[-1])
        stored["sessionId"] = row[_SESSION_ID]
        stored["updatedAt"] = row[_UPDATED_AT]
        entry = msgspec.structs.replace(entry_from_stored(stored), **values)
    return SessionRow(
        row[0], row[1], row[2], row[3], row[4], row[5], row[7], row[8], row[9], row[10], row[11], row[12],
        row[13], entry,
    )  # fmt: skip


ENUM_WORDS: dict[str, frozenset[str]] = {
    "chat_type": frozenset(("direct", "group", "channel")),
    "send_policy": frozenset(("allow", "deny")),
    "status": frozenset(("running", "done", "failed", "killed", "timeout")),
}


def session_to_columns(row: SessionRow) -> tuple[Any, ...]:
    """All columns after `session_no`, in the order of the schema."""
    entry = row.entry
    route = entry.delivery_context or DeliveryContext()
    more: dict[str, Any] = msgspec.to_builtins(entry)
    for name in _COLUMN_WIRE_NAMES:
        more.pop(name, None)
    return (
        row.session_key, row.agent_id, row.kind, row.session_type, row.window_no, entry.session_id,
        row.id_salt, row.version, row.last_seq, row.message_count, row.read_seq, row.first_text,
        row.last_text, entry.created_at, entry.updated_at,
        entry.session_started_at,
        entry.last_interaction_at, entry.archived_at, entry.pinned_at, entry.chat_type, entry.channel,
        entry.label, entry.display_name, entry.subject, entry.spawned_by, entry.parent_session_key,
        route.channel, route.to, route.account_id, route.thread_id, entry.send_policy, entry.status,
        entry.last_run_id, entry.started_at, entry.ended_at, entry.runtime_ms, int(entry.system_sent),
        int(entry.aborted_last_run), entry.model_provider, entry.model, entry.input_tokens,
        entry.output_tokens, entry.total_tokens, _flag(entry.total_tokens_fresh), entry.context_tokens,
        entry.cache_read, entry.cache_write, entry.estimated_cost_usd, _folded_names(row), _encode(more),
    )  # fmt: skip


def _folded_names(row: SessionRow) -> str | None:
    """What of a row a list search must fold here. Databases fold the letters of ASCII themselves."""
    entry = row.entry
    names = (row.session_key, entry.session_id, entry.label, entry.display_name, entry.subject)
    return "\n".join(fold_name(name) for name in names if name and not name.isascii()) or None


def fold_name(text: str) -> str:
    """A name or a search text with its letter case taken away, in every script, marks joined to letters."""
    # Joining marks takes quadratic time; no name is as long as this.
    head = unicodedata.normalize("NFC", text[:_LONGEST_NAME]).casefold()
    return head + text[_LONGEST_NAME:].casefold()


def _flag(value: bool | None) -> int | None:
    return None if value is None else int(value)


class SavedSession(Struct, frozen=True):
    """A session as it was when one of its windows ended: what the next window starts without."""

    entry: dict[str, Any]
    last_seq: int
    message_count: int
    read_seq: int
    first_text: str | None
    last_text: str | None


_decode_saved = msgspec.json.Decoder(SavedSession).decode


def save_session(row: SessionRow) -> bytes:
    """The row for the window that it leaves."""
    entry: dict[str, Any] = msgspec.to_builtins(row.entry)
    return _encode(
        SavedSession(entry, row.last_seq, row.message_count, row.read_seq, row.first_text, row.last_text)
    )


def saved_session(row: SessionRow, saved: bytes) -> SessionRow:
    """The row with what was saved in its place; an unknown stored value is unset (ENT-11)."""
    was = _decode_saved(saved)
    return msgspec.structs.replace(
        row, entry=entry_from_stored(was.entry), last_seq=was.last_seq, message_count=was.message_count,
        read_seq=was.read_seq, first_text=was.first_text, last_text=was.last_text,
    )  # fmt: skip


class Window(Struct, frozen=True):
    """One session id ever: the stretch of transcript between two resets."""

    window_no: int
    session_id: str
    session_key: str
    previous_no: int | None
    base_no: int | None
    base_seq: int
    id_salt: int
    reason: str
    started_at: int
    ended_at: int | None
    end_reason: str | None


class EntryDraft(Struct, frozen=True):
    """A transcript entry before it has a place. `words` is its folded search text, if it is searchable."""

    type: str
    body: bytes
    role: str | None = None
    provenance: str | None = None
    audience: Audience = "people"
    run_id: str | None = None
    text: str | None = None
    words: str = ""


class StoredEntry(Struct, frozen=True):
    seq: int
    entry_id: str
    parent_seq: int | None
    type: str
    role: str | None
    provenance: str | None
    audience: Audience
    run_id: str | None
    created_at: int
    body: bytes


class UserInput(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The body of an inbox row: what was said, where answers go, and how the turn shall run."""

    content: str | tuple[UserBlock, ...]
    timestamp: int
    route: DeliveryContext | None = None
    provenance: Provenance | None = None
    thinking: str | None = None
    model: str | None = None
    extra_system_prompt: str | None = None
    timeout_ms: int | None = None
    deliver: bool = False
    queue_mode: str | None = None
    # Until when more of the same sender's words are waited for before the turn begins (ROUTE-4).
    gather_until: int | None = None
    hidden_prompt: bool = False
    # One line for each message that the queue's cap dropped; they reach the model with this input (QUE-3).
    dropped: tuple[str, ...] = ()
    # What the gateway itself wants from this turn; None for everything that somebody said.
    purpose: Purpose | None = None
    # How many sessions handed this on to one another before it came here (QUE-1).
    hops: int = 0
    exchange: Exchange | None = None
    # What the message itself asks to be shown, and where its commands run (CMD-10).
    verbose: str | None = None
    reasoning: str | None = None
    elevated: str | None = None


class QueuedInput(Struct, frozen=True):
    admission: int
    run_id: str
    session_key: str
    source: TurnSource
    principal: str
    human: bool
    accepted_at: int
    expires_at: int | None
    body: UserInput


class RunRow(Struct, frozen=True):
    run_id: str
    session_key: str
    agent_id: str
    window_no: int
    kind: str
    lane: str
    state: Literal["active", "ended"]
    outcome: RunOutcome | None
    stop_reason: str | None
    error: str | None
    owner: str
    fence: int
    resumes: int
    started_at: int
    last_progress: int
    deadline: int | None
    ended_at: int | None
    reply_seq: int | None


class UsageRow(Struct, frozen=True):
    """What one provider call used. `cost_usd` is None when the price is unknown, never 0."""

    call_id: str
    provider: str
    model: str
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cost_usd: float | None = None
    tree_key: str | None = None  # the root of the tree of helpers that pays


class DeliveryDraft(Struct, frozen=True):
    """Something to hand to the outbox. `aside`: it goes with a reply and is not the reply itself."""

    idempotency_key: str
    route: DeliveryContext
    body: bytes
    expires_at: int
    aside: bool = False
