"""What of a message is found, how words are folded, and the snippet around a hit (SRCH-2, SRCH-3)."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.domain.searchtext import index_text, matches, query_terms, searchable_text, snippet
from openclaw.errors import InvalidRequest


def found(query: str, text: str) -> bool:
    return matches(index_text(text), query_terms(query))


@pytest.mark.spec("SRCH-3")
@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "user", "content": "hello <think>"}, "hello <think>"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        (
            {"role": "user", "content": [{"type": "image", "data": "AAAA"}, {"type": "text", "text": "b"}]},
            "b",
        ),
        ({"role": "assistant", "content": "a<think>b</think><tool_call>c</tool_call>d"}, "ad"),
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "no"},
                    {"type": "toolCall", "id": "c", "name": "n", "arguments": {"q": "no"}},
                    {"type": "text", "text": "yes"},
                ],
            },
            "yes",
        ),
        ({"role": "toolResult", "content": [{"type": "text", "text": "no"}]}, ""),
        ({"role": "tool", "content": "no"}, ""),
        ({"role": "system", "content": "no"}, ""),
        ({"role": "user"}, ""),
        ({}, ""),
    ],
)
def test_only_what_people_and_the_assistant_said_is_searchable(message: dict[str, Any], text: str) -> None:
    assert searchable_text(message) == text


@pytest.mark.spec("SRCH-3")
@pytest.mark.parametrize(
    ("text", "indexed"),
    [
        ("Hello, World_foo-bar 42!", "hello world foo bar 42"),
        ("  \n\t ", ""),
        ("", ""),
        ("a\x00b", "a b"),
        ("¡La canción ESPAÑOLA, mañana!", "la cancion espanola manana"),
        ("Die Straße, GRÖSSE und Übermut", "die strasse grosse und ubermut"),
        ("Ελληνικά: ΟΔΟΣ, οδός", "ελληνικα οδοσ οδοσ"),
        ("Ёлка и Йога", "елка и иога"),
        ("हिन्दी में खोज", "हिन्दी में खोज"),
        ("ที่นี่", "ที ี่ ่น นี ี่"),
        ("中文搜索", "中文 文搜 搜索"),
        ("字", "字"),
        ("中文abc字 ok", "中文 abc 字 ok"),
        ("日本語のガイド", "日本 本語 語の のガ ガイ イド"),
        ("ｶﾞｲﾄﾞ ガイド カ\u3099イト\u3099", "ガイ イド ガイ イド ガイ イド"),
        ("한국어는", "한국 국어 어는"),
        ("ລາວ ខ្មែរ မြန်", "ລາ າວ ខ្ ្ម មែ ែរ မြ ြန န်"),
        ("Đà Nẵng, Łódź, Øre, İstanbul, ışık, Æon, œuvre", "da nang lodz ore istanbul isik aeon oeuvre"),
        ("ＦＵＬＬ ｗｉｄｔｈ ① ½ ㎏", "full width 1 1 2 kg"),
        ("don’t so\u00adft na\u200dme \u202eright", "don t soft name right"),
        ("مُحَمَّد محمّد", "محمد محمد"),
        ("שָׁלוֹם", "שלום"),
        ("emoji 😀 and \ud800 lone", "emoji and lone"),
        ("x" * 130 + " é" + "y" * 200, "x" * 128 + " e" + "y" * 127),
        ("x" * 130, "x" * 128),
    ],
)
def test_words_are_folded_and_unspaced_writing_is_cut_into_pairs(text: str, indexed: str) -> None:
    assert index_text(text) == indexed


@pytest.mark.spec("SRCH-3")
@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("Hello  WORLD", (("hello",), ("world",))),
        ("foo-bar baz", (("foo", "bar"), ("baz",))),
        ("hello Hello HÉLLO", (("hello",),)),
        ("中文搜索", (("中文", "文搜", "搜索"),)),
        ("中 abc字", (("中",), ("abc", "字"))),
        ("!!! …", ()),
        ("", ()),
    ],
)
def test_each_word_of_a_query_is_a_phrase(query: str, terms: tuple[tuple[str, ...], ...]) -> None:
    assert query_terms(query) == terms


@pytest.mark.spec("SRCH-2")
def test_a_query_has_at_most_256_words() -> None:
    assert len(query_terms(" ".join(f"w{at}" for at in range(256)))) == 256
    assert len(query_terms("字" * 257)[0]) == 256
    assert len(query_terms("same " * 100_000)) == 1

    for long in (" ".join(f"w{at}" for at in range(257)), "字" * 258):
        with pytest.raises(InvalidRequest, match="fewer words") as refused:
            query_terms(long)
        assert refused.value.fields == {"max_tokens": 256}


@pytest.mark.spec("SRCH-2", "SRCH-3")
@pytest.mark.parametrize(
    ("query", "text", "hit"),
    [
        ("cancion", "Una CANCIÓN nueva", True),
        ("CANCIÓN nueva", "nueva cancion", True),
        ("strasse", "Die Straße", True),
        ("Straße", "die strasse", True),
        ("οδος", "ΟΔΟΣ", True),
        ("हिन्दी", "यह हिन्दी है", True),
        ("हिन", "यह हिन्दी है", False),
        ("ไทย", "ภาษาไทยง่าย", True),
        ("文搜", "中文搜索", True),
        ("中搜", "中文搜索", False),
        ("イド", "ガイドブック", True),
        ("국어", "한국어는", True),
        ("foo-bar", "Foo, bar!", True),
        ("foo-bar", "foo baz bar", False),
        ("foo bar", "bar and foo", True),
        ("foo missing", "bar and foo", False),
        ("fo", "foo", False),
        ("oo", "foo", False),
        ("foo", "", False),
        ("", "foo", False),
        ("!!!", "!!!", False),
    ],
)
def test_whole_words_in_any_order_whole_phrases_in_a_row(query: str, text: str, hit: bool) -> None:
    assert found(query, text) is hit


TEXT = " ".join(f"word{at:03d}" for at in range(200))


@pytest.mark.spec("SRCH-2")
@pytest.mark.parametrize(
    ("text", "query", "width", "expected"),
    [
        ("short text", "text", 160, "short text"),
        ("short\n\n  text\x00", "text", 160, "short text"),
        (TEXT, "word000", 20, "word000 word001 wor…"),
        (TEXT, "word199", 20, "…197 word198 word199"),
        (TEXT, "word100", 30, "… word099 word100 word101 wor…"),
        (TEXT, "word100 word050", 30, "… word049 word050 word051 wor…"),
        (TEXT, "word100-word101", 30, "… word099 word100 word101 wor…"),
        (TEXT, "none", 20, "word000 word001 wor…"),
        (TEXT, "", 20, "word000 word001 wor…"),
        (TEXT, "word100", 3, "…w…"),
        (TEXT, "word100", 2, "wo"),
        (TEXT, "word100", 0, ""),
        (TEXT, "word100", -1, ""),
        ("中文" * 100 + "搜索引擎" + "文字" * 100, "索引", 20, "…中文中文搜索引擎文字文字文字文字文字…"),
        (
            "Ça va? " * 60 + "La CANCIÓN ya " + "x " * 100,
            "cancion",
            40,
            "…? Ça va? La CANCIÓN ya x x x x x x x x…",
        ),
        ("½ " * 60 + "cafe\u0301 bar " + "x " * 60, "café", 12, "… ½ café ba…"),
    ],
)
def test_a_snippet_is_one_line_around_the_first_hit(text: str, query: str, width: int, expected: str) -> None:
    assert snippet(text, query_terms(query), width) == expected


@pytest.mark.spec("SRCH-2")
def test_a_snippet_is_160_characters_unless_told_otherwise() -> None:
    assert snippet("x" * 160, ()) == "x" * 160
    assert snippet("x" * 161, ()) == "x" * 159 + "…"


@pytest.mark.spec("SRCH-2", "TRX-11")
def test_a_snippet_shows_no_secret_not_even_the_one_that_was_searched() -> None:
    text = "so " * 100 + "the password: hunter2 and my-known-secret-value here"

    shown = snippet(text, query_terms("here"), 60, frozenset({"my-known-secret-value"}))
    assert shown.endswith("the password: *** and my-kno…alue here")
    assert snippet(text, query_terms("hunter2"), 10) == "so so so …"
    assert "hunter2" not in snippet(text, query_terms("hunter2"), 400)


@pytest.mark.spec("SRCH-2")
def test_a_hit_far_into_a_huge_text_falls_back_to_its_start() -> None:
    near = "a " * 32 * 1024

    assert "needle" in snippet(near[:-20] + "needle " + near, query_terms("needle"))
    assert snippet(near + "needle " + near, query_terms("needle")).startswith("a a a")
    assert snippet("漢字" * 500_000, query_terms("字漢")).startswith("漢字")
