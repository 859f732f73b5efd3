"""Command groups that load a command only when it is called, so that starting stays quick.

A group shows its commands as a table of names and places, so that a reader sees
them all at once and `openclaw --version` imports none of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """A group whose commands stand in `table`: name -> "module:attribute"."""

    def __init__(self, *args: Any, table: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.table.get(cmd_name)
        return None if entry is None else load_command(entry)


def load_command(entry: str) -> click.Command:
    """The command that an entry of the table names."""
    module, _, attribute = entry.partition(":")
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command), entry
    return command
