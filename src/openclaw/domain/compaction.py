"""When older context is summarised, where it is cut, and whether a summary was worth it (SPEC §20).

Decisions about values only: the texts are made in `domain.summaries`, the work is
done in `engine.compaction`. A pass that does not shrink the context by a tenth is
ineffective, and the next stronger strategy runs; the last one needs no model and
always fits, so that a turn can go on (PITFALLS E1, E2).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from msgspec import Struct

from openclaw.domain.tokens import message_tokens
from openclaw.domain.transcript import (
    AssistantMessage,
    Message,
    ToolResultMessage,
    UserMessage,
    tool_calls_of,
)

Trigger = Literal["manual", "threshold", "overflow"]
Strategy = Literal["summary", "short_summary", "local"]
STRATEGIES: tuple[Strategy, ...] = ("summary", "short_summary", "local")
LEAST_SUMMARY = 60  # tokens; with less room a summary says nothing


class CompactionSettings(Struct, frozen=True):
    """`agents.defaults.compaction` (COMP-5), with the names and defaults of the configuration."""

    mode: Literal["default", "safeguard"] = "default"
    reserve_tokens: int = 16_384
    reserve_tokens_floor: int = 20_000
    keep_recent_tokens: int = 20_000
    timeout_seconds: int = 900
    identifier_policy: Literal["strict", "off", "custom"] = "strict"
    identifier_instructions: str | None = None
    max_active_transcript_bytes: int | None = None


# -- when ----------------------------------------------------------------------------------------------


def effective_reserve(settings: CompactionSettings, window: int) -> int:
    """Tokens that stay free: the larger of reserve and floor, at most a quarter of the window (COMP-5).

    The one function for every threshold, so that flush and compaction cannot disagree (PITFALLS E4).
    """
    return min(max(settings.reserve_tokens, settings.reserve_tokens_floor), window // 4)


def needs_compaction(
    settings: CompactionSettings,
    *,
    context_tokens: int | None,
    window: int,
    active_bytes: int | None = None,
) -> bool:
    """Whether a session is due after a turn (COMP-2, COMP-4). Unknown sizes ask for nothing."""
    if context_tokens is not None and context_tokens > window - effective_reserve(settings, window):
        return True
    largest = settings.max_active_transcript_bytes
    return largest is not None and active_bytes is not None and active_bytes > largest > 0


# -- what ----------------------------------------------------------------------------------------------


class Item(Struct, frozen=True):
    """A message of the active context, the entry that it stands in, and what it costs."""

    seq: int
    message: Message
    tokens: int


def item_of(seq: int, message: Message) -> Item:
    return Item(seq, message, message_tokens(message))


class Task(Struct, frozen=True):
    """One context to be compacted. `overhead` is what prompt and tools cost besides the messages.

    `previous` is the message of the summary that the context begins with, if any; its text is merged
    into the new one, never kept beside it (COMP-8).
    """

    items: tuple[Item, ...]
    window: int
    trigger: Trigger
    settings: CompactionSettings = CompactionSettings()
    overhead: int = 0
    previous: Message | None = None
    previous_summary: str = ""

    @property
    def before(self) -> int:
        """Tokens of the whole request as it is now."""
        previous = 0 if self.previous is None else message_tokens(self.previous)
        return self.overhead + previous + sum(item.tokens for item in self.items)

    @property
    def budget(self) -> int:
        """What the result may cost. After an overflow the provider counted more than we did, so the
        window counts for no more than our own estimate of what did not fit."""
        window = min(self.window, self.before) if self.trigger == "overflow" else self.window
        return window - effective_reserve(self.settings, window)

    @property
    def keep_recent(self) -> int:
        """Tokens of recent messages to keep; in a small window no more than half of what fits."""
        return min(self.settings.keep_recent_tokens, self.budget // 2)

    @property
    def is_crowded(self) -> bool:
        """Whether the context is larger than it should be, or was refused."""
        return self.trigger == "overflow" or self.before > self.budget

    @property
    def needs_room(self) -> bool:
        """Whether the next call cannot be made as things are, so that a poor summary beats none."""
        return self.trigger == "overflow" or self.before > self.window


def strategies_from(attempt: int) -> tuple[Strategy, ...]:
    """The strategies for the n-th compaction of one turn: weaker ones were tried before."""
    return STRATEGIES[max(attempt, 1) - 1 :]


# -- where ---------------------------------------------------------------------------------------------


class Cut(Struct, frozen=True):
    """Items before `index` are summarised. `turn_start` is set when the cut splits a turn (COMP-6)."""

    index: int
    kept_tokens: int
    turn_start: int | None = None


def keep_for(task: Task, strategy: Strategy) -> int:
    """Tokens of recent messages that a strategy keeps."""
    return task.keep_recent // {"summary": 1, "short_summary": 2, "local": 4}[strategy]


def find_cut(items: Sequence[Item], keep: int) -> Cut | None:
    """Where to cut so that at most `keep` tokens stay (COMP-6, COMP-7). None: there is nothing to summarise.

    The oldest possible place wins. When not even the newest possible place keeps so little, that one is
    taken: it is for the caller to see that too much is left.
    """
    kept = [0, *accumulate(item.tokens for item in reversed(items))][::-1]
    if kept[0] <= keep:
        return None
    places = _places_to_cut(items)
    if not places:
        return None
    index = next((place for place in places if kept[place] <= keep), places[-1])
    return Cut(index, kept[index], _turn_start(items, index))


def cut_everything(items: Sequence[Item]) -> Cut:
    """Keep nothing: the summary stands for all of it."""
    return Cut(len(items), 0, _turn_before(items, len(items)))


def choose_cut(task: Task, strategy: Strategy) -> Cut | None:
    """The cut of a strategy that asks a model. None: there is nothing to summarise, or no room for a summary.

    The stronger one puts everything away when even the newest messages are too large to stay, as after
    one huge tool result: a model's summary of them is better than one that is made without a model.
    """
    cut = find_cut(task.items, keep_for(task, strategy))
    if cut is not None and room_for_summary(task, cut) >= LEAST_SUMMARY:
        return cut
    if strategy == "summary" or not task.items or not task.is_crowded:
        return None
    cut = cut_everything(task.items)
    return cut if room_for_summary(task, cut) >= LEAST_SUMMARY else None


def _places_to_cut(items: Sequence[Item]) -> list[int]:
    """Indexes at which the kept part may begin: at no result, and never between a call and its result."""
    held = [0] * (len(items) + 2)
    for first, last in _pairs(items):
        held[first + 1] += 1
        held[last + 1] -= 1
    crossing = list(accumulate(held))
    return [
        index
        for index in range(1, len(items))
        if not crossing[index] and not isinstance(items[index].message, ToolResultMessage)
    ]


def _pairs(items: Sequence[Item]) -> list[tuple[int, int]]:
    """(call, result) as indexes. A call of the newest assistant message whose result is still to come holds
    the end; aborted and failed calls, and old calls that were never answered, hold nothing (COMP-7)."""
    pairs: list[tuple[int, int]] = []
    waiting: dict[str, int] = {}
    newest = 0
    for index, item in enumerate(items):
        message = item.message
        if isinstance(message, ToolResultMessage):
            called = waiting.pop(message.tool_call_id, None)
            if called is not None:
                pairs.append((called, index))
        elif isinstance(message, AssistantMessage):
            newest = index
            if message.stop_reason not in ("aborted", "error"):
                waiting.update((call.id, index) for call in tool_calls_of(message))
    pairs.extend((called, len(items)) for called in waiting.values() if called == newest)
    return pairs


def _turn_start(items: Sequence[Item], index: int) -> int | None:
    """Where the turn began that a cut at an assistant message splits."""
    return _turn_before(items, index) if isinstance(items[index].message, AssistantMessage) else None


def _turn_before(items: Sequence[Item], index: int) -> int | None:
    """Where the turn began that is under way before an index."""
    start = index - 1
    while start >= 0 and not isinstance(items[start].message, UserMessage):
        start -= 1
    while start > 0 and isinstance(items[start - 1].message, UserMessage):
        start -= 1
    return start if start >= 0 else None


# -- whether it was worth it -----------------------------------------------------------------------------


class Shrunk(Struct, frozen=True):
    """The context after a pass fits and is smaller."""

    tokens: int


class Ineffective(Struct, frozen=True):
    """A pass that must not be kept, and why."""

    tokens: int
    reason: str


def room_for_summary(task: Task, cut: Cut) -> int:
    """The most that the summary's message may cost for a pass to count: it fits, and a tenth is gone."""
    return min(task.budget, task.before * 9 // 10) - task.overhead - cut.kept_tokens


def judge_summary(task: Task, cut: Cut, summary: Message) -> Shrunk | Ineffective:
    """Whether a pass shrank the context by a tenth and made it fit. Sizes are our own, never a model's."""
    cost = message_tokens(summary)
    after = task.overhead + cost + cut.kept_tokens
    if cost <= room_for_summary(task, cut):
        return Shrunk(after)
    if after > task.budget:
        return Ineffective(after, f"{after} tokens are left, and only {task.budget} fit")
    return Ineffective(after, f"it went from {task.before} to {after} tokens only")
