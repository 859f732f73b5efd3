"""The parameters of every method, as closed types (SPEC §11).

A field that this gateway does not act on yet is still typed and accepted when
clients are known to send it. `UNSET` marks "absent" where `null` has a meaning
of its own. Shapes only: what a value means is decided elsewhere.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from openclaw.domain.entry import (
    ControlScope,
    ElevatedLevel,
    GroupActivation,
    ReasoningLevel,
    SendAction,
    SubagentRole,
)
from openclaw.protocol.connect import ClosedObject

# The largest integer that every client can write exactly.
MAX_INTEGER: Final = 2**53 - 1

Count = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
Positive = Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
SessionKeyText = Annotated[str, Meta(min_length=1, max_length=512)]
IdText = Annotated[str, Meta(min_length=1, max_length=512)]
LabelText = Annotated[str, Meta(min_length=1, max_length=512)]
ShortText = Annotated[str, Meta(max_length=4096)]
Attachments = Annotated[tuple[dict[str, Any], ...], Meta(max_length=64)]
ThreadId = IdText | int

SendQueueMode = Literal["steer", "followup", "collect", "interrupt"]
SortField = Literal["updatedAt", "lastInteractionAt", "activity"]
ModelsView = Literal["default", "configured", "all", "provider-config"]
ResponseUsageWord = Literal["off", "tokens", "full", "on"]

DEFAULT_LIST_LIMIT: Final = 100
DEFAULT_HISTORY_LIMIT: Final = 200
DEFAULT_WAIT_MS: Final = 30_000


# -- gateway -----------------------------------------------------------------------------------


class HealthParams(ClosedObject, frozen=True, kw_only=True):
    probe: bool = False


class StatusParams(ClosedObject, frozen=True, kw_only=True):
    include_channel_summary: bool = True
    include_cli_projection: bool = False


class AgentsListParams(ClosedObject, frozen=True, kw_only=True):
    pass


class ModelsListParams(ClosedObject, frozen=True, kw_only=True):
    view: ModelsView = "default"
    session_key: SessionKeyText | None = None
    agent_id: IdText | None = None
    include_details: bool = False


# -- sessions ----------------------------------------------------------------------------------


class SessionsListParams(ClosedObject, frozen=True, kw_only=True):
    """RPC-5. `archived` asks for one side or, with "all", for both."""

    limit: Positive = DEFAULT_LIST_LIMIT
    offset: Count = 0
    active_minutes: Positive | None = None
    active_only: bool = False
    sort_by: SortField = "updatedAt"
    include_global: bool = False
    include_unknown: bool = False
    exclude_subagents: bool = False
    exclude_cron: bool = False
    exclude_system: bool = False
    configured_agents_only: bool = False
    include_derived_titles: bool = False
    include_last_message: bool = False
    include_activity_summary: bool = False
    label: LabelText | None = None
    search: ShortText | None = None
    spawned_by: SessionKeyText | None = None
    agent_id: IdText | None = None
    archived: bool | Literal["all"] = False
    pinned: bool | None = None
    group: ShortText | None = None
    owner_first: bool = False
    owner_id: IdText | None = None
    creator_id: IdText | None = None
    involving_me: bool = False
    project_id: IdText | None = None
    workspace_dir: ShortText | None = None


class SessionsSubscribeParams(SessionsListParams, frozen=True, kw_only=True):
    """The same as the list; with any of them the answer carries a list too."""


class SessionsMessagesParams(ClosedObject, frozen=True, kw_only=True):
    """Of both `sessions.messages.subscribe` and `sessions.messages.unsubscribe`."""

    key: SessionKeyText
    include_approvals: bool | None = None
    agent_id: IdText | None = None

    def __post_init__(self) -> None:
        if self.include_approvals is False:
            raise ValueError("includeApprovals must be true or left out")


class SessionsDescribeParams(ClosedObject, frozen=True, kw_only=True):
    key: SessionKeyText
    include_derived_titles: bool = False
    include_last_message: bool = False
    agent_id: IdText | None = None


class SessionReference(ClosedObject, frozen=True, kw_only=True):
    key: SessionKeyText
    slug: IdText | None = None


class SessionsResolveParams(ClosedObject, frozen=True, kw_only=True):
    """Exactly one way of naming a session (RPC-6)."""

    key: SessionKeyText | None = None
    session_id: IdText | None = None
    label: LabelText | None = None
    reference: SessionReference | None = None
    short_id: IdText | None = None
    agent_id: IdText | None = None
    spawned_by: SessionKeyText | None = None
    allow_missing: bool = False
    include_global: bool = False
    include_unknown: bool = False

    def __post_init__(self) -> None:
        ways = (self.key, self.session_id, self.label, self.reference, self.short_id)
        if sum(way is not None for way in ways) != 1:
            raise ValueError("give exactly one of key, sessionId, label, reference, shortId")


class SessionsCreateParams(ClosedObject, frozen=True, kw_only=True):
    key: SessionKeyText | None = None
    agent_id: IdText | None = None
    label: LabelText | None = None
    message: str | None = None
    task: str | None = None
    attachments: Attachments = ()
    model: IdText | None = None
    thinking_level: IdText | None = None
    fast_mode: bool | None = None
    parent_session_key: SessionKeyText | None = None
    category: ShortText | None = None
    fork: bool | dict[str, Any] | None = None
    incognito: bool = False
    cwd: ShortText | None = None
    worktree: bool | dict[str, Any] | None = None
    emit_command_hooks: bool | None = None


class SessionsPatchParams(ClosedObject, frozen=True, kw_only=True):
    """RPC-7. A field that is left out stays; `null` clears it. Guards must hold, or nothing changes."""

    key: SessionKeyText
    agent_id: IdText | None = None

    # organisation and model: write scope
    label: LabelText | UnsetType | None = UNSET
    icon: ShortText | UnsetType | None = UNSET
    color: ShortText | UnsetType | None = UNSET
    category: ShortText | UnsetType | None = UNSET
    pinned: bool | UnsetType | None = UNSET
    archived: bool | UnsetType | None = UNSET
    unread: bool | UnsetType | None = UNSET
    model: IdText | UnsetType | None = UNSET
    thinking_level: IdText | UnsetType | None = UNSET
    fast_mode: bool | UnsetType | None = UNSET

    # everything else: admin scope
    context_window: Positive | UnsetType | None = UNSET
    verbose_level: IdText | UnsetType | None = UNSET
    trace_level: IdText | UnsetType | None = UNSET
    reasoning_level: ReasoningLevel | UnsetType | None = UNSET
    response_usage: ResponseUsageWord | UnsetType | None = UNSET
    elevated_level: ElevatedLevel | UnsetType | None = UNSET
    exec_host: IdText | UnsetType | None = UNSET
    exec_security: IdText | UnsetType | None = UNSET
    exec_ask: IdText | UnsetType | None = UNSET
    exec_node: IdText | UnsetType | None = UNSET
    send_policy: SendAction | UnsetType | None = UNSET
    group_activation: GroupActivation | UnsetType | None = UNSET
    permission_mode: IdText | UnsetType | None = UNSET
    status_note: ShortText | UnsetType | None = UNSET
    attention: bool | ShortText | dict[str, Any] | UnsetType | None = UNSET
    tool_overrides: dict[str, Any] | UnsetType | None = UNSET
    agent_runtime: IdText | dict[str, Any] | UnsetType | None = UNSET
    spawned_by: SessionKeyText | UnsetType | None = UNSET
    spawned_workspace_dir: ShortText | UnsetType | None = UNSET
    spawn_depth: Count | UnsetType | None = UNSET
    subagent_role: SubagentRole | UnsetType | None = UNSET
    subagent_control_scope: ControlScope | UnsetType | None = UNSET

    expected_session_id: IdText | UnsetType = UNSET
    expected_marked_unread_at: Count | UnsetType | None = UNSET
    expected_lifecycle_revision: IdText | UnsetType = UNSET

    def changes(self) -> dict[str, Any]:
        """The fields to set, by Python name; None clears. Neither the address nor the guards."""
        given = msgspec.structs.asdict(self)
        return {
            name: value
            for name, value in given.items()
            if value is not UNSET and name not in ("key", "agent_id") and not name.startswith("expected_")
        }


# -- chat --------------------------------------------------------------------------------------


class ChatSendParams(ClosedObject, frozen=True, kw_only=True):
    """RPC-12. `idempotency_key` becomes the run id. An empty message is refused later, with its reason."""

    session_key: SessionKeyText
    message: str
    idempotency_key: IdText
    agent_id: IdText | None = None
    session_id: IdText | None = None
    thinking: IdText | None = None
    fast_mode: bool | None = None
    queue_mode: SendQueueMode | None = None
    deliver: bool | None = None
    attachments: Attachments = ()
    timeout_ms: Count | None = None
    expected_leaf_entry_id: IdText | UnsetType | None = UNSET
    originating_channel: IdText | None = None
    originating_to: IdText | None = None
    originating_account_id: IdText | None = None
    originating_thread_id: ThreadId | None = None
    reply_to_id: IdText | None = None
    suppress_command_interpretation: bool = False


class HistoryFields(ClosedObject, frozen=True, kw_only=True):
    """Which part of a conversation, of `chat.history` and `chat.startup`."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = DEFAULT_HISTORY_LIMIT
    max_bytes: Annotated[int, Meta(ge=1024, le=MAX_INTEGER)] | None = None
    max_chars: Positive | None = None
    offset: Count = 0
    cursor: ShortText | None = None
    message_id: IdText | None = None
    session_id: IdText | None = None
    agent_id: IdText | None = None
    input_run_ids: Annotated[tuple[IdText, ...], Meta(max_length=200)] = ()
    pending_before: ShortText | int | None = None


