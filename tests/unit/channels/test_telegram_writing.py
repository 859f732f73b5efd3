"""A reply as Telegram's HTML: what becomes of Markdown, of half of it, and of long texts."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openclaw.channels.telegram.writing import LONGEST, pieces_of, to_html, units
from tests.fakes.telegram_html import read_html
from tests.fakes.telegram_html import units as real_units

_WORDS = [*'ab *_~|`[]()<>&#\n"-1😀', "https://x.y", "```", "**", "\n> ", "](https://x.y)"]
MARKED = st.lists(st.sampled_from(_WORDS), max_size=60).map("".join)


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("plain", "plain"),
        ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
        ("**bold** and __bold__", "<b>bold</b> and <b>bold</b>"),
        ("*slanted* and _slanted_", "<i>slanted</i> and <i>slanted</i>"),
        ("~~gone~~ ||hidden||", "<s>gone</s> <tg-spoiler>hidden</tg-spoiler>"),
        ("**bold *and* slanted**", "<b>bold <i>and</i> slanted</b>"),
        ("# Title\ntext", "<b>Title</b>\ntext"),
        ("### A **b** c", "<b>A **b** c</b>"),
        ("text\n# Title\n# Other", "text\n<b>Title</b>\n<b>Other</b>"),
        ("#hashtag", "#hashtag"),
        ("`a*b*c`", "<code>a*b*c</code>"),
        ("``a`b``", "<code>a`b</code>"),
        ("`<b>`", "<code>&lt;b&gt;</code>"),
        ("[text](https://a.b/c?d=e&f)", '<a href="https://a.b/c?d=e&amp;f">text</a>'),
        ("**[t](https://a.b)**", '<b><a href="https://a.b">t</a></b>'),
        ("[x](javascript:alert)", "[x](javascript:alert)"),
        ("[x] (https://a.b)", "[x] (https://a.b)"),
        ("> said\n> twice\nafter", "<blockquote>said\ntwice</blockquote>\nafter"),
        ("before\n> quoted", "before\n<blockquote>quoted</blockquote>"),
        ("```python\nif a < b:\n```", '<pre><code class="language-python">if a &lt; b:</code></pre>'),
        ("```\n**raw**\n```\nend", "<pre>**raw**</pre>\nend"),
    ],
)  # fmt: skip
def test_form_is_kept(markdown: str, html: str) -> None:
    assert to_html(markdown) == html


@pytest.mark.parametrize(
    "text",
    [
        "snake_case_name", "2*3*4", "2 * 3 * 4", "**open", "closed**", "a ** b", "`half", "```\nopen block",
        "*", "****", "[half](", "[]()", "__", "a_b_", "***", "~~", "||x", "x|| y", "_ _", "foo(*args, **kw)",
    ],
)  # fmt: skip
def test_half_of_a_form_stays_as_it_was_typed(text: str) -> None:
    shown, _ = read_html(to_html(text))
    assert shown == text


def test_what_was_opened_inside_and_not_closed_stays() -> None:
    assert to_html("**a *b** c*") == "<b>a *b</b> c*"
    assert to_html("*a **b* c**") == "<i>a **b</i> c**"


def test_a_form_does_not_stand_inside_itself() -> None:
    assert to_html("**a __b__ c**") == "<b>a __b__ c</b>"


@given(MARKED)
@example("**[x](https://x.y)*_`<`|| |||")
@settings(max_examples=150, deadline=None)
def test_the_markup_is_always_whole_and_nothing_grows(text: str) -> None:
    shown, entities = read_html(to_html(text))
    assert real_units(shown) <= real_units(text)
    letters = [char for char in text if char in "ab😀1"]
    assert [char for char in shown if char in "ab😀1"] == letters or "https://x.y" in text
    assert all(isinstance(one["length"], int) for one in entities)


@given(st.text(max_size=300))
@settings(max_examples=150, deadline=None)
def test_any_text_gives_whole_markup(text: str) -> None:
    read_html(to_html(text))


def test_length_is_counted_as_telegram_counts() -> None:
    assert units("abc") == 3 and units("😀") == 2 and units("é") == 1
    assert units("😀" * 2048) == LONGEST
    assert units("a" * (LONGEST + 1)) == LONGEST + 1


@pytest.mark.parametrize(
    ("text", "count"),
    [("a" * 4096, 1), ("a" * 4097, 2), ("😀" * 2048, 1), ("😀" * 2049, 2), ("", 0), ("  \n ", 0)],
)
def test_pieces_are_cut_at_4096(text: str, count: int) -> None:
    pieces = pieces_of(text)
    assert len(pieces) == count
    assert all(real_units(read_html(one.html)[0]) <= 4096 for one in pieces)
    assert "".join(one.plain for one in pieces) == text.strip()


def test_a_code_block_that_is_cut_is_whole_in_every_piece() -> None:
    lines = "\n".join(f"line {number}" for number in range(1500))
    pieces = pieces_of(f"```python\n{lines}\n```")
    assert len(pieces) > 2
    assert all(one.html.startswith('<pre><code class="language-python">') for one in pieces)
    assert all(one.html.endswith("</code></pre>") for one in pieces)


@given(st.lists(MARKED, max_size=40), st.integers(min_value=64, max_value=200))
@settings(max_examples=100, deadline=None)
def test_every_piece_fits_as_html_and_as_text(parts: list[str], longest: int) -> None:
    for piece in pieces_of(" ".join(parts), longest):
        assert real_units(piece.plain) <= longest
        assert real_units(read_html(piece.html)[0]) <= longest


@pytest.mark.parametrize("part", ["[", "`", "``` ", "*a ", "**", "_", ">\n", "[a](https://", "||a", "`` ` "])
def test_hostile_text_takes_linear_time(part: str) -> None:
    began = time.process_time()
    pieces_of(part * (100_000 // len(part)))
    assert time.process_time() - began < 20
