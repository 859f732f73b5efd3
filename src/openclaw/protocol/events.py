"""Events: their payloads as typed values, and who may receive them (RPC-14).

One closed union per event with states. The audience of each event is data, so
that fan-out reads one table. Which sessions a client follows is the gateway's
knowledge; numbering an event for a connection is `connection`'s.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from openclaw.protocol.results import TerminalReply
from openclaw.protocol.results_devices import PairResolved, PendingDevice
from openclaw.protocol.rows import flatten_row
from openclaw.protocol.scopes import ADMIN, PAIRING, READ, holds_scope

Json = dict[str, Any]
TOOL_EVENTS: Final = "tool-events"
THINKING_EVENTS: Final = "thinking-events"
STOPPING: Final = "gateway stopping"


class Payload(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base: optional fields that are None are left out."""


class Challenge(Payload, frozen=True, kw_only=True):
    nonce: str
    ts: int
    capabilities: tuple[str, ...] = ()


# -- chat --------------------------------------------------------------------------------------


class ChatPayload(Payload, frozen=True, kw_only=True):
    """`seq` is the run's own counter, shared with `agent`; it may have gaps."""

    run_id: str
    session_key: str
    seq: int
    agent_id: str | None = None


class ChatStatus(ChatPayload, frozen=True, kw_only=True, tag_field="state", tag="status"):
    phase: str


class ChatDelta(ChatPayload, frozen=True, kw_only=True, tag_field="state", tag="delta"):
    """`message` is everything so far; the deltas of a run add up to its final text."""

    delta_text: str
    message: Json
    replace: bool = False


class ChatFinal(ChatPayload, frozen=True, kw_only=True, tag_field="state", tag="final"):
    message: Json | None = None
    stop_reason: str | None = None
    usage: Json | None = None


class ChatAborted(ChatPayload, frozen=True, kw_only=True, tag_field="state", tag="aborted"):
    """`message` holds the partial text, when there is one; `stop_reason` is "rpc" after chat.abort."""

    stop_reason: str
    message: Json | None = None


class ChatFailed(ChatPayload, frozen=True, kw_only=True, tag_field="state", tag="error"):
    error_message: str
    error_kind: str | None = None
    error_detail: Json | None = None


ChatEvent = ChatStatus | ChatDelta | ChatFinal | ChatAborted | ChatFailed


# -- agent -------------------------------------------------------------------------------------


class RunStarted(Payload, frozen=True, kw_only=True, tag_field="phase", tag="start"):
    started_at: int


class ModelChosen(Payload, frozen=True, kw_only=True, tag_field="phase", tag="model"):
    provider: str | None
    model: str | None


class RunFinishing(Payload, frozen=True, kw_only=True, tag_field="phase", tag="finishing"):
    ended_at: int
    aborted: bool
    stop_reason: str | None = None
    error: str | None = None


class RunEnded(Payload, frozen=True, kw_only=True, tag_field="phase", tag="end"):
    started_at: int
    ended_at: int
    stop_reason: str
    aborted: bool
    status: str | None = None
    terminal_reply: TerminalReply | None = None


class RunFailed(Payload, frozen=True, kw_only=True, tag_field="phase", tag="error"):
    error: str
    ended_at: int
    started_at: int | None = None
    aborted: bool | None = None
    stop_reason: str | None = None


class FallbackStep(Payload, frozen=True, kw_only=True, tag_field="phase", tag="fallback_step"):
    fallback_step_from_model: str
    fallback_step_from_failure_reason: str
    fallback_step_chain_position: int
    fallback_step_final_outcome: str
    fallback_step_from_failure_detail: str | None = None


class AssistantText(Payload, frozen=True, kw_only=True):
    """`text` is cumulative, `delta` is new; with `replace` the delta stands for everything."""

    text: str
    delta: str
    item_id: str
    replace: bool = False


class ToolStarted(Payload, frozen=True, kw_only=True, tag_field="phase", tag="start"):
    name: str
    tool_call_id: str
    args: Json


class ToolFinished(Payload, frozen=True, kw_only=True, tag_field="phase", tag="result"):
    name: str
    tool_call_id: str
    is_error: bool
    result: Json


class ItemProgress(Payload, frozen=True, kw_only=True):
    """What a client without the tool-events capability sees of a tool call."""

    item_id: str
    phase: Literal["start", "end"]
    title: str
    status: Literal["running", "completed", "failed"]
    kind: Literal["tool"]
    name: str
    tool_call_id: str
    started_at: int | None = None
    ended_at: int | None = None
    meta: str | None = None


class TokenUse(Payload, frozen=True, kw_only=True):
    output_tokens: int


class RunStatus(Payload, frozen=True, kw_only=True):
    phase: str
    message: str | None = None
    reason: str | None = None
    attempt: int | None = None
    max_attempts: int | None = None
    delay_ms: int | None = None


class AgentPayload(Payload, frozen=True, kw_only=True):
    run_id: str
    session_key: str
    agent_id: str
    seq: int
    ts: int
    is_heartbeat: bool
    session_id: str | None = None
    lane: str | None = None


class AgentLifecycle(AgentPayload, frozen=True, kw_only=True, tag_field="stream", tag="lifecycle"):
    data: RunStarted | ModelChosen | RunFinishing | RunEnded | RunFailed | FallbackStep


class AgentAssistant(AgentPayload, frozen=True, kw_only=True, tag_field="stream", tag="assistant"):
    data: AssistantText


class AgentTool(AgentPayload, frozen=True, kw_only=True, tag_field="stream", tag="tool"):
    """Only for clients with the tool-events capability; see `capability_of`."""

    data: ToolStarted | ToolFinished


