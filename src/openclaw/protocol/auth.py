"""Who may connect: a pure decision over the credential, the client and the Origin.

Shared secrets only; signed devices are accepted as a claim beside a valid secret.
The expected secret arrives as a digest, and every comparison takes constant time.
Rate limits and Host checks belong to the gateway.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Collection
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from openclaw.protocol.connect import NODE, ConnectParams, Role, check_role
from openclaw.protocol.errors import INVALID_REQUEST, NOT_PAIRED, UNAVAILABLE, ErrorShape
from openclaw.protocol.scopes import ALL_SCOPES, effective_scopes

AuthMode = Literal["token", "password", "none"]
POLICY_VIOLATION: Final = 1008
TRY_AGAIN_LATER: Final = 1013

# These two act with the owner's full rights in front of a person, so they must name their device.
_DEVICE_BOUND_CLIENTS = ("openclaw-control-ui", "openclaw-tui")
_BROWSER_CLIENTS = ("openclaw-control-ui", "webchat-ui", "webchat")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HINTS = {
    "token": "use this gateway's gateway.auth.token or pair the device",
    "password": "use this gateway's gateway.auth.password",
}


class AuthOk(Struct, frozen=True):
    """The client is in: how it proved itself, what its credential holds, what it gets of that (RPC-3)."""

    method: AuthMode
    role: Role
    held: tuple[str, ...]
    scopes: tuple[str, ...]


class AuthRefused(Struct, frozen=True):
    """The client stays out. Only a wrong guess may count towards a lockout (PITFALLS H4)."""

    error: ErrorShape
    close_code: int = POLICY_VIOLATION
    close_reason: str | None = None
    wrong_guess: bool = False


GATEWAY_STARTING: Final = AuthRefused(
    ErrorShape(
        UNAVAILABLE,
        "gateway starting; retry shortly",
        details={"reason": "startup-sidecars"},
        retryable=True,
        retry_after_ms=500,
    ),
    close_code=TRY_AGAIN_LATER,
    close_reason="gateway starting",
)


def digest_secret(secret: str) -> bytes:
    """What the gateway keeps in memory instead of the secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def decide_auth(
    mode: AuthMode,
    secret_digest: bytes | None,
    params: ConnectParams,
    *,
    loopback: bool,
    origin: str | None,
    allowed_origins: Collection[str],
) -> AuthOk | AuthRefused:
    """Let a client in or say why not.

    `loopback` is true when the peer's socket address is local and nothing was
    forwarded. `allowed_origins` holds the gateway's own origin and the configured
    ones; a page on this machine may connect from any port, but only to a local
    socket. A missing `secret_digest` refuses everybody unless `mode` is "none".
    """
    refusal = _check_origin(params, loopback, origin, allowed_origins)
    if refusal is not None:
        return refusal
    if params.device is None and params.client.id in _DEVICE_BOUND_CLIENTS:
        return _refuse(
            "control ui requires device identity (use HTTPS or localhost secure context)",
            {"code": "CONTROL_UI_DEVICE_IDENTITY_REQUIRED"},
        )
    if mode == "none":
        return _decide_without_secret(params, loopback)
    offered = _offered_secrets(params)
    if secret_digest is None:
        return _refuse_secret(mode, "not_configured", params) if offered else _refuse_stranger()
    if _matches(offered, secret_digest):
        if params.role == NODE and params.device is None:
            return _refuse_stranger()
        return _let_in(mode, params)
    if offered:
        return _refuse_secret(mode, "mismatch", params)
    return _refuse_stranger() if params.device is None else _refuse_secret(mode, "missing", params)


def _let_in(method: AuthMode, params: ConnectParams) -> AuthOk:
    role = check_role(params)
    bare_check = params.device is None and params.client.mode in ("probe", "test")
    held = () if role == NODE or bare_check else ALL_SCOPES
    return AuthOk(method, role, held, effective_scopes(params.scopes, held))


