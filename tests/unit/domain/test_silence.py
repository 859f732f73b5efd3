"""Silent replies: which text a person may see, whole and while it is streamed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.silence import SILENT_TOKEN, visible_reply, visible_so_far

pytestmark = pytest.mark.spec("LOOP-3")

PIECES = st.sampled_from(
    [
        "NO_REPLY",
        "no_reply",
        "No_Reply",
        "NO",
        "no_",
        "NO_REPLYING",
        "xNO_REPLY",
        " ",
        "\n",
        "hello",
        ".",
        "é",
        "N",
    ]
)
TEXTS = st.lists(PIECES, max_size=8).map("".join)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("NO_REPLY", ""),
        ("  no_reply \n", ""),
        ("NO_REPLY NO_REPLY", ""),
        ("NO_REPLY\nbut hear this", "but hear this"),
        ("All done. NO_REPLY", "All done."),
        ("NO_REPLY a no_reply", "a"),
        ("say NO_REPLY to stay silent", "say NO_REPLY to stay silent"),
        ("NO_REPLYING", "NO_REPLYING"),
        ("xNO_REPLY", "xNO_REPLY"),
        (" plain text, spaces kept ", " plain text, spaces kept "),
        ("", ""),
    ],
)
def test_a_finished_reply(text: str, shown: str) -> None:
    assert visible_reply(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("N", ""),
        ("no_re", ""),
        (" NO_REPLY", ""),
        ("NOT", "NOT"),
        ("NO_REPLYI", "NO_REPLYI"),
        ("NO_REPLY and", "and"),
        ("fine, no", "fine,"),
        ("fine, no ", "fine, no"),
        ("fine, not", "fine, not"),
        ("fine NO_REPLY ", "fine"),
        ("fine NO_REPLY yet", "fine NO_REPLY yet"),
    ],
)
def test_a_reply_that_is_still_coming(text: str, shown: str) -> None:
    assert visible_so_far(text) == shown


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_what_is_streamed_only_grows_into_what_is_visible(text: str) -> None:
    shown = ""
    for end in range(len(text) + 1):
        more = visible_so_far(text[:end])
        assert more.startswith(shown)
        shown = more
    assert visible_reply(text).startswith(shown)


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_what_is_visible_never_begins_or_ends_with_the_token(text: str) -> None:
    words = visible_reply(text).split()
    assert not words or SILENT_TOKEN not in (words[0].upper(), words[-1].upper())


def test_a_long_text_takes_linear_time() -> None:
    text = "NO_REPLY " * 100_000 + "end"
    assert visible_reply(text) == "end"
    assert visible_reply("start" + " NO_REPLY" * 100_000) == "start"
