"""Directives inside a message: found, checked, taken out; everything else stays as it was written."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.directives import LEVELS, Asked, DirectiveReading, read_directives, read_level

WORDS = {
    "think": "think",
    "t": "think",
    "verbose": "verbose",
    "reasoning": "reasoning",
    "elevated": "elevated",
    "model": "model",
    "queue": "queue",
    "status": "status",
}
MODELS = frozenset(("opus", "openai/gpt-5"))


def read(text: str, names: frozenset[str] = frozenset()) -> DirectiveReading:
    return read_directives(text, names=names, known=WORDS.get, model_word=lambda word: word in MODELS)


@pytest.mark.spec("CMD-10")
@pytest.mark.parametrize(
    ("name", "word", "level"),
    [
        ("think", "high", "high"),
        ("think", "HIGH", "high"),
        ("think", "on", "low"),
        ("think", "none", "off"),
        ("think", "min", "minimal"),
        ("think", "mid", "medium"),
        ("think", "med", "medium"),
        ("think", "x-high", "xhigh"),
        ("think", "extra-high", "xhigh"),
        ("think", "default", "default"),
        ("think", "inherit", "default"),
        ("think", "reset", "default"),
        ("think", "yes", None),
        ("think", "", None),
        ("verbose", "on", "on"),
        ("verbose", "full", "full"),
        ("verbose", "true", "on"),
        ("verbose", "yes", "on"),
        ("verbose", "false", "off"),
        ("verbose", "no", "off"),
        ("verbose", "stream", None),
        ("reasoning", "stream", "stream"),
        ("reasoning", "full", None),
        ("elevated", "ask", "ask"),
        ("elevated", "full", "full"),
        ("elevated", "high", None),
    ],
)
def test_the_word_behind_a_directive_means_a_level_or_nothing(
    name: str, word: str, level: str | None
) -> None:
    assert read_level(name, word) == level


@pytest.mark.spec("CMD-10")
def test_every_level_of_the_specification_is_known() -> None:
    assert LEVELS == {
        "think": ("off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max"),
        "verbose": ("on", "off", "full"),
        "reasoning": ("on", "off", "stream"),
        "elevated": ("on", "off", "ask", "full"),
    }
    assert all(read_level(name, level) == level for name, levels in LEVELS.items() for level in levels)


@pytest.mark.spec("CMD-10", "CMD-12")
@pytest.mark.parametrize(
    ("text", "asked", "rest"),
    [
        ("write a poem /think high please", (("think", "high"),), "write a poem please"),
        ("/think: high write", (("think", "high"),), "write"),
        ("/think:high write", (("think", "high"),), "write"),
        ("/think : high write", (("think", "high"),), "write"),
        ("/THINK High write", (("think", "high"),), "write"),
        ("/t low /verbose on go", (("think", "low"), ("verbose", "on")), "go"),
        ("go\n/think low\nnow", (("think", "low"),), "go\nnow"),
        ("go\n/think low\n/verbose on\nnow", (("think", "low"), ("verbose", "on")), "go\nnow"),
        ("go\n\n/think low now", (("think", "low"),), "go\n\nnow"),
        ("use /model opus for this", (("model", "opus"),), "use for this"),
        ("use /model openai/gpt-5", (("model", "openai/gpt-5"),), "use"),
        ("/queue collect debounce:2s cap:5 drop:old hi",
         (("queue", "collect debounce:2s cap:5 drop:old"),), "hi"),
        ("/queue default hi there", (("queue", "default"),), "hi there"),
        ("hi /queue interrupt", (("queue", "interrupt"),), "hi"),
        ("/queue collect collect now", (("queue", "collect"),), "collect now"),
        ("hey /status what now", (("status", ""),), "hey what now"),
        ("  /think high  ", (("think", "high"),), ""),
    ],
)  # fmt: skip
def test_directives_are_taken_out(text: str, asked: tuple[tuple[str, str], ...], rest: str) -> None:
    assert read(text) == DirectiveReading(tuple(Asked(*one) for one in asked), rest)


@pytest.mark.spec("CMD-10")
@pytest.mark.parametrize(
    "text",
    [
        "what does /think do",
        "/think about it",
        "/thinking hard",
        "see /usr/think high",
        "a/think high",
        "/think\nhigh",
        "/model gpt-9 please",
        "/model",
        "/queue nonsense",
        "/queue",
        "/unknown high",
        "`/think high`",
        "//think high",
        "/think " + "h" * 300,
        "/think@other high",
    ],
)
def test_what_means_nothing_stays_text(text: str) -> None:
    assert read(text) == DirectiveReading((), text)


@pytest.mark.spec("CMD-12")
def test_an_address_is_taken_off_when_it_is_ours() -> None:
    assert read("/think@Claw high go", frozenset(("claw",))) == DirectiveReading(
        (Asked("think", "high"),), "go"
    )
    assert read("/think@Crab high go", frozenset(("claw",))).asked == ()


@pytest.mark.spec("CMD-10")
def test_a_word_that_was_taken_as_a_value_is_not_read_again() -> None:
    reading = read_directives(
        "/model /think high", names=frozenset(), known=WORDS.get, model_word=lambda _word: True
    )
    assert reading == DirectiveReading((Asked("model", "/think"),), "high")


@pytest.mark.spec("CMD-10")
@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_and_text_without_a_slash_word_is_untouched(text: str) -> None:
    reading = read(text)
    assert len(reading.rest) <= len(text)
    if not reading.asked:
        assert reading.rest == text.strip()
    if "/" not in text:
        assert reading.asked == ()


@pytest.mark.spec("CMD-10")
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(("/think high", "/verbose off", "/model opus", "word", "and", "/status", "/nothing")),
        max_size=12,
    )
)
def test_what_is_left_has_no_directives_and_all_the_other_words(pieces: list[str]) -> None:
    reading = read(" ".join(pieces))
    plain = [piece for piece in pieces if piece in ("word", "and", "/nothing")]
    assert reading.rest == " ".join(plain)
    assert len(reading.asked) == len(pieces) - len(plain)
    assert read(reading.rest).asked == ()


@pytest.mark.spec("CMD-10")
def test_a_listing_of_slash_words_is_not_searched_to_its_end() -> None:
    assert read("/x " * 199 + "/think high go").asked == (Asked("think", "high"),)
    assert read("/x " * 200 + "/think high go").asked == ()
    assert read("/think high " + "x" * 99_988).asked == (Asked("think", "high"),)
    assert read("/think high " + "x" * 99_989).asked == ()


@pytest.mark.spec("CMD-12")
@pytest.mark.parametrize(
    "hostile",
    ["/think ", "/queue collect ", "/model x ", "/t" + " " * 50, "/think@", "/queue " + "a" * 150 + " ", "/"],
)
def test_reading_takes_time_in_proportion_to_the_text(hostile: str) -> None:
    def cost_s(size: int) -> float:
        text = hostile * (size // len(hostile))
        times = []
        for _ in range(3):
            started = time.process_time()
            read(text)
            times.append(time.process_time() - started)
        return min(times)

    # Twenty times the text: in proportion that is 20, in the square 400.
    assert cost_s(100_000) < 150 * max(cost_s(5_000), 0.001)