class AgentItem(AgentPayload, frozen=True, kw_only=True, tag_field="stream", tag="item"):
    data: ItemProgress


class AgentUsage(AgentPayload, frozen=True, kw_only=True, tag_field="stream", tag="usage"):
    data: TokenUse


class AgentRunStatus(AgentPayload, frozen=True, kw_only=True, tag_field="stream", tag="run_status"):
    data: RunStatus


class CompactionProgress(Payload, frozen=True, kw_only=True):
    """The context of a run is made smaller before the run goes on (LOOP-1)."""

    phase: Literal["start", "end"]
    trigger: str
    completed: bool | None = None
    message: str | None = None


class AgentCompaction(AgentPayload, frozen=True, kw_only=True, tag_field="stream", tag="compaction"):
    data: CompactionProgress


class ThinkingText(Payload, frozen=True, kw_only=True):
    """`text` is all that one model call thought so far, `delta` what is new."""

    text: str
    delta: str


class AgentThinking(AgentPayload, frozen=True, kw_only=True, tag_field="stream", tag="thinking"):
    """Only for clients with the thinking-events capability; see `capability_of`."""

    data: ThinkingText


AgentEvent = (
    AgentLifecycle
    | AgentAssistant
    | AgentTool
    | AgentItem
    | AgentUsage
    | AgentRunStatus
    | AgentCompaction
    | AgentThinking
)


# -- sessions ----------------------------------------------------------------------------------


class SessionMessage(Payload, frozen=True, kw_only=True):
    """A committed transcript message. On the wire the row's fields stand beside these as well."""

    session_key: str
    agent_id: str
    session_id: str
    message: Json
    message_id: str
    message_seq: int
    session: Json
    ancestor_sessions: list[Json] | None = None


class SessionsChanged(Payload, frozen=True, kw_only=True):
    """Either a `reason`, or a run's `phase` and `run_id`."""

    session_key: str
    agent_id: str
    ts: int
    session: Json | None
    reason: str | None = None
    phase: Literal["start", "model", "end", "error"] | None = None
    run_id: str | None = None
    ancestor_sessions: list[Json] | None = None


class SessionOperation(Payload, frozen=True, kw_only=True):
    """A longer work on a session begins or ends; `completed` and `reason` tell how."""

    operation_id: str
    operation: Literal["compact"]
    phase: Literal["start", "end"]
    session_key: str
    agent_id: str
    ts: int
    completed: bool | None = None
    reason: str | None = None


def with_flat_row(event: SessionMessage | SessionsChanged) -> Json:
    """The payload as clients expect it: row fields repeated flat, null where a field is cleared."""
    payload: Json = msgspec.to_builtins(event)
    return {**flatten_row(event.session), **payload} if event.session is not None else payload


# -- gateway -----------------------------------------------------------------------------------


class PresenceChanged(Payload, frozen=True, kw_only=True):
    presence: list[Json]


class Tick(Payload, frozen=True, kw_only=True):
    ts: int


class Shutdown(Payload, frozen=True, kw_only=True):
    """The last event; the socket is then closed with 1012 "service restart"."""

    reason: str
    restart_expected_ms: int | None = None


# -- audience ----------------------------------------------------------------------------------

Subscription = Literal["sessions", "messages"]


class CronTold(Payload, frozen=True, kw_only=True):
    """A job was added, changed, removed or started."""

    job_id: str
    action: str
    job: Json | None = None


class ChannelOutbound(Payload, frozen=True, kw_only=True):
    """A reply to carry, or a sign that one is being written; `key` is the same for every attempt."""

    kind: Literal["message", "typing"]
    channel: str
    account_id: str
    to: str
    key: str | None = None
    thread_id: str | None = None
    text: str | None = None


class EventSpec(Struct, frozen=True):
    """Who receives an event: everyone with `scope`, or of those the followers of one kind.

    "sessions" are the callers of `sessions.subscribe`, "messages" those of
    `sessions.messages.subscribe` for this key; any of the named kinds will do.
    """

    payload: Any
    scope: str | None = None
    subscriptions: tuple[Subscription, ...] = ()


# `health` lists session keys, and what shows sessions needs read (RPC-3).
EVENTS: Final[dict[str, EventSpec]] = {
    "connect.challenge": EventSpec(Challenge),
    "chat": EventSpec(ChatEvent, READ),
    "agent": EventSpec(AgentEvent, READ),
    "session.message": EventSpec(SessionMessage, READ, ("messages", "sessions")),
    "sessions.changed": EventSpec(SessionsChanged, READ, ("sessions",)),
    "session.operation": EventSpec(SessionOperation, READ, ("messages", "sessions")),
    "presence": EventSpec(PresenceChanged),
    "health": EventSpec(Json, READ),
    "device.pair.requested": EventSpec(PendingDevice, PAIRING),
    "device.pair.resolved": EventSpec(PairResolved, PAIRING),
    # To the one connection that attached as this channel's connector.
    "channels.outbound": EventSpec(ChannelOutbound, ADMIN),
    "cron": EventSpec(CronTold, READ),
    "tick": EventSpec(Tick),
    "shutdown": EventSpec(Shutdown),
}


def capability_of(payload: object) -> str | None:
    """The capability a client must have announced to get this payload."""
    if isinstance(payload, AgentTool):
        return TOOL_EVENTS
    return THINKING_EVENTS if isinstance(payload, AgentThinking) else None


def may_receive(
    event: str, scopes: Collection[str], caps: Collection[str] = (), capability: str | None = None
) -> bool:
    """Whether a client may see this event at all; unknown events reach nobody (RPC-3)."""
    spec = EVENTS.get(event)
    if spec is None or (capability is not None and capability not in caps):
        return False
    return spec.scope is None or holds_scope(scopes, spec.scope)
