"""Colours only on a terminal, and not with NO_COLOR; a pipe gets whole lines. Tried on a real terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from openclaw.cli.render import Column, print_json, print_table, say

PROGRAM = """
from openclaw.cli.render import Column, print_json, print_labels, print_table
print_labels([("gateway", "running at [red]x[/red]"), ("", "second line")])
print_table(
    (Column("Kind"), Column("Key", fold=True), Column("Age", right=True)),
    [["direct", "agent:main:" + "x" * 100, "3m"], ["group", "[bold]k", "2h"]],
)
print_json({"a": [1]})
"""


def on_terminal(home: Path, program: str = PROGRAM, **env: str) -> str:
    """What the program writes to a terminal of 60 columns."""
    controller, terminal = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "60", "TERM": "xterm-256color"}
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=terminal, stderr=terminal, env=environment | env
        )
        os.close(terminal)
        written = b""
        while True:
            try:
                chunk = os.read(controller, 65536)
            except OSError:  # Linux says so when the other side has closed
                chunk = b""
            if not chunk:
                break
            written += chunk
        assert process.wait(20) == 0
    finally:
        os.close(controller)
    return written.decode().replace("\r\n", "\n")


def test_a_terminal_gets_colours_and_lines_that_fit(home: Path) -> None:
    written = on_terminal(home)
    assert "\x1b[1m" in written
    assert "running at [red]x[/red]" in written and "[bold]k" in written
    assert '{\n  "a": [\n    1\n  ]\n}' in written
    table = [line for line in written.splitlines() if "xxx" in line]
    assert len(table) > 1 and all(len(line) < 80 for line in table)
    assert sum(line.count("x") for line in table) == 100


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_refused(home: Path, env: dict[str, str]) -> None:
    written = on_terminal(home, **env)
    assert "\x1b[3" not in written and "\x1b[9" not in written
    assert "gateway: running at" in written.replace("\x1b[1m", "").replace("\x1b[0m", "")
    if "TERM" in env:
        assert "\x1b" not in written


NARROW = """
from openclaw.cli.render import Column, print_table
columns = (Column("Kind"), Column("Key", fold=True), Column("Title", fold=True), Column("Flags"))
print_table(columns, [["direct", "k" * 40, "a title of some words", ""], ["group", "g", "t", "new"]])
"""


@pytest.mark.parametrize(("columns", "is_table"), [("49", True), ("48", False)])
def test_a_table_that_cannot_be_read_becomes_lines(home: Path, columns: str, is_table: bool) -> None:
    written = on_terminal(home, NARROW, TERM="dumb", COLUMNS=columns).splitlines()
    assert max(map(len, written)) <= int(columns)
    if is_table:
        assert written[0].split() == ["Kind", "Key", "Title", "Flags"]
        return
    assert written == [
        "Kind:  direct", f"Key:   {'k' * 40}", "Title: a title of some words", "",
        "Kind:  group", "Key:   g", "Title: t", "Flags: new",
    ]  # fmt: skip


SENTENCES = """
import sys
from openclaw.cli.render import print_labels, say
words = "no gateway at ws://127.0.0.1:18789 — start one with `openclaw gateway run`"
say(words, hanging=2, err=True)
say("short\\n" + "w" * 70 + " end")
print_labels([("gateway", words), ("", "more")])
"""


def test_sentences_are_broken_between_words_on_a_terminal(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = on_terminal(home, SENTENCES, TERM="dumb")
    assert plain.splitlines() == [
        "no gateway at ws://127.0.0.1:18789 — start one with",
        "  `openclaw gateway run`",
        "short",
        "w" * 70,
        "end",
        "gateway: no gateway at ws://127.0.0.1:18789 — start one with",
        "         `openclaw gateway run`",
        "         more",
    ]
    narrow = on_terminal(home, SENTENCES, TERM="dumb", COLUMNS="30").splitlines()
    assert narrow[:2] == ["no gateway at", "  ws://127.0.0.1:18789 — start"]
    say("word " * 60, hanging=2)
    assert capsys.readouterr().out == "word " * 60 + "\n", "a pipe gets whole lines"


@pytest.mark.parametrize("columns", ["0", "none", ""])
def test_a_width_that_makes_no_sense_is_not_believed(home: Path, columns: str) -> None:
    written = on_terminal(home, SENTENCES, TERM="dumb", COLUMNS=columns)
    assert written.splitlines()[:2] == [
        "no gateway at ws://127.0.0.1:18789 — start one with `openclaw gateway run`", "short",
    ]  # fmt: skip


@pytest.mark.spec("CLI-3")
def test_a_pipe_gets_whole_keys_in_aligned_columns(capsys: pytest.CaptureFixture[str]) -> None:
    columns = (Column("Kind"), Column("Key", fold=True), Column("Age", right=True))
    print_table(columns, [["direct", "k" * 200, "3m"], ["group", "short\x1b[0m", "12h"]])
    header, first, second = capsys.readouterr().out.splitlines()
    assert header == "Kind    Key" + " " * 197 + "  Age"
    assert first == "direct  " + "k" * 200 + "   3m"
    assert second.startswith("group   short�[0m ") and second.endswith("  12h")
    print_table(columns, [])
    assert capsys.readouterr().out == "Kind  Key  Age\n"


def test_json_survives_half_a_surrogate_pair(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": "a\ud800b", "esc": "\x1b"})
    assert capsys.readouterr().out == '{"text":"a\ufffdb","esc":"\\u001b"}\n'
