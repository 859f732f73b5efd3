"""list: what a directory of the workspace holds."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from msgspec import Meta, Struct

from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.tools.workspace.access import NO_SANDBOX, Access, Arguments, object_spec, read_arguments
from openclaw.engine.tools.workspace.rooted import TEMP_PREFIX, Entry, Root, shown
from openclaw.errors import OpenClawError

MAX_SHOWN = 1000
MAX_LEVELS = 5


class ListArguments(Arguments, frozen=True):
    path: str = "."
    depth: Annotated[int, Meta(ge=1, le=MAX_LEVELS)] = 1


class _Tree(Struct):
    lines: list[str]
    complete: bool = True


class ListTool:
    def __init__(self, access: Access = NO_SANDBOX) -> None:
        self._access = access

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_arguments(arguments, ListArguments)
        workspace = await self._access.enter("list", context)
        tree = await asyncio.to_thread(_list, workspace, asked)
        lines = tree.lines or ["(empty)"]
        if not tree.complete:
            lines = [*lines, "[more is here; name a directory below, or use grep]"]
        details = {"path": asked.path, "count": len(tree.lines), "truncated": not tree.complete}
        return ToolOutcome((TextBlock("\n".join(lines)),), details=details)


def _list(workspace: str, asked: ListArguments) -> _Tree:
    tree = _Tree([])
    with Root(workspace) as root:
        _add(tree, root, asked.path, "", asked.depth)
    return tree


def _add(tree: _Tree, root: Root, path: str, shown_below: str, depth: int) -> None:
    listing = root.list(path)
    tree.complete = tree.complete and listing.complete
    for entry in listing.entries:
        if entry.name.startswith(TEMP_PREFIX):
            continue  # a file that is being written
        if len(tree.lines) >= MAX_SHOWN:
            tree.complete = False
            return
        tree.lines.append(_line(shown_below, entry))
        if entry.kind == "directory" and depth > 1:
            try:
                _add(tree, root, f"{path}/{entry.name}", f"{shown_below}{shown(entry.name)}/", depth - 1)
            except OpenClawError:
                continue  # it went away, or its name cannot be asked for; the rest is still worth showing


def _line(below: str, entry: Entry) -> str:
    name = f"{below}{shown(entry.name)}"
    if entry.kind == "directory":
        return f"{name}/"
    return f"{name}  {entry.size} bytes" if entry.kind == "file" else f"{name}  ({entry.kind})"


_SPEC = object_spec(
    "list",
    "List a directory of your workspace, in alphabetical order; depth goes into directories below it.",
    {
        "path": {"type": "string", "description": "relative to the workspace; . is its top"},
        "depth": {"type": "integer", "minimum": 1, "maximum": MAX_LEVELS},
    },
)
