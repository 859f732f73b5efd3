"""Tool results as they are kept: masked, bounded, and honest about both."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.transcript import ImageBlock, TextBlock
from openclaw.engine.ports import ToolOutcome
from openclaw.engine.tools.results import (
    DETAILS_CUT,
    MAX_BLOCKS,
    MAX_DETAILS_CHARS,
    MAX_DETAILS_DEPTH,
    MAX_IMAGE_CHARS,
    MAX_RESULT_CHARS,
    bound_details,
    settle_outcome,
    settle_text,
    text_chars,
)

SECRET = "correct-horse-battery-staple"
KNOWN = frozenset({SECRET})
NONE: frozenset[str] = frozenset()
NOTE = "\n[1 secret masked before this text was stored]"


@pytest.mark.spec("TRX-11")
def test_known_secrets_and_credential_formats_are_masked_and_said() -> None:
    assert settle_text(f"pass={SECRET};", 1000, KNOWN).text == f"pass=correc…aple;{NOTE}"
    token = "ghp_" + "a1B2" * 9
    settled = settle_text(f"{token} and {SECRET}", 1000, KNOWN)
    assert token not in settled.text
    assert SECRET not in settled.text
    assert settled.text.endswith("\n[2 secrets masked before this text was stored]")
    assert (settled.masked, settled.left_out) == (2, 0)
    plain = settle_text("nothing to hide", 1000, KNOWN)
    assert (plain.text, plain.masked) == ("nothing to hide", 0)


def test_text_is_cut_exactly_at_its_limit() -> None:
    assert settle_text("x" * 100, 100, NONE).text == "x" * 100
    cut = settle_text("x" * 101, 100, NONE)
    assert cut.text == "x" * 100 + "\n[cut: 1 more characters]"
    assert cut.left_out == 1
    assert settle_text("a\x00b\ud800", 10, NONE).text == "ab\ufffd"
    assert settle_text("abc", 0, NONE).text == "\n[cut: 3 more characters]"
    assert settle_text("abc", 10, NONE, 1000).text == "abc\n[cut: 997 more characters]"


@pytest.mark.spec("TRX-11")
@pytest.mark.parametrize("at", range(-len(SECRET) - 1, 2))
def test_a_cut_never_leaves_half_of_a_secret(at: int) -> None:
    limit = 1000
    for behind in (0, 10_000, 40_000):
        text = "x" * (limit + at) + SECRET + "y" * behind
        settled = settle_text(text, limit, KNOWN)
        assert SECRET[:8] not in settled.text
        assert len(settled.text) < limit + 120


@pytest.mark.spec("TRX-11")
def test_the_note_about_masks_survives_the_cut() -> None:
    settled = settle_text(SECRET + "x" * 50_000, 1000, KNOWN)
    assert settled.text.startswith("correc…aplexxx")
    assert settled.text.endswith(f"more characters]{NOTE}")


@pytest.mark.spec("TRX-11")
def test_masks_that_shrink_the_text_do_not_pull_a_half_secret_into_view() -> None:
    """Much is masked before the end of what was looked at, and a secret lies across that end."""
    limit, margin = 20_000, 16_384
    for shift in range(0, len(SECRET), 3):
        front = (SECRET + "\n") * 700
        filler = "z" * (limit + margin - len(front) - shift)
        settled = settle_text(front + filler + SECRET + "tail" * 5000, limit, KNOWN)
        assert SECRET[:8] not in settled.text


def test_an_outcome_is_bounded_over_all_its_blocks() -> None:
    blocks = tuple(TextBlock("x" * 150_000) for _ in range(3))
    settled = settle_outcome(ToolOutcome(blocks, is_error=True), NONE)
    texts = [block.text for block in settled.content if isinstance(block, TextBlock)]
    assert texts[0] == "x" * 150_000
    assert texts[1].startswith("x" * 50_000 + "\n[cut: 100000 more")
    assert texts[2] == "\n[cut: 150000 more characters]"
    assert settled.is_error is True
    many = settle_outcome(ToolOutcome((TextBlock("x"),) * (MAX_BLOCKS + 2)), NONE)
    assert many.content[-1] == TextBlock("[cut: 2 more blocks]")
    assert len(many.content) == MAX_BLOCKS + 1
    assert len(settle_outcome(ToolOutcome((TextBlock("x"),) * MAX_BLOCKS), NONE).content) == MAX_BLOCKS
    assert text_chars(ToolOutcome((TextBlock("ab"), ImageBlock("zzzz", "image/png"), TextBlock("c")))) == 3


def test_an_image_is_kept_whole_or_not_at_all() -> None:
    fits, too_large = (
        ImageBlock("a" * MAX_IMAGE_CHARS, "image/png"),
        ImageBlock("a" * (MAX_IMAGE_CHARS + 1), "image/png"),
    )
    settled = settle_outcome(ToolOutcome((fits, too_large)), NONE)
    assert settled.content[0] is fits
    assert settled.content[1] == TextBlock(
        f"[an image of {MAX_IMAGE_CHARS + 1} characters was left out: too large]"
    )


# -- details -----------------------------------------------------------------------------------


@pytest.mark.spec("TRX-10")
def test_small_details_are_kept_as_they_are() -> None:
    details = {"a": 1, "b": [True, None, 1.5, "x"], "c": {"d": "e"}, "t": "\ttab"}
    assert bound_details(details, NONE) == details
    assert settle_outcome(ToolOutcome((), details=details), NONE).details == details
    assert settle_outcome(ToolOutcome(()), NONE).details is None


@pytest.mark.spec("TRX-10")
@pytest.mark.parametrize(
    "details",
    [
        {"text": "x" * 1_000_000},
        {"rows": ["y" * 100] * 10_000},
        {"rows": list(range(1_000_000))},
        {f"name {n}": n for n in range(100_000)},
        {"deep": [[["x" * 30_000] * 3] * 3] * 3},
        {"n" * 1_000_000: 1},
        {"rows": [[]] * 1_000_000},
    ],
    ids=["text", "rows", "numbers", "names", "nested", "name", "empty"],
)
def test_large_details_are_cut_and_marked(details: dict[str, Any]) -> None:
    kept = bound_details(details, NONE)
    assert kept[DETAILS_CUT] is True
    assert len(msgspec.json.encode(kept)) < 5 * MAX_DETAILS_CHARS
    assert len(kept) > 1


@pytest.mark.spec("TRX-10")
def test_details_are_cut_exactly_at_their_limit() -> None:
    room = MAX_DETAILS_CHARS - 8 - len("t") - 4
    assert bound_details({"t": "x" * room}, NONE) == {"t": "x" * room}
    assert bound_details({"t": "x" * (room + 1)}, NONE) == {"t": "x" * room, DETAILS_CUT: True}


@pytest.mark.spec("TRX-10")
def test_details_deeper_than_allowed_end_there() -> None:
    def nested(levels: int) -> dict[str, Any]:
        value: dict[str, Any] = {"end": 1}
        for _ in range(levels - 1):
            value = {"in": value}
        return value

    assert bound_details(nested(MAX_DETAILS_DEPTH), NONE) == nested(MAX_DETAILS_DEPTH)
    assert bound_details(nested(MAX_DETAILS_DEPTH + 1), NONE)[DETAILS_CUT] is True
    circle: dict[str, Any] = {}
    circle["self"] = circle
    assert bound_details(circle, NONE)[DETAILS_CUT] is True


@pytest.mark.spec("TRX-11")
def test_secrets_in_details_are_masked_without_a_sentence() -> None:
    details = {"path": f"/home/{SECRET}/x", "rows": [{SECRET: "ghp_" + "a1B2" * 9}], "short": "pw"}
    kept = bound_details(details, KNOWN)
    assert kept == {"path": "/home/correc…aple/x", "rows": [{"correc…aple": "ghp_a1…a1B2"}], "short": "pw"}
    long = bound_details({"text": "x" * 65_000 + SECRET + "y" * 90_000}, KNOWN)
    assert SECRET[:8] not in str(long)


def test_values_that_json_does_not_know_become_text() -> None:
    odd: dict[Any, Any] = {"at": b"raw", 5: 1}
    assert bound_details(odd, NONE) == {"at": "b'raw'", "5": 1}


@pytest.mark.spec("TRX-10", "TRX-11")
def test_fifty_megabytes_cost_little_memory() -> None:
    text = "x" * 50_000_000
    outcome = ToolOutcome((TextBlock(text),), details={"all": text})
    tracemalloc.start()
    settled = settle_outcome(outcome, KNOWN)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8_000_000
    assert text_chars(settled) < MAX_RESULT_CHARS + 100
    assert settled.details is not None
    assert len(settled.details["all"]) < MAX_DETAILS_CHARS


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40) | st.just(SECRET),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(max_size=20), _JSON, max_size=4))
def test_any_details_can_be_stored_and_hold_no_secret(details: dict[str, Any]) -> None:
    kept = bound_details(details, KNOWN)
    assert SECRET.encode() not in msgspec.json.encode(kept)
    assert DETAILS_CUT not in kept


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300), st.integers(0, 200))
def test_any_text_is_within_its_limit_and_can_be_stored(text: str, limit: int) -> None:
    settled = settle_text(text, limit, NONE)
    settled.text.encode()
    assert len(settled.text) <= limit + 40
    assert bool(settled.left_out) == ("[cut: " in settled.text and settled.text.endswith("more characters]"))
