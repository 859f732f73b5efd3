"""Paired devices, the hashes of their tokens, and devices that wait for the owner.

Rows and the units that change them. Who may pair, approve or revoke is decided by the
gateway; a token in the clear never comes here. The lists are bounded: tokens per
device, devices that paired themselves, requests that wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec
from msgspec import Struct

from openclaw.protocol.connect import OPERATOR
from openclaw.store.database import Database, Row, Transaction
from openclaw.store.statements import load_statements

SQL = load_statements("devices.sql")
# Two windows of one client share a device; each may hold the token that it was given.
MAX_TOKENS: Final = 4
MAX_DEVICES: Final = 1000
MAX_PENDING: Final = 32
REQUEST_LIFE_MS: Final = 600_000

ApprovedVia = Literal["silent", "owner"]


class DeviceFacts(Struct, frozen=True, omit_defaults=True):
    """What a device says about itself; only the key is proved."""

    platform: str
    client_id: str
    client_mode: str
    display_name: str | None = None
    device_family: str | None = None


class Grant(Struct, frozen=True):
    """What a device is allowed: roles, and scopes as an operator."""

    roles: tuple[str, ...]
    scopes: tuple[str, ...]

    def joined(self, other: Grant) -> Grant:
        return Grant(_union(self.roles, other.roles), _union(self.scopes, other.scopes))


class _DeviceBody(Struct, frozen=True):
    facts: DeviceFacts
    grant: Grant
    approved_via: ApprovedVia
    last_seen_reason: str


class TokenRow(Struct, frozen=True):
    """A live token, by its hash."""

    token_hash: str
    device_id: str
    role: str
    scopes: tuple[str, ...]
    created_at: int
    last_used_at: int


class Device(Struct, frozen=True):
    """A paired device. Its tokens are its most recently used first."""

    device_id: str
    public_key: str
    facts: DeviceFacts
    grant: Grant
    approved_via: ApprovedVia
    created_at: int
    approved_at: int
    last_seen_at: int
    last_seen_reason: str
    tokens: tuple[TokenRow, ...] = ()


class NewRequest(Struct, frozen=True):
    """What a device asks the owner for."""

    device_id: str
    public_key: str
    facts: DeviceFacts
    role: str
    scopes: tuple[str, ...]
    reason: str
    address: str


class PairRequest(Struct, frozen=True):
    """A request that waits; it never changes what it asks for under the same id."""

    request_id: str
    asked: NewRequest
    created_at: int
    expires_at: int


class Devices:
    """The questions that need no more than the rows."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def paired(self) -> tuple[Device, ...]:
        """All of them, those approved last first."""
        return await self.database.read(_paired)

    async def pending(self, now_ms: int) -> tuple[PairRequest, ...]:
        """Requests that still wait, newest first."""
        return await self.database.read(
            lambda tx: tuple(_read_request(row) for row in tx.rows(SQL["requests"], (now_ms,)))
        )


# -- devices ---------------------------------------------------------------------------------------


def find_device(tx: Transaction, device_id: str) -> Device | None:
    row = tx.row(SQL["find"], (device_id,))
    return None if row is None else _read_device(row, map(_read_token, tx.rows(SQL["tokens"], (device_id,))))


def put_device(tx: Transaction, device: Device) -> None:
    """Pair a device, or change what is known of it. Its tokens are not touched."""
    if find_device(tx, device.device_id) is None:
        _make_room(tx)
    body = _DeviceBody(device.facts, device.grant, device.approved_via, device.last_seen_reason)
    tx.run(
        SQL["put"],
        (
            device.device_id, device.public_key, msgspec.json.encode(body), device.created_at,
            device.approved_at, device.last_seen_at,
        ),
    )  # fmt: skip


def remove_device(tx: Transaction, device_id: str) -> bool:
    """Forget a device, its tokens and what it asked for; False when it was not paired."""
    tx.run(SQL["drop_tokens"], (device_id,))
    tx.run(SQL["forget_request_of"], (device_id,))
    return bool(tx.rows(SQL["remove"], (device_id,)))


def _make_room(tx: Transaction) -> None:
    """Devices that paired themselves make room, those unseen for longest first; the owner's stay."""
    counted = tx.row(SQL["count"])
    excess = (int(counted[0]) if counted else 0) + 1 - MAX_DEVICES
    if excess <= 0:
        return
    for device_id, body in tx.rows(SQL["by_age"]):
        if excess and _body(body).approved_via == "silent":
            remove_device(tx, device_id)
            excess -= 1


def _paired(tx: Transaction) -> tuple[Device, ...]:
    tokens: dict[str, list[TokenRow]] = {}
    for row in tx.rows(SQL["all_tokens"]):
        token = _read_token(row)
        tokens.setdefault(token.device_id, []).append(token)
    return tuple(_read_device(row, tokens.get(row[0], ())) for row in tx.rows(SQL["all"]))


