"""The session entry: the mutable row behind a session key (SPEC §4, §9).

Snake case inside, camelCase on the wire and at rest. An entry never holds a
transcript location (ENT-6) and never crashes on an unknown stored value (ENT-11).
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec
from msgspec import UNSET, Struct, UnsetType

ChatType = Literal["direct", "group", "channel"]
SessionStatus = Literal["running", "done", "failed", "killed", "timeout"]
SendAction = Literal["allow", "deny"]
ReasoningLevel = Literal["on", "off", "stream"]
ElevatedLevel = Literal["on", "off", "ask", "full"]
ResponseUsage = Literal["off", "tokens", "full"]
GroupActivation = Literal["mention", "always"]
SubagentRole = Literal["orchestrator", "leaf"]
ControlScope = Literal["children", "none"]
OverrideSource = Literal["auto", "user"]
QueueMode = Literal["steer", "followup", "collect", "interrupt", "queue", "steer-backlog"]
DropPolicy = Literal["summarize", "old", "new"]


class DeliveryContext(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The typed route that replies take (ORG-7). The only thing that routing reads (ORG-10)."""

    channel: str | None = None
    to: str | None = None
    account_id: str | None = None
    thread_id: str | None = None


class Origin(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where a session came from (ORG-1, ORG-6). It explains; it never routes."""

    label: str | None = None
    provider: str | None = None
    surface: str | None = None
    chat_type: ChatType | None = None
    from_: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    account_id: str | None = None
    thread_id: str | None = None
    native_channel_id: str | None = None
    native_direct_user_id: str | None = None


class PendingDelivery(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A finished reply that has not left yet (REST-7)."""

    text: str
    context: DeliveryContext
    attempt_count: int = 0
    last_error: str | None = None
    created_at: int | None = None


class SessionEntry(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """All fields of ENT-4 and ENT-5. `None` means unset and is omitted on the wire."""

    session_id: str
    updated_at: int

    # lifecycle
    created_at: int | None = None
    session_started_at: int | None = None
    last_interaction_at: int | None = None
    usage_family_key: str | None = None
    usage_family_session_ids: tuple[str, ...] = ()
    started_at: int | None = None
    ended_at: int | None = None
    runtime_ms: int | None = None
    status: SessionStatus | None = None
    last_run_id: str | None = None
    archived_at: int | None = None
    pinned_at: int | None = None
    system_sent: bool = False
    aborted_last_run: bool = False

    # lineage: set once, on sub-agent sessions only (ENT-8)
    spawned_by: str | None = None
    parent_session_key: str | None = None
    forked_from_parent: bool = False
    spawn_depth: int | None = None
    spawn_root: str | None = None  # the session at the top of the tree of helpers: it pays (perTreeUsd)
    subagent_role: SubagentRole | None = None
    subagent_control_scope: ControlScope | None = None
    spawned_workspace_dir: str | None = None

    # toggles
    thinking_level: str | None = None
    verbose_level: str | None = None
    fast_mode: bool | None = None
    trace_level: str | None = None
    reasoning_level: ReasoningLevel | None = None
    elevated_level: ElevatedLevel | None = None
    response_usage: ResponseUsage | None = None
    exec_host: str | None = None
    exec_security: str | None = None
    exec_ask: str | None = None
    exec_node: str | None = None
    group_activation: GroupActivation | None = None
    group_activation_needs_system_intro: bool | None = None
    tts_auto: str | None = None
    send_policy: SendAction | None = None

    # model
    provider_override: str | None = None
    model_override: str | None = None
    model_override_source: OverrideSource | None = None
    auth_profile_override: str | None = None
    model_provider: str | None = None
    model: str | None = None
    live_model_switch_pending: bool | None = None

    # queue
    queue_mode: QueueMode | None = None
    queue_debounce_ms: int | None = None
    queue_cap: int | None = None
    queue_drop: DropPolicy | None = None

    # usage: what clients show; they never parse a transcript to correct it (OWN-3)
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    total_tokens_fresh: bool | None = None
    context_tokens: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    estimated_cost_usd: float | None = None

    # compaction
    compaction_count: int = 0
    memory_flush_at: int | None = None
    memory_flush_compaction_count: int | None = None

    # identity and routing
    label: str | None = None
    display_name: str | None = None
    chat_type: ChatType | None = None
    channel: str | None = None
    group_id: str | None = None
    group_channel: str | None = None
    subject: str | None = None
    space: str | None = None
    origin: Origin | None = None
    delivery_context: DeliveryContext | None = None

    # stop
    abort_cutoff_message_sid: str | None = None
    abort_cutoff_timestamp: int | None = None

    # delivery retry, snapshots, heartbeat
    pending_final_delivery: PendingDelivery | None = None
    skills_snapshot: dict[str, Any] | None = None
    system_prompt_report: dict[str, Any] | None = None
    last_heartbeat_text: str | None = None
    last_heartbeat_sent_at: int | None = None


# msgspec learns a type when it first reads it, and two threads that teach it at once crash the process.
# Entries are read on several threads, so the lesson is given here, while the module is imported.
msgspec.convert({"sessionId": "", "updatedAt": 0}, SessionEntry)

# Fields that are objects of their own.
_NESTED: dict[str, type[Struct]] = {
    "origin": Origin,
    "deliveryContext": DeliveryContext,
    "pendingFinalDelivery": PendingDelivery,
    "context": DeliveryContext,
}


def entry_from_stored(stored: dict[str, Any]) -> SessionEntry:
    """Read an entry from stored values; an unknown or ill-typed value is unset, never a crash (ENT-11)."""
    try:
        return msgspec.convert(stored, SessionEntry)
    except msgspec.ValidationError:
        return msgspec.convert(_keep_valid(stored), SessionEntry)


def _keep_valid(stored: dict[str, Any]) -> dict[str, Any]:
    kept = _valid_fields(stored, SessionEntry)
    kept.setdefault("sessionId", "")
    kept.setdefault("updatedAt", 0)
    return kept


def _valid_fields(stored: dict[str, Any], kind: type[Struct]) -> dict[str, Any]:
    """The fields that can be read: one bad field costs only itself, a whole number may be a float."""
    kept: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        value = stored.get(field.encode_name)
        if isinstance(value, dict) and field.encode_name in _NESTED:
            value = _valid_fields(value, _NESTED[field.encode_name])
        try:
            msgspec.convert(value, field.type, strict=not isinstance(value, float))
        except msgspec.ValidationError:
            continue
        if value is not None:
            kept[field.encode_name] = int(value) if _is_whole(value, field.type) else value
    return kept


def _is_whole(value: Any, kind: Any) -> bool:
    return isinstance(value, float) and value.is_integer() and kind is not float and "float" not in str(kind)


def entry_to_wire(entry: SessionEntry) -> dict[str, Any]:
    """The entry as clients see it: camelCase, projections of the route added (ORG-10, AMB-21)."""
    wire: dict[str, Any] = msgspec.to_builtins(entry)
    route = entry.delivery_context
    if route is not None:
        for name, value in (
            ("lastChannel", route.channel),
            ("lastTo", route.to),
            ("lastAccountId", route.account_id),
            ("lastThreadId", route.thread_id),
        ):
            if value is not None:
                wire[name] = value
    if entry.group_channel is not None:
        wire["room"] = entry.group_channel
    wire["systemSent"] = entry.system_sent
    wire["abortedLastRun"] = entry.aborted_last_run
    return wire


def literal_values(kind: Any) -> tuple[str, ...]:
    """The allowed words of one of the Literal types above, for error messages."""
    return get_args(kind)


__all__ = [
    "UNSET",
    "ChatType",
    "DeliveryContext",
    "Origin",
    "PendingDelivery",
    "SessionEntry",
    "UnsetType",
    "entry_from_stored",
    "entry_to_wire",
    "literal_values",
]
