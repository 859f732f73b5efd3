"""Messages from a keyboard or from a pipe, one per line.

A trailing backslash or three double quotes make one message of several lines. On a
terminal the line editor remembers earlier lines, for this person only.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from openclaw.cli.screen import Screen

PROMPT: Final = "you> "
MORE: Final = "...> "
QUOTES: Final = '"""'
HISTORY_LINES: Final = 1000

ReadLine = Callable[[str], str]


def read_message(read_line: ReadLine) -> str:
    """The next message. Raises EOFError at the end; what stands before it is still a message.

    `read_line` gets the prompt to show and returns a line without its end.
    """
    line = read_line(PROMPT)
    if line.strip().startswith(QUOTES):
        return _quoted(line.strip()[len(QUOTES) :], read_line)
    lines: list[str] = []
    while line.endswith("\\"):
        lines.append(line[:-1])
        try:
            line = read_line(MORE)
        except EOFError:
            line = ""
    return "\n".join([*lines, line])


def _quoted(first: str, read_line: ReadLine) -> str:
    lines = [first]
    while not lines[-1].rstrip().endswith(QUOTES):
        try:
            lines.append(read_line(MORE))
        except EOFError:
            break
    lines[-1] = lines[-1].rstrip().removesuffix(QUOTES)
    return "\n".join(lines).strip("\n")


def piped_lines() -> ReadLine:
    """Lines of standard input, whatever it is connected to; nothing is shown."""

    def read_line(_prompt: str) -> str:
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\r\n")

    return read_line


@contextlib.contextmanager
def terminal_lines(screen: Screen, history: Path) -> Iterator[ReadLine]:
    """Lines from a person, with an editor that remembers; what arrives meanwhile is printed around them."""
    try:
        import readline
    except ImportError:  # some builds of Python have no line editor
        yield lambda prompt: _ask(screen, prompt, lambda: "")
        return
    readline.set_auto_history(False)
    with contextlib.suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(HISTORY_LINES)

    def read_line(prompt: str) -> str:
        line = _ask(screen, prompt, readline.get_line_buffer)
        if line.strip():
            readline.add_history(line)
        return line

    try:
        yield read_line
    finally:
        with contextlib.suppress(OSError):
            _keep_history(readline.write_history_file, history)


def _ask(screen: Screen, prompt: str, typed: Callable[[], str]) -> str:
    screen.open_prompt(prompt, typed)
    try:
        return input(prompt)
    finally:
        screen.close_prompt()


def _keep_history(write: Callable[[str], None], path: Path) -> None:
    """Only the owner may read what was typed."""
    path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    write(str(path))
    path.chmod(0o600)
