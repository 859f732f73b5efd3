"""`messages.*` and `commands.*`: what happens to a message that arrives (SPEC §17, §22)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from openclaw.config.agents_section import GroupChatConfig
from openclaw.config.values import Count, Milliseconds, PeerIds, Section

QueueModeName = Annotated[
    Literal["steer", "followup", "collect", "interrupt", "queue", "steer-backlog"],
    Meta(extra={"aliases": {"steer+backlog": "steer-backlog"}}),
]


class QueueConfig(Section, frozen=True):
    """What to do with input for a busy session; unset fields leave the built-in values (QUE-3, QUE-4)."""

    mode: QueueModeName | None = None
    debounce_ms: Milliseconds | None = None
    cap: Count | None = None
    drop: Literal["summarize", "old", "new"] | None = None
    by_channel: dict[str, QueueModeName] = msgspec.field(default_factory=dict)
    debounce_ms_by_channel: dict[str, Milliseconds] = msgspec.field(default_factory=dict)


class InboundConfig(Section, frozen=True):
    """Rapid text of one sender becomes one turn (ROUTE-4). Zero switches that off."""

    debounce_ms: Milliseconds = 0
    by_channel: dict[str, Milliseconds] = msgspec.field(default_factory=dict)


class MessagesConfig(Section, frozen=True):
    queue: QueueConfig = QueueConfig()
    inbound: InboundConfig = InboundConfig()
    group_chat: GroupChatConfig = GroupChatConfig()


class CommandsConfig(Section, frozen=True):
    """Chat commands and who may use them (CMD-13). `allowFrom` is a list, or a list per channel."""

    text: bool = True
    native: bool | Literal["auto"] = "auto"
    config: bool = False
    debug: bool = False
    restart: bool = True
    bash: bool = False
    allow_from: PeerIds | dict[str, PeerIds] | None = None
    owner_allow_from: PeerIds = ()
    use_access_groups: bool = True
