"""Elevation: whether a turn of a sandboxed session may run commands on the machine itself (CMD-10).

The answer is a fact about one turn. Only an owner's own turn is ever elevated; what an
owner switched on for a session gives nothing to others who write in it.
"""

from __future__ import annotations

from msgspec import Struct

# `ask` waits for an approval of each command, and nobody can give one here: it stays inside.
_RAISING = frozenset(("on", "full"))
ELEVATED_TOOLS = frozenset(("exec",))


class Elevated(Struct, frozen=True, tag="elevated"):
    """Commands of this turn run outside the sandbox."""


class Confined(Struct, frozen=True, tag="confined"):
    """Commands of this turn stay where its session is, and why."""

    reason: str


def decide_elevation(level: str | None, *, caller_is_owner: bool) -> Elevated | Confined:
    """`level` is the word of the message, else the session's choice."""
    if level not in _RAISING:
        return Confined("not-asked" if level in (None, "off") else "needs-approval")
    if not caller_is_owner:
        return Confined("owner-only")
    return Elevated()
