"""The answers of methods for connectors and for letting people in."""

from __future__ import annotations

from openclaw.protocol.results import Answer, Json


class ChannelAttached(Answer, frozen=True, kw_only=True):
    attached: bool
    channel: str
    account_id: str


class ChannelSettled(Answer, frozen=True, kw_only=True):
    """`known` is false when nobody waits for this delivery any more."""

    ok: bool
    known: bool


class ChannelInbound(Answer, frozen=True, kw_only=True):
    """As `chat.send` answers, and with what the rules said. Other statuses than `started` ran nothing."""

    status: str
    run_id: str | None = None
    session_key: str | None = None
    reason: str | None = None


class PairingList(Answer, frozen=True, kw_only=True):
    """Who waits with a code, and who was let in."""

    pending: list[Json]
    admitted: list[Json]


class PairingApproved(Answer, frozen=True, kw_only=True):
    ok: bool
    channel: str
    account_id: str
    sender_id: str
    name: str | None
    owner: bool


class PairingRemoved(Answer, frozen=True, kw_only=True):
    ok: bool
    removed: int
