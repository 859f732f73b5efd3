"""What an installed hook can be told: the names of the events, and one small value for all of them (AUTO-10).

Plain facts that outlive the moment; nothing here leads back into the gateway.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from msgspec import Struct

HookName = Literal[
    "command:new",
    "command:reset",
    "command:stop",
    "session:compact:before",
    "session:compact:after",
    "session:patch",
    "message:received",
    "message:sent",
    "gateway:startup",
    "gateway:shutdown",
    "session_start",
    "session_end",
]
HOOK_NAMES: Final[frozenset[str]] = frozenset(get_args(HookName))


class HookEvent(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something happened. A field that says nothing about this kind of event is None."""

    name: HookName
    at_ms: int
    session_key: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    # Messages: where they came from or went to, and their words.
    source: str | None = None
    channel: str | None = None
    to: str | None = None
    text: str | None = None
    # Windows: why one ended, and its neighbours.
    reason: str | None = None
    previous_session_id: str | None = None
    next_session_id: str | None = None
    # A compaction that is over: whether anything was summarised.
    compacted: bool | None = None
    # A patch: the names of the settings that it gave.
    fields: tuple[str, ...] | None = None