# -- tokens ----------------------------------------------------------------------------------------


def add_token(tx: Transaction, token: TokenRow) -> None:
    """A new token of a device and role; beyond a few, the one unused for longest ends."""
    same = [
        row for row in map(_read_token, tx.rows(SQL["tokens"], (token.device_id,))) if row.role == token.role
    ]
    for old in same[MAX_TOKENS - 1 :]:
        tx.run(SQL["drop_token"], (old.token_hash,))
    tx.run(
        SQL["put_token"],
        (
            token.token_hash, token.device_id, token.role, _join(token.scopes), token.created_at,
            token.last_used_at,
        ),
    )  # fmt: skip


def is_token_known(tx: Transaction, token_hash: str) -> bool:
    """Whether a token is live, whosever it is; the same one never serves two devices."""
    return tx.row(SQL["token"], (token_hash,)) is not None


def use_token(tx: Transaction, token_hash: str, now_ms: int) -> None:
    tx.run(SQL["use_token"], (now_ms, token_hash))


def drop_tokens(tx: Transaction, device_id: str, role: str) -> int:
    """End every token of a device for a role; how many there were."""
    return len(tx.rows(SQL["drop_role"], (device_id, role)))


# -- requests --------------------------------------------------------------------------------------


def ask_owner(tx: Transaction, asked: NewRequest, request_id: str, now_ms: int) -> PairRequest | None:
    """Put a request before the owner; None when too many wait.

    The same request again keeps its id and lives longer. Another one of the same
    device takes its place under the new id, so that nobody approves what they did
    not see.
    """
    tx.run(SQL["forget_expired"], (now_ms,))
    row = tx.row(SQL["request_of"], (asked.device_id, now_ms))
    before = None if row is None else _read_request(row)
    created_at = now_ms
    if before is not None:
        tx.run(SQL["forget_request"], (before.request_id,))
        if before.asked == asked:
            request_id, created_at = before.request_id, before.created_at
    counted = tx.row(SQL["pending_count"])
    if counted and counted[0] >= MAX_PENDING:
        return None
    request = PairRequest(request_id, asked, created_at, now_ms + REQUEST_LIFE_MS)
    tx.run(
        SQL["put_request"],
        (request_id, asked.device_id, msgspec.json.encode(asked), created_at, request.expires_at),
    )
    return request


def find_request(tx: Transaction, request_id: str, now_ms: int) -> PairRequest | None:
    row = tx.row(SQL["request"], (request_id, now_ms))
    return None if row is None else _read_request(row)


def forget_request(tx: Transaction, request_id: str) -> None:
    tx.run(SQL["forget_request"], (request_id,))


def approve_request(tx: Transaction, request: PairRequest, now_ms: int) -> Device:
    """Pair the device for what it asked, on top of what it was allowed before."""
    asked = request.asked
    known = find_device(tx, asked.device_id)
    grant = Grant((asked.role,), asked.scopes if asked.role == OPERATOR else ())
    device = Device(
        asked.device_id,
        asked.public_key,
        asked.facts,
        grant if known is None else known.grant.joined(grant),
        "owner",
        created_at=now_ms if known is None else known.created_at,
        approved_at=now_ms,
        last_seen_at=request.created_at if known is None else known.last_seen_at,
        last_seen_reason="pairing",
        tokens=() if known is None else known.tokens,
    )
    put_device(tx, device)
    forget_request(tx, request.request_id)
    return device


# -- rows ------------------------------------------------------------------------------------------


def _read_device(row: Row, tokens: Iterable[TokenRow]) -> Device:
    device_id, public_key, encoded, created_at, approved_at, last_seen_at = row
    body = _body(encoded)
    return Device(
        device_id, public_key, body.facts, body.grant, body.approved_via, created_at, approved_at,
        last_seen_at, body.last_seen_reason, tuple(tokens),
    )  # fmt: skip


def _body(encoded: bytes) -> _DeviceBody:
    return msgspec.json.decode(encoded, type=_DeviceBody)


def _read_token(row: Row) -> TokenRow:
    token_hash, device_id, role, scopes, created_at, last_used_at = row
    return TokenRow(token_hash, device_id, role, _split(scopes), created_at, last_used_at)


def _read_request(row: Row) -> PairRequest:
    request_id, _, body, created_at, expires_at = row
    return PairRequest(request_id, msgspec.json.decode(body, type=NewRequest), created_at, expires_at)


def _join(scopes: tuple[str, ...]) -> str:
    # The names of known scopes hold no blanks.
    return " ".join(scopes)


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _union(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*left, *right)))
