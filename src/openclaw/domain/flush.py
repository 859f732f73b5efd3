"""The memory flush: whether a silent turn for notes is due before a compaction, and its texts (SPEC §21).

Decisions and texts as values; the turn itself is an ordinary hidden run of the
engine. The threshold uses the same reserve as compaction, so that the flush always
comes first and comes once per cycle (PITFALLS E4).
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from msgspec import Struct

from openclaw.domain.compaction import CompactionSettings, effective_reserve
from openclaw.domain.silence import SILENT_TOKEN

SkipReason = Literal[
    "disabled", "heartbeat", "cli_provider", "not_writable", "unknown_tokens", "no_threshold",
    "below_threshold", "already_flushed",
]  # fmt: skip
WorkspaceAccess = Literal["none", "ro", "rw"]
_DATE = "YYYY-MM-DD"
TARGET = f"memory/{_DATE}.md"


class FlushSettings(Struct, frozen=True):
    """`compaction.memoryFlush` (FLUSH-5); None for a text is the built-in one."""

    enabled: bool = True
    soft_threshold_tokens: int = 4000
    prompt: str | None = None
    system_prompt: str | None = None
    model: str | None = None


class FlushTexts(Struct, frozen=True):
    """The built-in texts; they live in `domain/texts`."""

    prompt: str
    system_prompt: str


class FlushFacts(Struct, frozen=True, kw_only=True):
    """What is known about the session when its turn has ended.

    `total_tokens` None: unknown, as after a compaction. `flushed_at_count` is the stored
    `memoryFlushCompactionCount`; None: never flushed, which is not the same as 0.
    """

    total_tokens: int | None
    window: int
    compaction_count: int
    flushed_at_count: int | None
    workspace_writable: bool
    sandboxed: bool = False
    workspace_access: WorkspaceAccess = "rw"
    heartbeat: bool = False
    cli_provider: bool = False


class FlushSkipped(Struct, frozen=True):
    reason: SkipReason


class FlushPlan(Struct, frozen=True):
    """One silent turn: what the model is told, what is added to its instructions, which model is asked.

    `target` is the file, relative to the workspace. `compaction_count` is noted with the session after
    the turn, whether it worked or not, so that the next one belongs to the next cycle (FLUSH-4).
    """

    prompt: str
    system_prompt: str
    target: str
    compaction_count: int
    model: str | None = None


def flush_threshold(settings: FlushSettings, compaction: CompactionSettings, window: int) -> int:
    """Tokens from which a flush is due (FLUSH-3). Zero or less: never."""
    return window - effective_reserve(compaction, window) - settings.soft_threshold_tokens


def decide_flush(
    facts: FlushFacts,
    settings: FlushSettings,
    compaction: CompactionSettings,
    texts: FlushTexts,
    *,
    now_ms: int,
    zone: ZoneInfo,
) -> FlushPlan | FlushSkipped:
    """Whether to remind the model to write notes now, and how."""
    reason = _reason_to_skip(facts, settings, flush_threshold(settings, compaction, facts.window))
    if reason is not None:
        return FlushSkipped(reason)
    day = f"{datetime.fromtimestamp(now_ms / 1000, zone):%Y-%m-%d}"
    return FlushPlan(
        prompt=_with_silence(settings.prompt or texts.prompt).replace(_DATE, day),
        system_prompt=_with_silence(settings.system_prompt or texts.system_prompt).replace(_DATE, day),
        target=TARGET.replace(_DATE, day),
        compaction_count=facts.compaction_count,
        model=settings.model,
    )


def _reason_to_skip(facts: FlushFacts, settings: FlushSettings, threshold: int) -> SkipReason | None:
    if not settings.enabled:
        return "disabled"
    if facts.heartbeat:
        return "heartbeat"
    if facts.cli_provider:
        return "cli_provider"
    if not facts.workspace_writable or (facts.sandboxed and facts.workspace_access != "rw"):
        return "not_writable"
    if facts.total_tokens is None:
        return "unknown_tokens"
    if threshold <= 0:
        return "no_threshold"
    if facts.total_tokens < threshold:
        return "below_threshold"
    return "already_flushed" if facts.flushed_at_count == facts.compaction_count else None


def _with_silence(text: str) -> str:
    """The text, with a hint how to stay silent if it gives none (FLUSH-5)."""
    text = text.strip()
    if SILENT_TOKEN in text:
        return text
    return f"{text}\n\nIf there is nothing to say, reply with {SILENT_TOKEN}."
