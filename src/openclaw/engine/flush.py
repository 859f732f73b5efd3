"""The memory flush as the engine plans it: facts of a session in, one silent turn out (FLUSH-1).

The turn itself is a hidden run like any other; whether it worked or not is noted
with the session, and a failure never stops the user's turn (FLUSH-7).
"""

from __future__ import annotations

from zoneinfo import ZoneInfo

from openclaw.domain.compaction import CompactionSettings
from openclaw.domain.flush import (
    FlushFacts,
    FlushPlan,
    FlushSettings,
    FlushSkipped,
    FlushTexts,
    WorkspaceAccess,
    decide_flush,
)
from openclaw.engine.texts import text_of_file
from openclaw.store.records import SessionRow

_TEXTS = FlushTexts(text_of_file("flush_prompt.txt"), text_of_file("flush_system.txt"))


def flush_facts(
    session: SessionRow,
    *,
    window: int,
    workspace_writable: bool,
    sandboxed: bool = False,
    workspace_access: WorkspaceAccess = "rw",
    heartbeat: bool = False,
    cli_provider: bool = False,
) -> FlushFacts:
    """What the decision needs of a session. A total that is only an estimate counts as unknown (ENT-10).

    `workspace_writable` is what `engine.workspace.is_writable` says (FLUSH-2).
    """
    entry = session.entry
    return FlushFacts(
        total_tokens=entry.total_tokens if entry.total_tokens_fresh else None,
        window=window,
        compaction_count=entry.compaction_count,
        flushed_at_count=entry.memory_flush_compaction_count,
        workspace_writable=workspace_writable,
        sandboxed=sandboxed,
        workspace_access=workspace_access,
        heartbeat=heartbeat,
        cli_provider=cli_provider,
    )


def flush_plan(
    facts: FlushFacts,
    settings: FlushSettings,
    compaction: CompactionSettings,
    *,
    now_ms: int,
    zone: ZoneInfo,
) -> FlushPlan | FlushSkipped:
    """The silent turn that is due now, or why none is."""
    return decide_flush(facts, settings, compaction, _TEXTS, now_ms=now_ms, zone=zone)
