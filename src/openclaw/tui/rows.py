"""Session rows as a list and a tree show them: titles, marks, order. Pure; draws nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from openclaw.domain.terminaltext import age, tokens
from openclaw.tui.text import safe_line

Json = dict[str, Any]
MAX_TITLE: Final = 120
MINUTE_MS: Final = 60_000
RUNNING, UNREAD, QUIET = "●", "◆", " "


class Branch(Struct, frozen=True):
    """A session of the tree, how deep it stands, and its place in words."""

    key: str
    depth: int
    row: Json


def title_of(row: Mapping[str, Any]) -> str:
    """What a person calls it: its label, else a title, else the key without what all keys have.

    The main session is known by that word and not by how it once began.
    """
    named = row.get("label") or row.get("displayName")
    if not named and not row.get("isMain"):
        named = row.get("derivedTitle")
    return safe_line(str(named), MAX_TITLE) if named else short_key(str(row.get("key") or ""))


def short_key(key: str) -> str:
    """ "agent:main:notes" is "notes"; other agents keep their name: "bob/notes"."""
    parts = key.split(":", 2)
    if len(parts) == 3 and parts[0] == "agent":
        rest = safe_line(parts[2], MAX_TITLE)
        return rest if parts[1] == "main" else f"{safe_line(parts[1], 40)}/{rest}"
    return safe_line(key, MAX_TITLE)


def mark_of(row: Mapping[str, Any], open_key: str) -> str:
    """Whether something runs there, or came that nobody has seen."""
    if row.get("hasActiveRun"):
        return RUNNING
    return UNREAD if row.get("unread") and row.get("key") != open_key else QUIET


def age_of(row: Mapping[str, Any], now_ms: int) -> str:
    """In minutes at the least: the list is not drawn every second."""
    at_ms = last_used_ms(row)
    if not at_ms:
        return ""
    return age(now_ms - at_ms) if now_ms - at_ms >= MINUTE_MS else "now"


def last_used_ms(row: Mapping[str, Any]) -> int:
    """When somebody last spoke there; to be read or renamed does not count where that is known."""
    at_ms = row.get("lastInteractionAt") or row.get("updatedAt")
    return at_ms if isinstance(at_ms, int) else 0


def fits(row: Mapping[str, Any], wanted: str) -> bool:
    """Whether every word of a search is in the title or the key."""
    text = f"{title_of(row)} {row.get('key')}".casefold()
    return all(word in text for word in wanted.casefold().split())


def newest_first(rows: Iterable[Json]) -> list[Json]:
    """Pinned ones before the others, each part by when it was last used."""
    return sorted(rows, key=lambda row: (not row.get("pinned"), -last_used_ms(row), str(row.get("key"))))


def facts_of(row: Mapping[str, Any]) -> str:
    """Model and use of the context, for a line above the conversation."""
    model = safe_line(str(row.get("model") or ""), 40)
    used, room = row.get("totalTokens"), row.get("contextTokens")
    parts = [model] if model else []
    if isinstance(used, int) and isinstance(room, int) and room > 0:
        parts.append(f"{tokens(used)}/{tokens(room)} tokens")
    level = row.get("thinkingLevel")
    if isinstance(level, str) and level != "off":
        parts.append(f"thinking {safe_line(level, 20)}")
    return " · ".join(parts)


def branches_of(nodes: Sequence[Json]) -> list[Branch]:
    """The nodes of `sessions.tree` so that each stands below the one that asked for it.

    A node whose parent is not there is a root, and so is the oldest of a ring.
    """
    by_key = {str(node.get("key")): node for node in nodes}
    below: dict[str, list[str]] = {}
    roots = []
    for key, node in by_key.items():
        above = str(node.get("spawnedBy") or node.get("parentSessionKey") or "")
        if above in by_key and above != key:
            below.setdefault(above, []).append(key)
        else:
            roots.append(key)
    found: list[Branch] = []
    seen: set[str] = set()
    for root in (*roots, *by_key):
        waiting = [(root, 0)]
        while waiting:
            key, depth = waiting.pop()
            if key not in seen:
                seen.add(key)
                found.append(Branch(key, depth, by_key[key]))
                waiting += [(child, depth + 1) for child in reversed(below.get(key, ()))]
    return found


def branch_words(row: Mapping[str, Any]) -> str:
    """How a helper is doing, in few words."""
    status = "running" if row.get("hasActiveRun") else str(row.get("status") or "")
    used, cost = row.get("totalTokens"), row.get("estimatedCostUsd")
    parts = [safe_line(status, 20)] if status else []
    if isinstance(used, int) and used:
        parts.append(tokens(used))
    if isinstance(cost, int | float) and cost > 0:
        parts.append(f"${cost:.2f}" if cost >= 0.005 else "<1¢")
    return " ".join(parts)
