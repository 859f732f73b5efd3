"""Replies as events of Matrix: form, edits, threads, and that everything fits."""

from __future__ import annotations

from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.channels.matrix.writing import (
    LARGEST_CONTENT,
    LONGEST,
    Piece,
    edit_content,
    file_content,
    pieces_of,
    text_content,
    to_html,
    transaction_id,
    weight,
)


class Balance(HTMLParser):
    """Whether every tag is closed in its place, and which tags there are."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.seen: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]
        self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("br", "hr")

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def balance(shown: str) -> Balance:
    found = Balance()
    found.feed(shown)
    assert found.stack == []
    return found


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain words", None),
        ("two\nlines", None),
        ("a & b < c", None),
        ("**bold** words", "<strong>bold</strong> words"),
        ("~~gone~~", "<s>gone</s>"),
        ("`a<b`", "<code>a&lt;b</code>"),
        ("- one\n- two", "<ul>\n<li>one</li>\n<li>two</li>\n</ul>"),
        ("```py\nx = 1\n```", '<pre><code class="language-py">x = 1\n</code></pre>'),
        ("[a](https://x.org)", '<a href="https://x.org">a</a>'),
        ("one\n\ntwo", "<p>one</p>\n<p>two</p>"),
    ],
)
def test_markdown_becomes_form_where_there_is_any(written: str, shown: str | None) -> None:
    assert to_html(written) == shown


def test_nothing_dangerous_passes_as_form() -> None:
    assert to_html("<script>alert(1)</script>") is None, "it is shown as it was written"
    shown = to_html("**x** <img src=x onerror=y> [a](javascript:alert(1)) ![p](https://t.example/p)")
    assert shown is not None
    found = balance(shown)
    assert found.seen == {"strong", "a"} and found.links == ["https://t.example/p"]


def test_a_message_calls_nobody_and_keeps_its_words() -> None:
    content = text_content(Piece("*hi*", "<em>hi</em>"), None)
    assert content == {
        "msgtype": "m.text", "body": "*hi*", "format": "org.matrix.custom.html",
        "formatted_body": "<em>hi</em>", "m.mentions": {},
    }  # fmt: skip
    assert set(text_content(Piece("hi"), None)) == {"msgtype", "body", "m.mentions"}


@pytest.mark.spec("KEY-11", "ROUTE-2")
def test_an_answer_in_a_thread_stays_there() -> None:
    relation = text_content(Piece("hi"), "$RooT")["m.relates_to"]
    assert relation == {
        "rel_type": "m.thread", "event_id": "$RooT", "is_falling_back": True,
        "m.in_reply_to": {"event_id": "$RooT"},
    }  # fmt: skip
    assert file_content("a.txt", "text/plain", 3, "mxc://h/x", "$RooT")["m.relates_to"] == relation


def test_an_edit_replaces_and_says_so_to_old_clients() -> None:
    content = edit_content(Piece("**b**", "<strong>b</strong>"), "$E")
    assert content["m.relates_to"] == {"rel_type": "m.replace", "event_id": "$E"}
    assert content["body"] == "* **b**" and content["m.new_content"]["formatted_body"] == "<strong>b</strong>"
    assert content["m.mentions"] == content["m.new_content"]["m.mentions"] == {}


def test_files_are_images_or_files() -> None:
    content = file_content("cat.png", "image/png", 9, "mxc://h/x", None)
    assert (content["msgtype"], content["url"], content["info"]["size"]) == ("m.image", "mxc://h/x", 9)
    assert file_content("a", "text/plain", 1, "mxc://h/x", None)["msgtype"] == "m.file"
    assert "m.relates_to" not in content and content["filename"] == content["body"] == "cat.png"


def test_each_part_has_one_transaction_for_ever() -> None:
    first = transaction_id("run-1:reply", "text 0")
    assert first == transaction_id("run-1:reply", "text 0") and first.isalnum() and len(first) == 42
    others = {transaction_id("run-1:reply", "text 1"), transaction_id("run-2:reply", "text 0")}
    assert first not in others and len(others) == 2
    assert transaction_id("a\nb", "c") != transaction_id("a", "b c") and transaction_id("\ud800", "")


def test_a_text_is_as_long_as_its_bytes() -> None:
    assert weight("abc") == 3 and weight("é") == 4 and weight("🎈") == 4
    assert weight("\n") == 2 and weight('"') == 2 and weight("\\") == 2
    assert weight("<") == 6 and weight("\x01") == 6
    assert [len(piece.plain) for piece in pieces_of("x" * LONGEST)] == [LONGEST]
    assert len(pieces_of("x" * (LONGEST + 1))) == 2 and pieces_of(" \n ") == []
    assert [piece.plain for piece in pieces_of("a\x00b\ud800")] == ["ab\ufffd"]


@pytest.mark.parametrize("unit", ["🎈", "*a* ", "&", "<", "\\", '"', "- x\n", "> ", "\x02", "| a ", "`a`"])
def test_everything_fits_into_an_event(unit: str) -> None:
    pieces = pieces_of(unit * (LONGEST // len(unit)) + "end")
    assert pieces
    for piece in pieces:
        assert weight(piece.plain) <= LONGEST
        for content in (text_content(piece, "$" + "r" * 250), edit_content(piece, "$" + "e" * 250)):
            assert len(msgspec.json.encode(content)) <= LARGEST_CONTENT


MARKS = st.sampled_from(
    ["*", "**", "_", "~~", "`", "```", "[a](b)", "[", "](https://x)", "\n", "\n\n", "- ", "> ", "#", "    "]
    + ["| a | b |\n|--|--|", "<b>", "&amp;", "word", " ", "1. "]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(MARKS, max_size=40).map("".join))
def test_form_is_always_well_nested(written: str) -> None:
    for piece in pieces_of(written, 200):
        assert len(piece.plain) <= 200
        if piece.html is not None:
            assert "b" not in balance(piece.html).seen, "markup of the text is never markup of the message"
