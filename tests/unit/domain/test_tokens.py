"""The estimate of tokens: cheap, additive, and heavier for dense scripts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.tokens import (
    DEFAULT_WINDOW,
    IMAGE_TOKENS,
    MESSAGE_TOKENS,
    TOOL_TOKENS,
    clip_to_tokens,
    compact_json,
    context_window,
    message_tokens,
    message_weight,
    messages_tokens,
    text_tokens,
    text_weight,
    tool_tokens,
)
from openclaw.domain.transcript import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("", 0),
        ("abcd", 4),
        ("häuser", 7),
        ("привет", 12),
        ("日本語", 12),
        ("ภาษาไทย", 28),
        ("한국어", 12),
        ("ｆｕｌｌ", 16),
        ("😀", 4),
        ("a日é", 1 + 4 + 2),
        ("\ud800", 2),
    ],
)
def test_a_character_weighs_by_its_script(text: str, weight: int) -> None:
    assert text_weight(text) == weight
    assert text_tokens(text) == -(-weight // 4)


def test_tokens_are_rounded_up() -> None:
    assert [text_tokens("x" * length) for length in (0, 1, 4, 5, 8, 9)] == [0, 1, 1, 2, 2, 3]


def test_each_block_counts_and_details_do_not() -> None:
    frame = MESSAGE_TOKENS * 4
    assert message_weight(UserMessage("x" * 40, 1)) == frame + 40
    assert message_weight(UserMessage((TextBlock("x" * 8), ImageBlock("A" * 9000, "image/png")), 1)) == (
        frame + 8 + 4 * IMAGE_TOKENS
    )
    call = ToolCallBlock("id", "read", {"path": "/a"})
    assert compact_json(call.arguments) == '{"path":"/a"}'
    spoken = AssistantMessage((ThinkingBlock("hmmm"), TextBlock("ok"), call), 1)
    assert message_weight(spoken) == frame + 4 + 2 + 4 + 13
    result = ToolResultMessage("id", "read", (TextBlock("x" * 12),), 1)
    assert message_weight(result) == frame + 4 + 12
    detailed = ToolResultMessage("id", "read", (TextBlock("x" * 12),), 1, details={"rows": "y" * 10_000})
    assert message_weight(detailed) == message_weight(result)
    assert message_tokens(result) == 8
    assert messages_tokens([result, spoken]) == message_tokens(result) + message_tokens(spoken)
    assert messages_tokens([]) == 0


def test_arguments_that_no_encoder_takes_still_weigh() -> None:
    odd = AssistantMessage((ToolCallBlock("id", "t", {"x": "\ud800", "y": object}),), 1)
    assert message_tokens(odd) > MESSAGE_TOKENS


def test_a_tool_costs_its_name_description_and_schema() -> None:
    assert tool_tokens("read", "d" * 40, {"type": "object"}) == TOOL_TOKENS + -(-(4 + 40 + 17) // 4)


@pytest.mark.spec("PRUNE-5")
def test_the_window_is_the_configured_one_then_the_models_then_a_default_under_a_cap() -> None:
    assert context_window() == DEFAULT_WINDOW == 200_000
    assert context_window(of_model=8192) == 8192
    assert context_window(configured=1000, of_model=8192) == 1000
    assert context_window(configured=0, of_model=8192) == 8192
    assert context_window(configured=-1, of_model=0) == 200_000
    assert context_window(of_model=8192, cap=4096) == 4096
    assert context_window(of_model=8192, cap=9999) == 8192
    assert context_window(of_model=8192, cap=0) == 8192
    assert context_window(cap=1) == 1


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 3, 10])
def test_a_clipped_text_is_the_longest_beginning_that_fits(limit: int) -> None:
    for text in ("abcdefghijkl", "日本語日本語", "aé日" * 5):
        clipped = clip_to_tokens(text, limit)
        assert text.startswith(clipped)
        assert text_tokens(clipped) <= max(limit, 0)
        if len(clipped) < len(text):
            assert text_tokens(text[: len(clipped) + 1]) > limit
    assert clip_to_tokens("abcd", 1) == "abcd"


MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, st.text(max_size=40), st.just(1)),
    st.builds(lambda text: AssistantMessage((TextBlock(text),), 1), st.text(max_size=40)),
    st.builds(lambda text: ToolResultMessage("i", "t", (TextBlock(text),), 1), st.text(max_size=40)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(MESSAGES, max_size=8), MESSAGES)
def test_a_new_message_adds_exactly_its_own_cost(messages: list[Message], new: Message) -> None:
    assert messages_tokens([*messages, new]) == messages_tokens(messages) + message_tokens(new)
    assert message_tokens(new) >= MESSAGE_TOKENS


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60), st.integers(0, 40))
def test_weights_add_up_and_clipping_never_exceeds(one: str, two: str, limit: int) -> None:
    assert text_weight(one + two) == text_weight(one) + text_weight(two)
    assert len(one) <= text_weight(one) <= 4 * len(one)
    assert text_tokens(clip_to_tokens(one + two, limit)) <= limit


def test_a_long_hostile_text_is_weighed_in_linear_time() -> None:
    text = "a日é\ud800" * 500_000
    started = time.process_time()
    assert text_weight(text) == 500_000 * 9
    assert len(clip_to_tokens(text, 1000)) < 4000
    assert time.process_time() - started < 5.0
