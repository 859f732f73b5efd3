"""Devices that were paired in the founding file layout: `devices/paired.json`, read by `doctor` alone (DB-3).

What is in the store wins, and the file is only read. A device whose id is not the hash
of its key is left out: nobody could ever prove to be it. Tokens arrive as hashes.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from openclaw.errors import StoreCorrupt
from openclaw.protocol.auth import digest_secret
from openclaw.protocol.connect import NODE, OPERATOR
from openclaw.protocol.device import PUBLIC_KEY_BYTES, decode_base64url, device_id_of
from openclaw.protocol.intake import is_too_deep, replace_escaped_surrogates
from openclaw.protocol.scopes import ALL_SCOPES
from openclaw.store import devices
from openclaw.store.database import Database, Transaction
from openclaw.store.devices import Device, DeviceFacts, Grant, TokenRow

MAX_TEXT = 512
_Millis = Annotated[int, Meta(ge=0, le=2**53)]


class _Token(Struct, rename="camel"):
    token: str
    scopes: list[str] = []
    created_at_ms: _Millis = 0
    revoked_at_ms: _Millis | None = None
    last_used_at_ms: _Millis | None = None


class _Device(Struct, rename="camel"):
    device_id: str
    public_key: str
    display_name: str | None = None
    platform: str | None = None
    device_family: str | None = None
    client_id: str | None = None
    client_mode: str | None = None
    role: str | None = None
    roles: list[str] = []
    scopes: list[str] = []
    approved_via: str | None = None
    tokens: dict[str, _Token] = {}
    created_at_ms: _Millis = 0
    approved_at_ms: _Millis = 0
    last_seen_at_ms: _Millis | None = None


class LegacyDevices(Struct, frozen=True):
    """What a file holds, and why some of it cannot be used."""

    devices: tuple[Device, ...]
    problems: tuple[str, ...]


class DevicesImported(Struct, frozen=True, rename="camel"):
    """What became of the devices of one file."""

    path: str
    found: int
    imported: int
    already: int
    problems: tuple[str, ...]


def read_paired(data: bytes) -> LegacyDevices:
    """The devices of a `paired.json`. Raises StoreCorrupt when it is no such file at all."""
    try:
        if is_too_deep(data):
            raise msgspec.DecodeError("too deep")
        entries = msgspec.json.decode(replace_escaped_surrogates(data), type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise StoreCorrupt("this is not a list of paired devices") from None
    found: dict[str, Device] = {}
    problems: list[str] = []
    for name, raw in entries.items():
        shown = name[:12]
        try:
            device = _read(msgspec.json.decode(raw, type=_Device))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problems.append(f"{shown}: {error}")
            continue
        if isinstance(device, str):
            problems.append(f"{shown}: {device}")
        else:
            found.setdefault(device.device_id, device)
    return LegacyDevices(tuple(found.values()), tuple(problems))


async def import_paired(database: Database, path: str, data: bytes) -> DevicesImported:
    """Put the devices of a file into the store, in one commit; those it knows already stay as they are."""
    read = read_paired(data)

    def unit(tx: Transaction) -> int:
        return sum(_add(tx, device) for device in read.devices)

    imported = await database.write(unit)
    return DevicesImported(
        path, len(read.devices) + len(read.problems), imported, len(read.devices) - imported, read.problems
    )


def _add(tx: Transaction, device: Device) -> bool:
    if devices.find_device(tx, device.device_id) is not None:
        return False
    devices.put_device(tx, device)
    for token in device.tokens:
        if not devices.is_token_known(tx, token.token_hash):
            devices.add_token(tx, token)
    return True


def _read(old: _Device) -> Device | str:
    key = decode_base64url(old.public_key, PUBLIC_KEY_BYTES)
    if key is None or device_id_of(key) != old.device_id:
        return "its id is not the hash of its key"
    listed = [*old.roles, *([old.role] if old.role else [])]
    roles = tuple(dict.fromkeys(role for role in listed if role in (OPERATOR, NODE)))
    if not roles:
        return "it has no role"
    allowed = _known(old.scopes) if OPERATOR in roles else ()
    return Device(
        old.device_id,
        old.public_key,
        DeviceFacts(
            _text(old.platform) or "unknown",
            _text(old.client_id) or "unknown",
            _text(old.client_mode) or "unknown",
            _text(old.display_name),
            _text(old.device_family),
        ),
        Grant(roles, allowed),
        "silent" if old.approved_via == "silent" else "owner",
        created_at=old.created_at_ms,
        approved_at=old.approved_at_ms,
        last_seen_at=old.last_seen_at_ms or old.approved_at_ms,
        last_seen_reason="imported",
        tokens=tuple(_tokens(old, roles)),
    )


def _tokens(old: _Device, roles: tuple[str, ...]) -> list[TokenRow]:
    return [
        TokenRow(
            digest_secret(token.token).hex(),
            old.device_id,
            role,
            _known(token.scopes) if role == OPERATOR else (),
            token.created_at_ms,
            token.last_used_at_ms or token.created_at_ms,
        )
        for role, token in old.tokens.items()
        if role in roles and token.token and token.revoked_at_ms is None
    ]


def _known(scopes: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(scope for scope in scopes if scope in ALL_SCOPES))


def _text(value: Any) -> str | None:
    """A label that a store of any kind can hold; None for nothing."""
    cleaned = value.replace("\0", "").strip()[:MAX_TEXT] if isinstance(value, str) else ""
    return cleaned or None
