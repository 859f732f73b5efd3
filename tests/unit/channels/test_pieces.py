"""A long reply as pieces: nothing lost, nothing too large, code blocks whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.channels.pieces import split_text


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def test_a_short_text_is_one_piece_and_an_empty_one_is_none() -> None:
    assert split_text("hello", 100) == ["hello"]
    assert split_text("", 100) == [] and split_text("\n\n", 100) == []


def test_cuts_fall_where_a_reader_would_cut() -> None:
    text = "first paragraph\n\nsecond paragraph\nwith a line"
    assert split_text(text, 30) == ["first paragraph", "second paragraph\nwith a line"]
    assert split_text("one two three four five six", 20) == ["one two three", "four five six"]
    assert split_text("x" * 50, 24) == ["x" * 20, "x" * 20, "x" * 10]


def test_a_code_block_is_closed_and_opened_again() -> None:
    text = "see:\n```python\n" + "\n".join(f"line_{number} = {number}" for number in range(8)) + "\n```\ndone"
    pieces = split_text(text, 60)
    assert len(pieces) > 2
    for piece in pieces[:-1]:
        assert piece.count("```") % 2 == 0, piece
    assert pieces[1].startswith("```python\n") and pieces[-1].endswith("done")


def test_the_platform_counts() -> None:
    text = "🎈" * 100
    pieces = split_text(text, 50, size=utf16)
    assert all(utf16(piece) <= 50 for piece in pieces) and "".join(pieces) == text
    with pytest.raises(ValueError, match="too small"):
        split_text("x", 3)


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="`"), max_size=600), st.integers(16, 80))
def test_nothing_is_lost_but_blanks(text: str, longest: int) -> None:
    pieces = split_text(text, longest)
    assert all(0 < len(piece) <= longest for piece in pieces)
    blank = str.maketrans("", "", " \n")
    assert "".join(pieces).translate(blank) == text.translate(blank)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["```", "```py", "a b c", "", "x" * 40]), max_size=40), st.integers(30, 90))
def test_fences_are_balanced_in_every_piece_but_the_last(lines: list[str], longest: int) -> None:
    pieces = split_text("\n".join(lines), longest)
    assert all(len(piece) <= longest for piece in pieces)
    for piece in pieces[:-1]:
        fences = [line for line in piece.split("\n") if line.strip().startswith("```")]
        assert len(fences) % 2 == 0, piece
