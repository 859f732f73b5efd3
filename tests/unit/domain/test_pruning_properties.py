"""Pruning under any conversation: what was pruned stays pruned, byte for byte, and looking again is cheap."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.pruning import HardClear, PrunedView, PruneState, PruningSettings, SoftTrim, prune
from openclaw.domain.tokens import message_weight
from openclaw.domain.transcript import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    encode,
)

SMALL = PruningSettings(
    ttl_ms=100,
    keep_last_assistants=2,
    min_prunable_tool_chars=300,
    soft_trim=SoftTrim(200, 40, 40),
    hard_clear=HardClear(placeholder="[gone]"),
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["user", "said", "tool"]), st.integers(0, 900), st.integers(0, 150)),
    min_size=1,
    max_size=40,
)


def grow(messages: tuple[Message, ...], kind: str, size: int) -> tuple[Message, ...]:
    number = len(messages)
    if kind == "user":
        return (*messages, UserMessage(f"{number}" + "u" * size, number))
    if kind == "said":
        return (*messages, AssistantMessage((TextBlock(f"{number}" + "s" * size),), number))
    call = AssistantMessage((ToolCallBlock(f"c{number}", "read", {}),), number)
    return (*messages, call, ToolResultMessage(f"c{number}", "read", (TextBlock("r" * size),), number))


def play(steps: list[tuple[str, int, int]], window: int) -> list[tuple[tuple[Message, ...], PrunedView]]:
    """A call after every step, each some time after the one before."""
    messages: tuple[Message, ...] = ()
    state: PruneState | None = None
    now, last_call, seen = 1000, None, []
    for kind, size, pause in steps:
        messages, now = grow(messages, kind, size), now + pause
        view = prune(messages, SMALL, window_tokens=window, last_call_ms=last_call, now_ms=now, before=state)
        seen.append((messages, view))
        state, last_call = view.state, now
    return seen


@pytest.mark.spec("PRUNE-3")
@settings(max_examples=200, deadline=None)
@given(STEPS, st.sampled_from([100, 300, 1000]))
def test_between_prunings_a_request_is_a_prefix_of_the_next(
    steps: list[tuple[str, int, int]], window: int
) -> None:
    for (_, earlier), (_, later) in pairwise(play(steps, window)):
        old = [encode(message) for message in earlier.messages]
        new = [encode(message) for message in later.messages[: len(old)]]
        moved = [index for index, (was, now) in enumerate(zip(old, new, strict=True)) if was != now]
        assert set(moved) <= set(later.changed)
        if later.gate is None:
            assert old == new
            assert later.changed == ()


@pytest.mark.spec("PRUNE-3", "PRUNE-4")
@settings(max_examples=200, deadline=None)
@given(STEPS, st.sampled_from([100, 300, 1000]))
def test_only_old_results_get_shorter_and_stay_so(steps: list[tuple[str, int, int]], window: int) -> None:
    pruned_before: set[int] = set()
    for messages, view in play(steps, window):
        assert len(view.messages) == len(messages)
        assert view.state.weight == sum(message_weight(message) for message in view.messages)
        assert view.state.seen == len(messages)
        differing = {
            index
            for index, (new, old) in enumerate(zip(view.messages, messages, strict=True))
            if new is not old
        }
        assert pruned_before <= differing == set(view.state.pruned)
        assistants = [n for n, message in enumerate(messages) if isinstance(message, AssistantMessage)]
        for index in differing:
            assert isinstance(messages[index], ToolResultMessage)
            assert index < assistants[-2]
            assert message_weight(view.messages[index]) < message_weight(messages[index])
        pruned_before = differing


@pytest.mark.spec("PRUNE-3")
def test_a_context_that_begins_otherwise_starts_anew() -> None:
    steps = [("user", 5, 0), *[("tool", 800, 0)] * 8]
    messages, view = play(steps, 300)[-1]
    assert view.state.pruned

    def again(context: tuple[Message, ...], chosen: PruningSettings = SMALL) -> PruneState:
        return prune(
            context, chosen, window_tokens=10_000_000, last_call_ms=None, now_ms=1, before=view.state
        ).state

    assert again(messages).pruned == view.state.pruned
    assert again((UserMessage("a summary", 0), *messages[1:])).pruned == {}
    assert again(messages[:-1]).pruned == {}
    assert again(messages, PruningSettings()).pruned == {}
    # One with the same beginning and nothing new is taken as it is.
    assert again(messages) is view.state


@pytest.mark.spec("PRUNE-3")
def test_an_empty_context_is_left_alone() -> None:
    view = prune((), SMALL, window_tokens=10, last_call_ms=0, now_ms=10_000)
    assert view.messages == ()
    assert view.state.seen == 0
    grown = prune(
        (UserMessage("hi", 1),), SMALL, window_tokens=10, last_call_ms=None, now_ms=1, before=view.state
    )
    assert grown.state.seen == 1


@pytest.mark.spec("PRUNE-1")
def test_ten_thousand_messages_are_looked_at_once() -> None:
    messages: tuple[Message, ...] = (UserMessage("go", 1),)
    for number in range(5000):
        call = AssistantMessage((ToolCallBlock(f"c{number}", "read", {}),), 1)
        messages += (call, ToolResultMessage(f"c{number}", "read", (TextBlock("x" * 5000),), 1))
    chosen = PruningSettings()
    view = prune(messages, chosen, window_tokens=1_000_000, last_call_ms=0, now_ms=10**9)
    assert len(view.changed) > 4000
    started = time.process_time()
    for _ in range(50):
        view = prune(
            messages, chosen, window_tokens=1_000_000, last_call_ms=10**9, now_ms=10**9, before=view.state
        )
    spent_ms = (time.process_time() - started) * 1000 / 50
    assert view.gate is None
    assert spent_ms < 20
