"""The recorded outcomes of `connect`, against a real gateway: the same words, codes and closes."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.app import Gateway
from tests.fakes.device import TestDevice
from tests.fakes.device_client import DeviceClient
from tests.fakes.wire_client import RefusedError
from tests.integration.conftest import TOKEN, House

ASKED = ("operator.admin", "operator.read", "operator.write", "operator.approvals", "operator.pairing")
GOOD = {"token": TOKEN}
LOCAL_PAGE = {"Origin": "http://localhost:5173"}
TUI = {"id": "openclaw-tui", "mode": "ui", "deviceFamily": "Linux"}
CONTROL_UI = {"id": "openclaw-control-ui", "mode": "webchat"}
BACKEND = {"id": "gateway-client", "mode": "backend"}
DEVICE = TestDevice(1)
MISMATCH = "unauthorized: gateway token mismatch (use this gateway's gateway.auth.token or pair the device)"
ORIGIN = (
    "origin not allowed (open the Control UI from the gateway host"
    " or allow it in gateway.controlUi.allowedOrigins)"
)
UNBOUND = "control ui requires device identity (use HTTPS or localhost secure context)"
PASSWORD_MISSING = "unauthorized: gateway password missing (use this gateway's gateway.auth.password)"


def mismatch(can_retry: bool) -> dict[str, Any]:
    step = "retry_with_device_token" if can_retry else "update_auth_credentials"
    return {
        "code": "AUTH_TOKEN_MISMATCH",
        "authReason": "token_mismatch",
        "canRetryWithDeviceToken": can_retry,
        "recommendedNextStep": step,
    }


# name -> how the client comes, the message, the details, the code, the close code
REFUSED: dict[str, tuple[dict[str, Any], str, dict[str, Any] | None, str, int]] = {
    "no_auth_no_device": (
        {"auth": None}, "device identity required", {"code": "DEVICE_IDENTITY_REQUIRED"}, "NOT_PAIRED", 1008,
    ),
    "bad_token_no_device": (
        {"auth": {"token": "x"}}, MISMATCH, mismatch(False), "INVALID_REQUEST", 1008,
    ),
    "bad_token_device": (
        {"auth": {"token": "x"}, "device": DEVICE}, MISMATCH, mismatch(True), "INVALID_REQUEST", 1008,
    ),
    "token_no_device_controlui": (
        {"client": CONTROL_UI}, ORIGIN,
        {"code": "CONTROL_UI_ORIGIN_NOT_ALLOWED", "reason": "origin missing or invalid"},
        "INVALID_REQUEST", 1008,
    ),
    "origin_foreign": (
        {"client": CONTROL_UI, "device": DEVICE, "headers": {"Origin": "https://evil.example"}}, ORIGIN,
        {"code": "CONTROL_UI_ORIGIN_NOT_ALLOWED", "reason": "origin not allowed"}, "INVALID_REQUEST", 1008,
    ),
    "token_no_device_uimode": (
        {"client": TUI}, UNBOUND, {"code": "CONTROL_UI_DEVICE_IDENTITY_REQUIRED"}, "INVALID_REQUEST", 1008,
    ),
    "custom_client_id": (
        {"client": {"id": "mine"}},
        "invalid connect params: at /client/id: must be equal to one of the allowed values", None,
        "INVALID_REQUEST", 1008,
    ),
    "proto5": (
        {"protocols": (5, 6)}, "protocol mismatch",
        {"code": "PROTOCOL_MISMATCH", "clientMinProtocol": 5, "clientMaxProtocol": 6, "expectedProtocol": 4,
         "minimumProbeProtocol": 3}, "INVALID_REQUEST", 1002,
    ),
    "sig_v1": (
        {"device": DEVICE, "version": 1}, "device signature invalid",
        {"code": "DEVICE_AUTH_SIGNATURE_INVALID", "reason": "device-signature"}, "INVALID_REQUEST", 1008,
    ),
    "stale_nonce": (
        {"device": DEVICE, "nonce": "41d0f65b-309c-4697-88f9-81b5a463b93d"}, "device nonce mismatch",
        {"code": "DEVICE_AUTH_NONCE_MISMATCH", "reason": "device-nonce-mismatch"}, "INVALID_REQUEST", 1008,
    ),
    "stale_ts": (
        {"device": DEVICE, "signed_late_ms": 600_000}, "device signature expired",
        {"code": "DEVICE_AUTH_SIGNATURE_EXPIRED", "reason": "device-signature-stale"},
        "INVALID_REQUEST", 1008,
    ),
    "bad_role": ({"role": "king"}, "invalid role", None, "INVALID_REQUEST", 1008),
    "extra_param": (
        {"change": lambda params: params | {"zzz": 1}},
        "invalid connect params: at root: unexpected property 'zzz'", None, "INVALID_REQUEST", 1008,
    ),
}  # fmt: skip
# name -> how the client comes, its method, its scopes, whether it is given a device token
ADMITTED: dict[str, tuple[dict[str, Any], str, tuple[str, ...], bool]] = {
    "token_no_device_cli": ({}, "token", ASKED, False),
    "token_no_device_cli_adminscope": ({"scopes": ASKED[:1]}, "token", ASKED[:1], False),
    "token_no_device_backend": ({"client": BACKEND}, "token", ASKED, False),
    "token_no_device_probe": ({"client": {"mode": "probe"}}, "token", (), False),
    "token_as_password_field": ({"auth": {"password": TOKEN}}, "token", ASKED, False),
    "proto3to9": ({"protocols": (3, 9)}, "token", ASKED, False),
    "sig_v2": ({"device": DEVICE, "version": 2}, "token", ASKED, True),
    "sig_v3_tui": ({"device": DEVICE, "client": TUI}, "token", ASKED, True),
    "new_device_autoapprove": ({"device": TestDevice(2)}, "token", ASKED, True),
    "control_ui_secret_in_both_fields": (
        {"auth": {"token": TOKEN, "password": TOKEN}, "client": CONTROL_UI, "device": DEVICE,
         "headers": LOCAL_PAGE, "version": 2},
        "token", ASKED, True,
    ),
    "node_role": ({"device": DEVICE, "role": "node"}, "token", (), True),
    "readonly_scope": ({"device": DEVICE, "scopes": ASKED[1:2]}, "token", ASKED[1:2], True),
}  # fmt: skip


def client(gateway: Gateway, **options: Any) -> DeviceClient:
    options = {"auth": GOOD, "scopes": ASKED} | options
    return DeviceClient(f"ws://127.0.0.1:{gateway.port}", options.pop("auth"), **options)


async def refused(gateway: Gateway, **options: Any) -> tuple[dict[str, Any], DeviceClient]:
    stranger = client(gateway, **options)
    with pytest.raises(RefusedError) as caught:
        await stranger.__aenter__()
    return caught.value.error, stranger


@pytest.mark.spec("RPC-1", "RPC-2", "RPC-3")
async def test_refusals_have_the_recorded_words(gateway: Gateway) -> None:
    for name, (options, message, details, code, close) in REFUSED.items():
        error, stranger = await refused(gateway, **options)
        expected: dict[str, Any] = {"code": code, "message": message}
        if details is not None:
            expected["details"] = details
        assert error == expected, name
        assert stranger.close_code == close, name
        assert stranger.close_reason is not None and message.startswith(stranger.close_reason), name


@pytest.mark.spec("RPC-1", "RPC-3")
async def test_admissions_grant_what_was_recorded(gateway: Gateway) -> None:
    for name, (options, method, scopes, has_token) in ADMITTED.items():
        async with client(gateway, **options) as admitted:
            granted = admitted.granted
            assert (granted["method"], tuple(granted["scopes"])) == (method, scopes), name
            assert granted["role"] == options.get("role", "operator"), name
            if has_token:
                assert len(granted["deviceToken"]) == 43 and granted["issuedAtMs"] > 0, name
            else:
                assert granted.keys() == {"method", "role", "scopes"}, name
            if granted["role"] == "node":
                with pytest.raises(RefusedError, match="INVALID_REQUEST: unauthorized role: node"):
                    await admitted.call("sessions.list")
            elif scopes:
                assert "sessions" in await admitted.call("sessions.list"), name
            else:
                with pytest.raises(RefusedError, match=r"FORBIDDEN: missing scope: operator\.read"):
                    await admitted.call("sessions.list")


@pytest.mark.spec("RPC-1", "RPC-3")
async def test_mode_password(house: House) -> None:
    house.config["gateway"]["auth"] = {"mode": "password", "password": "correct horse battery"}
    async with house.gateway() as gateway:
        for auth in ({"password": "correct horse battery"}, {"token": "correct horse battery"}):
            async with client(gateway, auth=auth) as admitted:
                assert admitted.granted["method"] == "password"
        error, _ = await refused(gateway, auth={"password": "x"})
        assert error["details"]["code"] == "AUTH_PASSWORD_MISMATCH"
        error, _ = await refused(gateway, auth=None, device=DEVICE)
        assert (error["message"], error["details"]["code"]) == (PASSWORD_MISSING, "AUTH_PASSWORD_MISSING")
        assert error["details"]["recommendedNextStep"] == "update_auth_configuration"


@pytest.mark.spec("RPC-1", "RPC-3")
async def test_mode_none(house: House) -> None:
    house.config["gateway"]["auth"] = {"mode": "none"}
    async with house.gateway() as gateway:
        for auth in (None, GOOD):
            error, stranger = await refused(gateway, auth=auth)
            assert error["details"]["code"] == "DEVICE_IDENTITY_REQUIRED"
            assert (stranger.close_code, stranger.close_reason) == (1008, "device identity required")
        async with client(gateway, auth=None, client=BACKEND) as backend:
            assert backend.granted == {"method": "none", "role": "operator", "scopes": list(ASKED)}
        async with client(gateway, auth=None, device=DEVICE) as own:
            assert (own.granted["method"], len(own.granted["deviceToken"])) == ("none", 43)
        error, _ = await refused(gateway, auth=None, device=TestDevice(9), nonce="guessed")
        assert error["details"]["code"] == "DEVICE_AUTH_NONCE_MISMATCH"
