"""What happens in a run, as one closed union: the gateway, logs and tests read the same values.

Events are announcements, never commands: whatever they tell has been committed
before, and losing one loses nothing that the rows do not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from openclaw.domain.lifecycle import TurnSource
from openclaw.domain.resets import SessionEnd, SessionStart
from openclaw.domain.transcript import AssistantMessage, ToolCallBlock, ToolResultMessage
from openclaw.store.records import RunOutcome, SessionRow, StoredEntry, UserInput
from openclaw.store.sessions import Rotation


class RunScope(Struct, frozen=True):
    """Which run and session an event belongs to. `hidden`: the gateway's own turn, which nobody is shown."""

    run_id: str
    session_key: str
    agent_id: str
    session_id: str
    hidden: bool = False


class InputTaken(Struct, frozen=True):
    """An input is on disk; `queued` when another run is active."""

    scope: RunScope
    session: SessionRow
    created: bool
    rotation: Rotation | None
    queued: bool
    # What was said and where; None where the gateway itself put the input there.
    body: UserInput | None = None
    source: TurnSource | None = None


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


class ThinkingStreamed(Struct, frozen=True):
    """More of what the model thinks aloud."""

    scope: RunScope
    step: int
    delta: str


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
    # What the model thought before its answer, where people want to see it.
    thinking: str = ""


class SideNotePosted(Struct, frozen=True):
    """The outbox holds something for people besides the reply of this run."""

    scope: RunScope


class InputCancelled(Struct, frozen=True):
    """An input left the queue without a run, and why."""

    run_id: str
    session_key: str
    agent_id: str
    reason: str = "rpc"


class WindowsChanged(Struct, frozen=True):
    """A window of a session ended or began (LIFE-22)."""

    session: SessionRow
    notices: tuple[SessionEnd | SessionStart, ...]


class SessionChanged(Struct, frozen=True):
    """A session row changed outside a run."""

    session: SessionRow
    reason: str
    extra: dict[str, Any] = {}


class CommandAnswered(Struct, frozen=True):
    """A command was answered, and the answer is on disk.

    `entries` are what history shows of it; empty for a side question.
    """

    scope: RunScope
    session: SessionRow
    text: str
    at_ms: int
    entries: tuple[StoredEntry, ...] = ()
    created: bool = False
    interrupted: bool = False
    # The commands that were carried out, where that is known.
    names: tuple[str, ...] = ()


class CompactionTold(Struct, frozen=True):
    """A compaction began (`result` None) or ended, and how."""

    session: SessionRow
    run_id: str | None
    trigger: str
    done: bool
    compacted: bool = False
    message: str = ""


EngineEvent = (
    InputTaken
    | RunPhase
    | MessageStored
    | RunStarted
    | ModelCalled
    | TextStreamed
    | ThinkingStreamed
    | ToolStarted
    | ToolFinished
    | RunEnded
    | SideNotePosted
    | InputCancelled
    | WindowsChanged
    | SessionChanged
    | CompactionTold
    | CommandAnswered
)
EventSink = Callable[[EngineEvent], None]
