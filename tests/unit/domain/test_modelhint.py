"""The model after `/new`: what is matched, how it is scored, which words are taken."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.modelhint import (
    FuzzyScore,
    ModelCandidate,
    ModelHint,
    edit_distance_below,
    match_model_hint,
    score_candidate,
)

CATALOGUE = (
    ModelCandidate("anthropic", "claude-opus-4", "opus"),
    ModelCandidate("anthropic", "claude-sonnet-4", "Sonnet"),
    ModelCandidate("openai", "gpt-5"),
    ModelCandidate("openai", "gpt-5-mini"),
    ModelCandidate("google", "gemini-2.5-flash"),
    ModelCandidate("google", "gemini-2.5-flash-lite"),
    ModelCandidate("openrouter", "deepseek/deepseek-chat"),
)


def pick(text: str, *candidates: ModelCandidate, default: tuple[str, str] | None = None) -> str | None:
    hint = match_model_hint(text, candidates or CATALOGUE, default)
    return None if hint is None else f"{hint.provider}/{hint.model}|{hint.remainder}"


@pytest.mark.spec("LIFE-15", "LIFE-16")
@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("opus", "anthropic/claude-opus-4|"),
        ("OPUS hello there", "anthropic/claude-opus-4|hello there"),
        ("sonnet\nfirst line\n  second", "anthropic/claude-sonnet-4|first line\n  second"),
        ("openai/gpt-5 hi", "openai/gpt-5|hi"),
        ("OpenAI/GPT-5-mini", "openai/gpt-5-mini|"),
        ("openrouter/deepseek/deepseek-chat hi", "openrouter/deepseek/deepseek-chat|hi"),
        ("  opus   hi  ", "anthropic/claude-opus-4|hi"),
    ],
)
def test_an_alias_or_a_full_name_takes_one_word(text: str, outcome: str) -> None:
    assert pick(text) == outcome


@pytest.mark.spec("LIFE-16")
@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("openai gpt-5 hi there", "openai/gpt-5|hi there"),
        ("OpenAI MINI", "openai/gpt-5-mini|"),
        ("anthropic opus write  a poem", "anthropic/claude-opus-4|write  a poem"),
        ("anthropic claude-sonet-4 go", "anthropic/claude-sonnet-4|go"),
        ("openrouter deepseek go", "openrouter/deepseek/deepseek-chat|go"),
        ("openrouter deepseek/deepseek-chat go", "openrouter/deepseek/deepseek-chat|go"),
        ("google 2.5 go", "google/gemini-2.5-flash|go"),
        ("google lite go", "google/gemini-2.5-flash-lite|go"),
    ],
)
def test_a_provider_and_a_model_inside_it_take_two_words(text: str, outcome: str) -> None:
    assert pick(text) == outcome


@pytest.mark.spec("LIFE-16")
@pytest.mark.parametrize(
    "rest", ["hello", "a poem", "in short: why", "I want", "min", "sonnet", "the plan", "5x", "es", ""]
)
def test_a_provider_alone_takes_one_word_and_leaves_the_text(rest: str) -> None:
    default = ("openai", "gpt-5")
    assert pick(f"openai {rest}", CATALOGUE[0], CATALOGUE[2], default=default) == f"openai/gpt-5|{rest}"


@pytest.mark.spec("LIFE-16")
def test_short_second_words_need_a_digit_or_three_letters() -> None:
    models = [ModelCandidate("openai", name) for name in ("gpt-4o", "chatgpt-x", "o3")]
    assert pick("openai 4o hi", *models) == "openai/gpt-4o|hi"
    assert pick("openai o3 hi", *models) == "openai/o3|hi"
    assert pick("openai cha hi", *models) == "openai/chatgpt-x|hi"
    # `at` occurs in chatgpt-x, but is a word of ordinary text; the provider's best model is taken.
    assert pick("openai at noon", *models) == "openai/o3|at noon"
    aliased = ModelCandidate("openai", "gpt-4o", "omni")
    assert pick("openai mni hi", aliased) is not None
    assert pick("openai omni hi", aliased) == "openai/gpt-4o|hi"


@pytest.mark.spec("LIFE-16")
@pytest.mark.parametrize(
    "text",
    ["", "   ", "hello", "remember the milk", "gpt-5", "flash", "opu", "o", "gemin", "xopenai", "/"],
)
def test_other_text_is_left_alone(text: str) -> None:
    assert pick(text) is None
    assert match_model_hint(text, ()) is None


@pytest.mark.spec("LIFE-16")
def test_fuzzy_words_have_at_least_six_characters() -> None:
    model = ModelCandidate("local", "abcdefgh")
    assert pick("abcde x", model) is None
    assert pick("abcdef x", model) == "local/abcdefgh|x"
    # Unless the word is a provider.
    assert pick("local x", model) == "local/abcdefgh|x"


@pytest.mark.spec("LIFE-16")
@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        ("gemini", "google/gemini-2.5-flash|"),
        ("claude", "anthropic/claude-opus-4|"),
        ("gpt-5-mni", None),
        ("clade-opus-4", "anthropic/claude-opus-4|"),
        ("deepseek", "openrouter/deepseek/deepseek-chat|"),
        ("preview", None),
    ],
)
def test_rough_spellings(word: str, outcome: str | None) -> None:
    assert pick(word) == outcome


def score(word: str, provider: str, name: str, alias: str | None = None, *, default: bool = False) -> int:
    chosen = (provider.upper(), name.upper()) if default else ("other", name)
    return score_candidate(word, ModelCandidate(provider, name, alias), chosen).score


@pytest.mark.spec("LIFE-16")
def test_points_for_where_the_word_stands() -> None:
    # `provider/model`: exact 220, prefix 140, substring 110; the model alone: 160, 110, 80.
    assert score("prov/name-of-model", "prov", "name-of-model") == 220
    assert score("prov/na", "prov", "name-of-model") == 140
    assert score("v/name", "prov", "name-of-model") == 110
    assert score("name-of-model", "prov", "name-of-model") == 110 + 160 + 3 * 70
    assert score("name", "prov", "name-of-model") == 110 + 110
    assert score("of", "prov", "name-of-model") == 110 + 80
    # The provider: 180, 120, 90, and the word also begins or stands in the full name.
    assert score("provider", "provider", "name-of-model") == 140 + 180
    assert score("pro", "provider", "name-of-model") == 140 + 120
    assert score("vider", "provider", "name-of-model") == 110 + 90
    # The alias: 140, 90, 60.
    assert score("quick", "prov", "name-of-model", " Quick ") == 140
    assert score("quick", "prov", "name-of-model", "quickest") == 90
    assert score("quick", "prov", "name-of-model", "the-quick-one") == 60
    assert score("quick", "prov", "name-of-model", None) == 0


@pytest.mark.spec("LIFE-16")
def test_points_for_spelling_family_and_default() -> None:
    assert score("nxme-of-model", "prov", "name-of-model") == 140
    assert score("nxxe-of-model", "prov", "name-of-model") == 70
    assert score("nxxx-of-model", "prov", "name-of-model") == 0
    assert score("unrelated", "name", "name-of-model") == 30
    assert score("unrelated", "prov", "name-of-model", default=True) == 20
    assert score_candidate("unrelated", ModelCandidate("p", "m-m-m-m-m-m"), None).score == 0


@pytest.mark.spec("LIFE-16")
def test_points_for_variants() -> None:
    words = ("mini", "nano", "lite", "fast", "turbo", "preview", "beta", "small", "lightning")
    for word in words:
        assert score("unrelated", "prov", f"some-longer-{word}") == -30
        assert score(f"x-{word}", "prov", f"some-longer-{word}") == 40
        assert score(f"x-{word}", "prov", "some-longer-name") == -20
    assert score("unrelated", "prov", "some-mini-fast-thing") == -60
    assert score("x-mini", "prov", "some-mini-fast-thing") == 40 - 30
    assert score("x-mini-fast", "prov", "some-mini-fast-thing") == 80
    assert score("x-mini-nano", "prov", "some-mini-thing") == 40
    assert score("x-nano", "prov", "some-mini-thing") == -30 - 20
    # A variant is a word of its own.
    assert score("unrelated", "prov", "gemini-breakfast") == 0
    assert score("gemini", "prov", "xx-gemini-xx") == 110 + 80


@pytest.mark.spec("LIFE-16")
def test_equal_scores_are_ordered() -> None:
    plain = FuzzyScore(
        score=150, is_default=False, matched_variants=1, variants=2, model="name", reference="p/name"
    )

    def other(**changes: object) -> FuzzyScore:
        return msgspec.structs.replace(plain, **changes)

    ranking = [
        other(score=151),
        other(is_default=True, matched_variants=0),
        other(matched_variants=2, variants=3),
        other(variants=1, model="longer"),
        other(model="nam", reference="z/nam"),
        other(reference="o/name"),
        plain,
        other(score=149, is_default=True, matched_variants=9, variants=0, model="", reference=""),
    ]
    mixed = [ranking[place] for place in (3, 7, 0, 5, 2, 6, 1, 4)]
    assert sorted(mixed, key=FuzzyScore.order) == ranking


@pytest.mark.spec("LIFE-16")
def test_the_best_candidate_is_taken_whatever_its_place() -> None:
    best, second = ModelCandidate("p", "z-abcdefgh-z"), ModelCandidate("p", "z-abcdefgh-mini")
    assert pick("abcdefgh", best, second) == pick("abcdefgh", second, best) == "p/z-abcdefgh-z|"
    assert pick("abcdefgh", best, second, default=("p", "z-abcdefgh-mini")) == "p/z-abcdefgh-z|"
    same = ModelCandidate("q", "z-abcdefgh-z")
    assert pick("abcdefgh", same, best) == "p/z-abcdefgh-z|"
    assert pick("abcdefgh", same, best, default=("Q", "Z-abcdefgh-Z")) == "q/z-abcdefgh-z|"


@pytest.mark.spec("LIFE-16")
def test_minimum_scores() -> None:
    # Alias prefix 90 and family name 30: exactly enough. Without the family name: not.
    assert pick("abcdef", ModelCandidate("m", "mmmmmmmmm", "abcdefg")) == "m/mmmmmmmmm|"
    assert pick("abcdef", ModelCandidate("n", "mmmmmmmmm", "abcdefg")) is None
    # Inside a provider an alias prefix is enough, one variant less is not, and then the provider counts.
    assert pick("n abcdef x", ModelCandidate("n", "mmmmmmmmm", "abcdefg")) == "n/mmmmmmmmm|x"
    assert pick("n abcdef x", ModelCandidate("n", "mmmmmmmm-mini", "abcdefg")) == "n/mmmmmmmm-mini|abcdef x"
    # Substring of the alias 60, and 30 for the family name, is 90; 60 alone is not.
    assert pick("m abcdef x", ModelCandidate("m", "mmmmmmmmm", "xabcdefg")) == "m/mmmmmmmmm|x"
    assert pick("n abcdef x", ModelCandidate("n", "mmmmmmmmm", "xabcdefg")) == "n/mmmmmmmmm|abcdef x"


@pytest.mark.spec("LIFE-16")
def test_letter_case_of_candidates_does_not_matter() -> None:
    loud = ModelCandidate("Prov", "Name-Of-Model", "Quick")
    for word in ("prov/name-of-model", "quick", "nxme-of-model", "PROV", "prov name-of-model", "prov nam"):
        assert pick(word, loud) == "Prov/Name-Of-Model|"
    assert pick("prov of-m x", loud) == "Prov/Name-Of-Model|x"
    assert score_candidate("unrelated", ModelCandidate("NAME", "name-of-model"), None).score == 30
    assert score_candidate("name-of-model", loud, None) == score_candidate(
        "name-of-model", ModelCandidate("prov", "name-of-model"), None
    )


@pytest.mark.spec("LIFE-16")
def test_a_second_word_may_be_misspelled_from_six_letters_on() -> None:
    assert pick("p abcdeg x", ModelCandidate("p", "abcdef")) == "p/abcdef|x"
    assert pick("p abcdg x", ModelCandidate("p", "abcde")) == "p/abcde|abcdg x"
    # A part of the alias is enough for a shorter one.
    assert pick("p quic x", ModelCandidate("p", "unrelated-name", "quick")) == "p/unrelated-name|x"


@pytest.mark.spec("LIFE-16")
def test_no_candidates_no_hint() -> None:
    assert match_model_hint("opus", ()) is None
    assert match_model_hint("opus", CATALOGUE) == ModelHint("anthropic", "claude-opus-4", "")


def plain_distance(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        previous, row = row, [i]
        for j, b in enumerate(right, start=1):
            row.append(min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a != b)))
    return row[-1]


@settings(max_examples=300, deadline=None)
@given(left=st.text("ab", max_size=9), right=st.text("ab", max_size=9), limit=st.integers(1, 5))
def test_the_bounded_distance_is_the_distance(left: str, right: str, limit: int) -> None:
    distance = plain_distance(left, right)
    assert edit_distance_below(left, right, limit) == (distance if distance < limit else None)


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=60), default=st.sampled_from([None, ("openai", "gpt-5")]))
def test_any_text_is_answered_and_none_is_invented(text: str, default: tuple[str, str] | None) -> None:
    hint = match_model_hint(text, CATALOGUE, default)
    if hint is not None:
        assert any((c.provider, c.model) == (hint.provider, hint.model) for c in CATALOGUE)
        assert text.strip().endswith(hint.remainder)
        assert 1 <= len(text.split()) - len(hint.remainder.split()) <= 2


def test_hostile_sizes_are_cheap() -> None:
    huge = "a" * 1_000_000
    assert pick(huge) is None
    assert pick(f"openai {huge} x", CATALOGUE[2]) == f"openai/gpt-5|{huge} x"
    assert edit_distance_below("ab" * 20_000, "ba" * 20_000, 3) == 2
    assert edit_distance_below("a" * 20_000, "b" * 20_000, 3) is None
