"""The parameters of `connect`, and what can be decided from them alone.

Shapes, protocol versions and roles. Whether the client is who it says is decided
in `auth`; what it is told afterwards is in `hello`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from openclaw.errors import InvalidRequest
from openclaw.protocol.intake import contains_nul
from openclaw.protocol.violations import describe_violation

PROTOCOL_VERSION: Final = 4
MINIMUM_PROBE_PROTOCOL: Final = 3

ClientId = Literal[
    "webchat-ui",
    "openclaw-control-ui",
    "openclaw-browser-copilot",
    "openclaw-tui",
    "webchat",
    "cli",
    "gateway-client",
    "openclaw-macos",
    "openclaw-linux",
    "openclaw-ios",
    "openclaw-watchos",
    "openclaw-android",
    "node-host",
    "openclaw-worker",
    "test",
    "fingerprint",
    "openclaw-probe",
]
ClientMode = Literal["webchat", "cli", "ui", "backend", "node", "worker", "probe", "test"]
Role = Literal["operator", "node"]
OPERATOR: Final[Role] = "operator"
NODE: Final[Role] = "node"

_Text = Annotated[str, Meta(min_length=1, max_length=512)]
_Secret = Annotated[str, Meta(max_length=4096)]
_Version = Annotated[int, Meta(ge=1, le=1_000_000)]
_Millis = Annotated[int, Meta(ge=0, le=2**53 - 1)]
# Bounded lists keep what a connection remembers about its client small.
_Names = Annotated[tuple[Annotated[str, Meta(max_length=256)], ...], Meta(max_length=256)]


class ClosedObject(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Base of everything that a client sends: unknown properties are refused by name (RPC-2)."""


class ClientInfo(ClosedObject, frozen=True, kw_only=True):
    id: ClientId
    version: _Text
    platform: _Text
    mode: ClientMode
    display_name: _Text | None = None
    build_id: Annotated[str, Meta(min_length=1, max_length=96)] | None = None
    device_family: _Text | None = None
    model_identifier: _Text | None = None
    time_zone: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    instance_id: _Text | None = None


class DeviceIdentity(ClosedObject, frozen=True, kw_only=True):
    """A device's key and its signature over the challenge: a claim, until `device` has verified it."""

    id: _Text
    public_key: _Text
    signature: _Text
    signed_at: _Millis
    nonce: _Text | None = None


class AuthSecrets(ClosedObject, frozen=True, kw_only=True):
    """What a client offers as proof. The shared secret is looked for in `token` and in `password`."""

    token: _Secret | None = None
    bootstrap_token: _Secret | None = None
    device_token: _Secret | None = None
    password: _Secret | None = None
    approval_runtime_token: _Secret | None = None
    agent_runtime_identity_token: _Secret | None = None

    def __repr__(self) -> str:
        # These values must never reach a log or a traceback.
        return "AuthSecrets(…)"


class ConnectParams(ClosedObject, frozen=True, kw_only=True):
    min_protocol: _Version
    max_protocol: _Version
    client: ClientInfo
    caps: _Names = ()
    commands: _Names = ()
    permissions: dict[str, bool] | None = None
    path_env: Annotated[str, Meta(max_length=16_384)] | None = None
    role: Annotated[str, Meta(min_length=1, max_length=64)] = OPERATOR
    scopes: _Names = ()
    locale: _Text | None = None
    user_agent: Annotated[str, Meta(max_length=2048)] | None = None
    device: DeviceIdentity | None = None
    auth: AuthSecrets | None = None
    model_catalog: dict[str, Any] | None = None
    computer_use: Any = None
    worker_runs: Any = None


class ProtocolMismatch(InvalidRequest):
    """protocol mismatch"""


_decode = msgspec.json.Decoder(ConnectParams).decode


def decode_connect(raw: Raw) -> ConnectParams:
    """The parameters of the first request, or InvalidRequest with the sentence clients know (RPC-1)."""
    if contains_nul(bytes(raw)):
        raise InvalidRequest("invalid connect params: text must not contain NUL characters; remove them")
    try:
        return _decode(raw or b"{}")
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"invalid connect params: {describe_violation(error)}")


def negotiate_protocol(params: ConnectParams) -> int:
    """The version both sides speak; probes and nodes may still be one behind. Raises ProtocolMismatch."""
    if params.min_protocol <= PROTOCOL_VERSION <= params.max_protocol:
        return PROTOCOL_VERSION
    may_be_older = params.client.mode == "probe" or params.role == NODE
    if may_be_older and params.min_protocol <= MINIMUM_PROBE_PROTOCOL <= params.max_protocol:
        return MINIMUM_PROBE_PROTOCOL
    raise ProtocolMismatch(
        code="PROTOCOL_MISMATCH",
        client_min_protocol=params.min_protocol,
        client_max_protocol=params.max_protocol,
        expected_protocol=PROTOCOL_VERSION,
        minimum_probe_protocol=MINIMUM_PROBE_PROTOCOL,
    )


def check_role(params: ConnectParams) -> Role:
    """The role as one of the two known words. Raises InvalidRequest."""
    if params.role == OPERATOR:
        return OPERATOR
    if params.role == NODE:
        return NODE
    raise InvalidRequest("invalid role")
