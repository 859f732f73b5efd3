"""Device identity: is the key behind a `connect` really there, and did it sign this very handshake?

A device is an Ed25519 key. Its id is a hash of the key, and its signature covers the
challenge of this connection, so that nothing of it can be used twice. A device that
was not verified here does not exist for anybody else. What a verified device may do
is decided in `auth` and `pairing`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import string
from typing import Final

from msgspec import Struct

from openclaw.protocol.connect import ConnectParams, DeviceIdentity
from openclaw.protocol.errors import INVALID_REQUEST, ErrorShape

# Clients sign the time of our own challenge, so the window need only cover a slow handshake.
SIGNATURE_WINDOW_MS: Final = 120_000
PUBLIC_KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64

# Points of small order, in every spelling without the sign: anybody can make a signature for such a key.
_WEAK_KEYS: Final = frozenset(
    bytes.fromhex(key)
    for key in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)
_BASE64URL: Final = frozenset(string.ascii_letters + string.digits + "-_")
_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class VerifiedDevice(Struct, frozen=True):
    """A device that has proved that it holds its key, on this connection."""

    device_id: str
    public_key: str


class DeviceRefused(Struct, frozen=True):
    """The claim does not hold. Not a wrong guess: no secret was looked at."""

    error: ErrorShape


def verify_device(
    device: DeviceIdentity, params: ConnectParams, *, nonce: str, now_ms: int
) -> VerifiedDevice | DeviceRefused:
    """Check a device's claim against the challenge `nonce` of this connection (RPC-1).

    The first use loads a cryptography library, so call it off the event loop.
    """
    key = decode_base64url(device.public_key, PUBLIC_KEY_BYTES)
    if key is None or _is_weak(key):
        return _refuse("device public key invalid", "PUBLIC_KEY_INVALID", "device-public-key")
    if not _same(device_id_of(key), device.id):
        return _refuse("device identity mismatch", "DEVICE_ID_MISMATCH", "device-id-mismatch")
    if abs(now_ms - device.signed_at) > SIGNATURE_WINDOW_MS:
        return _refuse("device signature expired", "SIGNATURE_EXPIRED", "device-signature-stale")
    if device.nonce is None:
        return _refuse("device nonce required", "NONCE_REQUIRED", "device-nonce-missing")
    if not _same(device.nonce, nonce):
        return _refuse("device nonce mismatch", "NONCE_MISMATCH", "device-nonce-mismatch")
    signature = decode_base64url(device.signature, SIGNATURE_BYTES)
    if signature is None or not _is_signed(key, signature, signed_texts(device, params)):
        return _refuse("device signature invalid", "SIGNATURE_INVALID", "device-signature")
    return VerifiedDevice(device.id, device.public_key)


def device_id_of(public_key: bytes) -> str:
    """The name of a key: SHA-256 of its raw bytes, in lower-case hexadecimal digits."""
    return hashlib.sha256(public_key).hexdigest()


def signed_texts(device: DeviceIdentity, params: ConnectParams) -> tuple[str, str]:
    """What a client may have signed: version 3 names platform and family as well, version 2 does not."""
    client = params.client
    parts = (
        device.id, client.id, client.mode, params.role, ",".join(params.scopes), str(device.signed_at),
        _signed_token(params), device.nonce or "",
    )  # fmt: skip
    made_by = (normal_label(client.platform), normal_label(client.device_family))
    return "|".join(("v3", *parts, *made_by)), "|".join(("v2", *parts))


def normal_label(text: str | None) -> str:
    """A platform or a device family as it is signed and compared: trimmed, ASCII letters in lower case."""
    return (text or "").strip().translate(_LOWER)


def decode_base64url(text: str, size: int) -> bytes | None:
    """Exactly `size` bytes from their one spelling in base64url without padding; None for anything else."""
    if not _BASE64URL.issuperset(text):
        return None
    try:
        decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        return None
    return decoded if len(decoded) == size and encode_base64url(decoded) == text else None


def encode_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _signed_token(params: ConnectParams) -> str:
    auth = params.auth
    offered = (auth.token, auth.device_token, auth.bootstrap_token) if auth is not None else ()
    return next((token for token in offered if token is not None), "")


def _is_weak(key: bytes) -> bool:
    return key[:-1] + bytes((key[-1] & 0x7F,)) in _WEAK_KEYS


def _is_signed(key: bytes, signature: bytes, texts: tuple[str, ...]) -> bool:
    # Imported here: only a gateway that meets a device pays for the library.
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    public_key = Ed25519PublicKey.from_public_bytes(key)
    for text in texts:
        try:
            public_key.verify(signature, text.encode("utf-8", "surrogatepass"))
        except InvalidSignature:
            continue
        return True
    return False


def _same(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass"))


def _refuse(message: str, code: str, reason: str) -> DeviceRefused:
    return DeviceRefused(
        ErrorShape(INVALID_REQUEST, message, details={"code": f"DEVICE_AUTH_{code}", "reason": reason})
    )
