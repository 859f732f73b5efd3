"""Text at the door: what is repaired, what is dropped, where text is cut."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.doortext import MAX_JSON_DEPTH, clean_json, clean_text, cut
from openclaw.errors import InvalidRequest

ANY_TEXT = st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF), max_size=60)
# Built from numbers: the strategy for text does not hand out surrogates.
HOSTILE_TEXT = st.lists(
    st.sampled_from([0, 9, 10, 13, 27, 0x41, 0x7F, 0x9F, 0xE9, 0xD83D, 0xDE00, 0xDFFF, 0x1F600]), max_size=12
).map(lambda points: "".join(map(chr, points)))


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain", "plain"),
        ("tab\tnewline\nreturn\r", "tab\tnewline\nreturn\r"),
        ("a\x00b", "ab"),
        ("bell\x07, escape\x1b[31m", "bell, escape[31m"),
        ("\x08\x0b\x0c\x0e\x1f|", "|"),
        ("delete\x7f, c1\x80\x85\x9f.", "delete, c1."),
        ("no-break\xa0space and \xad soft hyphen stay", "no-break\xa0space and \xad soft hyphen stay"),
        ("lone high \ud83d.", "lone high \ufffd."),
        ("lone low \ude00.", "lone low \ufffd."),
        ("pair \ud83d\ude00.", "pair 😀."),
        ("wrong order \ude00\ud83d.", "wrong order \ufffd\ufffd."),
        ("pair, then high \ud83d\ude00\ud83d", "pair, then high 😀\ufffd"),
        ("\ud800\x00\udc00", "\ufffd\ufffd"),
        ("", ""),
    ],
)
def test_clean_text_repairs_what_would_brick_a_session(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


def test_clean_text_hands_back_the_same_object_when_nothing_is_wrong() -> None:
    text = "".join(["¿Qué tal? ", "漢字\n"])

    assert clean_text(text) is text


@given(ANY_TEXT | HOSTILE_TEXT)
@settings(max_examples=300, deadline=None)
def test_clean_text_can_always_be_encoded_and_is_stable(text: str) -> None:
    cleaned = clean_text(text)

    assert msgspec.json.decode(msgspec.json.encode(cleaned)) == cleaned
    assert clean_text(cleaned) is cleaned
    assert not any(ord(char) < 32 and char not in "\t\n\r" for char in cleaned)


@pytest.mark.spec("HIST-9")
@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abc"),
        ("abc", 0, ""),
        ("abc", -1, ""),
        ("", 0, ""),
        ("😀😀", 1, "😀"),
        ("a\ud83d\ude00b", 2, "a"),
        ("a\ud83d\ude00b", 3, "a\ud83d\ude00"),
        ("\ud83d\ude00", 1, ""),
        ("a\ud83db", 2, "a\ud83d"),
        ("a\udbff\udfffb", 2, "a"),
        ("a\ud800\udc00b", 2, "a"),
        ("a\udc00\udc00b", 2, "a\udc00"),
        ("a\ud800\ud800b", 2, "a\ud800"),
        ("a\ud800\ue000b", 2, "a\ud800"),
    ],
)
def test_cut_keeps_whole_characters(text: str, limit: int, expected: str) -> None:
    assert cut(text, limit) == expected


@pytest.mark.spec("HIST-9")
@given(ANY_TEXT | HOSTILE_TEXT, st.integers(-2, 70))
@settings(max_examples=200, deadline=None)
def test_cut_is_a_prefix_and_at_most_one_short_of_the_limit(text: str, limit: int) -> None:
    head = cut(text, limit)

    assert text.startswith(head)
    assert len(head) <= max(0, limit)
    assert len(head) >= min(len(text), max(0, limit)) - 1


def test_clean_json_cleans_strings_and_keys_at_every_level() -> None:
    value = {"a\x00": ["x\ud800", {"k": "\x07v"}, ("t\x01",)], "n": 1, "f": 1.5, "b": True, "z": None}

    assert clean_json(value) == {"a": ["x\ufffd", {"k": "v"}, ["t"]], "n": 1, "f": 1.5, "b": True, "z": None}
    assert value["n"] == 1
    assert "a\x00" in value


def test_clean_json_lets_the_later_of_two_equal_keys_win() -> None:
    assert clean_json({"a": 1, "a\x00": 2}) == {"a": 2}
    assert clean_json({1: "x\x00"}) == {1: "x"}
    assert clean_json("x\x00") == "x"
    assert clean_json(7) == 7


def _nested(levels: int, innermost: Any) -> Any:
    value = innermost
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


def test_clean_json_accepts_64_levels_and_refuses_the_65th() -> None:
    assert MAX_JSON_DEPTH == 64
    assert clean_json(_nested(64, "x\x00")) == _nested(64, "x")

    innermosts: tuple[Any, ...] = ("x", [])
    for innermost in innermosts:
        with pytest.raises(InvalidRequest, match="flatter") as refused:
            clean_json(_nested(65, innermost))
        assert refused.value.code == "INVALID_REQUEST"
        assert refused.value.fields == {"max_depth": 64}
    assert clean_json(_nested(63, [])) == _nested(63, [])


def test_a_very_deep_value_is_refused_before_the_stack_ends() -> None:
    with pytest.raises(InvalidRequest):
        clean_json(_nested(100_000, "x"))
