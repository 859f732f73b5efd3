"""Planning the memory flush from a stored session (FLUSH-1, FLUSH-3, FLUSH-5)."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from openclaw.domain.compaction import CompactionSettings
from openclaw.domain.entry import SessionEntry
from openclaw.domain.flush import FlushPlan, FlushSettings, FlushSkipped
from openclaw.engine.flush import flush_facts, flush_plan
from openclaw.store.records import SessionRow

NOW = 1_794_744_000_000  # 2026-11-15 12:00 UTC


def session(**fields: Any) -> SessionRow:
    known: dict[str, Any] = {"total_tokens": 190_000, "total_tokens_fresh": True}
    entry = msgspec.structs.replace(SessionEntry(session_id="s", updated_at=1), **known | fields)
    return SessionRow(1, "agent:main:main", "main", "main", "direct", 1, 1, 1, 0, 0, 0, None, None, entry)


def plan(row: SessionRow, **facts: Any) -> FlushPlan | FlushSkipped:
    made = flush_facts(row, window=200_000, **{"workspace_writable": True} | facts)
    return flush_plan(made, FlushSettings(), CompactionSettings(), now_ms=NOW, zone=ZoneInfo("UTC"))


@pytest.mark.spec("FLUSH-1", "FLUSH-5")
def test_the_built_in_texts_name_the_file_of_the_day_and_the_silent_reply() -> None:
    made = plan(session(compaction_count=2, memory_flush_compaction_count=1))
    assert isinstance(made, FlushPlan)
    assert "memory/2026-11-15.md" in made.prompt
    assert "YYYY" not in made.prompt + made.system_prompt
    assert "NO_REPLY" in made.prompt
    assert "NO_REPLY" in made.system_prompt
    assert (made.target, made.compaction_count, made.model) == ("memory/2026-11-15.md", 2, None)


@pytest.mark.spec("FLUSH-3")
def test_an_estimate_is_not_a_known_size() -> None:
    for fresh in (False, None):
        assert plan(session(total_tokens_fresh=fresh)) == FlushSkipped("unknown_tokens")
    assert plan(session(total_tokens=None)) == FlushSkipped("unknown_tokens")


@pytest.mark.spec("FLUSH-2", "FLUSH-4", "FLUSH-6")
def test_the_facts_reach_the_decision() -> None:
    flushed = session(compaction_count=1, memory_flush_compaction_count=1)
    assert plan(flushed) == FlushSkipped("already_flushed")
    assert plan(session(), workspace_writable=False) == FlushSkipped("not_writable")
    assert plan(session(), sandboxed=True, workspace_access="ro") == FlushSkipped("not_writable")
    assert plan(session(), heartbeat=True) == FlushSkipped("heartbeat")
    assert plan(session(), cli_provider=True) == FlushSkipped("cli_provider")
