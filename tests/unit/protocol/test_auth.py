"""Who may connect: what the recorded matrix does not show."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from openclaw.protocol.auth import (
    GATEWAY_STARTING,
    AuthOk,
    AuthRefused,
    decide_auth,
    digest_secret,
    normalize_origin,
)
from openclaw.protocol.connect import ConnectParams, decode_connect
from openclaw.protocol.scopes import ADMIN, ALL_SCOPES, READ, WRITE
from tests.unit.protocol.wire import CLI, DEVICE, SECRET, connect_params, verified

DIGEST = digest_secret(SECRET)
BACKEND = CLI | {"id": "gateway-client", "mode": "backend"}


def params_of(**overrides: Any) -> ConnectParams:
    return decode_connect(Raw(msgspec.json.encode(connect_params(**overrides))))


def decide(**changes: Any) -> AuthOk | AuthRefused:
    overrides = changes.pop("params", {})
    known: dict[str, Any] = {"loopback": True, "origin": None, "allowed_origins": ()} | changes
    mode, digest = known.pop("mode", "token"), known.pop("digest", DIGEST)
    params = params_of(**overrides)
    return decide_auth(mode, digest, params, **({"device": verified(params)} | known))


def detail(outcome: AuthOk | AuthRefused, name: str = "code") -> Any:
    assert isinstance(outcome, AuthRefused)
    assert outcome.error.details is not None
    return outcome.error.details[name]


@pytest.mark.spec("RPC-1")
class TestSecrets:
    @settings(max_examples=100, deadline=None)
    @given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40))
    def test_only_the_secret_opens(self, guess: str) -> None:
        outcome = decide(params={"auth": {"token": guess}})
        assert isinstance(outcome, AuthOk) is (guess == SECRET)

    @pytest.mark.parametrize("near", [SECRET + " ", SECRET[:-1], SECRET.upper(), "", DIGEST.hex()])
    def test_near_misses_stay_out(self, near: str) -> None:
        assert isinstance(decide(params={"auth": {"token": near}}), AuthRefused)

    def test_without_a_configured_secret_nobody_gets_in(self) -> None:
        for mode in ("token", "password"):
            refused = decide(mode=mode, digest=None)
            assert detail(refused) == f"AUTH_{mode.upper()}_NOT_CONFIGURED"
            assert detail(refused, "recommendedNextStep") == "update_auth_configuration"
            assert isinstance(refused, AuthRefused) and f"gateway.auth.{mode}" in refused.error.message
            assert detail(decide(mode=mode, digest=None, params={"auth": None})) == "DEVICE_IDENTITY_REQUIRED"

    def test_only_wrong_guesses_count_towards_a_lockout(self) -> None:
        wrong = decide(params={"auth": {"token": "x"}})
        missing = decide(params={"auth": None})
        bare_device = decide(params={"auth": None, "device": DEVICE})
        foreign = decide(origin="https://evil.example")
        outcomes = (wrong, missing, bare_device, foreign)
        assert [isinstance(o, AuthRefused) and o.wrong_guess for o in outcomes] == [True, False, False, False]
        assert detail(bare_device) == "AUTH_TOKEN_MISSING"
        assert detail(bare_device, "authReason") == "token_missing"

    def test_a_stored_device_token_is_told_to_be_dropped(self) -> None:
        refused = decide(params={"auth": {"deviceToken": "old"}, "device": DEVICE})
        assert detail(refused) == "AUTH_DEVICE_TOKEN_MISMATCH"
        assert detail(refused, "authReason") == "device_token_mismatch"
        assert detail(refused, "canRetryWithDeviceToken") is False
        assert isinstance(refused, AuthRefused) and refused.wrong_guess
        assert detail(decide(params={"auth": {"deviceToken": "old"}})) == "DEVICE_IDENTITY_REQUIRED"

    def test_a_device_beside_the_secret_is_plain_token_auth(self) -> None:
        outcome = decide(params={"device": DEVICE, "scopes": [READ]}, loopback=False)
        assert outcome == AuthOk("token", "operator", ALL_SCOPES, (READ,), DEVICE["id"])

    def test_a_device_that_was_not_verified_is_nobody(self) -> None:
        ui = CLI | {"id": "openclaw-tui", "mode": "ui"}
        claim: dict[str, Any] = {"device": DEVICE}
        assert decide(params=claim, device=None) == AuthOk(
            "token", "operator", ALL_SCOPES, (ADMIN, READ, WRITE)
        )
        assert (
            detail(decide(params=claim | {"client": ui}, device=None))
            == "CONTROL_UI_DEVICE_IDENTITY_REQUIRED"
        )
        for overrides in ({"auth": None}, {"role": "node"}, {"auth": {"deviceToken": "t"}}):
            refused = decide(params=claim | overrides, device=None)
            assert detail(refused) == "DEVICE_IDENTITY_REQUIRED"
        assert detail(decide(mode="none", params=claim, device=None)) == "DEVICE_IDENTITY_REQUIRED"
        wrong = decide(params=claim | {"auth": {"token": "x"}}, device=None)
        assert detail(wrong, "canRetryWithDeviceToken") is False

    def test_nothing_gets_in_from_afar_without_a_secret(self) -> None:
        for overrides in ({"device": DEVICE}, {"client": BACKEND}):
            assert isinstance(decide(mode="none", params=overrides), AuthOk)
            assert detail(decide(mode="none", params=overrides, loopback=False)) == "DEVICE_IDENTITY_REQUIRED"

    def test_the_backend_exception_is_for_the_backend_alone(self) -> None:
        for client in (CLI | {"mode": "backend"}, BACKEND | {"mode": "cli"}):
            assert detail(decide(mode="none", params={"client": client})) == "DEVICE_IDENTITY_REQUIRED"

    def test_a_starting_gateway_asks_for_patience(self) -> None:
        assert msgspec.to_builtins(GATEWAY_STARTING.error) == {
            "code": "UNAVAILABLE",
            "message": "gateway starting; retry shortly",
            "details": {"reason": "startup-sidecars"},
            "retryable": True,
            "retryAfterMs": 500,
        }
        assert (GATEWAY_STARTING.close_code, GATEWAY_STARTING.close_reason) == (1013, "gateway starting")


@pytest.mark.spec("RPC-1")
class TestOrigins:
    OWN = "http://gateway.lan:18789"

    @pytest.mark.parametrize(
        "origin",
        [
            "http://localhost:1",
            "https://localhost",
            "http://127.0.0.1:5173",
            "http://127.8.9.1",
            "http://[::1]:80",
        ],
    )
    def test_local_pages_reach_a_local_socket_only(self, origin: str) -> None:
        assert isinstance(decide(origin=origin), AuthOk)
        assert detail(decide(origin=origin, loopback=False), "reason") == "origin not allowed"

    @pytest.mark.parametrize(
        "origin",
        [
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "http://evil.example:18789",
            "http://gateway.lan:18790",
            "https://gateway.lan:18789",
            "http://gateway.lan",
            "http://0.0.0.0:18789",
        ],
    )
    def test_foreign_pages_stay_out(self, origin: str) -> None:
        assert detail(decide(origin=origin, allowed_origins=[self.OWN]), "reason") == "origin not allowed"

    @pytest.mark.parametrize(
        "origin",
        [
            "", "null", "file://", "http://", "localhost", "chrome-extension://abc", "http://[::1", "http://h:99999",
            "http://user@localhost", "http://localhost/path", "http://localhost?q", "http://localhost#f", "*",
        ],
    )  # fmt: skip
    def test_what_is_no_web_origin(self, origin: str) -> None:
        assert normalize_origin(origin) is None
        refused = decide(origin=origin, allowed_origins=["*", origin])
        assert detail(refused, "reason") == "origin missing or invalid"

    def test_own_and_configured_origins_match_exactly(self) -> None:
        allowed = [self.OWN, "https://chat.example/", "not an origin"]
        for origin in (
            self.OWN,
            "HTTP://Gateway.LAN:18789",
            "https://chat.example",
            "https://chat.example:443",
        ):
            assert isinstance(decide(origin=origin, allowed_origins=allowed, loopback=False), AuthOk)
        assert isinstance(decide(origin="https://chat.example:444", allowed_origins=allowed), AuthRefused)
        assert normalize_origin("http://[::1]:8080") == "http://[::1]:8080"
        assert normalize_origin(" https://A.example:443/ ") == "https://a.example"

    @settings(max_examples=200, deadline=None)
    @given(st.text(max_size=60))
    def test_any_header_is_survived(self, origin: str) -> None:
        assert isinstance(decide(origin=origin), (AuthOk, AuthRefused))

    def test_without_a_secret_no_page_connects_that_is_not_listed(self) -> None:
        page = "http://localhost:5173"
        for who in ({"client": BACKEND}, {"device": DEVICE}):
            refused = decide(mode="none", origin=page, params=who | {"auth": None})
            assert detail(refused) == "CONTROL_UI_ORIGIN_NOT_ALLOWED"
            listed = decide(mode="none", origin=page, allowed_origins=(page,), params=who | {"auth": None})
            assert isinstance(listed, AuthOk)
            assert isinstance(decide(mode="none", params=who | {"auth": None}), AuthOk)
