"""Normalisation by property: it only removes, leaves ordinary text alone, and no nesting wears it out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.sanitise import sanitise_assistant_text

PIECES = [
    *(
        "<think>",
        "</think>",
        "<thinking",
        "<tool_call>",
        "</tool_call>",
        "<function_calls>",
        "<invoke>",
        "</invoke>",
    ),
    *(
        "</minimax:tool_call>",
        "<relevant-memories>",
        "</relevant_memories>",
        "<|x|>",
        "<｜y｜>",
        "<",
        ">",
        "/",
    ),
    *(
        "[Tool Call: a]",
        "\nArguments: ",
        "{",
        "}",
        '"',
        "[Tool Result b]\n",
        "[Historical context]",
        "[",
        "]",
    ),
    *("[TOOL_CALL]", "[/TOOL_CALL]", "`", "``", "```\n", "~~~\n", "\n", "\n\n", " ", "word", "漢"),
]
SOUP = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)
PLAIN = st.text(st.characters(exclude_characters="<＜[", exclude_categories=["Cs"]), max_size=60)


def _is_subsequence(part: str, whole: str) -> bool:
    rest = iter(whole)
    return all(char in rest for char in part)


@pytest.mark.spec("HIST-4")
@given(SOUP)
@settings(max_examples=300, deadline=None)
def test_it_only_removes(text: str) -> None:
    assert _is_subsequence(sanitise_assistant_text(text), text)


@pytest.mark.spec("HIST-4")
@given(PLAIN)
@settings(max_examples=150, deadline=None)
def test_text_without_brackets_is_never_touched(text: str) -> None:
    assert sanitise_assistant_text(text) is text


@pytest.mark.spec("HIST-4", "HIST-5")
@given(
    PLAIN,
    st.sampled_from(
        ["think", "tool_call", "function_calls", "relevant-memories", "invoke", "minimax:tool_call"]
    ),
    st.text(st.sampled_from("abc\n{}"), max_size=30),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_a_block_leaves_exactly_what_stands_around_it(
    before: str, tag: str, inner: str, closed: bool
) -> None:
    before = before.replace("`", "'").replace("~", "-")
    closing = f"</{tag}>" if closed else ""

    cleaned = sanitise_assistant_text(f"{before}<{tag}>{inner}{closing}after")

    assert cleaned == (before + "after" if closed else before)


@pytest.mark.spec("HIST-5")
@given(st.lists(st.integers(1, 4), max_size=12), st.data())
@settings(max_examples=200, deadline=None)
def test_inline_code_follows_the_pairing_of_equal_runs(lengths: list[int], data: st.DataObject) -> None:
    """Backtick runs pair with the next run of the same length; a tag survives exactly inside a pair."""
    marked = data.draw(st.integers(0, len(lengths)))
    parts = [f"{'`' * length}a" for length in lengths]
    text = "x" + "".join(parts[:marked]) + "</think>" + "".join(parts[marked:])

    inside = False
    index = 0
    while index < len(lengths):
        closing = next((at for at in range(index + 1, len(lengths)) if lengths[at] == lengths[index]), None)
        if closing is not None:
            inside = inside or index < marked <= closing
            index = closing
        index += 1

    assert ("</think>" in sanitise_assistant_text(text)) == inside


@pytest.mark.spec("HIST-4")
@pytest.mark.parametrize(
    ("piece", "left"),
    [
        ("<think>", ""),
        ("<think", None),
        ("</think>", ""),
        ("<tool_call>", ""),
        ("<tool_call ", ""),
        ("<tool_call></tool_call>", ""),
        ("<invoke>", ""),
        ("<", None),
        ("< ", None),
        ("<|", None),
        ("<|a", None),
        ("<｜", None),
        ("[", None),
        ("[Tool Call: ", ""),
        ("[Tool Call: x]\nArguments: {", ""),
        ('[Tool Call: x]\nArguments: {"', ""),
        ("[Tool Call: x]\nArguments: {}\n", ""),
        ("[Tool Result x]\nfoo\n", ""),
        ("[Historical context: ", ""),
        ("`<think>`", None),
        ("``<think>`", None),
        ("```\n<think>\n", None),
        ("` `` ``` ```` </think>", None),
        ("\n \n</think>", None),
    ],
)
def test_hostile_text_is_answered(piece: str, left: str | None) -> None:
    """Quadratic work on 300 000 characters would take minutes here, not milliseconds."""
    text = piece * (300_000 // len(piece))
    cleaned = sanitise_assistant_text(text)

    assert len(cleaned) <= len(text)
    if left is not None:
        assert cleaned == left


@pytest.mark.spec("HIST-5")
def test_many_different_backtick_runs_are_no_burden() -> None:
    ladder = "".join("`" * length + " " for length in range(2, 600))
    pairs = "`a`</think>" * 10_000

    assert sanitise_assistant_text(ladder + pairs) == ladder + "`a`" * 10_000
