"""Named points inside units of work and commits, where a test may stop the world.

Each is a place between two changes that must never be seen apart. `reach` marks it in the code and does
nothing unless a test watches. Nothing of the product may watch, and no decision may depend on it.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    # the writer: around a batch and its commit
    "batch.begun",
    "batch.unit_kept",
    "commit.ahead",
    "commit.done",
    "answer.ahead",
    "checkpoint.ahead",
    "checkpoint.done",
    # inputs
    "accept.session_found",
    "accept.input_kept",
    "accept.done",
    "inbox.consumed",
    "inbox.cancelled",
    "inbox.dropped",
    # runs
    "claim.run_begun",
    "claim.done",
    "absorb.consumed",
    "step.held",
    "step.used",
    "finish.appended",
    "finish.ended",
    "finish.handed_over",
    "finish.done",
    "run.abandoned",
    "run.taken_over",
    # sessions and windows
    "session.window_opened",
    "session.created",
    "session.changed",
    "rotate.window_ended",
    "rotate.done",
    "restore.window_reopened",
    "delete.windows_forgotten",
    "delete.row_gone",
    # transcript and search
    "append.advanced",
    "append.blob_kept",
    "append.entry_kept",
    "search.added",
    "fold.words_indexed",
    "fold.rows_kept",
    "fold.done",
    # deliveries
    "delivery.prepared",
)

_watcher: Callable[[str], None] | None = None


def reach(name: str) -> None:
    """Say that this point is reached."""
    if _watcher is not None:
        _watcher(name)


def watch(watcher: Callable[[str], None] | None) -> None:
    """Call `watcher` with the name of each point, on the thread that reaches it. None ends the watching."""
    global _watcher
    _watcher = watcher
