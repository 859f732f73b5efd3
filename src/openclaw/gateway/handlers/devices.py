"""device.pair.* and device.token.*: the owner's word about devices.

A caller gives away nothing that it does not hold itself, and takes nothing from a
device that is allowed more than it; its own device is always its own. What ends a
device's rights closes its sockets before the answer goes out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from openclaw.errors import InvalidRequest
from openclaw.gateway.deviceview import show_device, show_request
from openclaw.gateway.services import Caller, GatewayServices
from openclaw.protocol import params_devices as params
from openclaw.protocol import results_devices as results
from openclaw.protocol.auth import digest_secret
from openclaw.protocol.connect import OPERATOR
from openclaw.protocol.scopes import ADMIN, check_scope, covers_scopes
from openclaw.store import devices
from openclaw.store.database import Transaction
from openclaw.store.devices import Device, PairRequest, TokenRow

log = logging.getLogger("openclaw.gateway")
SHOWN_ID = 12  # enough of an id to know the device by


async def list_devices(
    services: GatewayServices, _caller: Caller, _asked: params.DevicePairListParams
) -> results.DevicePairList:
    door = services.door
    connected = door.connected()
    return results.DevicePairList(
        pending=[show_request(one) for one in await door.book.pending(services.clock.now_ms())],
        paired=[show_device(one, connected=one.device_id in connected) for one in await door.book.paired()],
    )


async def approve(
    services: GatewayServices, caller: Caller, asked: params.DevicePairRequestParams
) -> results.DevicePairApproved:
    now_ms = services.clock.now_ms()

    def unit(tx: Transaction) -> Device:
        request = _find_request(tx, asked.request_id, now_ms)
        _check_covers(caller, request.asked.scopes)
        return devices.approve_request(tx, request, now_ms)

    device = await services.door.book.database.write(unit)
    log.info("device %s was approved", device.device_id[:SHOWN_ID])
    _tell_resolved(services, asked.request_id, device.device_id, approved=True)
    connected = device.device_id in services.door.connected()
    return results.DevicePairApproved(
        request_id=asked.request_id, device=show_device(device, connected=connected)
    )


async def reject(
    services: GatewayServices, _caller: Caller, asked: params.DevicePairRequestParams
) -> results.DevicePairRejected:
    now_ms = services.clock.now_ms()

    def unit(tx: Transaction) -> PairRequest:
        request = _find_request(tx, asked.request_id, now_ms)
        devices.forget_request(tx, request.request_id)
        return request

    device_id = (await services.door.book.database.write(unit)).asked.device_id
    log.info("device %s was rejected", device_id[:SHOWN_ID])
    _tell_resolved(services, asked.request_id, device_id, approved=False)
    return results.DevicePairRejected(request_id=asked.request_id, device_id=device_id)


async def remove(
    services: GatewayServices, caller: Caller, asked: params.DevicePairRemoveParams
) -> results.DevicePairRemoved:
    def unit(tx: Transaction) -> None:
        device = _find_device(tx, asked.device_id)
        _check_may_end(caller, device)
        devices.remove_device(tx, device.device_id)

    await services.door.book.database.write(unit)
    log.info("device %s was removed", asked.device_id[:SHOWN_ID])
    answer = results.DevicePairRemoved(device_id=asked.device_id)
    _end(services, caller, asked.device_id, "device removed", None, answer)
    return answer


async def rotate_token(
    services: GatewayServices, caller: Caller, asked: params.DeviceTokenRotateParams
) -> results.DeviceTokenRotated:
    now_ms, token = services.clock.now_ms(), services.door.new_token()
    own = _is_own(caller, asked.device_id)
    if not own:
        # The answer holds a credential of somebody else.
        check_scope(caller.client.connection.scopes, ADMIN)

    def unit(tx: Transaction) -> TokenRow:
        device = _find_device(tx, asked.device_id, asked.role)
        scopes = _new_scopes(device, asked)
        _check_covers(caller, scopes)
        devices.drop_tokens(tx, device.device_id, asked.role)
        row = TokenRow(digest_secret(token).hex(), device.device_id, asked.role, scopes, now_ms, now_ms)
        devices.add_token(tx, row)
        return row

    row = await services.door.book.database.write(unit)
    log.info("the tokens of device %s were replaced", asked.device_id[:SHOWN_ID])
    services.door.disconnect(asked.device_id, "device token rotated", role=asked.role, but=caller.client)
    return results.DeviceTokenRotated(
        device_id=row.device_id, role=row.role, token=token, scopes=list(row.scopes), rotated_at_ms=now_ms
    )


async def revoke_token(
    services: GatewayServices, caller: Caller, asked: params.DeviceTokenRevokeParams
) -> results.DeviceTokenRevoked:
    now_ms = services.clock.now_ms()

    def unit(tx: Transaction) -> None:
        device = _find_device(tx, asked.device_id, asked.role)
        _check_may_end(caller, device)
        devices.drop_tokens(tx, device.device_id, asked.role)

    await services.door.book.database.write(unit)
    log.info("the tokens of device %s were revoked", asked.device_id[:SHOWN_ID])
    answer = results.DeviceTokenRevoked(device_id=asked.device_id, role=asked.role, revoked_at_ms=now_ms)
    _end(services, caller, asked.device_id, "device token revoked", asked.role, answer)
    return answer


def _end(
    services: GatewayServices, caller: Caller, device_id: str, reason: str, role: str | None, answer: object
) -> None:
    if _is_own(caller, device_id) and role in (None, caller.client.connection.role):
        # Its own socket closes as well: the answer must stand in line before the close does.
        caller.answer_later(answer)
    services.door.disconnect(device_id, reason, role=role)


def _tell_resolved(services: GatewayServices, request_id: str, device_id: str, *, approved: bool) -> None:
    resolved = results.PairResolved(
        request_id=request_id,
        device_id=device_id,
        decision="approved" if approved else "rejected",
        ts=services.clock.now_ms(),
    )
    services.hub.broadcast("device.pair.resolved", resolved)


def _find_request(tx: Transaction, request_id: str, now_ms: int) -> PairRequest:
    request = devices.find_request(tx, request_id, now_ms)
    if request is None:
        raise InvalidRequest(
            "unknown requestId: it was answered, replaced or has expired; device.pair.list shows what waits"
        )
    return request


def _find_device(tx: Transaction, device_id: str, role: str | None = None) -> Device:
    device = devices.find_device(tx, device_id)
    if device is None:
        raise InvalidRequest("unknown deviceId: device.pair.list shows the devices that are paired")
    if role is not None and role not in device.grant.roles:
        raise InvalidRequest(f"this device is not paired as {role}; it is {', '.join(device.grant.roles)}")
    return device


def _new_scopes(device: Device, asked: params.DeviceTokenRotateParams) -> tuple[str, ...]:
    allowed = device.grant.scopes if asked.role == OPERATOR else ()
    if asked.scopes is None:
        before = (scope for token in device.tokens if token.role == asked.role for scope in token.scopes)
        return tuple(dict.fromkeys(before)) or allowed
    if not covers_scopes(allowed, asked.scopes):
        shown = ", ".join(allowed) or "none"
        raise InvalidRequest(f"a token holds no more than its device is allowed, which is: {shown}")
    return tuple(dict.fromkeys(asked.scopes))


def _is_own(caller: Caller, device_id: str) -> bool:
    return caller.client.connection.device_id == device_id


def _check_may_end(caller: Caller, device: Device) -> None:
    if not _is_own(caller, device.device_id):
        _check_covers(caller, device.grant.scopes)


def _check_covers(caller: Caller, scopes: Iterable[str]) -> None:
    """Raise Forbidden with the first scope that the caller does not hold itself (RPC-3)."""
    for scope in scopes:
        check_scope(caller.client.connection.scopes, scope)
