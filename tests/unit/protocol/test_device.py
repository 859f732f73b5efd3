"""Device claims: what must be signed, by whom and when, and what each failure is called."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from openclaw.protocol.connect import ConnectParams, decode_connect
from openclaw.protocol.device import (
    SIGNATURE_WINDOW_MS,
    DeviceRefused,
    VerifiedDevice,
    decode_base64url,
    encode_base64url,
    normal_label,
    signed_texts,
    verify_device,
)
from openclaw.protocol.scopes import ADMIN, APPROVALS, PAIRING, READ, WRITE
from tests.fakes.device import TestDevice
from tests.unit.protocol.wire import CLI, DEVICE, NOW_MS, SECRET, connect_params

NONCE = "41d0f65b-309c-4697-88f9-81b5a463b93d"
RECORDED_SCOPES = [ADMIN, READ, WRITE, APPROVALS, PAIRING]
TUI = CLI | {"id": "openclaw-tui", "mode": "ui", "deviceFamily": "Linux"}
PHONE = TestDevice(7)


def decode(params: dict[str, Any]) -> ConnectParams:
    return decode_connect(Raw(msgspec.json.encode(params)))


def verify(
    params: dict[str, Any], nonce: str = NONCE, now_ms: int = NOW_MS
) -> VerifiedDevice | DeviceRefused:
    decoded = decode(params)
    assert decoded.device is not None
    return verify_device(decoded.device, decoded, nonce=nonce, now_ms=now_ms)


def refusal(outcome: VerifiedDevice | DeviceRefused) -> tuple[str, str, Any]:
    assert isinstance(outcome, DeviceRefused)
    assert outcome.error.code == "INVALID_REQUEST" and outcome.error.details is not None
    assert set(outcome.error.details) == {"code", "reason"}
    return outcome.error.message, outcome.error.details["code"], outcome.error.details["reason"]


def changed(params: dict[str, Any], **device: Any) -> dict[str, Any]:
    return params | {"device": params["device"] | device}


@pytest.mark.spec("RPC-1")
class TestVerification:
    def test_a_signature_of_the_recorded_client_holds(self) -> None:
        params = connect_params(scopes=RECORDED_SCOPES, caps=["tool-events"], device=DEVICE)
        assert verify(params) == VerifiedDevice(DEVICE["id"], DEVICE["publicKey"])

    @pytest.mark.parametrize("version", [2, 3])
    @pytest.mark.parametrize("client", [CLI, TUI, TUI | {"platform": " Linux X86_64 "}])
    def test_both_versions_are_understood(self, version: int, client: dict[str, str]) -> None:
        params = PHONE.sign(connect_params(client=client), NONCE, NOW_MS, version)
        assert verify(params) == VerifiedDevice(PHONE.device_id, PHONE.public_key)

    @pytest.mark.parametrize("version", [1, 4])
    def test_other_versions_are_not(self, version: int) -> None:
        params = PHONE.sign(connect_params(), NONCE, NOW_MS, version)
        assert refusal(verify(params)) == (
            "device signature invalid",
            "DEVICE_AUTH_SIGNATURE_INVALID",
            "device-signature",
        )

    @pytest.mark.parametrize(
        "auth",
        [
            None,
            {"token": SECRET},
            {"deviceToken": "d"},
            {"bootstrapToken": "b"},
            {"deviceToken": "d", "bootstrapToken": "b"},
            {"token": "t", "deviceToken": "d", "bootstrapToken": "b", "password": "p"},
            {"token": "", "deviceToken": "d"},
        ],
    )
    def test_the_credential_is_part_of_what_is_signed(self, auth: dict[str, str] | None) -> None:
        params = PHONE.sign(connect_params(auth=auth), NONCE, NOW_MS)
        assert isinstance(verify(params), VerifiedDevice)
        other = params | {"auth": {"token": "another"}}
        assert refusal(verify(other))[1] == "DEVICE_AUTH_SIGNATURE_INVALID"

    @pytest.mark.parametrize(
        "change",
        [
            {"client": CLI | {"id": "gateway-client"}},
            {"client": CLI | {"mode": "backend"}},
            {"client": CLI | {"platform": "darwin"}},
            {"client": CLI | {"deviceFamily": "iPhone"}},
            {"role": "node"},
            {"scopes": [ADMIN]},
            {"scopes": [WRITE, READ, ADMIN]},
        ],
    )
    def test_whatever_was_signed_cannot_be_changed(self, change: dict[str, Any]) -> None:
        params = PHONE.sign(connect_params(), NONCE, NOW_MS) | change
        assert refusal(verify(params))[1] == "DEVICE_AUTH_SIGNATURE_INVALID"

    def test_another_devices_signature_does_not_help(self) -> None:
        mine = PHONE.sign(connect_params(), NONCE, NOW_MS)
        theirs = TestDevice(8).sign(connect_params(), NONCE, NOW_MS)
        stolen = changed(mine, signature=theirs["device"]["signature"])
        assert refusal(verify(stolen))[1] == "DEVICE_AUTH_SIGNATURE_INVALID"

    @pytest.mark.parametrize(
        ("late_ms", "holds"), [(0, True), (SIGNATURE_WINDOW_MS, True), (SIGNATURE_WINDOW_MS + 1, False)]
    )
    @pytest.mark.parametrize("sign", [1, -1])
    def test_a_signature_is_good_for_a_short_time(self, late_ms: int, holds: bool, sign: int) -> None:
        params = PHONE.sign(connect_params(), NONCE, NOW_MS)
        outcome = verify(params, now_ms=NOW_MS + sign * late_ms)
        assert isinstance(outcome, VerifiedDevice) is holds
        if not holds:
            assert refusal(outcome) == (
                "device signature expired",
                "DEVICE_AUTH_SIGNATURE_EXPIRED",
                "device-signature-stale",
            )

    def test_the_window_is_minutes(self) -> None:
        assert SIGNATURE_WINDOW_MS == 120_000

    def test_each_connection_has_its_own_nonce(self) -> None:
        params = PHONE.sign(connect_params(), NONCE, NOW_MS)
        assert refusal(verify(params, nonce="another")) == (
            "device nonce mismatch",
            "DEVICE_AUTH_NONCE_MISMATCH",
            "device-nonce-mismatch",
        )
        without = params | {"device": {k: v for k, v in params["device"].items() if k != "nonce"}}
        assert refusal(verify(without)) == (
            "device nonce required",
            "DEVICE_AUTH_NONCE_REQUIRED",
            "device-nonce-missing",
        )

    @pytest.mark.parametrize("device_id", [PHONE.device_id.upper(), "x", TestDevice(8).device_id, "é"])
    def test_the_id_is_the_hash_of_the_key(self, device_id: str) -> None:
        params = PHONE.sign(connect_params(), NONCE, NOW_MS)
        assert refusal(verify(changed(params, id=device_id))) == (
            "device identity mismatch",
            "DEVICE_AUTH_DEVICE_ID_MISMATCH",
            "device-id-mismatch",
        )

    @pytest.mark.parametrize(
        "key", ["x", "!" * 43, PHONE.public_key + "=", PHONE.public_key[:-1], PHONE.public_key + "A", " "]
    )
    def test_what_is_no_key(self, key: str) -> None:
        params = PHONE.sign(connect_params(), NONCE, NOW_MS)
        assert refusal(verify(changed(params, publicKey=key))) == (
            "device public key invalid",
            "DEVICE_AUTH_PUBLIC_KEY_INVALID",
            "device-public-key",
        )

    @pytest.mark.parametrize("signature", ["x", "A" * 85, "A" * 87, "+" * 86, "A" * 86])
    def test_what_is_no_signature(self, signature: str) -> None:
        params = PHONE.sign(connect_params(), NONCE, NOW_MS)
        assert refusal(verify(changed(params, signature=signature)))[1] == "DEVICE_AUTH_SIGNATURE_INVALID"

    @pytest.mark.parametrize("sign", [0, 0x80])
    @pytest.mark.parametrize(
        "weak",
        [
            "00" * 32,
            "01" + "00" * 31,
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "ec" + "ff" * 30 + "7f",
            "ed" + "ff" * 30 + "7f",
            "ee" + "ff" * 30 + "7f",
        ],
    )
    def test_a_key_that_anybody_can_sign_for_is_no_key(self, weak: str, sign: int) -> None:
        key = bytes.fromhex(weak)
        key = key[:31] + bytes((key[31] | sign,))
        claim = PHONE.sign(connect_params(), NONCE, NOW_MS)
        forged = changed(
            claim, publicKey=encode_base64url(key), id=hashlib.sha256(key).hexdigest(), signature="A" * 86
        )
        assert refusal(verify(forged))[1] == "DEVICE_AUTH_PUBLIC_KEY_INVALID"

    @settings(max_examples=100, deadline=None)
    @given(st.binary(min_size=32, max_size=32), st.binary(min_size=64, max_size=64))
    def test_no_key_and_no_signature_breaks_it(self, key: bytes, signature: bytes) -> None:
        claim = {
            "id": hashlib.sha256(key).hexdigest(),
            "publicKey": encode_base64url(key),
            "signature": encode_base64url(signature),
            "signedAt": NOW_MS,
            "nonce": NONCE,
        }
        assert refusal(verify(connect_params(device=claim)))[1] in (
            "DEVICE_AUTH_SIGNATURE_INVALID",
            "DEVICE_AUTH_PUBLIC_KEY_INVALID",
        )


class TestPieces:
    def test_the_signed_texts_are_spelled_out(self) -> None:
        params = decode(
            PHONE.sign(connect_params(client=TUI | {"platform": " LiNux "}, scopes=[READ, WRITE]), "n-1", 5)
        )
        assert params.device is not None
        common = f"{PHONE.device_id}|openclaw-tui|ui|operator|operator.read,operator.write|5|{SECRET}|n-1"
        assert signed_texts(params.device, params) == (f"v3|{common}|linux|linux", f"v2|{common}")

    def test_absent_things_are_empty(self) -> None:
        params = decode(PHONE.sign(connect_params(auth=None, scopes=[]), "n-1", 5))
        assert params.device is not None
        assert (
            signed_texts(params.device, params)[0] == f"v3|{PHONE.device_id}|cli|cli|operator||5||n-1|linux|"
        )

    def test_labels_are_lowered_in_ascii_only(self) -> None:
        assert [normal_label(text) for text in (None, "", " A B ", "\tÄÖ İ\n")] == ["", "", "a b", "ÄÖ İ"]

    @settings(max_examples=200, deadline=None)
    @given(st.binary(max_size=40))
    def test_base64url_has_one_spelling(self, data: bytes) -> None:
        text = encode_base64url(data)
        assert decode_base64url(text, len(data)) == data
        assert decode_base64url(text, len(data) + 1) is None
        assert decode_base64url(text + "=", len(data)) is None

    @settings(max_examples=200, deadline=None)
    @given(st.text(max_size=60))
    def test_anything_else_is_nothing(self, text: str) -> None:
        decoded = decode_base64url(text, 32)
        assert decoded is None or encode_base64url(decoded) == text
        # A last character with bits to spare has several spellings; one is taken.
        assert decode_base64url("A" * 42 + "B", 32) is None
