"""The repaired message list under arbitrary input: always what a provider accepts (TRX-12)."""

from __future__ import annotations

import re
import time
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.context import Dialect, make_valid
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

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
NEXT = UserMessage("next", 1)

TEXTS = st.sampled_from(["", " ", "\n", "a", "b c", " d "])
IDS = st.sampled_from(["a", "b", "a_2", "x:y", "x;y", "", "z" * 70, "z" * 71])
USER_BLOCKS = st.builds(TextBlock, TEXTS) | st.builds(
    ImageBlock, st.sampled_from(["", "AA"]), st.just("image/png")
)
ASSISTANT_BLOCKS = (
    st.builds(TextBlock, TEXTS)
    | st.builds(ThinkingBlock, TEXTS, st.sampled_from([None, "", "sig"]))
    | st.builds(
        ToolCallBlock, IDS, st.sampled_from(["exec", "", "bad name"]), st.sampled_from([{}, {"x": 1}, None])
    )
)
MESSAGES = st.lists(
    st.builds(UserMessage, TEXTS | st.lists(USER_BLOCKS, max_size=3).map(tuple), st.integers(0, 9))
    | st.builds(
        AssistantMessage,
        st.lists(ASSISTANT_BLOCKS, max_size=4).map(tuple),
        st.integers(0, 9),
        api=st.sampled_from(["", "anthropic-messages", "openai-completions"]),
        stop_reason=st.sampled_from([None, "stop", "aborted"]),
    )
    | st.builds(
        ToolResultMessage,
        IDS,
        st.just("exec"),
        st.lists(USER_BLOCKS, max_size=2).map(tuple),
        st.integers(0, 9),
    ),
    max_size=14,
)


def check_valid(messages: tuple[Message, ...], dialect: Dialect) -> None:
    """What a provider checks, written without the repair in mind."""
    expected_ids: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if isinstance(message, ToolResultMessage):
            assert expected_ids
            assert message.tool_call_id == expected_ids.pop(0)
            assert message.content
            assert message.details is None
        else:
            assert expected_ids == []
            assert message.content
        if not isinstance(message.content, str):
            for block in message.content:
                assert not isinstance(block, TextBlock) or block.text.strip()
                assert not isinstance(block, ImageBlock) or block.data
                assert not isinstance(block, ThinkingBlock) or block.thinking_signature
        else:
            assert message.content.strip()
        if isinstance(message, AssistantMessage):
            assert any(not isinstance(block, ThinkingBlock) for block in message.content)
            expected_ids = [block.id for block in message.content if isinstance(block, ToolCallBlock)]
            for block in message.content:
                if isinstance(block, ToolCallBlock):
                    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", block.id)
                    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", block.name)
                    assert isinstance(block.arguments, dict)
                    assert dialect == "anthropic" or len(block.id) <= 40
            assert not seen & set(expected_ids)
            assert len(set(expected_ids)) == len(expected_ids)
            seen |= set(expected_ids)
    assert expected_ids == []
    if dialect == "anthropic" and messages:
        assert isinstance(messages[0], UserMessage)
        for before, after in pairwise(messages):
            assert type(before) is not type(after) or isinstance(after, ToolResultMessage)


@pytest.mark.spec("TRX-12")
@settings(max_examples=300, deadline=None)
@given(MESSAGES, st.sampled_from(DIALECTS), st.booleans())
def test_any_list_becomes_valid(messages: list[Message], dialect: Dialect, keep_thinking: bool) -> None:
    valid = make_valid(messages, dialect, keep_thinking=keep_thinking)
    check_valid(valid, dialect)
    assert make_valid(valid, dialect, keep_thinking=keep_thinking) == valid


@pytest.mark.spec("TRX-12")
@settings(max_examples=200, deadline=None)
@given(MESSAGES, st.sampled_from(DIALECTS))
def test_no_words_of_people_are_lost(messages: list[Message], dialect: Dialect) -> None:
    def words(some: tuple[Message, ...] | list[Message]) -> list[str]:
        found = []
        for message in some:
            if isinstance(message, UserMessage):
                content = (
                    (TextBlock(message.content),) if isinstance(message.content, str) else message.content
                )
                found += [
                    block.text for block in content if isinstance(block, TextBlock) and block.text.strip()
                ]
        return found

    valid = words(make_valid(messages, dialect))
    assert [text for text in valid if not text.startswith("(The conversation")] == words(messages)


@pytest.mark.spec("TRX-12", "LOOP-2")
@settings(max_examples=200, deadline=None)
@given(MESSAGES)
def test_appending_a_user_turn_keeps_the_repaired_prefix(messages: list[Message]) -> None:
    before = make_valid(messages, "openai")
    assert make_valid([*messages, NEXT], "openai") == (*before, NEXT)


@pytest.mark.spec("TRX-12")
def test_many_equal_ids_stay_fast() -> None:
    ids = (f"{'p' * 38}{number % 500}" for number in range(20_000))
    crowd = [AssistantMessage((ToolCallBlock(call_id, "exec", {}),), 1) for call_id in ids]
    started = time.process_time()
    assert len(make_valid(crowd, "openai")) == 40_000
    assert time.process_time() - started < 3.0
