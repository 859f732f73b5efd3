"""A device that signs as gateways expect it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from openclaw.protocol.connect import ConnectParams
from openclaw.protocol.device import DeviceRefused, VerifiedDevice, verify_device
from openclaw.tui.identity import SEED_BYTES, Device, Introduction, new_seed
from openclaw.tui.memory import ClientMemory

Json = dict[str, Any]
NOW_MS = 1_800_000_000_000
PARAMS: Json = {
    "minProtocol": 4, "maxProtocol": 4, "role": "operator", "scopes": ["operator.admin", "operator.read"],
    "client": {"id": "gateway-client", "mode": "backend", "version": "1", "platform": "linux"},
}  # fmt: skip


def verified(params: Json, nonce: str = "n1", now_ms: int = NOW_MS) -> VerifiedDevice | DeviceRefused:
    connect = msgspec.convert(params, ConnectParams)
    assert connect.device is not None
    return verify_device(connect.device, connect, nonce=nonce, now_ms=now_ms)


@pytest.mark.spec("RPC-1")
def test_a_signed_introduction_is_believed_for_this_challenge_only() -> None:
    device = Device(b"k" * SEED_BYTES)
    signed = device.sign(PARAMS, nonce="n1", signed_at_ms=NOW_MS)
    assert verified(signed) == VerifiedDevice(device.device_id, device.public_key)
    assert isinstance(verified(signed, nonce="n2"), DeviceRefused)
    changed = signed | {"scopes": ["operator.admin"]}
    assert isinstance(verified(changed), DeviceRefused)
    assert "device" not in PARAMS
    assert Device(b"k" * SEED_BYTES).device_id == device.device_id
    assert Device(new_seed()).device_id != Device(new_seed()).device_id


@pytest.mark.spec("RPC-1")
def test_an_introduction_names_the_terminal_and_its_device(tmp_path: Path) -> None:
    challenge = {"nonce": "n1", "ts": NOW_MS}
    with ClientMemory(tmp_path / "m") as memory:
        introduction = Introduction(memory, "g")
        first = introduction(PARAMS | {"auth": {"token": "t"}}, challenge)
        assert first["auth"] == {"token": "t"}
        assert (first["client"]["id"], first["client"]["mode"]) == ("openclaw-tui", "ui")
        assert isinstance(verified(first), VerifiedDevice)
        introduction.keep_token({"auth": {"deviceToken": "held"}})
        again = Introduction(memory, "g")(PARAMS, challenge)
        assert again["auth"] == {"deviceToken": "held"}
        assert isinstance(verified(again), VerifiedDevice)
        assert again["device"]["id"] == first["device"]["id"], "one device, however often it connects"
        elsewhere = Introduction(memory, "other")(PARAMS, challenge)
        assert "auth" not in elsewhere, "a token goes to the gateway that gave it and to no other"
        introduction.keep_token({"auth": {}})
        assert memory.device_token("g") == "held"
