"""Pairing: whether a device that proved its key, and somebody's credential, is already welcome.

Pure. On the gateway's own machine a good credential is enough; from afar the owner
approves each device once, and again when it asks for more. What was approved is
kept by the store.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from openclaw.protocol.auth import AuthOk, AuthRefused
from openclaw.protocol.connect import ConnectParams, Role
from openclaw.protocol.device import normal_label
from openclaw.protocol.errors import NOT_PAIRED, ErrorShape
from openclaw.protocol.scopes import covers_scopes

PairingReason = Literal["not-paired", "role-upgrade", "scope-upgrade", "metadata-upgrade"]

_ASKS: Final[dict[PairingReason, str]] = {
    "not-paired": "this device is not approved yet",
    "role-upgrade": "this device asks for another role",
    "scope-upgrade": "this device asks for more scopes",
    "metadata-upgrade": "this device says that it is another kind of device",
}


class ApprovedDevice(Struct, frozen=True):
    """What the owner, or this machine, has allowed a device."""

    roles: tuple[str, ...]
    scopes: tuple[str, ...]
    platform: str | None = None
    device_family: str | None = None


class Welcome(Struct, frozen=True):
    """The device is paired, for all that it asks."""


class PairSilently(Struct, frozen=True):
    """It comes from this machine with a good credential: what it asks for is approved with that."""

    reason: PairingReason


class AskOwner(Struct, frozen=True):
    """A person has to approve this first."""

    reason: PairingReason


def decide_pairing(
    auth: AuthOk, params: ConnectParams, approved: ApprovedDevice | None, *, loopback: bool
) -> Welcome | PairSilently | AskOwner:
    """Whether a device may go ahead with what `auth` grants it.

    `approved` is what is on file for this very device. A role, then scopes, then
    the kind of device: the first that exceeds the approval is the reason.
    """
    reason = _find_reason(auth.role, auth.scopes, params, approved)
    if reason is None:
        return Welcome()
    return PairSilently(reason) if loopback else AskOwner(reason)


def _find_reason(
    role: Role, scopes: tuple[str, ...], params: ConnectParams, approved: ApprovedDevice | None
) -> PairingReason | None:
    if approved is None:
        return "not-paired"
    if role not in approved.roles:
        return "role-upgrade"
    if not covers_scopes(approved.scopes, scopes):
        return "scope-upgrade"
    client = params.client
    pinned = (
        (approved.platform, client.platform),
        (approved.device_family, client.device_family),
    )
    changed = any(normal_label(old) and normal_label(old) != normal_label(new) for old, new in pinned)
    return "metadata-upgrade" if changed else None


def refuse_unpaired(reason: PairingReason, request_id: str | None) -> AuthRefused:
    """Tell a device that it waits for the owner. Without a request id, too many others wait already."""
    fix = (
        "too many devices wait for approval; try again later"
        if request_id is None
        else f"openclaw devices approve {request_id}"
    )
    details: dict[str, object] = {"code": "PAIRING_REQUIRED", "reason": reason}
    if request_id is not None:
        details["requestId"] = request_id
    return AuthRefused(ErrorShape(NOT_PAIRED, f"pairing required: {_ASKS[reason]} ({fix})", details=details))
