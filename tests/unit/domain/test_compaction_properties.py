"""Cutting and summarising without a model, for any conversation: pairs hold together, the result fits."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.compaction import (
    CompactionSettings,
    Item,
    Shrunk,
    Task,
    Trigger,
    cut_everything,
    find_cut,
    item_of,
    judge_summary,
    room_for_summary,
)
from openclaw.domain.summaries import NO_FILES, files_of, local_summary
from openclaw.domain.tokens import message_tokens
from openclaw.domain.transcript import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)

TEXT = st.text(max_size=60)
IDS = st.sampled_from(["a", "b", "c", "d"])
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, TEXT, st.just(1)),
    st.builds(
        lambda text, ids, stop: AssistantMessage(
            (TextBlock(text), *(ToolCallBlock(one, "read", {"path": text}) for one in ids)),
            1,
            stop_reason=stop,
        ),
        TEXT,
        st.lists(IDS, max_size=3),
        st.sampled_from(["stop", "toolUse", "aborted", "error", None]),
    ),
    st.builds(lambda one, text: ToolResultMessage(one, "read", (TextBlock(text),), 1), IDS, TEXT),
)
ITEMS = st.lists(MESSAGES, max_size=25).map(
    lambda messages: tuple(item_of(seq, message) for seq, message in enumerate(messages, 1))
)


def answered_pairs(items: tuple[Item, ...]) -> list[tuple[int, int]]:
    """Calls of good messages and the first result that follows each; a later call of the id takes over."""
    pairs: list[tuple[int, int]] = []
    open_calls: dict[str, int] = {}
    for index, item in enumerate(items):
        message = item.message
        if isinstance(message, ToolResultMessage):
            if message.tool_call_id in open_calls:
                pairs.append((open_calls.pop(message.tool_call_id), index))
        elif isinstance(message, AssistantMessage) and message.stop_reason not in ("aborted", "error"):
            for block in message.content:
                if isinstance(block, ToolCallBlock):
                    open_calls[block.id] = index
    return pairs


@pytest.mark.spec("COMP-6", "COMP-7")
@settings(max_examples=300, deadline=None)
@given(ITEMS, st.integers(0, 300))
def test_no_cut_parts_a_call_from_its_result(items: tuple[Item, ...], keep: int) -> None:
    cut = find_cut(items, keep)
    assert cut == find_cut(items, keep)
    if cut is None:
        return
    assert 0 < cut.index < len(items)
    assert not isinstance(items[cut.index].message, ToolResultMessage)
    assert cut.kept_tokens == sum(item.tokens for item in items[cut.index :])
    for call, answer in answered_pairs(items):
        assert (call < cut.index) == (answer < cut.index)
    if cut.turn_start is not None:
        assert cut.turn_start < cut.index
        assert isinstance(items[cut.turn_start].message, UserMessage)
        assert isinstance(items[cut.index].message, AssistantMessage)


@pytest.mark.spec("COMP-6")
@settings(max_examples=300, deadline=None)
@given(ITEMS, st.integers(0, 100))
def test_the_oldest_place_that_keeps_little_enough_is_taken(items: tuple[Item, ...], percent: int) -> None:
    keep = sum(item.tokens for item in items) * percent // 100
    cut = find_cut(items, keep)
    if cut is None or cut.kept_tokens > keep:
        return  # nothing to cut, or nothing fits and the newest place was taken
    # An older place that a cut with more room takes keeps too much.
    older = find_cut(items, keep + 1 + max(item.tokens for item in items))
    if older is not None and older.index < cut.index:
        assert older.kept_tokens > keep


@pytest.mark.spec("COMP-10")
@settings(max_examples=300, deadline=None)
@given(
    items=ITEMS,
    window=st.integers(0, 3000),
    overhead=st.integers(0, 200),
    previous=st.text(max_size=200),
    trigger=st.sampled_from(["manual", "threshold", "overflow"]),
)
def test_a_summary_without_a_model_fits_and_shrinks(
    items: tuple[Item, ...], window: int, overhead: int, previous: str, trigger: Trigger
) -> None:
    before = UserMessage(previous, 1) if previous else None
    task = Task(items, window, trigger, CompactionSettings(), overhead, before, previous)
    for cut in (find_cut(items, task.keep_recent // 4), cut_everything(items)):
        if cut is None:
            continue
        room = room_for_summary(task, cut) - 5
        if room < 30:
            continue
        files = files_of(items[: cut.index], NO_FILES)
        text = local_summary(task, cut, files, room)
        assert text == local_summary(task, cut, files, room)
        verdict = judge_summary(task, cut, UserMessage(text, 1))
        assert isinstance(verdict, Shrunk)
        assert text.strip()
        assert verdict.tokens == overhead + message_tokens(UserMessage(text, 1)) + cut.kept_tokens
        assert verdict.tokens <= task.budget
        assert verdict.tokens <= task.before * 0.9


def test_a_long_conversation_is_cut_in_linear_time() -> None:
    messages: list[Message] = [UserMessage("go", 1)]
    for number in range(20_000):
        messages.append(AssistantMessage((ToolCallBlock(f"c{number}", "read", {}),), 1))
        messages.append(ToolResultMessage(f"c{number}", "read", (TextBlock("x"),), 1))
    items = tuple(Item(seq, message, 10) for seq, message in enumerate(messages, 1))
    started = time.process_time()
    cut = find_cut(items, 1000)
    assert cut is not None
    assert cut.kept_tokens == 1000
    assert time.process_time() - started < 10.0
