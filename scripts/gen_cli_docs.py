"""Writes docs/reference/cli.md from the help texts of the `openclaw` command.

    python -m scripts.gen_cli_docs               write the page
    python -m scripts.gen_cli_docs --check       fail when the page is out of date

Every command, also a lazily loaded one, shows exactly what `--help` prints. Hidden commands stay hidden.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from openclaw.cli.main import cli
from scripts.generated_page import settle

PAGE = Path(__file__).resolve().parent.parent / "docs/reference/cli.md"
WIDTH = 90


def walk(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """Yields (full name, help text) of a command and of everything below it, in the order of the help."""
    with click.Context(
        command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
    ) as context:
        yield context.command_path, command.get_help(context)
        if isinstance(command, click.Group):
            for child_name in command.list_commands(context):
                child = command.get_command(context, child_name)
                if child is not None and not child.hidden:
                    yield from walk(child, child_name, context)


def render(command: click.Command) -> str:
    """The whole page."""
    lines = [
        "# Commands",
        "",
        "This page is generated from the command's own help by `scripts/docs`; do not edit it.",
    ]
    for name, text in walk(command, "openclaw"):
        lines += ["", f"## `{name}`", "", "```text", *(line.rstrip() for line in text.splitlines()), "```"]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gen_cli_docs", description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="fail when the page is out of date")
    return settle(PAGE, render(cli), check=parser.parse_args(arguments).check)


if __name__ == "__main__":
    sys.exit(main())
