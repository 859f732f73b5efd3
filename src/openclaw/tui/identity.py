"""This device as a gateway knows it: an Ed25519 key that signs the challenge of each connection.

A gateway lets a terminal UI in only when it names its device. On the same machine a good
secret approves it; elsewhere the owner does, once, and from then on the key and the token
that the gateway gave us are enough. The cryptography library is loaded only when something
is signed.
"""

from __future__ import annotations

import secrets
import sys
from typing import Any, Final

import msgspec

from openclaw import __version__
from openclaw.protocol.connect import ConnectParams, DeviceIdentity
from openclaw.protocol.device import device_id_of, encode_base64url, signed_texts
from openclaw.tui.memory import ClientMemory

Json = dict[str, Any]
SEED_BYTES: Final = 32


def new_seed() -> bytes:
    """A private key that nobody has."""
    return secrets.token_bytes(SEED_BYTES)


class Device:
    """A private key, ready to sign."""

    def __init__(self, seed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        public_key = self._key.public_key().public_bytes_raw()
        self.public_key = encode_base64url(public_key)
        self.device_id = device_id_of(public_key)

    def sign(self, params: Json, *, nonce: str, signed_at_ms: int) -> Json:
        """The parameters of a `connect` with this device in them, signed for this challenge (RPC-1)."""
        identity = DeviceIdentity(
            id=self.device_id, public_key=self.public_key, signature="-", signed_at=signed_at_ms, nonce=nonce
        )
        text, _older = signed_texts(identity, msgspec.convert(params, ConnectParams))
        signature = self._key.sign(text.encode("utf-8", "surrogatepass"))
        signed = msgspec.structs.replace(identity, signature=encode_base64url(signature))
        return params | {"device": msgspec.to_builtins(signed)}


class Introduction:
    """Says in `connect` who we are and which device this is, and proves it.

    `gateway` is the name under which the memory keeps what belongs to this gateway.
    """

    def __init__(self, memory: ClientMemory, gateway: str) -> None:
        self._memory = memory
        self._gateway = gateway

    def __call__(self, params: Json, challenge: Json) -> Json:
        client = params["client"] | {
            "id": "openclaw-tui", "mode": "ui", "version": __version__, "platform": sys.platform,
        }  # fmt: skip
        params = params | {"client": client}
        token = self._memory.device_token(self._gateway)
        if token is not None:
            params = params | {"auth": (params.get("auth") or {}) | {"deviceToken": token}}
        device = Device(self._memory.device_seed(new_seed()))
        return device.sign(
            params, nonce=str(challenge.get("nonce") or ""), signed_at_ms=int(challenge.get("ts") or 0)
        )

    def keep_token(self, hello: Json) -> None:
        """Remember what the gateway gave this device, so that it needs no other secret next time."""
        token = (hello.get("auth") or {}).get("deviceToken")
        if isinstance(token, str):
            self._memory.remember_device_token(self._gateway, token)
