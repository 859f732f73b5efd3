"""Devices and requests as clients with the pairing scope see them: no hash, no token."""

from __future__ import annotations

from openclaw.protocol.results_devices import PairedDevice, PendingDevice, TokenShown
from openclaw.store.devices import Device, PairRequest


def show_request(request: PairRequest) -> PendingDevice:
    asked = request.asked
    return PendingDevice(
        request_id=request.request_id,
        device_id=asked.device_id,
        public_key=asked.public_key,
        platform=asked.facts.platform,
        client_id=asked.facts.client_id,
        client_mode=asked.facts.client_mode,
        role=asked.role,
        roles=[asked.role],
        scopes=list(asked.scopes),
        reason=asked.reason,
        remote_ip=asked.address,
        ts=request.created_at,
        expires_at_ms=request.expires_at,
        display_name=asked.facts.display_name,
        device_family=asked.facts.device_family,
    )


def show_device(device: Device, *, connected: bool) -> PairedDevice:
    return PairedDevice(
        device_id=device.device_id,
        public_key=device.public_key,
        platform=device.facts.platform,
        client_id=device.facts.client_id,
        client_mode=device.facts.client_mode,
        role=device.grant.roles[0],
        roles=list(device.grant.roles),
        scopes=list(device.grant.scopes),
        approved_via=device.approved_via,
        created_at_ms=device.created_at,
        approved_at_ms=device.approved_at,
        last_seen_at_ms=device.last_seen_at,
        last_seen_reason=device.last_seen_reason,
        connected=connected,
        tokens=[
            TokenShown(
                role=token.role,
                scopes=list(token.scopes),
                created_at_ms=token.created_at,
                last_used_at_ms=token.last_used_at,
            )
            for token in device.tokens
        ],
        display_name=device.facts.display_name,
        device_family=device.facts.device_family,
    )
