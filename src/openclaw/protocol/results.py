"""The answers of every method, as far as clients rely on them.

Open types: an answer may carry more. Rows, entries and messages are built in
`rows` and travel here as plain objects.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Json = dict[str, Any]


class Answer(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base: optional fields that are None are left out."""


class Health(Answer, frozen=True, kw_only=True):
    ok: bool
    ts: int
    duration_ms: float
    default_agent_id: str
    agents: list[Json]
    sessions: Json
    heartbeat_seconds: int
    channels: Json
    channel_order: list[str]
    channel_labels: Json


class Status(Answer, frozen=True, kw_only=True):
    runtime_version: str
    heartbeat: Json
    channel_summary: list[Any]
    queued_system_events: list[Any]
    tasks: Json
    task_audit: Json
    sessions: Json
    cli_projection: Json | None = None


class AgentsList(Answer, frozen=True, kw_only=True):
    """`agents[].model.primary` must be there, or the Control UI locks its composer."""

    default_id: str
    main_key: str
    scope: Literal["per-sender", "global"]
    agents: list[Json]
    ownership: str | None = None
    selection_required: bool | None = None


class ModelsList(Answer, frozen=True, kw_only=True):
    models: list[Json]


class SessionsList(Answer, frozen=True, kw_only=True):
    ts: int
    path: str
    count: int
    total_count: int
    limit_applied: int
    has_more: bool
    next_offset: int | None
    owners: list[Json]
    defaults: Json
    sessions: list[Json]


class SessionsSubscribed(Answer, frozen=True, kw_only=True):
    subscribed: bool
    list: SessionsList | None = None


class MessagesSubscribed(Answer, frozen=True, kw_only=True):
    subscribed: bool
    key: str
    approval_replay: Json | None = None


class SessionDescribed(Answer, frozen=True, kw_only=True):
    """`session` is null, not an error, when there is none."""

    session: Json | None


class SessionResolved(Answer, frozen=True, kw_only=True):
    ok: bool
    key: str | None = None
    agent_id: str | None = None


class ResolvedModel(Answer, frozen=True, kw_only=True):
    model_provider: str
    model: str
    agent_runtime: Json | None = None
    thinking_level: str | None = None
    thinking_levels: list[Json] | None = None


class SessionCreated(Answer, frozen=True, kw_only=True):
    ok: bool
    key: str
    session_id: str
    entry: Json
    run_started: bool
    resolved: ResolvedModel
    run_id: str | None = None


class SessionPatched(Answer, frozen=True, kw_only=True):
    """The CLI believes an archive only when `entry.archivedAt` says so."""

    ok: bool
    path: str
    key: str
    entry: Json
    resolved: ResolvedModel


class PendingInput(Answer, frozen=True, kw_only=True):
    id: str
    accepted_at: int
    state: Literal["queued"]
    message: Any
    run_id: str


class PendingInputs(Answer, frozen=True, kw_only=True):
    items: list[PendingInput]
    total: int


class InFlightRun(Answer, frozen=True, kw_only=True):
    run_id: str
    text: str
    started_at: int


class CompactionMark(Answer, frozen=True, kw_only=True):
    """Between which messages the context was made smaller; `seq` counts as theirs does."""

    id: str
    seq: int
    at: int
    tokens_before: int | None = None


class ChatHistory(Answer, frozen=True, kw_only=True):
    """An unknown session has an empty history, without an error.

    Asked with a cursor the answer is a `kind`: "delta" brings what came since, as the payloads of
    `session.message`; "reset" tells the client to read anew, and nothing else.
    """

    session_key: str
    messages: list[Json]
    has_more: bool
    total_messages: int
    pending_inputs: PendingInputs
    defaults: Json
    session_id: str | None = None
    next_offset: int | None = None
    delta_cursor: str | None = None
    activity: list[Json] | None = None
    session_info: Json | None = None
    thinking_level: str | None = None
    verbose_level: str | None = None
    in_flight_run: InFlightRun | None = None
    compactions: list[CompactionMark] | None = None


class ChatDelta(Answer, frozen=True, kw_only=True):
    kind: Literal["delta"]
    session_key: str
    session_id: str
    messages: list[Json]
    delta_cursor: str
    pending_inputs: PendingInputs
    session_info: Json
    in_flight_run: InFlightRun | None = None
    compactions: list[CompactionMark] | None = None


class ChatReset(Answer, frozen=True, kw_only=True):
    kind: Literal["reset"]


class ChatStarted(ChatHistory, frozen=True, kw_only=True):
    """A history, and what a client draws around it."""

    metadata: Json


class ChatMessage(Answer, frozen=True, kw_only=True):
    """`message` when `ok`, else why there is none."""

    ok: bool
    message: Json | None = None
    unavailable_reason: Literal["not_found", "oversized", "not_visible"] | None = None


class ChatMetadata(Answer, frozen=True, kw_only=True):
    models: list[Json]
    commands: list[Json]


class ChatSent(Answer, frozen=True, kw_only=True):
    """RPC-12. `status` is "started" once, then "in_flight" while running and "ok" when finished.

    A word that means stop is also answered with what it stops: `ok`, `aborted`, `runIds`.
    """

    run_id: str
    status: Literal["started", "in_flight", "ok", "error"]
    message_seq: int | None = None
    ok: bool | None = None
    aborted: bool | None = None
    run_ids: list[str] | None = None


class ChatAborted(Answer, frozen=True, kw_only=True):
    ok: bool
    aborted: bool
    run_ids: list[str]


class ChatInjected(Answer, frozen=True, kw_only=True):
    ok: bool
    message_id: str


class AgentAccepted(Answer, frozen=True, kw_only=True):
    """The first of the two responses to `agent`."""

    run_id: str
    session_key: str
    agent_id: str
    status: Literal["accepted"]
    accepted_at: int


class AgentFinished(Answer, frozen=True, kw_only=True):
    """The second response, under the same request id."""

    run_id: str
    status: Literal["ok", "error", "timeout"]
    summary: str
    result: Json | None = None


class TerminalReply(Answer, frozen=True, kw_only=True):
    disposition: str
    text: str


class AgentWaited(Answer, frozen=True, kw_only=True):
    """RPC-17."""

    run_id: str
    status: Literal["ok", "error", "timeout"]
    started_at: int | None = None
    ended_at: int | None = None
    error: str | None = None
    stop_reason: str | None = None
    yielded: bool | None = None
    terminal_reply: TerminalReply | None = None