class ChatHistoryParams(HistoryFields, frozen=True, kw_only=True):
    """RPC-11."""

    session_key: SessionKeyText


class ChatAbortParams(ClosedObject, frozen=True, kw_only=True):
    """RPC-13. Without `run_id` queued turns go first, then the active run."""

    session_key: SessionKeyText
    run_id: IdText | None = None
    agent_id: IdText | None = None
    preserve_side_runs: bool = False


class ChatInjectParams(ClosedObject, frozen=True, kw_only=True):
    """RPC-13: a note in the assistant's name, without a run."""

    session_key: SessionKeyText
    message: Annotated[str, Meta(min_length=1)]
    label: Annotated[str, Meta(max_length=100)] | None = None
    agent_id: IdText | None = None


# -- agent -------------------------------------------------------------------------------------


class InputProvenance(ClosedObject, frozen=True, kw_only=True):
    kind: Literal["external_user", "inter_session", "internal_system"]
    source_session_key: SessionKeyText | None = None
    source_channel: IdText | None = None
    source_tool: IdText | None = None
    origin_session_id: IdText | None = None


class AgentParams(ClosedObject, frozen=True, kw_only=True):
    """RPC-15. `timeout` is in seconds."""

    message: Annotated[str, Meta(min_length=1)]
    idempotency_key: IdText
    session_key: SessionKeyText | None = None
    session_id: IdText | None = None
    agent_id: IdText | None = None
    to: IdText | None = None
    channel: IdText | None = None
    account_id: IdText | None = None
    thread_id: ThreadId | None = None
    reply_to: IdText | None = None
    reply_channel: IdText | None = None
    reply_account_id: IdText | None = None
    deliver: bool | None = None
    best_effort_deliver: bool | None = None
    thinking: IdText | None = None
    timeout: Count | None = None
    lane: IdText | None = None
    extra_system_prompt: str | None = None
    model: IdText | None = None
    provider: IdText | None = None
    input_provenance: InputProvenance | None = None
    label: LabelText | None = None
    attachments: Attachments = ()


class AgentWaitParams(ClosedObject, frozen=True, kw_only=True):
    """RPC-17."""

    run_id: IdText
    timeout_ms: Count = DEFAULT_WAIT_MS
