"""The answers and events about paired devices. None of them carries a hash, and only one a token."""

from __future__ import annotations

from typing import Literal

from openclaw.protocol.results import Answer


class TokenShown(Answer, frozen=True, kw_only=True):
    """A live token of a device, without the token."""

    role: str
    scopes: list[str]
    created_at_ms: int
    last_used_at_ms: int


class DeviceShown(Answer, frozen=True, kw_only=True):
    """What is told of every device, paired or not."""

    device_id: str
    public_key: str
    platform: str
    client_id: str
    client_mode: str
    role: str
    roles: list[str]
    scopes: list[str]
    display_name: str | None = None
    device_family: str | None = None


class PairedDevice(DeviceShown, frozen=True, kw_only=True):
    approved_via: str
    created_at_ms: int
    approved_at_ms: int
    last_seen_at_ms: int
    last_seen_reason: str
    connected: bool
    tokens: list[TokenShown]


class PendingDevice(DeviceShown, frozen=True, kw_only=True):
    """A request that waits for the owner; also the payload of `device.pair.requested`."""

    request_id: str
    reason: str
    remote_ip: str
    ts: int
    expires_at_ms: int


class PairResolved(Answer, frozen=True, kw_only=True):
    """The payload of `device.pair.resolved`."""

    request_id: str
    device_id: str
    decision: Literal["approved", "rejected"]
    ts: int


class DevicePairList(Answer, frozen=True, kw_only=True):
    pending: list[PendingDevice]
    paired: list[PairedDevice]


class DevicePairApproved(Answer, frozen=True, kw_only=True):
    request_id: str
    device: PairedDevice


class DevicePairRejected(Answer, frozen=True, kw_only=True):
    request_id: str
    device_id: str


class DevicePairRemoved(Answer, frozen=True, kw_only=True):
    device_id: str


class DeviceTokenRotated(Answer, frozen=True, kw_only=True):
    """The one answer with a token: it is shown once, and only its hash is kept."""

    device_id: str
    role: str
    token: str
    scopes: list[str]
    rotated_at_ms: int


class DeviceTokenRevoked(Answer, frozen=True, kw_only=True):
    device_id: str
    role: str
    revoked_at_ms: int
