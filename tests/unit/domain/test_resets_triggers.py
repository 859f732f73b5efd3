"""Reset triggers: which messages ask for a new session, and what is left of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.modelhint import ModelCandidate, ModelHint
from openclaw.domain.resets import ResetCommand, TriggerMatch, match_trigger, parse_reset


def match(text: str, *extra: str, names: tuple[str, ...] = (), prefixes: tuple[str, ...] = ()) -> str | None:
    """`<reason>|<remainder>` of an authorised message, or None."""
    found = match_trigger(
        text, authorised=True, extra_triggers=extra, mention_names=names, structural_prefixes=prefixes
    )
    return None if found is None else f"{found.reason}|{found.remainder}"


@pytest.mark.spec("LIFE-13", "LIFE-14")
@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("/new", "new|"),
        ("/reset", "reset|"),
        ("  /new  ", "new|"),
        ("/NEW", "new|"),
        ("/Reset", "reset|"),
        ("/new hello", "new|hello"),
        ("/new\nhello\n world", "new|hello\n world"),
        ("/reset\thello", "reset|hello"),
        ("/reset   two  words ", "reset|two  words"),
        ("\n/new hello", "new|hello"),
        ("/new /reset", "new|/reset"),
        ("/newer", None),
        ("/new.", None),
        ("/new:hello", None),
        ("/new-chat", None),
        ("/resets", None),
        ("/ne", None),
        ("new", None),
        ("please /new", None),
        ("//new", None),
        ("／new", None),
        ("", None),
        ("   ", None),
    ],
)
def test_the_whole_word_and_nothing_before_it(text: str, outcome: str | None) -> None:
    assert match(text) == outcome


@pytest.mark.spec("LIFE-14")
def test_extra_triggers_add_to_the_built_in_ones() -> None:
    extra = ("/fresh", " Start Over ", "", "   ", "/new chat")
    assert match("/fresh hello", *extra) == "reset|hello"
    assert match("START over", *extra) == "reset|"
    assert match("start over now", *extra) == "reset|now"
    assert match("start overs", *extra) is None
    assert match("/new", *extra) == "new|"
    assert match("/reset", *extra) == "reset|"
    # The longer trigger is read first, and a shorter one still matches what it leaves.
    assert match("/new chat with me", *extra) == "reset|with me"
    assert match("/new chatter", *extra) == "new|chatter"
    assert match("/NEW", "/NEW") == "new|"
    # Nothing configured, or nothing but blanks, adds nothing.
    assert match("hello") is None
    assert match("hello", "", " ") is None


@pytest.mark.spec("LIFE-14")
def test_only_authorised_senders_trigger() -> None:
    assert match_trigger("/new", authorised=False) is None
    assert match_trigger("/fresh", authorised=False, extra_triggers=["/fresh"]) is None
    assert parse_reset("/new opus", authorised=False) is None
    assert match_trigger("/new", authorised=True) == TriggerMatch("/new", "new", "")


@pytest.mark.spec("LIFE-14")
@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("[Telegram Alice 10:32] /new hi", "new|hi"),
        ("[one] [two]/reset", "reset|"),
        ("Alice: /new", "new|"),
        ("ALICE:/new hi", "new|hi"),
        ("[Slack] Alice: @claw /new hi", "new|hi"),
        ("Bob: /new", None),
        ("[half /new", None),
        ("[two\nlines] /new", None),
        ("[]/new", "new|"),
        ("[a] text /new", None),
    ],
)
def test_structural_prefixes_are_skipped(text: str, outcome: str | None) -> None:
    assert match(text, names=("claw",), prefixes=(" Alice: ", "", " ")) == outcome


@pytest.mark.spec("LIFE-14")
def test_only_headers_of_bounded_length_and_number() -> None:
    assert match("[" + "x" * 198 + "]/new") == "new|"
    assert match("[" + "x" * 199 + "]/new") is None
    assert match("[x]" * 8 + "/new") == "new|"
    assert match("[x]" * 9 + "/new") is None


@pytest.mark.spec("LIFE-14")
@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("@claw /new", "new|"),
        ("@Claw: /new hi", "new|hi"),
        ("claw, /reset", "reset|"),
        ("@claw:/new hi", "new|hi"),
        ("<@42> /new hi", "new|hi"),
        ("<@!42>/new hi", None),
        ("<@!42> /new hi", "new|hi"),
        ("/new@claw hi", "new|hi"),
        ("/new@claw", "new|"),
        ("/new @claw hi", "new|hi"),
        ("/new @claw", "new|"),
        ("@claw @42 /new", "new|"),
        ("/new hi @claw", "new|hi @claw"),
        ("/new@other hi", None),
        ("/new@clawx", None),
        ("@clawx /new", None),
        ("@other /new", None),
        ("clawed /new", None),
    ],
)
def test_mentions_of_the_bot_are_skipped(text: str, outcome: str | None) -> None:
    assert match(text, names=(" @Claw ", "42", "", "@")) == outcome


@pytest.mark.spec("LIFE-14")
def test_without_names_a_mention_is_text() -> None:
    assert match("@claw /new") is None
    assert match("/new@claw") is None
    assert match("/new @claw") == "new|@claw"


CANDIDATES = (ModelCandidate("anthropic", "claude-opus-4", "opus"), ModelCandidate("openai", "gpt-5"))


@pytest.mark.spec("LIFE-15", "LIFE-16")
def test_a_model_after_the_trigger_is_taken_out_of_the_text() -> None:
    def parse(text: str) -> ResetCommand | None:
        return parse_reset(
            text,
            authorised=True,
            extra_triggers=["/fresh"],
            mention_names=["claw"],
            structural_prefixes=["Al:"],
            candidates=CANDIDATES,
            default_model=("openai", "gpt-5"),
        )

    opus = ModelHint("anthropic", "claude-opus-4", "hi there")
    assert parse("/new opus hi there") == ResetCommand("/new", "new", opus, "hi there")
    assert parse("/reset opus hi there") == ResetCommand("/reset", "reset", opus, "hi there")
    assert parse("Al: @claw /fresh opus hi there") == ResetCommand("/fresh", "reset", opus, "hi there")
    assert parse("/new hi opus") == ResetCommand("/new", "new", None, "hi opus")
    assert parse("/new") == ResetCommand("/new", "new", None, "")
    bare = parse("/new opus")
    assert bare is not None and bare.model is not None and bare.body == ""
    assert parse("hi") is None
    # The default model decides between equals.
    named = parse("/new openai go")
    assert named is not None and named.model == ModelHint("openai", "gpt-5", "go")


def test_without_candidates_the_words_stay() -> None:
    assert parse_reset("/new opus hi", authorised=True) == ResetCommand("/new", "new", None, "opus hi")


@pytest.mark.spec("LIFE-13")
@settings(max_examples=200, deadline=None)
@given(trigger=st.sampled_from(["/new", "/RESET"]), gap=st.sampled_from(" \n\t\r\u00a0"), rest=st.text())
def test_white_space_and_only_white_space_ends_a_trigger(trigger: str, gap: str, rest: str) -> None:
    found = match_trigger(trigger + gap + rest, authorised=True)
    assert found is not None and found.remainder == rest.strip()
    glued = match_trigger(trigger + rest, authorised=True)
    assert (glued is not None) == (not rest.strip() or rest[0].isspace())


@settings(max_examples=200, deadline=None)
@given(text=st.text(), names=st.lists(st.text(max_size=5)), extra=st.lists(st.text(max_size=5)))
def test_any_text_is_answered(text: str, names: list[str], extra: list[str]) -> None:
    found = match_trigger(
        text, authorised=True, extra_triggers=extra, mention_names=names, structural_prefixes=names
    )
    if found is not None:
        assert text.strip().endswith(found.remainder)


def test_hostile_text_is_read_in_one_go() -> None:
    for text in ("[" * 500_000, "[]" * 500_000, "@a " * 300_000, "/new" * 250_000, "\x00\ud800" * 100_000):
        assert match(text, "/x", names=("a",), prefixes=("[",)) is None
