"""The memory flush: when a silent turn is due, and what it says (SPEC §21)."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.config.agents_section import MemoryFlushConfig
from openclaw.domain.compaction import CompactionSettings, effective_reserve, needs_compaction
from openclaw.domain.flush import (
    FlushFacts,
    FlushPlan,
    FlushSettings,
    FlushSkipped,
    FlushTexts,
    decide_flush,
    flush_threshold,
)

NOW = 1_794_783_600_000  # 2026-11-15 23:00 UTC
UTC = ZoneInfo("UTC")
TEXTS = FlushTexts("Write to memory/YYYY-MM-DD.md, then NO_REPLY.", "A silent turn. NO_REPLY.")
THRESHOLD = 200_000 - 20_000 - 4_000


def facts(**changes: Any) -> FlushFacts:
    known: dict[str, Any] = {
        "total_tokens": THRESHOLD,
        "window": 200_000,
        "compaction_count": 0,
        "flushed_at_count": None,
        "workspace_writable": True,
    }
    return FlushFacts(**known | changes)


def decide(
    known: FlushFacts, chosen: FlushSettings | None = None, zone: ZoneInfo = UTC, **compaction: Any
) -> FlushPlan | FlushSkipped:
    return decide_flush(
        known, chosen or FlushSettings(), CompactionSettings(**compaction), TEXTS, now_ms=NOW, zone=zone
    )


def plan(*args: Any, **kwargs: Any) -> FlushPlan:
    decided = decide(*args, **kwargs)
    assert isinstance(decided, FlushPlan)
    return decided


@pytest.mark.spec("FLUSH-5")
def test_the_defaults_are_those_of_the_configuration() -> None:
    made = msgspec.convert(MemoryFlushConfig(), FlushSettings, from_attributes=True)
    assert made == FlushSettings(True, 4000, None, None, None)


@pytest.mark.spec("FLUSH-1", "FLUSH-3", "FLUSH-5")
def test_at_the_threshold_a_silent_turn_is_due() -> None:
    made = plan(facts())
    assert made.prompt == "Write to memory/2026-11-15.md, then NO_REPLY."
    assert made.system_prompt == "A silent turn. NO_REPLY."
    assert made.target == "memory/2026-11-15.md"
    assert made.compaction_count == 0
    assert made.model is None


@pytest.mark.spec("FLUSH-3")
def test_one_token_below_the_threshold_nothing_is_due() -> None:
    assert decide(facts(total_tokens=THRESHOLD - 1)) == FlushSkipped("below_threshold")
    assert isinstance(decide(facts(total_tokens=THRESHOLD)), FlushPlan)
    later = FlushSettings(soft_threshold_tokens=3999)
    assert decide(facts(), later) == FlushSkipped("below_threshold")
    assert isinstance(decide(facts(total_tokens=THRESHOLD + 1), later), FlushPlan)


@pytest.mark.spec("FLUSH-3")
def test_unknown_tokens_or_no_threshold_mean_never() -> None:
    assert decide(facts(total_tokens=None)) == FlushSkipped("unknown_tokens")
    wide = FlushSettings(soft_threshold_tokens=180_000)
    assert flush_threshold(wide, CompactionSettings(), 200_000) == 0
    assert decide(facts(total_tokens=10**9), wide) == FlushSkipped("no_threshold")
    almost = FlushSettings(soft_threshold_tokens=179_999)
    assert isinstance(decide(facts(total_tokens=1), almost), FlushPlan)


@pytest.mark.spec("FLUSH-2", "FLUSH-6")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"workspace_writable": False}, "not_writable"),
        ({"sandboxed": True, "workspace_access": "ro"}, "not_writable"),
        ({"sandboxed": True, "workspace_access": "none"}, "not_writable"),
        ({"sandboxed": True, "workspace_access": "rw"}, None),
        ({"sandboxed": False, "workspace_access": "none"}, None),
        ({"heartbeat": True}, "heartbeat"),
        ({"cli_provider": True}, "cli_provider"),
    ],
)
def test_some_turns_are_never_followed_by_a_flush(changes: dict[str, Any], reason: str | None) -> None:
    decided = decide(facts(**changes))
    if reason is None:
        assert isinstance(decided, FlushPlan)
    else:
        assert isinstance(decided, FlushSkipped)
        assert decided.reason == reason


@pytest.mark.spec("FLUSH-4")
@pytest.mark.parametrize(
    ("count", "flushed", "due"),
    [(0, None, True), (0, 0, False), (1, 0, True), (1, 1, False), (3, None, True), (2, 1, True)],
)
def test_a_cycle_is_flushed_once_and_never_is_not_zero(count: int, flushed: int | None, due: bool) -> None:
    decided = decide(facts(compaction_count=count, flushed_at_count=flushed))
    if due:
        assert isinstance(decided, FlushPlan)
        assert decided.compaction_count == count
    else:
        assert decided == FlushSkipped("already_flushed")


@pytest.mark.spec("FLUSH-5")
def test_it_can_be_switched_off_and_told_otherwise() -> None:
    assert decide(facts(), FlushSettings(enabled=False)) == FlushSkipped("disabled")
    own = FlushSettings(prompt=" Keep notes in notes/YYYY-MM-DD.md. ", system_prompt="Quiet.", model="a/b")
    made = plan(facts(), own)
    assert made.prompt.startswith("Keep notes in notes/2026-11-15.md.\n\n")
    assert made.system_prompt.startswith("Quiet.\n\n")
    assert "NO_REPLY" in made.prompt
    assert "NO_REPLY" in made.system_prompt
    assert made.model == "a/b"
    assert made.target == "memory/2026-11-15.md"
    mentioned = FlushSettings(prompt="Say NO_REPLY.", system_prompt="NO_REPLY!")
    assert (plan(facts(), mentioned).prompt, plan(facts(), mentioned).system_prompt) == (
        "Say NO_REPLY.",
        "NO_REPLY!",
    )


@pytest.mark.spec("FLUSH-5")
def test_the_date_is_the_local_one() -> None:
    assert plan(facts(), zone=ZoneInfo("Asia/Tokyo")).target == "memory/2026-11-16.md"
    assert plan(facts(), zone=ZoneInfo("America/New_York")).target == "memory/2026-11-15.md"


@pytest.mark.spec("FLUSH-3")
@settings(max_examples=200, deadline=None)
@given(
    window=st.integers(1_000, 2_000_000),
    reserve=st.integers(0, 60_000),
    floor=st.integers(0, 60_000),
    soft=st.integers(1, 20_000),
)
def test_a_flush_is_always_due_before_a_compaction(window: int, reserve: int, floor: int, soft: int) -> None:
    compaction = CompactionSettings(reserve_tokens=reserve, reserve_tokens_floor=floor)
    threshold = flush_threshold(FlushSettings(soft_threshold_tokens=soft), compaction, window)
    assert threshold == window - effective_reserve(compaction, window) - soft
    assert not needs_compaction(compaction, context_tokens=max(threshold, 0), window=window)
