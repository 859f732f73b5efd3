"""Which message of a context stays first when only the newest are kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.compaction import Item, item_of
from openclaw.domain.transcript import AssistantMessage, TextBlock, ToolResultMessage, UserMessage
from openclaw.engine.trimming import first_kept


def item(seq: int, kind: str) -> Item:
    if kind == "user":
        return item_of(seq, UserMessage("u", 0))
    if kind == "result":
        return item_of(seq, ToolResultMessage("call", "tool", (TextBlock("r"),), 0))
    return item_of(seq, AssistantMessage((TextBlock("a"),), 0))


def items(kinds: str) -> list[Item]:
    words = {"u": "user", "a": "assistant", "r": "result"}
    return [item(number, words[letter]) for number, letter in enumerate(kinds)]


@pytest.mark.spec("RPC-9", "COMP-7")
@pytest.mark.parametrize(
    ("kinds", "keep", "first"),
    [
        ("", 1, 0),
        ("u", 1, 0),
        ("ua", 2, 0),
        ("ua", 3, 0),
        ("uaua", 1, 3),
        ("uaua", 3, 1),
        ("uara", 2, 3),  # a result would come first: it goes too
        ("uara", 3, 1),
        ("uarrr", 2, 5),  # nothing but results: nothing stays
        ("rra", 3, 0),  # nothing is put away, so nothing is moved
        ("rra", 2, 2),
    ],
)
def test_the_first_that_stays(kinds: str, keep: int, first: int) -> None:
    assert first_kept(items(kinds), keep) == first


@pytest.mark.spec("RPC-9", "COMP-7")
@settings(max_examples=200, deadline=None)
@given(kinds=st.text("uar", max_size=20), keep=st.integers(1, 25))
def test_at_most_so_many_stay_and_no_result_is_first(kinds: str, keep: int) -> None:
    first = first_kept(items(kinds), keep)
    assert 0 <= first <= len(kinds)
    if first:
        assert len(kinds) - first <= keep
        assert first == len(kinds) or kinds[first] != "r"
        # Only results were given up beyond what was asked for.
        assert set(kinds[len(kinds) - keep : first]) <= {"r"}
    else:
        assert len(kinds) <= keep