def _decide_without_secret(params: ConnectParams, loopback: bool) -> AuthOk | AuthRefused:
    own_backend = params.client.id == "gateway-client" and params.client.mode == "backend"
    known = params.device is not None or (own_backend and params.role != NODE)
    return _let_in("none", params) if loopback and known else _refuse_stranger()


def _offered_secrets(params: ConnectParams) -> list[str]:
    if params.auth is None:
        return []
    return [secret for secret in (params.auth.token, params.auth.password) if secret]


def _matches(offered: list[str], secret_digest: bytes) -> bool:
    # Every offered secret is compared, so that timing does not tell which field was right.
    results = [hmac.compare_digest(digest_secret(secret), secret_digest) for secret in offered]
    return any(results)


def _refuse(message: str, details: dict[str, object], code: str = INVALID_REQUEST) -> AuthRefused:
    return AuthRefused(ErrorShape(code, message, details=details))


def _refuse_stranger() -> AuthRefused:
    return _refuse("device identity required", {"code": "DEVICE_IDENTITY_REQUIRED"}, NOT_PAIRED)


def _refuse_secret(
    mode: AuthMode, problem: Literal["mismatch", "missing", "not_configured"], params: ConnectParams
) -> AuthRefused:
    if problem == "missing" and params.auth is not None and params.auth.device_token:
        # Clients drop a stored device token when they read this code.
        kind, problem = "device_token", "mismatch"
        message = "unauthorized: device token mismatch (pair the device again or use gateway.auth.token)"
    else:
        kind = mode
        hint = f"set gateway.auth.{mode} on the gateway" if problem == "not_configured" else _HINTS[mode]
        message = f"unauthorized: gateway {mode} {problem.replace('_', ' ')} ({hint})"
    can_retry = kind == "token" and problem == "mismatch" and params.device is not None
    step = "update_auth_credentials" if problem == "mismatch" else "update_auth_configuration"
    details = {
        "code": f"AUTH_{kind.upper()}_{problem.upper()}",
        "authReason": f"{kind}_{problem}",
        "canRetryWithDeviceToken": can_retry,
        "recommendedNextStep": "retry_with_device_token" if can_retry else step,
    }
    return AuthRefused(
        ErrorShape(INVALID_REQUEST, message, details=details), wrong_guess=problem == "mismatch"
    )


# -- origins (docs/topics/design.md) -----------------------------------------------------------------


def _check_origin(
    params: ConnectParams, loopback: bool, origin: str | None, allowed_origins: Collection[str]
) -> AuthRefused | None:
    browser = params.client.id in _BROWSER_CLIENTS or params.client.mode == "webchat"
    if origin is None and not browser:
        return None
    parsed = normalize_origin(origin or "")
    if parsed is None:
        return _refuse_origin("origin missing or invalid")
    allowed = {normalize_origin(entry) for entry in allowed_origins}
    if parsed in allowed or (loopback and _is_loopback_origin(parsed)):
        return None
    return _refuse_origin("origin not allowed")


def _refuse_origin(reason: str) -> AuthRefused:
    return _refuse(
        "origin not allowed (open the Control UI from the gateway host"
        " or allow it in gateway.controlUi.allowedOrigins)",
        {"code": "CONTROL_UI_ORIGIN_NOT_ALLOWED", "reason": reason},
    )


def normalize_origin(origin: str) -> str | None:
    """`scheme://host[:port]` in lower case without a default port; None when it is no web origin."""
    try:
        parts = urlsplit(origin.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    extra = parts.username or parts.password or parts.query or parts.fragment or parts.path.strip("/")
    if scheme not in _DEFAULT_PORTS or not host or extra:
        return None
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}" + ("" if port in (None, _DEFAULT_PORTS[scheme]) else f":{port}")


def _is_loopback_origin(origin: str) -> bool:
    host = urlsplit(origin).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
