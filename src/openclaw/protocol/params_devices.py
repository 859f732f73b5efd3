"""The parameters of methods about paired devices. Shapes only; all of them need the pairing scope."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from openclaw.protocol.connect import ClosedObject

RequestIdText = Annotated[str, Meta(min_length=1, max_length=128)]
DeviceIdText = Annotated[str, Meta(min_length=1, max_length=128)]
RoleText = Literal["operator", "node"]
ScopeNames = Annotated[tuple[Annotated[str, Meta(max_length=256)], ...], Meta(max_length=64)]


class DevicePairListParams(ClosedObject, frozen=True, kw_only=True):
    pass


class DevicePairRequestParams(ClosedObject, frozen=True, kw_only=True):
    """For approve and reject: the request that was shown."""

    request_id: RequestIdText


class DevicePairRemoveParams(ClosedObject, frozen=True, kw_only=True):
    device_id: DeviceIdText


class DeviceTokenRotateParams(ClosedObject, frozen=True, kw_only=True):
    """Without `scopes` the new token holds what the device's tokens held before."""

    device_id: DeviceIdText
    role: RoleText = "operator"
    scopes: ScopeNames | None = None


class DeviceTokenRevokeParams(ClosedObject, frozen=True, kw_only=True):
    device_id: DeviceIdText
    role: RoleText = "operator"
