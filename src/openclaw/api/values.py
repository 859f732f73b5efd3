"""What the library answers with: values of their own type, read from what the gateway sent.

Only the fields that programs work with; a newer gateway may send more, which is passed over.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from openclaw.protocol.messages import text_of

Json = dict[str, Any]


class Value(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base: named here as in Python, read as it stands on the wire."""


class SessionInfo(Value, frozen=True, kw_only=True):
    """A session as a list shows it. `key` is short for sessions of the own agent (KEY-2)."""

    key: str
    agent_id: str
    kind: str
    session_id: str
    updated_at: int
    channel: str | None = None
    model: str | None = None
    context_tokens: int | None = None
    total_tokens: int | None = None
    label: str | None = None
    display_name: str | None = None
    status: str | None = None
    spawned_by: str | None = None
    child_sessions: tuple[str, ...] = ()
    derived_title: str | None = None
    last_message_preview: str | None = None
    messages: tuple[Json, ...] = ()


class History(Value, frozen=True, kw_only=True):
    """The newest messages of a session, oldest first; `next_offset` asks for the ones before."""

    session_key: str
    messages: tuple[Json, ...]
    truncated: bool = False
    dropped_messages: bool = False
    content_truncated: bool = False
    content_redacted: bool = False
    next_offset: int | None = None

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """(role, text) of every message that has text."""
        told = ((str(message.get("role")), text_of(message)) for message in self.messages)
        return tuple((role, text) for role, text in told if text)


class SearchHit(Value, frozen=True, kw_only=True):
    """Read around it with `history(hit.session_id, message_id=hit.message_id)`."""

    session_key: str
    session_id: str
    message_id: str
    timestamp: int
    role: str
    snippet: str


class StatusCard(Value, frozen=True, kw_only=True):
    """`text` is the card as people read it."""

    session_key: str
    model: str
    model_provider: str
    changed_model: bool = False
    text: str = ""


class AgentInfo(Value, frozen=True, kw_only=True):
    id: str
    configured: bool
    name: str | None = None
    model: str | None = None


class Sent(Value, frozen=True, kw_only=True):
    """A message to another session: `reply` when it was waited for and came (A2A-3 to A2A-6)."""

    status: Literal["accepted", "ok", "timeout", "error"]
    run_id: str
    reply: str | None = None
    error: str | None = None


class Spawned(Value, frozen=True, kw_only=True):
    """A sub-agent that has its task. Its completion comes to the session that spawned it (SPAWN-3)."""

    run_id: str
    child_session_key: str
    status: str = "accepted"


class Reply(Value, frozen=True, kw_only=True):
    """The answer to one message. `text` is empty when the agent chose to say nothing."""

    run_id: str
    session_key: str
    text: str


class Waited(Value, frozen=True, kw_only=True):
    """How a run stands after waiting for it; `timeout` means that it goes on (RPC-17)."""

    run_id: str
    status: Literal["ok", "error", "timeout"]
    text: str = ""
    error: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
