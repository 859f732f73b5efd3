"""Command groups that load a command only when it is called, so that starting stays quick.

A group shows its commands as a table of names and places, so that a reader sees
them all at once and `openclaw --version` imports none of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import click


class LazyGroup(click.Group):
    """A group whose commands stand in `table`: name -> "module:attribute".

    `sections` groups them in the help: title -> names. What no section names comes last.
    """

    def __init__(
        self,
        *args: Any,
        table: Mapping[str, str],
        sections: Mapping[str, Sequence[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.table = table
        self.sections = sections or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        placed = {name for names in self.sections.values() for name in names}
        rest = [name for name in self.table if name not in placed]
        width = max(map(len, self.table))
        for title, names in (*self.sections.items(), ("Commands", rest)):
            rows = [
                (name.ljust(width), load_command(self.table[name]).get_short_help_str(60))
                for name in names
                if name in self.table
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's; a typing mistake is answered with the nearest name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as mistake:
            from difflib import get_close_matches

            near = get_close_matches(args[0][:64], self.list_commands(ctx), 1)
            if not near:
                raise
            raise click.UsageError(f"{mistake.message} Did you mean {near[0]!r}?", ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.table.get(cmd_name)
        return None if entry is None else load_command(entry)


def load_command(entry: str) -> click.Command:
    """The command that an entry of the table names."""
    module, _, attribute = entry.partition(":")
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command), entry
    return command
