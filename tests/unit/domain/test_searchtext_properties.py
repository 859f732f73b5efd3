"""Search text by property: words in any case and accent, any pair of an unspaced run, stable folding."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.searchtext import index_text, matches, query_terms, snippet

WORDS = [
    *("canción", "mañana", "pingüino", "corazón", "Straße", "Größe", "Übermut", "äpfel"),
    *("हिन्दी", "में", "खोज", "संविधान", "Ελληνικά", "οδός", "άνθρωπος", "Ёлка", "Đường", "Łódź", "ışık"),
    *("hello", "World", "42", "x86", "crème", "naïve"),
]
THAI = [chr(point) for point in range(0x0E01, 0x0E3B)] + [chr(point) for point in range(0x0E40, 0x0E4F)]
HAN = [chr(point) for point in range(0x4E00, 0x4E80)] + ["𠀀", "𪛖", "々"]
KANA = [chr(point) for point in range(0x3041, 0x3097)] + [chr(point) for point in range(0x30A1, 0x30FB)]
HANGUL = [chr(point) for point in range(0xAC00, 0xD7A4, 97)]
OTHERS = ["ក", "្", "ែ", "ລ", "າ", "မ", "ြ", "်"]

ACCENTS = "".join(chr(point) for point in range(0x300, 0x370))
ANY_TEXT = st.text(max_size=60)
SENTENCE = st.lists(
    st.sampled_from(WORDS) | st.text("abcxyz", min_size=1, max_size=6), min_size=1, max_size=10
)


def _without_accents(word: str) -> str:
    plain = unicodedata.normalize("NFD", word).translate(dict.fromkeys(map(ord, ACCENTS)))
    return unicodedata.normalize("NFC", plain)


def found(query: str, text: str) -> bool:
    return matches(index_text(text), query_terms(query))


@pytest.mark.spec("SRCH-3")
@given(SENTENCE, st.data())
@settings(max_examples=300, deadline=None)
def test_any_word_is_found_in_any_case_with_or_without_accents(words: list[str], data: st.DataObject) -> None:
    joints = data.draw(
        st.lists(st.sampled_from([" ", ", ", "\n", "-", " — ", "。"]), min_size=10, max_size=10)
    )
    text = "".join(word + joint for word, joint in zip(words, joints, strict=False))
    word = data.draw(st.sampled_from(words))

    for variant in (word, word.upper(), word.lower(), word.swapcase(), _without_accents(word)):
        assert found(variant, text)
        assert found(unicodedata.normalize("NFD", variant), text)
        assert found(variant, unicodedata.normalize("NFD", text))
    assert found(" ".join(reversed(words)), text)
    assert not found(word + "qq", text)


@pytest.mark.spec("SRCH-3")
@given(
    st.one_of(
        *(
            st.lists(st.sampled_from(script), min_size=2, max_size=30)
            for script in (THAI, HAN, KANA, HANGUL, OTHERS)
        )
    ),
    st.data(),
)
@settings(max_examples=300, deadline=None)
def test_any_two_or_more_characters_of_an_unspaced_run_are_found(run: list[str], data: st.DataObject) -> None:
    text = unicodedata.normalize("NFC", "".join(run))
    if len(text) < 2:
        return
    start = data.draw(st.integers(0, len(text) - 2))
    part = text[start : data.draw(st.integers(start + 2, len(text)))]

    assert found(part, text)
    assert found(part, f"before {text}, after")
    assert found(text, text)
    assert not found(part + "龘龘", text)


@pytest.mark.spec("SRCH-3")
@given(ANY_TEXT)
@settings(max_examples=300, deadline=None)
def test_an_index_text_is_words_joined_by_single_spaces_and_folding_is_stable(text: str) -> None:
    indexed = index_text(text)

    assert indexed.split(" ") == indexed.split() or indexed == ""
    for token in indexed.split():
        assert all(unicodedata.category(char)[0] in "LNM" for char in token)
        assert not any("A" <= char <= "Z" for char in token)
    assert index_text(f"{text} é") == f"{indexed} e".strip()
    if indexed:
        assert found(text, text) or len(query_terms(text)) == 0


@pytest.mark.spec("SRCH-3")
@given(st.text(st.characters(max_codepoint=127), max_size=60))
@settings(max_examples=200, deadline=None)
def test_the_short_way_for_ascii_is_the_long_way(text: str) -> None:
    assert f"{index_text(text)} e".strip() == index_text(f"{text} é")


@pytest.mark.spec("SRCH-3")
def test_case_never_matters_for_any_letter_of_unicode() -> None:
    letters = (chr(point) for point in range(0x110000) if chr(point).isalpha())
    cased = [letter for letter in letters if letter.upper() != letter or letter.lower() != letter]

    assert len(cased) > 2500
    for letter in cased:
        folded = index_text(letter)
        assert folded
        for variant in (letter.upper(), letter.lower(), letter.title(), letter.swapcase()):
            assert index_text(variant) == folded, letter


@pytest.mark.spec("SRCH-2")
@given(ANY_TEXT.map(lambda text: text * 7), st.text(max_size=20), st.integers(0, 80))
@settings(max_examples=200, deadline=None)
def test_a_snippet_never_exceeds_its_width_and_comes_from_the_text(text: str, query: str, width: int) -> None:
    shown = snippet(text, query_terms(query), width)

    assert len(shown) <= width or len(text) <= width
    assert "\n" not in shown


@pytest.mark.spec("SRCH-2")
@given(SENTENCE.filter(lambda words: len(words) > 4), st.data())
@settings(max_examples=150, deadline=None)
def test_a_snippet_shows_the_hit(words: list[str], data: st.DataObject) -> None:
    filler = " ".join(["zz"] * 60)
    word = data.draw(st.sampled_from(words))

    shown = snippet(f"{filler} {' '.join(words)} {filler}", query_terms(word), 60)

    assert len(shown) <= 60
    assert found(word, shown)


@pytest.mark.parametrize(
    "text",
    [
        *("a" + "\u0301" * 200_000 + "\u0323" * 200_000, "\u0e48" * 200_000 + "\u0e38" * 200_000),
        *("漢字" * 200_000, "é " * 200_000, "\u1100\u1161\u11a8" * 100_000, " " * 400_000, "-" * 400_000),
    ],
    ids=["latin marks", "thai marks", "han", "accents", "jamo", "spaces", "dashes"],
)
def test_hostile_text_is_answered(text: str) -> None:
    """Quadratic work on 400 000 characters would take minutes here, not milliseconds."""
    indexed = index_text(text)

    assert len(indexed) <= 3 * len(text)
    assert len(snippet(text, (("none",),))) <= 160
