"""Ages, token counts and text from elsewhere, as a terminal may show them."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.terminaltext import (
    age,
    context_use,
    counted,
    moment,
    one_line,
    printable,
    tokens,
    wrapped,
)

pytestmark = pytest.mark.spec("CLI-3")

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("duration_ms", "shown"),
    [
        (None, "-"),
        (-5, "0s"),
        (0, "0s"),
        (999, "0s"),
        (MINUTE - 1, "59s"),
        (MINUTE, "1m"),
        (HOUR - 1, "59m"),
        (HOUR, "1h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (400 * DAY, "400d"),
    ],
)
def test_an_age_is_one_rounded_down_word(duration_ms: int | None, shown: str) -> None:
    assert age(duration_ms) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (None, "-"),
        (0, "0"),
        (999, "999"),
        (1000, "1k"),
        (1234, "1.2k"),
        (12_345, "12.3k"),
        (99_949, "99.9k"),
        (99_950, "100k"),
        (200_000, "200k"),
        (999_499, "999k"),
        (999_500, "1m"),
        (1_250_000, "1.2m"),
        (123_000_000, "123m"),
    ],
)
def test_token_counts_are_short(count: int | None, shown: str) -> None:
    assert tokens(count) == shown


@pytest.mark.parametrize(
    ("total", "context", "fresh", "shown"),
    [
        (12_300, 200_000, True, "12.3k/200k (6%)"),
        (12_300, 200_000, False, "~12.3k/200k (6%)"),
        (None, 200_000, False, "-/200k"),
        (500, None, True, "500"),
        (500, 0, True, "500"),
        (0, 64_000, True, "0/64k (0%)"),
        (70_000, 64_000, True, "70k/64k (109%)"),
    ],
)
def test_the_use_of_a_context_shows_its_share(
    total: int | None, context: int | None, fresh: bool, shown: str
) -> None:
    assert context_use(total, context, fresh=fresh) == shown


@pytest.mark.parametrize("at_ms", [None, "yesterday", True, 0, -1, 253_402_300_799_000, 10**18, float("nan")])
def test_what_is_no_moment_is_not_shown(at_ms: object) -> None:
    assert moment(at_ms) == ""


def test_a_moment_is_shown_in_its_zone() -> None:
    assert moment(1_700_000_000_000, UTC) == "2023-11-14 22:13"
    assert moment(1_700_000_000_000.5, ZoneInfo("Asia/Tokyo")) == "2023-11-15 07:13"
    assert moment(253_402_300_798_999, UTC) == "9999-12-31 23:59" and moment(1, UTC) == "1970-01-01 00:00"
    assert len(moment(1_800_000_000_000)) == len("2027-01-15 08:00")


def test_one_is_not_plural() -> None:
    assert [counted(count, "session") for count in (0, 1, 2)] == ["0 sessions", "1 session", "2 sessions"]


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    hostile = "\x1b]0;owned\x07red\x9b31m\r\nline\ttab\ud800\u202eright"
    assert printable(hostile) == "�]0;owned�red�31m\nline\ttab��right"
    assert one_line("a\n\tb\x1bc") == "a b�c"
    assert printable("10%\r20%\r\nright\u200f \u061c\u200e") == "10%\n20%\nright� ��"


@given(st.text(st.characters(), max_size=200))
@settings(max_examples=200, deadline=None)
def test_printed_text_holds_no_control_character_and_can_be_encoded(text: str) -> None:
    shown = printable(text)
    shown.encode("utf-8")
    assert not [char for char in shown if unicodedata.category(char) == "Cc" and char not in "\n\t"]
    assert not re.search("[\n\t]", one_line(text))


@pytest.mark.parametrize(
    ("line", "width", "hanging", "parts"),
    [
        ("", 10, 2, [""]),
        ("short", 10, 2, ["short"]),
        ("just right", 10, 2, ["just right"]),
        ("not quite so", 11, 2, ["not quite", "  so"]),
        ("  a list   of words", 12, 4, ["  a list   ".rstrip(), "    of words"]),
        ("run `openclaw gateway run` now", 12, 0, ["run `openclaw gateway run`", "now"]),
        ("a ` b c d", 5, 0, ["a ` b", "c d"]),
        ("x" * 20 + " y", 10, 2, ["x" * 20, "  y"]),
        ("see " + "x" * 8 + " y", 10, 2, ["see", "  " + "x" * 8, "  y"]),
        ("see " + "x" * 9 + " y", 10, 2, ["see " + "x" * 9, "  y"]),
        ("漢字 漢字 漢字", 9, 0, ["漢字 漢字", "漢字"]),
        ("one two three", 6, 4, ["one", "two", "three"]),  # no room for a margin
        ("one two six", 8, 4, ["one two", "    six"]),
    ],
)
def test_lines_are_broken_between_words(line: str, width: int, hanging: int, parts: list[str]) -> None:
    assert wrapped(line, width, hanging) == parts


@given(st.text("ab `漢\t", max_size=200), st.integers(1, 40), st.integers(0, 20))
@settings(max_examples=300, deadline=None)
def test_no_word_is_lost_in_wrapping(line: str, width: int, hanging: int) -> None:
    parts = wrapped(line, width, hanging)
    assert " ".join(parts).split() == line.split()
    for part in parts[1:]:
        assert part == part.rstrip() and part.strip()
