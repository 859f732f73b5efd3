"""When to compact, where to cut, and when a summary counts (SPEC §20)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openclaw.config.agents_section import CompactionConfig
from openclaw.domain.compaction import (
    LEAST_SUMMARY,
    STRATEGIES,
    CompactionSettings,
    Cut,
    Ineffective,
    Item,
    Shrunk,
    Task,
    choose_cut,
    cut_everything,
    effective_reserve,
    find_cut,
    item_of,
    judge_summary,
    keep_for,
    needs_compaction,
    room_for_summary,
    strategies_from,
)
from openclaw.domain.tokens import message_tokens
from openclaw.domain.transcript import (
    AssistantMessage,
    Message,
    StopReason,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)


def user() -> Message:
    return UserMessage("u", 1)


def said() -> Message:
    return AssistantMessage((TextBlock("s"),), 1)


def calls(*ids: str, stop: StopReason | None = "toolUse") -> Message:
    return AssistantMessage(tuple(ToolCallBlock(one, "read", {}) for one in ids), 1, stop_reason=stop)


def result(call_id: str) -> Message:
    return ToolResultMessage(call_id, "read", (TextBlock("r"),), 1)


def items(*messages: Message, tokens: int = 10) -> tuple[Item, ...]:
    return tuple(Item(seq, message, tokens) for seq, message in enumerate(messages, 1))


def task(made: tuple[Item, ...], window: int = 1000, **fields: Any) -> Task:
    return Task(made, window, fields.pop("trigger", "threshold"), **fields)


# -- settings and triggers ---------------------------------------------------------------------------------


@pytest.mark.spec("COMP-5")
def test_the_defaults_are_those_of_the_configuration() -> None:
    made = msgspec.convert(CompactionConfig(), CompactionSettings, from_attributes=True)
    assert made == CompactionSettings()
    assert (made.reserve_tokens, made.reserve_tokens_floor, made.keep_recent_tokens) == (16384, 20000, 20000)
    assert (made.mode, made.timeout_seconds, made.identifier_policy) == ("default", 900, "strict")


@pytest.mark.spec("COMP-5")
@pytest.mark.parametrize(
    ("reserve", "floor", "window", "expected"),
    [
        (16_384, 20_000, 200_000, 20_000),
        (30_000, 20_000, 200_000, 30_000),
        (16_384, 0, 200_000, 16_384),
        (16_384, 20_000, 32_768, 8_192),
        (16_384, 20_000, 80_000, 20_000),
        (16_384, 20_000, 79_999, 19_999),
        (0, 0, 100, 0),
    ],
)
def test_the_reserve_is_the_larger_one_and_at_most_a_quarter(
    reserve: int, floor: int, window: int, expected: int
) -> None:
    settings = CompactionSettings(reserve_tokens=reserve, reserve_tokens_floor=floor)
    assert effective_reserve(settings, window) == expected


@pytest.mark.spec("COMP-2", "COMP-4")
def test_a_session_is_due_when_it_reaches_into_the_reserve() -> None:
    settings = CompactionSettings()
    assert not needs_compaction(settings, context_tokens=180_000, window=200_000)
    assert needs_compaction(settings, context_tokens=180_001, window=200_000)
    assert not needs_compaction(settings, context_tokens=None, window=200_000)


@pytest.mark.spec("COMP-5")
def test_the_size_in_bytes_can_be_a_trigger_too() -> None:
    limited = CompactionSettings(max_active_transcript_bytes=1000)
    assert not needs_compaction(limited, context_tokens=1, window=200_000, active_bytes=1000)
    assert needs_compaction(limited, context_tokens=1, window=200_000, active_bytes=1001)
    assert not needs_compaction(limited, context_tokens=None, window=200_000, active_bytes=None)
    off = CompactionSettings(max_active_transcript_bytes=0)
    assert not needs_compaction(off, context_tokens=1, window=200_000, active_bytes=5)
    assert not needs_compaction(CompactionSettings(), context_tokens=1, window=200_000, active_bytes=5)


@pytest.mark.spec("COMP-10")
def test_each_attempt_of_a_turn_starts_stronger_and_there_are_three() -> None:
    assert strategies_from(1) == ("summary", "short_summary", "local")
    assert strategies_from(0) == strategies_from(1)
    assert strategies_from(2) == ("short_summary", "local")
    assert strategies_from(3) == ("local",)
    assert strategies_from(4) == ()
    assert len(STRATEGIES) == 3


# -- sizes of a task ---------------------------------------------------------------------------------------


def test_a_task_knows_its_sizes() -> None:
    previous = UserMessage("p" * 40, 1)
    made = task(items(user(), said()), overhead=7, previous=previous, previous_summary="p")
    assert made.before == 7 + message_tokens(previous) + 20
    assert made.budget == 750
    assert made.keep_recent == 375
    assert not made.needs_room
    assert not made.is_crowded
    small = CompactionSettings(keep_recent_tokens=100)
    assert task(items(user()), settings=small).keep_recent == 100
    assert item_of(4, user()) == Item(4, user(), message_tokens(user()))


@pytest.mark.spec("COMP-4")
def test_after_an_overflow_the_window_is_no_larger_than_what_did_not_fit() -> None:
    made = items(*(user() for _ in range(40)))
    assert task(made, window=1000, trigger="overflow").budget == 300
    assert task(made, window=200, trigger="overflow").budget == 150
    assert task(made, window=1000, trigger="manual").budget == 750


@pytest.mark.spec("COMP-10")
def test_room_is_needed_after_an_overflow_or_when_the_window_is_full() -> None:
    made = items(*(user() for _ in range(40)))
    assert task(made, trigger="overflow").needs_room
    assert not task(made, window=400, trigger="manual").needs_room
    assert task(made, window=399, trigger="threshold").needs_room
    assert task(made, window=1000, trigger="overflow").is_crowded
    assert not task(made, window=534, trigger="threshold").is_crowded
    assert task(made, window=532, trigger="threshold").is_crowded


def test_stronger_strategies_keep_less() -> None:
    made = task(items(user()), settings=CompactionSettings(keep_recent_tokens=80))
    assert [keep_for(made, one) for one in strategies_from(1)] == [80, 40, 20]


# -- the cut -----------------------------------------------------------------------------------------------


@pytest.mark.spec("COMP-6")
def test_as_much_is_kept_as_the_budget_allows() -> None:
    talk = items(*(part for _ in range(5) for part in (user(), said())))
    assert find_cut(talk, 100) is None
    assert find_cut(talk, 99) == Cut(1, 90, 0)
    assert find_cut(talk, 45) == Cut(6, 40)
    assert find_cut(talk, 40) == Cut(6, 40)
    assert find_cut(talk, 39) == Cut(7, 30, 6)
    assert find_cut(talk, 0) == Cut(9, 10, 8)
    assert find_cut((), 10) is None
    assert find_cut(items(user()), 1) is None


@pytest.mark.spec("COMP-6", "COMP-7")
def test_a_cut_is_never_at_a_result_nor_between_a_call_and_its_result() -> None:
    talk = items(user(), calls("a", "b"), result("a"), user(), result("b"), said(), user())
    cuts = [find_cut(talk, keep) for keep in (69, 59, 49, 39, 29, 19, 9)]
    assert [cut.index if cut else None for cut in cuts] == [1, 5, 5, 5, 5, 6, 6]


@pytest.mark.spec("COMP-7")
@pytest.mark.parametrize("stop", ["aborted", "error"])
def test_aborted_and_failed_calls_do_not_hold_the_boundary(stop: StopReason) -> None:
    talk = items(user(), calls("a", stop=stop), user(), result("a"), said())
    assert find_cut(talk, 30) == Cut(2, 30)
    held = items(user(), calls("a"), user(), result("a"), said())
    assert find_cut(held, 30) == Cut(4, 10, 2)


@pytest.mark.spec("COMP-7")
def test_a_call_whose_result_is_to_come_holds_the_end_and_a_forgotten_one_does_not() -> None:
    waiting = items(user(), said(), user(), calls("a"), user())
    assert find_cut(waiting, 15) == Cut(3, 20, 2)
    forgotten = items(user(), calls("a"), user(), said(), user())
    assert find_cut(forgotten, 15) == Cut(4, 10)


@pytest.mark.spec("COMP-7")
def test_a_repeated_call_id_pairs_with_its_latest_call() -> None:
    talk = items(user(), calls("a"), result("a"), user(), calls("a"), result("a"), result("a"))
    assert find_cut(talk, 45) == Cut(3, 40)
    assert find_cut(talk, 25) == Cut(4, 30, 3)


@pytest.mark.spec("COMP-6")
def test_a_turn_that_is_too_long_is_split_at_an_assistant_message() -> None:
    turn = [part for n in range(6) for part in (calls(f"c{n}"), result(f"c{n}"))]
    talk = items(user(), said(), user(), user(), *turn)
    cut = find_cut(talk, 45)
    assert cut == Cut(12, 40, 2)
    assert isinstance(talk[12].message, AssistantMessage)
    orphan = items(said(), said(), said())
    assert find_cut(orphan, 15) == Cut(2, 10)


def test_everything_can_be_cut() -> None:
    assert cut_everything(items(user(), said())) == Cut(2, 0, 0)
    assert cut_everything(items(user(), said(), user(), user(), calls("a"))) == Cut(5, 0, 2)
    assert cut_everything(items(said())) == Cut(1, 0)
    assert cut_everything(()) == Cut(0, 0)


@pytest.mark.spec("COMP-6", "COMP-10")
def test_the_stronger_strategy_puts_everything_away_when_nothing_else_fits() -> None:
    huge = (*items(user(), said(), user(), calls("a")), Item(5, result("a"), 5000))
    full = task(huge, trigger="overflow")
    assert choose_cut(full, "summary") is None
    assert choose_cut(full, "short_summary") == Cut(5, 0, 2)
    assert choose_cut(task(huge, window=2000), "short_summary") == Cut(5, 0, 2)
    # It fits as it is: nothing has to go that should stay.
    assert choose_cut(task(huge, window=10_000), "short_summary") is None
    assert choose_cut(task((), trigger="overflow"), "short_summary") is None
    # Prompt and tools leave no room, whatever is put away.
    assert choose_cut(task(huge, trigger="overflow", overhead=100_000), "short_summary") is None


@pytest.mark.spec("COMP-6")
def test_a_cut_needs_room_for_a_summary_of_some_size() -> None:
    # 20 messages of 10 tokens: a tenth must go, and the cut keeps 100 of what may stay.
    made = items(*(user() for _ in range(20)))
    few = CompactionSettings(keep_recent_tokens=100)
    assert choose_cut(task(made, settings=few, overhead=200), "summary") == Cut(10, 100)
    assert room_for_summary(task(made, settings=few, overhead=200), Cut(10, 100)) == LEAST_SUMMARY
    assert choose_cut(task(made, settings=few, overhead=210), "summary") is None
    assert choose_cut(task(made, settings=few, overhead=210), "short_summary") == Cut(15, 50)


# -- the verdict -------------------------------------------------------------------------------------------


@pytest.mark.spec("COMP-10")
def test_a_pass_must_fit_and_take_a_tenth_away() -> None:
    made = task(items(*(user() for _ in range(50))), window=10_000, overhead=100)
    cut = Cut(40, 100)
    assert made.before == 600
    assert room_for_summary(made, cut) == 540 - 200

    def summary(tokens: int) -> Message:
        return UserMessage("x" * 4 * (tokens - 4), 1)

    assert judge_summary(made, cut, summary(340)) == Shrunk(540)
    verdict = judge_summary(made, cut, summary(341))
    assert verdict == Ineffective(541, "it went from 600 to 541 tokens only")
    tight = task(items(*(user() for _ in range(50))), window=400, overhead=100)
    assert judge_summary(tight, cut, summary(100)) == Shrunk(300)
    assert judge_summary(tight, cut, summary(101)) == Ineffective(
        301, "301 tokens are left, and only 300 fit"
    )
