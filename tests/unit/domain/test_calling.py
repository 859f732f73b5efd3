"""Who is called by the words of a group."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.calling import CallNames, command_in, hear_calls, is_called, is_for_another
from openclaw.domain.routing import Envelope


def envelope(text: str, **more: Any) -> Envelope:
    return Envelope(**({"channel": "c", "peer_kind": "group", "peer_id": "g", "text": text} | more))


@pytest.mark.spec("ROUTE-3")
@pytest.mark.parametrize(
    ("text", "pattern", "called"),
    [
        ("Wanda, help", "wanda", True),
        ("hey @WANDA!", "Wanda", True),
        ("wanda's turn", "wanda", True),
        ("hey,wanda", "wanda", True),
        ("wandas turn", "wanda", False),
        ("wanda.com", "wanda", False),
        ("bob@wanda.com", "wanda", False),
        ("wanda", "@wanda", False),
        ("(@wanda)", "@wanda", True),
        ("@clawdine", "@claw*", True),
        ("@cla", "@claw*", False),
        ("the big, Bird sings", "big bird", True),
        ("the big red bird", "big bird", False),
        ("big", "big bird", False),
        ("anything", "*", True),
        ("", "*", False),
        ("anything", "", False),
        ("anything", "!?", False),
        ("\uff37anda", "wanda", True),
    ],
)
def test_patterns_are_words(text: str, pattern: str, called: bool) -> None:
    assert is_called(text, (pattern,)) is called
    assert is_called(text, ("nobody", pattern)) is called


@pytest.mark.spec("ROUTE-3", "LIFE-14")
def test_a_pattern_counts_everywhere_and_a_name_only_where_nothing_else_can() -> None:
    names = CallNames(("@claw",), "Wanda")
    assert hear_calls(envelope("@claw hi"), names).was_mentioned
    assert not hear_calls(envelope("wanda hi"), names).was_mentioned
    blind = envelope("wanda hi", mentions_detectable=False)
    assert hear_calls(blind, names) == envelope("wanda hi", was_mentioned=True)
    missed = hear_calls(envelope("hi", mentions_detectable=False), names)
    assert (missed.was_mentioned, missed.mentions_detectable) == (False, True), "now it can be told"
    nameless = envelope("hi", mentions_detectable=False)
    assert hear_calls(nameless, CallNames()) is nameless
    assert hear_calls(envelope("hi"), CallNames(name="Wanda")) == envelope("hi")
    direct = envelope("hi", peer_kind="direct")
    assert hear_calls(direct, names) is direct
    mentioned = envelope("hi", was_mentioned=True)
    assert hear_calls(mentioned, names) is mentioned


@pytest.mark.spec("LIFE-14", "CMD-12")
@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/new", "/new"),
        ("  @wanda  /new x ", "/new x"),
        ("Wanda: /status", "/status"),
        ("<@wanda> /status", "/status"),
        ("@claw, /stop", "/stop"),
        ("@other /status", None),
        ("wanda what about /status", None),
        ("hello", None),
        ("", None),
    ],
)
def test_a_call_before_a_command_is_taken_off(text: str, command: str | None) -> None:
    assert command_in(text, CallNames(("@claw", "cl*"), "Wanda")) == command


@pytest.mark.spec("CMD-12")
def test_a_command_for_somebody_else() -> None:
    names = CallNames(("@claw",), "Wanda")
    assert names.plain == ("claw", "Wanda")
    assert CallNames(("@Wanda", "x*", " ", "@"), "Wanda").plain == ("Wanda",)
    for text in ("/status@other", " /new@other_bot now", "/x@o.t-h"):
        assert is_for_another(text, names), text
    for text in ("/status", "/status@WANDA", "/new@claw now", "say /status@other", "/a@b@c", "", "/ @other"):
        assert not is_for_another(text, names), text


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.lists(st.text(max_size=40), max_size=4))
def test_no_text_breaks_it(text: str, patterns: list[str]) -> None:
    names = CallNames(tuple(patterns), "Wanda")
    heard = hear_calls(envelope(text, mentions_detectable=False), names)
    assert heard.text == text and heard.mentions_detectable
    assert heard.was_mentioned == is_called(text, (*patterns, "Wanda"))
    is_for_another(text, names)
    found = command_in(text, names)
    assert found is None or found.startswith("/")
