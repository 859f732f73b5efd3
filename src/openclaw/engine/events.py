"""What happens in a run, as one closed union: the gateway, logs and tests read the same values.

Events are announcements, never commands: whatever they tell has been committed
before, and losing one loses nothing that the rows do not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from openclaw.domain.transcript import AssistantMessage, ToolCallBlock, ToolResultMessage
from openclaw.store.records import RunOutcome, SessionRow, StoredEntry
from openclaw.store.sessions import Rotation


class RunScope(Struct, frozen=True):
    """Which run and session an event belongs to."""

    run_id: str
    session_key: str
    agent_id: str
    session_id: str


class InputTaken(Struct, frozen=True):
    """An input is on disk; `queued` when another run is active."""

    scope: RunScope
    session: SessionRow
    created: bool
    rotation: Rotation | None
    queued: bool


class RunPhase(Struct, frozen=True):
    """Where a run is before and between model calls; `detail` is for people."""

    scope: RunScope
    phase: str
    detail: str | None = None


class MessageStored(Struct, frozen=True):
    """A message stands in the transcript."""

    scope: RunScope
    session: SessionRow
    entry: StoredEntry


class RunStarted(Struct, frozen=True):
    scope: RunScope
    session: SessionRow
    started_at: int
    resumed: bool


class ModelCalled(Struct, frozen=True):
    scope: RunScope
    provider: str
    model: str


class TextStreamed(Struct, frozen=True):
    """More text of the answer. `step` counts model calls of the run."""

    scope: RunScope
    step: int
    delta: str
    text: str


class ToolStarted(Struct, frozen=True):
    scope: RunScope
    call: ToolCallBlock
    started_at: int


class ToolFinished(Struct, frozen=True):
    scope: RunScope
    call: ToolCallBlock
    result: ToolResultMessage
    started_at: int
    ended_at: int


class RunEnded(Struct, frozen=True):
    """A run is settled. `absorbed` are the inputs that it took in besides its own."""

    scope: RunScope
    session: SessionRow
    outcome: RunOutcome
    stop_reason: str | None
    error: str | None
    text: str
    message: AssistantMessage | None
    started_at: int
    ended_at: int
    absorbed: tuple[str, ...] = ()


class InputCancelled(Struct, frozen=True):
    """An input left the queue without a run."""

    run_id: str
    session_key: str
    agent_id: str


class SessionChanged(Struct, frozen=True):
    """A session row changed outside a run."""

    session: SessionRow
    reason: str
    extra: dict[str, Any] = {}


EngineEvent = (
    InputTaken
    | RunPhase
    | MessageStored
    | RunStarted
    | ModelCalled
    | TextStreamed
    | ToolStarted
    | ToolFinished
    | RunEnded
    | InputCancelled
    | SessionChanged
)
EventSink = Callable[[EngineEvent], None]
