"""A device for tests: a real Ed25519 key that signs handshakes as the clients do."""

from __future__ import annotations

import hashlib
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from openclaw.protocol.device import encode_base64url

Json = dict[str, Any]


class TestDevice:
    """`seed` makes the same device again."""

    __test__ = False

    def __init__(self, seed: int = 1) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"device %d" % seed).digest())
        raw = self._key.public_key().public_bytes_raw()
        self.public_key = encode_base64url(raw)
        self.device_id = hashlib.sha256(raw).hexdigest()

    def sign(self, params: Json, nonce: str, signed_at: int, version: int = 3) -> Json:
        """The parameters of a `connect` with this device in them, signed."""
        client, auth = params["client"], params.get("auth") or {}
        token = next((auth[name] for name in ("token", "deviceToken", "bootstrapToken") if name in auth), "")
        parts = [
            f"v{version}", self.device_id, client["id"], client["mode"], params.get("role", "operator"),
            ",".join(params.get("scopes", [])), str(signed_at), token,
        ]  # fmt: skip
        if version > 1:
            parts.append(nonce)
        if version > 2:
            parts += [client["platform"].strip().lower(), client.get("deviceFamily", "").strip().lower()]
        identity = {
            "id": self.device_id,
            "publicKey": self.public_key,
            "signature": encode_base64url(self._key.sign("|".join(parts).encode())),
            "signedAt": signed_at,
            "nonce": nonce,
        }
        return params | {"device": identity}
