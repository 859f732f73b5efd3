"""Writes the table of chat commands into docs/howto/chat-commands.md.

    python -m scripts.gen_chat_docs              write the table
    python -m scripts.gen_chat_docs --check      fail when the table is out of date

The page is written by hand; what stands between its two marks is made from the same table that the
Gateway reads commands with.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from openclaw.domain.commandtable import COMMANDS, Command, usage_of
from scripts.generated_page import settle

PAGE = Path(__file__).resolve().parent.parent / "docs/howto/chat-commands.md"
BEGIN = "<!-- the table is made by scripts/docs from the table of commands; do not edit it -->"
END = "<!-- end of the table -->"


class MarksError(Exception):
    """The page has lost the marks between which its table stands."""


def render(page: str, commands: Sequence[Command] = COMMANDS) -> str:
    """The page with a fresh table between its marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise MarksError(f"the page needs the lines {BEGIN!r} and {END!r}, in this order")
    return f"{head}{BEGIN}\n\n{table(commands)}\n\n{END}{tail}"


def table(commands: Sequence[Command]) -> str:
    """Every command with its form, in the order of the table."""
    return "\n".join(
        ("| command | what it does |", "| --- | --- |", *(_row(command) for command in commands))
    )


def _row(command: Command) -> str:
    form = usage_of(command.name).removeprefix("Usage: ").replace("|", "\\|")
    aliases = ", ".join(f"`/{word}`" for word in command.aliases)
    notes = [
        f"Also {aliases}." if aliases else "",
        "Owners only." if command.owner_only else "",
        "May stand inside a message." if command.inline or command.directive else "",
    ]
    return f"| `{form}` | {' '.join(text for text in (command.help, *notes) if text)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gen_chat_docs", description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="fail when the table is out of date")
    chosen = parser.parse_args(arguments)
    return settle(PAGE, render(PAGE.read_text(encoding="utf-8")), check=chosen.check)


if __name__ == "__main__":
    sys.exit(main())
