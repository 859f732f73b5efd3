"""An exchange between two sessions: a request, replies in turn, one announcement (SPEC §15).

The whole state travels with each input, so that whoever ends a turn knows what comes
next, after a restart too. Values in, the next step out; nothing is queued here.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from openclaw.domain.announce import ends_reply_loop

Phase = Literal["primary", "reply", "announce"]
MAX_HOPS = 8
_CARRIED_CHARS = 4000


class Exchange(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where an exchange stands. `turn` counts replies after the first one."""

    exchange_id: str
    requester: str
    target: str
    most_turns: int
    request: str
    requester_channel: str | None = None
    phase: Phase = "primary"
    turn: int = 0
    first_reply: str = ""
    latest: str = ""
    # The requester started the target and waits for it anyway (A2A-13).
    parent_waits: bool = False


class NextReply(Struct, frozen=True, tag="reply"):
    """The other side gets `text`, as an ordinary input of its session."""

    session_key: str
    text: str
    exchange: Exchange


class NextAnnounce(Struct, frozen=True, tag="announce"):
    """The target alone may tell its own people."""

    exchange: Exchange


def next_step(
    exchange: Exchange, session_key: str, reply: str, *, ok: bool
) -> NextReply | NextAnnounce | None:
    """What follows a turn of this exchange that ended in `session_key` with `reply` (A2A-12 to A2A-14)."""
    if exchange.phase == "announce" or exchange.parent_waits:
        return None
    if exchange.phase == "primary":
        if not ok or ends_reply_loop(reply):
            return None
        kept = msgspec.structs.replace(exchange, first_reply=_carried(reply), latest=_carried(reply))
        if exchange.requester == exchange.target or exchange.most_turns < 1:
            return _announce(kept)
        return NextReply(exchange.requester, reply, msgspec.structs.replace(kept, phase="reply", turn=1))
    if not ok or ends_reply_loop(reply):
        return _announce(exchange)
    kept = msgspec.structs.replace(exchange, latest=_carried(reply))
    if exchange.turn >= exchange.most_turns:
        return _announce(kept)
    other = exchange.target if session_key == exchange.requester else exchange.requester
    return NextReply(other, reply, msgspec.structs.replace(kept, turn=exchange.turn + 1))


def _announce(exchange: Exchange) -> NextAnnounce:
    return NextAnnounce(msgspec.structs.replace(exchange, phase="announce"))


def _carried(text: str) -> str:
    return text if len(text) <= _CARRIED_CHARS else text[:_CARRIED_CHARS] + "…"
