"""`channels.*` and `bindings[]`: the doors, who may come in, and which agent answers (SPEC §10).

A channel belongs to its connector as well: keys that we do not know stay in `extra`
and are handed to it unchanged.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from openclaw.config.tools_section import ToolRulesConfig
from openclaw.config.values import AgentId, ChatKind, OpenSection, PeerId, PeerIds, Section, Text, Texts

DmPolicy = Literal["pairing", "allowlist", "open", "disabled"]
GroupPolicy = Literal["allowlist", "open", "disabled"]


class GroupConfig(OpenSection, frozen=True):
    """One group of a channel, or `*` for all others."""

    enabled: bool | None = None
    require_mention: bool | None = None
    allow_from: PeerIds | None = None
    tools: ToolRulesConfig | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict)


class AccountConfig(OpenSection, frozen=True):
    """One account of a channel; an absent field is the channel's."""

    enabled: bool | None = None
    dm_policy: DmPolicy | None = None
    allow_from: PeerIds | None = None
    group_policy: GroupPolicy | None = None
    group_allow_from: PeerIds | None = None
    groups: dict[str, GroupConfig] | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict)


class ChannelConfig(OpenSection, frozen=True):
    enabled: bool | None = None
    dm_policy: DmPolicy | None = None
    allow_from: PeerIds | None = None
    group_policy: GroupPolicy | None = None
    group_allow_from: PeerIds | None = None
    groups: dict[str, GroupConfig] = msgspec.field(default_factory=dict)
    accounts: dict[str, AccountConfig] = msgspec.field(default_factory=dict)
    default_account: Text | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict)


class BindingPeerConfig(Section, frozen=True):
    kind: ChatKind
    id: PeerId


class BindingMatchConfig(Section, frozen=True):
    """All given fields must match (ROUTE-1)."""

    channel: Text
    account_id: PeerId | None = None
    peer: BindingPeerConfig | None = None
    guild_id: PeerId | None = None
    team_id: PeerId | None = None
    roles: Texts = ()


class BindingConfig(Section, frozen=True):
    agent_id: AgentId
    match: BindingMatchConfig
    type: Literal["route"] = "route"
    comment: str | None = None
