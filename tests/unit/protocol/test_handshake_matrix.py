"""The outcomes of `connect` that were seen on the real wire, replayed where no signature matters.

Each case goes the whole way: frame in, secret checked, frame and close code out.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from openclaw.protocol.auth import AuthMode, AuthOk, decide_auth, digest_secret
from openclaw.protocol.connection import Authenticate, CloseWith
from openclaw.protocol.scopes import ADMIN, APPROVALS, PAIRING, READ, WRITE
from tests.unit.protocol.wire import (
    CLI,
    DEVICE,
    NOW_MS,
    SECRET,
    connect_params,
    new_connection,
    read,
    request,
    verified,
)

ASKED = [ADMIN, READ, WRITE, APPROVALS, PAIRING]
BACKEND = CLI | {"id": "gateway-client", "mode": "backend"}
WEBCHAT = CLI | {"id": "webchat", "mode": "webchat"}
CONTROL_UI = CLI | {"id": "openclaw-control-ui", "mode": "webchat"}
TUI = CLI | {"id": "openclaw-tui", "mode": "ui"}
TOKEN_MISMATCH = (
    "unauthorized: gateway token mismatch (use this gateway's gateway.auth.token or pair the device)"
)
PASSWORD_MISMATCH = "unauthorized: gateway password mismatch (use this gateway's gateway.auth.password)"
PASSWORD_MISSING = "unauthorized: gateway password missing (use this gateway's gateway.auth.password)"
NO_ORIGIN = (
    "origin not allowed (open the Control UI from the gateway host"
    " or allow it in gateway.controlUi.allowedOrigins)"
)
NO_DEVICE = "control ui requires device identity (use HTTPS or localhost secure context)"


class Seen(Struct, frozen=True):
    """Either the scopes of a client that got in, or the error and how the socket closed."""

    scopes: list[str] | None = None
    method: str = "token"
    code: str = "INVALID_REQUEST"
    message: str = ""
    details: dict[str, Any] | None = None
    close: int = 1008


def shake_hands(
    mode: AuthMode, overrides: dict[str, Any], origin: str | None = None
) -> tuple[AuthOk | None, dict[str, Any], CloseWith | None]:
    connection = new_connection()
    params = connect_params(**({"scopes": ASKED} | overrides))
    outcome = connection.receive(request("connect", params, "c1"), NOW_MS)
    if isinstance(outcome, CloseWith):
        return None, read(outcome.frame), outcome
    assert isinstance(outcome, Authenticate)
    decided = decide_auth(
        mode,
        digest_secret(SECRET),
        outcome.params,
        loopback=True,
        origin=origin,
        allowed_origins=["http://127.0.0.1:18789"],
        device=verified(outcome.params),
    )
    if isinstance(decided, AuthOk):
        return decided, read(connection.accept(decided, {"type": "hello-ok"})), None
    closed = connection.refuse(decided)
    return None, read(closed.frame), closed


def mismatch(kind: str, retry: bool = False) -> dict[str, Any]:
    return {
        "code": f"AUTH_{kind.upper()}_MISMATCH",
        "authReason": f"{kind}_mismatch",
        "canRetryWithDeviceToken": retry,
        "recommendedNextStep": "retry_with_device_token" if retry else "update_auth_credentials",
    }


def version_mismatch(low: int, high: int) -> Seen:
    details = {
        "code": "PROTOCOL_MISMATCH",
        "clientMinProtocol": low,
        "clientMaxProtocol": high,
        "expectedProtocol": 4,
        "minimumProbeProtocol": 3,
    }
    return Seen(message="protocol mismatch", details=details, close=1002)


STRANGER = Seen(
    code="NOT_PAIRED",
    message="device identity required",
    details={"code": "DEVICE_IDENTITY_REQUIRED"},
)
ORIGIN_MISSING = Seen(
    message=NO_ORIGIN,
    details={"code": "CONTROL_UI_ORIGIN_NOT_ALLOWED", "reason": "origin missing or invalid"},
)
ORIGIN_FOREIGN = Seen(
    message=NO_ORIGIN,
    details={"code": "CONTROL_UI_ORIGIN_NOT_ALLOWED", "reason": "origin not allowed"},
)
UNBOUND_UI = Seen(message=NO_DEVICE, details={"code": "CONTROL_UI_DEVICE_IDENTITY_REQUIRED"})
ENUM = "must be equal to one of the allowed values"
FOREIGN = "https://evil.example"
LOCAL_PAGE = "http://localhost:5173"

TOKEN_CASES: list[tuple[str, dict[str, Any], str | None, Seen]] = [
    ("no_auth_no_device", {"auth": None}, None, STRANGER),
    ("empty_token", {"auth": {"token": ""}}, None, STRANGER),
    (
        "bad_token_no_device",
        {"auth": {"token": "x"}},
        None,
        Seen(message=TOKEN_MISMATCH, details=mismatch("token")),
    ),
    (
        "bad_token_device",
        {"auth": {"token": "x"}, "device": DEVICE},
        None,
        Seen(message=TOKEN_MISMATCH, details=mismatch("token", retry=True)),
    ),
    ("token_no_device_cli", {}, None, Seen(scopes=ASKED)),
    ("token_no_device_cli_adminscope", {"scopes": [ADMIN]}, None, Seen(scopes=[ADMIN])),
    ("readonly_scope", {"scopes": [READ]}, None, Seen(scopes=[READ])),
    ("no_scopes_asked", {"scopes": []}, None, Seen(scopes=[])),
    ("token_no_device_backend", {"client": BACKEND}, None, Seen(scopes=ASKED)),
    ("token_no_device_webchat", {"client": WEBCHAT}, None, ORIGIN_MISSING),
    ("token_no_device_controlui", {"client": CONTROL_UI}, None, ORIGIN_MISSING),
    ("origin_foreign", {"client": CONTROL_UI, "device": DEVICE}, FOREIGN, ORIGIN_FOREIGN),
    ("cli_from_a_foreign_page", {}, FOREIGN, ORIGIN_FOREIGN),
    ("origin_loopback_other_port", {"client": CONTROL_UI, "device": DEVICE}, LOCAL_PAGE, Seen(scopes=ASKED)),
    ("controlui_without_device", {"client": CONTROL_UI}, LOCAL_PAGE, UNBOUND_UI),
    ("webchat_with_origin", {"client": WEBCHAT}, LOCAL_PAGE, Seen(scopes=ASKED)),
    ("token_no_device_uimode", {"client": TUI}, None, UNBOUND_UI),
    ("tui_with_device", {"client": TUI, "device": DEVICE}, None, Seen(scopes=ASKED)),
    ("token_no_device_probe", {"client": CLI | {"mode": "probe"}}, None, Seen(scopes=[])),
    ("token_no_device_test", {"client": CLI | {"id": "test", "mode": "test"}}, None, Seen(scopes=[])),
    ("probe_with_device", {"client": CLI | {"mode": "probe"}, "device": DEVICE}, None, Seen(scopes=ASKED)),
    (
        "custom_client_id",
        {"client": CLI | {"id": "mine"}},
        None,
        Seen(message=f"invalid connect params: at /client/id: {ENUM}"),
    ),
    (
        "bad_mode",
        {"client": CLI | {"mode": "x"}},
        None,
        Seen(message=f"invalid connect params: at /client/mode: {ENUM}"),
    ),
    ("token_as_password_field", {"auth": {"password": SECRET}}, None, Seen(scopes=ASKED)),
    ("secret_in_both_fields", {"auth": {"token": SECRET, "password": SECRET}}, None, Seen(scopes=ASKED)),
    ("right_beside_wrong", {"auth": {"token": "x", "password": SECRET}}, None, Seen(scopes=ASKED)),
    ("proto3", {"minProtocol": 3, "maxProtocol": 3}, None, version_mismatch(3, 3)),
    ("proto5", {"minProtocol": 5, "maxProtocol": 6}, None, version_mismatch(5, 6)),
    ("proto_reversed", {"minProtocol": 5, "maxProtocol": 3}, None, version_mismatch(5, 3)),
    ("proto3to9", {"minProtocol": 3, "maxProtocol": 9}, None, Seen(scopes=ASKED)),
    ("node_role", {"role": "node", "device": DEVICE}, None, Seen(scopes=[])),
    ("node_role_no_device", {"role": "node"}, None, STRANGER),
    ("bad_role", {"role": "king"}, None, Seen(message="invalid role")),
    (
        "extra_param",
        {"zzz": 1},
        None,
        Seen(message="invalid connect params: at root: unexpected property 'zzz'"),
    ),
    ("unknown_scope", {"scopes": ["operator.zzz"]}, None, Seen(scopes=[])),
]
PASSWORD_CASES: list[tuple[str, dict[str, Any], Seen]] = [
    ("pw_ok", {"auth": {"password": SECRET}}, Seen(scopes=ASKED, method="password")),
    ("pw_in_token", {}, Seen(scopes=ASKED, method="password")),
    ("pw_bad", {"auth": {"password": "x"}}, Seen(message=PASSWORD_MISMATCH, details=mismatch("password"))),
    (
        "pw_bad_device",
        {"auth": {"password": "x"}, "device": DEVICE},
        Seen(message=PASSWORD_MISMATCH, details=mismatch("password")),
    ),
    ("pw_none", {"auth": None}, STRANGER),
    (
        "pw_none_device",
        {"auth": None, "device": DEVICE},
        Seen(
            message=PASSWORD_MISSING,
            details={
                "code": "AUTH_PASSWORD_MISSING",
                "authReason": "password_missing",
                "canRetryWithDeviceToken": False,
                "recommendedNextStep": "update_auth_configuration",
            },
        ),
    ),
]
NONE_CASES: list[tuple[str, dict[str, Any], Seen]] = [
    ("none_noauth_nodevice_cli", {"auth": None}, STRANGER),
    ("none_token_ignored", {}, STRANGER),
    ("none_device_cli", {"auth": None, "device": DEVICE}, Seen(scopes=ASKED, method="none")),
    ("none_backend", {"auth": None, "client": BACKEND}, Seen(scopes=ASKED, method="none")),
    ("none_backend_as_node", {"auth": None, "client": BACKEND, "role": "node"}, STRANGER),
    ("none_controlui", {"auth": None, "client": CONTROL_UI, "device": DEVICE}, ORIGIN_MISSING),
]


def check(mode: AuthMode, overrides: dict[str, Any], origin: str | None, seen: Seen) -> None:
    auth, answer, closed = shake_hands(mode, overrides, origin)
    if seen.scopes is not None:
        assert auth is not None and closed is None
        assert (list(auth.scopes), auth.method) == (seen.scopes, seen.method)
        assert answer == {"type": "res", "id": "c1", "ok": True, "payload": {"type": "hello-ok"}}
        return
    expected: dict[str, Any] = {"code": seen.code, "message": seen.message}
    if seen.details is not None:
        expected["details"] = seen.details
    assert answer == {"type": "res", "id": "c1", "ok": False, "error": expected}
    assert closed is not None
    assert (closed.code, closed.reason) == (seen.close, seen.message)


@pytest.mark.spec("RPC-1", "RPC-2", "RPC-3")
class TestMatrix:
    @pytest.mark.parametrize(
        ("overrides", "origin", "seen"),
        [case[1:] for case in TOKEN_CASES],
        ids=[case[0] for case in TOKEN_CASES],
    )
    def test_mode_token(self, overrides: dict[str, Any], origin: str | None, seen: Seen) -> None:
        check("token", overrides, origin, seen)

    @pytest.mark.parametrize(
        ("overrides", "seen"), [case[1:] for case in PASSWORD_CASES], ids=[case[0] for case in PASSWORD_CASES]
    )
    def test_mode_password(self, overrides: dict[str, Any], seen: Seen) -> None:
        check("password", overrides, None, seen)

    @pytest.mark.parametrize(
        ("overrides", "seen"), [case[1:] for case in NONE_CASES], ids=[case[0] for case in NONE_CASES]
    )
    def test_mode_none(self, overrides: dict[str, Any], seen: Seen) -> None:
        check("none", overrides, None, seen)
