"""Shorthand for protocol tests: requests as bytes, answers as objects, a connection that is open."""

from __future__ import annotations

from typing import Any

import msgspec

from openclaw.protocol.auth import AuthOk, decide_auth, digest_secret
from openclaw.protocol.connect import ConnectParams
from openclaw.protocol.connection import Authenticate, Connection, ConnectionSettings
from openclaw.protocol.device import VerifiedDevice
from openclaw.protocol.scopes import ADMIN, READ, WRITE

SECRET = "tok-real-123"
NOW_MS = 1_794_767_054_520
CLI = {"id": "cli", "version": "1.0.0", "platform": "linux", "mode": "cli"}
DEVICE: dict[str, Any] = {
    "id": "4b5c5232fc6e5a9592d4a5189af599454aba39907e3f61f673366c9f728e470e",
    "publicKey": "vPiULwai0NCoMH-hSzTt4_VzOS5_k9PlIZMkmLSNcgM",
    "signature": "H9lk2OGX9FNvUWENod24t4Vrr6U0N0EffPZQ57I8JAs2qHbFit0QaQDxiKs66ES5gU3mgQ10Z6X3AEsgpY8CDg",
    "signedAt": NOW_MS,
    "nonce": "41d0f65b-309c-4697-88f9-81b5a463b93d",
}


def request(method: str, params: object = None, request_id: str = "1", **extra: object) -> bytes:
    frame: dict[str, object] = {"type": "req", "id": request_id, "method": method, **extra}
    if params is not None:
        frame["params"] = params
    return msgspec.json.encode(frame)


def connect_params(**overrides: Any) -> dict[str, Any]:
    """Parameters of a `connect` as the CLI sends it. None takes a member out."""
    base: dict[str, Any] = {
        "minProtocol": 4,
        "maxProtocol": 4,
        "client": CLI,
        "role": "operator",
        "scopes": [ADMIN, READ, WRITE],
        "auth": {"token": SECRET},
    }
    return {name: value for name, value in (base | overrides).items() if value is not None}


def verified(params: ConnectParams) -> VerifiedDevice | None:
    """The device of these parameters, as if its signature had been checked."""
    device = params.device
    return None if device is None else VerifiedDevice(device.id, device.public_key)


def read(frame: bytes | None) -> dict[str, Any]:
    assert frame is not None
    decoded: dict[str, Any] = msgspec.json.decode(frame)
    return decoded


def new_connection(settings: ConnectionSettings | None = None) -> Connection:
    return Connection(settings or ConnectionSettings(), "nonce-1", "conn-1", NOW_MS)


def open_connection(
    settings: ConnectionSettings | None = None, scopes: tuple[str, ...] = (ADMIN,), role: str = "operator"
) -> Connection:
    connection = new_connection(settings)
    device = DEVICE if role == "node" else None
    params = connect_params(scopes=list(scopes), role=role, device=device)
    outcome = connection.receive(request("connect", params), NOW_MS)
    assert isinstance(outcome, Authenticate)
    auth = decide_auth(
        "token",
        digest_secret(SECRET),
        outcome.params,
        loopback=True,
        origin=None,
        allowed_origins=(),
        device=verified(outcome.params),
    )
    assert isinstance(auth, AuthOk)
    connection.accept(auth, {"type": "hello-ok"})
    return connection
