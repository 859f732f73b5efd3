"""What comes from elsewhere cannot steer the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.tui.text import safe_line, safe_text

ANY_TEXT = st.text(st.characters(), max_size=200)
FORBIDDEN = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u202e", "\u2066", "\u2028", "\ud800"}


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("plain ünïcode 漢字 🙂", "plain ünïcode 漢字 🙂"),
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"),
        ("\x1b]52;c;aGk=\x07", "\ufffd]52;c;aGk=\ufffd"),
        ("\x9b2J", "\ufffd2J"),
        ("a\r\nb\rc\nd", "a\nb\nc\nd"),
        ("a\tb", "a    b"),
        ("\u202egpj.exe\u200f", "\ufffdgpj.exe\ufffd"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("nul\0", "nul\ufffd"),
    ],
)
def test_escapes_are_shown_and_not_obeyed(given_text: str, shown: str) -> None:
    assert safe_text(given_text) == shown


@settings(max_examples=200, deadline=None)
@given(ANY_TEXT)
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    shown = safe_text(text)
    assert not (FORBIDDEN - {"\n"}) & set(shown)
    assert safe_text(shown) == shown
    assert shown.encode("utf-8").decode() == shown


@settings(max_examples=200, deadline=None)
@given(ANY_TEXT, st.integers(2, 40))
def test_a_line_is_one_line_and_short(text: str, limit: int) -> None:
    line = safe_line(text, limit)
    assert "\n" not in line and len(line) <= limit
    assert not FORBIDDEN & set(line)


def test_a_line_that_was_cut_says_so() -> None:
    assert safe_line("a  b\nc") == "a b c"
    assert safe_line("x" * 10, 10) == "x" * 10
    assert safe_line("x" * 11, 10) == "x" * 9 + "…"
    assert safe_line(" " * 1_000_000 + "x", 10) == "…"
