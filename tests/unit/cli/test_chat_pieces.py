"""The small parts of a conversation in the terminal: lines that are read, and the screen they meet on."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.cli.chat_input import MORE, PROMPT, piped_lines, read_message, terminal_lines
from openclaw.cli.conversation import Piece, attachments_of, pieces_of, tool_calls_of
from openclaw.cli.screen import Screen
from openclaw.protocol.messages import text_of


def messages(*lines: str) -> list[str]:
    """Every message that these lines hold."""
    left, asked = iter(lines), []

    def read_line(prompt: str) -> str:
        asked.append(prompt)
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    found = []
    while True:
        try:
            found.append(read_message(read_line))
        except EOFError:
            return found


def test_a_line_is_a_message_and_some_are_longer() -> None:
    assert messages("one", "", "two") == ["one", "", "two"]
    assert messages("first \\", "second\\", "third", "next") == ["first \nsecond\nthird", "next"]
    assert messages('"""', "a", "", "b", '"""', "next") == ["a\n\nb", "next"]
    assert messages('"""one line"""', "next") == ["one line", "next"]
    assert messages('  """begin', 'end"""  ') == ["begin\nend"]


def test_what_was_begun_at_the_end_of_the_input_is_still_said() -> None:
    assert messages("half\\") == ["half\n"]
    assert messages('"""', "open") == ["open"]
    assert messages() == []


@given(st.lists(st.text(alphabet='ab"\\ ', max_size=6), max_size=12))
@settings(max_examples=200, deadline=None)
def test_no_line_is_lost_whatever_is_typed(lines: list[str]) -> None:
    said = "".join(messages(*lines)).replace("\n", "")
    typed = "".join(lines)
    for letter in "ab":
        assert said.count(letter) == typed.count(letter)


def test_the_prompt_says_that_more_is_awaited() -> None:
    asked: list[str] = []
    lines = iter(["a\\", "b"])

    def read_line(prompt: str) -> str:
        asked.append(prompt)
        return next(lines)

    assert read_message(read_line) == "a\nb"
    assert asked == [PROMPT, MORE]


def test_lines_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\r\ntwo\nlast"))
    read_line = piped_lines()
    assert [read_line(""), read_line(""), read_line("")] == ["one", "two", "last"]
    with pytest.raises(EOFError):
        read_line("")


def test_typed_lines_are_remembered_for_this_person_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "state" / "chat_history"
    monkeypatch.setattr(sys, "stdin", io.StringIO("what I typed\n\n"))
    with terminal_lines(Screen(styled=False), kept) as read_line:
        assert [read_line(PROMPT), read_line(PROMPT)] == ["what I typed", ""]
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "what I typed" in kept.read_text()


# -- the screen --------------------------------------------------------------------------------


def test_open_lines_go_on_and_are_ended_before_anything_else(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(styled=False)
    screen.show([Piece("Hel", open=True), Piece("lo", open=True)])
    screen.show([Piece("· exec ls", "dim"), Piece("Done", open=True), Piece("."), Piece("")])
    screen.show([Piece("more", open=True), Piece(""), Piece("")])
    screen.end_line()
    assert capsys.readouterr().out == "Hello\n· exec ls\nDone.\nmore\n"


def test_an_open_line_is_ended_when_the_conversation_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(styled=False)
    screen.show([Piece("half", open=True)])
    screen.end_line()
    screen.end_line()
    assert capsys.readouterr().out == "half\n"


def test_colours_are_only_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Screen(styled=True).show([Piece("dim", "dim")])
    assert capsys.readouterr().out == "\x1b[2mdim\x1b[0m\n"
    Screen().show([Piece("plain", "error")])
    assert capsys.readouterr().out == "plain\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    Screen().show([Piece("plain", "error")])
    assert capsys.readouterr().out == "plain\n"


def test_what_comes_while_a_person_types_is_put_around_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(styled=False)
    screen.open_prompt("you> ", lambda: "half a wo")
    screen.show([Piece("A help", open=True)])
    assert capsys.readouterr().out == "", "an unfinished line waits"
    screen.show([Piece("er is done.")])
    assert capsys.readouterr().out == "\r\x1b[KA helper is done.\nyou> half a wo"
    screen.show([Piece("and so", open=True)])
    screen.close_prompt()
    assert capsys.readouterr().out == "and so"


# -- messages ----------------------------------------------------------------------------------


def test_messages_of_any_shape_become_lines() -> None:
    assert text_of({"content": "plain"}) == "plain" and text_of(None) == ""
    assert text_of({"content": [{"type": "text", "text": "a"}, {"type": "thinking", "text": "x"}, 7]}) == "a"
    assert text_of({"content": 3}) == "" and text_of({}) == ""
    assert pieces_of({"role": "assistant", "content": []}) == []
    assert pieces_of({"role": "toolResult", "content": "fine"}) == []
    assert pieces_of({"role": "user", "content": "hi"}) == [Piece("you", "person"), Piece("hi")]
    assert pieces_of({"role": "whoever", "content": ""}) == []
    image = {"content": [{"type": "image", "omitted": True, "bytes": 9}, {"type": "audio"}]}
    assert [piece.text for piece in attachments_of(image)] == ["[image, 9 bytes]", "[audio]"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({}, "· t"),
        (None, "· t"),
        ({"a": [1, {"b": None}]}, '· t a=[1,{"b":null}]'),
        ("raw words", "· t raw words"),
        ([1, 2], "· t [1,2]"),
        ({"x": "é" * 500}, "· t x=" + "é" * 97 + "…"),
    ],
)
def test_a_tool_call_is_one_short_line(arguments: object, line: str) -> None:
    call = {"content": [{"type": "toolCall", "name": "t", "arguments": arguments}]}
    assert [piece.text for piece in tool_calls_of(call)] == [line]
