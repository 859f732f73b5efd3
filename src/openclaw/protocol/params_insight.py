"""The parameters of `explain` and `security.audit`. Shapes only."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from openclaw.protocol.connect import ClosedObject
from openclaw.protocol.params import IdText, SessionKeyText


class ExplainParams(ClosedObject, frozen=True, kw_only=True):
    """`reset` and `send` need `key`, `visibility` `fromKey` and `toKey`, `route` a channel and a peer."""

    kind: Literal["route", "reset", "send", "visibility"]
    key: SessionKeyText | None = None
    from_key: SessionKeyText | None = None
    to_key: SessionKeyText | None = None
    agent_id: IdText | None = None
    channel: IdText | None = None
    peer_kind: Literal["direct", "dm", "group", "channel", "room"] | None = None
    peer_id: IdText | None = None
    account_id: IdText | None = None
    thread_id: IdText | None = None
    thread_kind: Literal["thread", "topic"] | None = None
    parent_peer_id: IdText | None = None
    guild_id: IdText | None = None
    team_id: IdText | None = None
    roles: Annotated[tuple[IdText, ...], Meta(max_length=100)] = ()
    sender_id: IdText | None = None
    mentioned: bool = False


class SecurityAuditParams(ClosedObject, frozen=True, kw_only=True):
    """`deep` looks at every file below the state directory; `fix` puts file modes right."""

    deep: bool = False
    fix: bool = False
