"""`openclaw sessions tree`: who asked whom for help, how far they are and what it cost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import click
from msgspec import Struct

from openclaw.cli.client import GatewayClient
from openclaw.cli.listing import Query, fetch_sessions
from openclaw.cli.naming import Name, find_row
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags, find_place
from openclaw.cli.render import Column, print_json, print_table, say
from openclaw.domain.terminaltext import age, one_line, tokens
from openclaw.protocol.scopes import READ

Json = dict[str, Any]
COLUMNS = (
    Column("Session", fold=True),
    Column("State"),
    Column("Runtime", right=True),
    Column("Tokens", right=True),
    Column("Cost", right=True),
    Column("Task", fold=True),
)


# Helpers of helpers are few; what was made to look deeper is shown at this depth.
MAX_DEPTH = 20


class Node(Struct, frozen=True):
    """A session in the tree; `depth` 0 is a root."""

    row: Json
    depth: int
    # For each level above: whether more of that family follows below.
    more: tuple[bool, ...]


@click.command(short_help="Show sessions with their helpers below them.")
@click.argument("key", required=False, metavar="[KEY]")
@click.option("--agent", "agent_id", metavar="ID", help="Only sessions of this agent.")
@gateway_options
@timeout_option
@json_option
def tree(key: str | None, agent_id: str | None, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Show sessions with their helpers below them; with KEY, the family of that session.

    \b
    Examples:
      openclaw sessions tree
      openclaw sessions tree main
      openclaw sessions tree --json
    """
    with GatewayClient(find_place(flags, os.environ), [READ], connect_timeout_s=timeout_s) as client:
        root = None if key is None else find_row(client, Name(key, agent_id), timeout_s)
        rows = fetch_sessions(client, Query(agent_id=agent_id, archived="all"), timeout_s).rows
    family = Family(rows if root is None else [*rows, root])
    roots = family.roots() if root is None else [family.top_of(str(root["key"]))]
    if as_json:
        print_json({"ok": True, "sessions": [family.nested(one) for one in roots]})
        return
    nodes = [node for one in roots for node in family.walk(one)]
    if not nodes:
        say("No session has helpers.")
        return
    print_table(COLUMNS, [_cells(node) for node in nodes])


class Family:
    """Sessions by who spawned them."""

    def __init__(self, rows: Iterable[Json]) -> None:
        self._rows = {str(row["key"]): row for row in rows}
        self._children: dict[str, list[str]] = {}
        for key, row in self._rows.items():
            parent = self.parent_of(row)
            if parent is not None:
                self._children.setdefault(parent, []).append(key)
        for children in self._children.values():
            children.sort(key=lambda child: (self._rows[child].get("createdAt") or 0, child))

    def parent_of(self, row: Json) -> str | None:
        """Who spawned a session; a parent that is not listed any more is none."""
        parent = row.get("spawnedBy")
        return str(parent) if parent and parent != row["key"] and str(parent) in self._rows else None

    def roots(self) -> list[str]:
        """Sessions with helpers that are nobody's helper, newest first."""
        return [
            key for key, row in self._rows.items() if key in self._children and self.parent_of(row) is None
        ]

    def top_of(self, key: str) -> str:
        """The first ancestor of a session, itself where it has none."""
        seen = {key}
        while (parent := self.parent_of(self._rows[key])) is not None and parent not in seen:
            key = parent
            seen.add(key)
        return key

    def walk(self, root: str) -> list[Node]:
        """The tree below `root`, parents before children; a session stands in it once."""
        nodes: list[Node] = []
        waiting: list[tuple[str, tuple[bool, ...]]] = [(root, ())]
        seen: set[str] = set()
        while waiting:
            key, more = waiting.pop()
            if key in seen:
                continue
            seen.add(key)
            nodes.append(Node(self._rows[key], len(more), more))
            children = self._children.get(key, [])
            last = len(children) - 1
            for at, child in reversed(list(enumerate(children))):
                waiting.append((child, (*more, at != last) if len(more) < MAX_DEPTH else more))
        return nodes

    def nested(self, root: str) -> Json:
        """The same tree as objects in objects."""
        made: dict[int, Json] = {}
        for node in self.walk(root):
            shown = told(node.row)
            if node.depth:
                made[node.depth - 1]["children"].append(shown)
            made[node.depth] = shown
        return made[0]


def told(row: Json) -> Json:
    """What the tree tells of one session."""
    fields = ("agentId", "sessionId", "label", "runtimeMs", "totalTokens", "estimatedCostUsd")
    return {
        "key": row["key"],
        "state": state_of(row),
        **{name: row.get(name) for name in fields},
        "children": [],
    }


def state_of(row: Json) -> str:
    if row.get("hasActiveRun"):
        return "running"
    state = str(row.get("status") or "new")
    return f"{state}, archived" if row.get("archived") else state


def _cells(node: Node) -> list[str]:
    row, cost = node.row, node.row.get("estimatedCostUsd")
    return [
        _stem(node.more) + str(row["key"]),
        state_of(row),
        age(row.get("runtimeMs")),
        tokens(row.get("totalTokens")),
        "-" if cost is None else f"${cost:.4f}",
        one_line(str(row.get("label") or "-")),
    ]


def _stem(more: Sequence[bool]) -> str:
    if not more:
        return ""
    # A blank at the beginning of a cell would be taken away; the bars carry the depth.
    above = "".join("│ " if goes_on else "· " for goes_on in more[:-1])
    return above + ("├─ " if more[-1] else "└─ ")
