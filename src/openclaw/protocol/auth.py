"""Who may connect: a pure decision over the credential, the client and the Origin.

A credential is the shared secret, or a token that was issued to a device. A device
counts only once `device` has verified it; whether it is paired is decided in
`pairing`. Expected secrets arrive as digests, and every comparison takes constant
time. Rate limits and Host checks belong to the gateway.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from openclaw.domain.hosts import is_loopback
from openclaw.protocol.connect import NODE, ConnectParams, Role, check_role
from openclaw.protocol.device import DeviceRefused, VerifiedDevice
from openclaw.protocol.errors import INVALID_REQUEST, NOT_PAIRED, UNAVAILABLE, ErrorShape
from openclaw.protocol.scopes import ALL_SCOPES, effective_scopes

AuthMode = Literal["token", "password", "none"]
AuthMethod = Literal["token", "password", "none", "device-token", "cookie"]
Problem = Literal["mismatch", "missing", "not_configured"]
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


class HeldToken(Struct, frozen=True):
    """A live token of the device that connects, for the role it asks for. Only the digest is known."""

    digest: bytes
    scopes: tuple[str, ...]
    issued_at_ms: int


class DeviceToken(Struct, frozen=True):
    """A token in the clear, on its way to the device that it belongs to."""

    value: str
    issued_at_ms: int

    def __repr__(self) -> str:
        # The value must never reach a log or a traceback.
        return f"DeviceToken(…, issued_at_ms={self.issued_at_ms})"


class AuthOk(Struct, frozen=True):
    """The client is in: how it proved itself, what its credential holds, what it gets of that (RPC-3).

    `token` is the device token that the client showed, or that it is given.
    """

    method: AuthMethod
    role: Role
    held: tuple[str, ...]
    scopes: tuple[str, ...]
    device_id: str | None = None
    token: DeviceToken | None = None


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
    device: VerifiedDevice | None = None,
    tokens: Collection[HeldToken] = (),
) -> AuthOk | AuthRefused:
    """Let a client in or say why not.

    `loopback` is true when the peer's socket address is local and nothing was
    forwarded. `allowed_origins` holds the gateway's own origin and the configured
    ones; a page on this machine may connect from any port, but only to a local
    socket. A missing `secret_digest` refuses everybody unless `mode` is "none" or
    a device shows one of its `tokens`. A device that was not verified is nobody.
    """
    # Without a secret the origin is all that tells a page from a program: then only listed pages may connect.
    local_pages = loopback and mode != "none"
    refusal = _check_origin(params, local_pages, origin, allowed_origins)
    if refusal is not None:
        return refusal
    if device is None and params.client.id in _DEVICE_BOUND_CLIENTS:
        return _refuse(
            "control ui requires device identity (use HTTPS or localhost secure context)",
            {"code": "CONTROL_UI_DEVICE_IDENTITY_REQUIRED"},
        )
    if params.role == NODE and device is None:
        return _refuse_bare_node(mode, secret_digest, params)
    if mode == "none" and loopback and (device is not None or _is_own_backend(params)):
        return _let_in("none", params, device)
    offered = _offered_secrets(params)
    if mode != "none" and secret_digest is not None and matches_secret(offered, secret_digest):
        return _let_in(mode, params, device)
    if device is not None:
        shown = _find_token(params, tokens)
        if shown is not None:
            return _let_in_by_token(params, device, *shown)
    return _refuse_credential(mode, secret_digest, params, device)


def refuse_device(refused: DeviceRefused) -> AuthRefused:
    """The claim of a device did not hold; nothing else about the client was looked at."""
    return AuthRefused(refused.error)


def _let_in(method: AuthMode, params: ConnectParams, device: VerifiedDevice | None) -> AuthOk:
    role = check_role(params)
    bare_check = device is None and params.client.mode in ("probe", "test")
    held = () if role == NODE or bare_check else ALL_SCOPES
    known_as = None if device is None else device.device_id
    return AuthOk(method, role, held, effective_scopes(params.scopes, held), known_as)


def _let_in_by_token(params: ConnectParams, device: VerifiedDevice, held: HeldToken, value: str) -> AuthOk:
    scopes = effective_scopes(params.scopes, held.scopes)
    shown = DeviceToken(value, held.issued_at_ms)
    return AuthOk("device-token", check_role(params), held.scopes, scopes, device.device_id, shown)


def _is_own_backend(params: ConnectParams) -> bool:
    return params.client.id == "gateway-client" and params.client.mode == "backend"


def find_shown_token(params: ConnectParams, tokens: Collection[HeldToken]) -> DeviceToken | None:
    """The token that a client sent along beside its secret, when it is still good."""
    shown = _find_token(params, tokens)
    return None if shown is None else DeviceToken(shown[1], shown[0].issued_at_ms)


def _find_token(params: ConnectParams, tokens: Collection[HeldToken]) -> tuple[HeldToken, str] | None:
    auth = params.auth
    offered = [] if auth is None else [value for value in (auth.device_token, auth.token) if value]
    found = None
    for value in offered:
        digest = digest_secret(value)
        for held in tokens:
            # Every pair is compared, so that timing does not tell which one was close.
            if hmac.compare_digest(digest, held.digest) and found is None:
                found = (held, value)
    return found


def _offered_secrets(params: ConnectParams) -> list[str]:
    if params.auth is None:
        return []
    return [secret for secret in (params.auth.token, params.auth.password) if secret]


def matches_secret(offered: list[str], secret_digest: bytes) -> bool:
    """Whether one of the offered secrets is the expected one."""
    # Every offered secret is compared, so that timing does not tell which field was right.
    results = [hmac.compare_digest(digest_secret(secret), secret_digest) for secret in offered]
    return any(results)


def _refuse(message: str, details: dict[str, object], code: str = INVALID_REQUEST) -> AuthRefused:
    return AuthRefused(ErrorShape(code, message, details=details))


def _refuse_stranger() -> AuthRefused:
    return _refuse("device identity required", {"code": "DEVICE_IDENTITY_REQUIRED"}, NOT_PAIRED)


def _refuse_bare_node(mode: AuthMode, secret_digest: bytes | None, params: ConnectParams) -> AuthRefused:
    """A node must name its device; a wrong secret is told first, as to everybody."""
    offered = _offered_secrets(params)
    if (
        mode == "none"
        or not offered
        or (secret_digest is not None and matches_secret(offered, secret_digest))
    ):
        return _refuse_stranger()
    return _refuse_credential(mode, secret_digest, params, None)


def _refuse_credential(
    mode: AuthMode, secret_digest: bytes | None, params: ConnectParams, device: VerifiedDevice | None
) -> AuthRefused:
    if device is not None and params.auth is not None and params.auth.device_token:
        # Clients drop a stored device token when they read this code.
        message = "unauthorized: device token mismatch (pair the device again or use gateway.auth.token)"
        return _refuse_guess(message, "device_token", "mismatch", can_retry=False)
    if mode == "none":
        return _refuse_stranger()
    offered = _offered_secrets(params)
    if not offered:
        known = device is not None and secret_digest is not None
        return _refuse_secret(mode, "missing", device) if known else _refuse_stranger()
    return _refuse_secret(mode, "not_configured" if secret_digest is None else "mismatch", device)


def _refuse_secret(mode: AuthMode, problem: Problem, device: VerifiedDevice | None) -> AuthRefused:
    hint = f"set gateway.auth.{mode} on the gateway" if problem == "not_configured" else _HINTS[mode]
    message = f"unauthorized: gateway {mode} {problem.replace('_', ' ')} ({hint})"
    can_retry = mode == "token" and problem == "mismatch" and device is not None
    return _refuse_guess(message, mode, problem, can_retry=can_retry)


def _refuse_guess(message: str, kind: str, problem: Problem, *, can_retry: bool) -> AuthRefused:
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


def refuse_locked_out(retry_after_ms: int) -> AuthRefused:
    """Too many wrong guesses came from there. It is told how long to wait, and nothing about its guess."""
    details = {
        "code": "AUTH_RATE_LIMITED",
        "authReason": "rate_limited",
        "canRetryWithDeviceToken": False,
        "recommendedNextStep": "wait_then_retry",
    }
    return AuthRefused(
        ErrorShape(
            INVALID_REQUEST,
            "unauthorized: too many failed authentication attempts (retry later)",
            details=details,
            retryable=True,
            retry_after_ms=retry_after_ms,
        )
    )


# -- origins (docs/topics/design.md) -----------------------------------------------------------------


def _check_origin(
    params: ConnectParams, local_pages: bool, origin: str | None, allowed_origins: Collection[str]
) -> AuthRefused | None:
    browser = params.client.id in _BROWSER_CLIENTS or params.client.mode == "webchat"
    if origin is None and not browser:
        return None
    parsed = normalize_origin(origin or "")
    if parsed is None:
        return _refuse_origin("origin missing or invalid")
    allowed = {normalize_origin(entry) for entry in allowed_origins}
    if parsed in allowed or (local_pages and is_loopback(urlsplit(parsed).hostname or "")):
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
