"""Titles, previews and inline messages of a session list (LIST-5, LIST-9)."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.titles import derive_title, list_messages, preview, shorten

SESSION = "201ccd9b-c428-4a48-a061-ac950bc65d3f"
# 2026-11-15 18:30 UTC, which is already the 16th in Auckland.
UPDATED_MS = 1794767422161
KNOWN = frozenset({"my-known-secret-value"})


def title(name: str | None = None, subject: str | None = None, text: str | None = None, **kwargs: Any) -> str:
    return derive_title(name, subject, text, SESSION, UPDATED_MS, **kwargs)


@pytest.mark.spec("LIST-9")
def test_the_first_source_that_says_something_is_the_title() -> None:
    assert title("Project  One\n", "Subject", "Hello") == "Project One"
    assert title(" \n ", "Re: \tlunch", "Hello") == "Re: lunch"
    assert title(None, "", " Hello,\n\n  world ") == "Hello, world"
    assert title("", None, "\x00 \n") == "201ccd9b (2026-11-15)"
    assert title() == "201ccd9b (2026-11-15)"


@pytest.mark.spec("LIST-9")
def test_the_date_is_that_of_the_zone() -> None:
    assert title(zone=ZoneInfo("Pacific/Auckland")) == "201ccd9b (2026-11-16)"
    assert title(zone=ZoneInfo("America/Los_Angeles")) == "201ccd9b (2026-11-15)"
    assert derive_title(None, None, None, "short", 0) == "short (1970-01-01)"


@pytest.mark.spec("LIST-9")
@pytest.mark.parametrize("impossible_ms", [10**18, -(10**18), 10**30])
def test_an_impossible_time_costs_only_the_date(impossible_ms: int) -> None:
    assert derive_title(None, None, None, SESSION, impossible_ms) == "201ccd9b"


@pytest.mark.spec("LIST-9")
def test_a_first_message_is_cut_at_sixty_a_name_at_two_hundred() -> None:
    words = "word " * 60

    assert title(text="x" * 60) == "x" * 60
    assert title(text="x" * 61) == "x" * 59 + "…"
    assert title(text=words) == "word " * 10 + "word word…"
    assert len(title(text=words)) == 60
    assert title("n" * 200, text="Hello") == "n" * 200
    assert title("n" * 201) == "n" * 199 + "…"
    assert title(subject="s" * 201) == "s" * 199 + "…"


@pytest.mark.spec("LIST-9", "TRX-11")
def test_no_title_shows_a_secret() -> None:
    assert title(text="my password: hunter2, use my-known-secret-value", known_secrets=KNOWN) == (
        "my password: ***, use my-kno…alue"
    )
    assert title("token=abc") == "token=***"
    assert title(subject="at my-known-secret-value", known_secrets=KNOWN) == "at my-kno…alue"


@pytest.mark.spec("LIST-9")
@pytest.mark.parametrize(
    ("text", "max_chars", "expected"),
    [
        ("hello", 5, "hello"),
        ("hello world", 9, "hello…"),
        ("hello world", 7, "hello…"),
        ("hello world", 6, "hello…"),
        ("hello world", 5, "hell…"),
        ("a longword", 9, "a longwo…"),
        ("abcd longword", 11, "abcd longw…"),
        ("abcde longword", 11, "abcde…"),
        ("漢字漢字漢字", 4, "漢字漢…"),
        ("hello", 1, "…"),
        ("hello", 0, ""),
        ("hello", -1, ""),
        ("", 0, ""),
    ],
)
def test_shorten_ends_at_a_word_when_one_is_near(text: str, max_chars: int, expected: str) -> None:
    assert shorten(text, max_chars) == expected


@pytest.mark.spec("LIST-9")
@given(st.text(max_size=200), st.integers(1, 80))
@settings(max_examples=200, deadline=None)
def test_shortened_text_fits_and_is_a_prefix(text: str, max_chars: int) -> None:
    short = shorten(text, max_chars)

    assert len(short) <= max_chars
    if short != text:
        assert short.endswith("…")
        assert text.startswith(short[:-1])
        assert len(text) > max_chars


@pytest.mark.spec("LIST-10", "TRX-11")
def test_a_preview_is_one_clean_line() -> None:
    text = (
        "<think>hidden</think>Done:\n\n  my-known-secret-value \x00 and [Tool Call: ls]\nArguments: {}\nmore"
    )

    assert preview(text, known_secrets=KNOWN) == "Done: my-kno…alue and more"
    assert preview("x" * 161) == "x" * 159 + "…"
    assert preview("x" * 160) == "x" * 160
    assert preview("hello world", 7) == "hello…"
    assert preview("") == ""


@pytest.mark.spec("LIST-9", "LIST-10")
def test_only_the_head_of_a_huge_text_is_read() -> None:
    huge = " " * 16 * 1024 + "late"

    assert preview(huge) == ""
    assert title(text=huge) == "201ccd9b (2026-11-15)"
    assert preview(" " * (16 * 1024 - 4) + "late") == "late"
    assert preview("<think>" * 200_000) == ""


def rows() -> list[dict[str, Any]]:
    call = {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {}}
    return [
        {"role": "user", "content": "list files", "timestamp": 1},
        {"role": "assistant", "content": [call], "timestamp": 2},
        {
            "role": "toolResult",
            "toolCallId": "c1",
            "content": [{"type": "text", "text": "a b"}],
            "timestamp": 3,
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Two files."}, call], "timestamp": 4},
        {"role": "tool", "content": "old form", "timestamp": 5},
        {"role": "assistant", "content": [{"type": "text", "text": "NO_REPLY"}], "timestamp": 6},
        {"role": "user", "content": "thanks, token=abc", "timestamp": 7},
        {"role": "user", "timestamp": 8},
        {"role": "user", "content": ["odd"], "timestamp": 9},
    ]


@pytest.mark.spec("LIST-5")
def test_inline_messages_have_no_tool_results_no_tool_calls_and_no_hidden_rows() -> None:
    everything = rows()

    shown = list_messages(everything, 20)

    assert shown == [
        {"role": "user", "content": "list files", "timestamp": 1},
        {"role": "assistant", "content": [{"type": "text", "text": "Two files."}], "timestamp": 4},
        {"role": "user", "content": "thanks, token=***", "timestamp": 7},
        {"role": "user", "content": ["odd"], "timestamp": 9},
    ]
    assert everything == rows()


@pytest.mark.spec("LIST-5", "LIST-2")
def test_the_last_n_messages_are_kept_and_n_is_at_most_twenty() -> None:
    assert [row["timestamp"] for row in list_messages(rows(), 3)] == [4, 7, 9]
    assert [row["timestamp"] for row in list_messages(rows(), 1)] == [9]
    assert list_messages(rows(), 0) == []
    assert list_messages(rows(), -1) == []

    many = [{"role": "user", "content": "x", "timestamp": at} for at in range(30)]
    assert [row["timestamp"] for row in list_messages(many, 99)] == list(range(10, 30))
    assert len(list_messages(many, 19)) == 19


@pytest.mark.spec("LIST-5", "TRX-11")
def test_inline_messages_hide_known_secrets_and_scaffolding() -> None:
    message = {"role": "assistant", "content": "<think>x</think>it is my-known-secret-value"}

    assert list_messages([message], 1, KNOWN) == [{"role": "assistant", "content": "it is my-kno…alue"}]
