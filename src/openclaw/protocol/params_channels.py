"""The parameters of methods for connectors in other processes, and for letting people in.

Shapes only. A connector speaks for everybody on its platform: it needs the owner's scope.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from openclaw.protocol.connect import ClosedObject
from openclaw.protocol.params import IdText, SessionKeyText

PeerText = Annotated[str, Meta(min_length=1, max_length=1024)]
LabelText = Annotated[str, Meta(max_length=512)]
MessageText = Annotated[str, Meta(max_length=1_000_000)]


class PeerParams(ClosedObject, frozen=True, kw_only=True):
    kind: Literal["direct", "dm", "group", "channel", "room"]
    id: PeerText


class ChannelsAttachParams(ClosedObject, frozen=True, kw_only=True):
    """With `acknowledges` a delivery counts as sent when `channels.settle` says so."""

    channel: IdText
    account_id: IdText | None = None
    acknowledges: bool = False
    longest_text: Annotated[int, Meta(ge=16, le=1_000_000)] = 4000
    typing: bool = False
    threads: bool = False
    case_sensitive_ids: bool = False
    # When the platform's credential was last found to be good; `/status` shows it (CMD-1).
    credentials_refreshed_at: Annotated[int, Meta(ge=0)] | None = None


class ChannelsDetachParams(ClosedObject, frozen=True, kw_only=True):
    channel: IdText
    account_id: IdText | None = None


class ChannelsSettleParams(ClosedObject, frozen=True, kw_only=True):
    """What became of a delivery. An `error` says that nobody saw it."""

    channel: IdText
    key: PeerText
    account_id: IdText | None = None
    message_ids: tuple[PeerText, ...] = ()
    error: LabelText | None = None


class ChannelsInboundParams(ClosedObject, frozen=True, kw_only=True):
    """One message of a platform. `updateOnly` refreshes what is known of its session and starts no turn."""

    channel: IdText
    peer: PeerParams
    message_id: PeerText
    text: MessageText
    account_id: IdText | None = None
    thread_id: PeerText | None = None
    parent_session_key: SessionKeyText | None = None
    from_: PeerText | None = msgspec.field(default=None, name="from")
    to: PeerText | None = None
    provider: IdText | None = None
    chat_type: IdText | None = None
    sender_id: PeerText | None = None
    sender_name: LabelText | None = None
    conversation_label: LabelText | None = None
    group_subject: LabelText | None = None
    group_channel: LabelText | None = None
    group_space: LabelText | None = None
    mentioned: bool = False
    update_only: bool = False


class PairingListParams(ClosedObject, frozen=True, kw_only=True):
    channel: IdText | None = None


class PairingApproveParams(ClosedObject, frozen=True, kw_only=True):
    """By the code that the stranger was given. `owner` lets them give every command and use every tool."""

    channel: IdText
    code: IdText
    owner: bool = False


class PairingRemoveParams(ClosedObject, frozen=True, kw_only=True):
    channel: IdText
    sender_id: PeerText
    account_id: IdText | None = None
