"""`hello-ok`: what a client learns once it is in.

Typed, and cut to what its scopes allow: paths only for admins, session keys in
the health snapshot only for readers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from msgspec import Struct

from openclaw.protocol.auth import AuthMethod, AuthMode, AuthOk
from openclaw.protocol.connect import NODE
from openclaw.protocol.events import EVENTS
from openclaw.protocol.frames import StateVersion
from openclaw.protocol.methods import METHODS
from openclaw.protocol.nodes import NODE_METHODS
from openclaw.protocol.scopes import ADMIN, READ, holds_scope

Json = dict[str, Any]
TICK_INTERVAL_MS: Final = 30_000
MAX_BUFFERED_BYTES: Final = 52_428_800
# What a client without read may know about the gateway's health.
_PUBLIC_HEALTH: Final = ("ok", "ts", "durationMs")


class _Part(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base: optional fields that are None are left out."""


class ServerInfo(_Part, frozen=True, kw_only=True):
    version: str
    conn_id: str
    build_id: str | None = None
    boot_id: str | None = None


class Features(_Part, frozen=True, kw_only=True):
    """Clients call some methods only when they stand here, so only what exists is listed."""

    methods: tuple[str, ...]
    events: tuple[str, ...]
    capabilities: tuple[str, ...] = ()


class SessionDefaults(Struct, frozen=True, kw_only=True, rename="camel"):
    default_agent_id: str
    main_key: str
    main_session_key: str
    scope: Literal["per-sender", "global"]
    model_configured: bool
    ownership: str = "sole"
    selection_required: bool = False


class Snapshot(_Part, frozen=True, kw_only=True):
    presence: list[Json]
    health: Json
    state_version: StateVersion
    uptime_ms: int
    session_defaults: SessionDefaults
    auth_mode: AuthMode
    config_path: str | None = None
    state_dir: str | None = None


class GrantedAuth(_Part, frozen=True, kw_only=True):
    method: AuthMethod
    role: str
    scopes: tuple[str, ...]
    device_token: str | None = None
    issued_at_ms: int | None = None


class AttachmentPolicy(_Part, frozen=True, kw_only=True):
    max_bytes: int
    max_image_bytes: int


class Policy(_Part, frozen=True, kw_only=True):
    max_payload: int
    max_buffered_bytes: int
    tick_interval_ms: int
    attachments: AttachmentPolicy


class HelloOk(_Part, frozen=True, kw_only=True, tag_field="type", tag="hello-ok"):
    protocol: int
    server: ServerInfo
    features: Features
    snapshot: Snapshot
    auth: GrantedAuth
    policy: Policy


ATTACHMENTS: Final = AttachmentPolicy(max_bytes=19_464_192, max_image_bytes=6_291_456)


def hello_ok(
    *,
    protocol: int,
    server: ServerInfo,
    auth: AuthOk,
    presence: list[Json],
    health: Json,
    state_version: StateVersion,
    uptime_ms: int,
    session_defaults: SessionDefaults,
    auth_mode: AuthMode,
    max_payload: int,
    methods: Iterable[str] | None = None,
    config_path: str | None = None,
    state_dir: str | None = None,
    capabilities: tuple[str, ...] = (),
) -> HelloOk:
    """The answer to `connect` for this client (RPC-1).

    `max_payload` is the frame limit of this connection. Paths are shown to
    admins; a client without read gets no session keys.
    """
    is_admin = holds_scope(auth.scopes, ADMIN)
    open_to_it: Iterable[str] = NODE_METHODS if auth.role == NODE else METHODS
    if not holds_scope(auth.scopes, READ):
        health = {name: health[name] for name in _PUBLIC_HEALTH if name in health}
    return HelloOk(
        protocol=protocol,
        server=server,
        features=Features(
            methods=tuple(open_to_it if methods is None else methods),
            events=tuple(EVENTS),
            capabilities=capabilities,
        ),
        snapshot=Snapshot(
            presence=presence,
            health=health,
            state_version=state_version,
            uptime_ms=uptime_ms,
            session_defaults=session_defaults,
            auth_mode=auth_mode,
            config_path=config_path if is_admin else None,
            state_dir=state_dir if is_admin else None,
        ),
        auth=GrantedAuth(
            method=auth.method,
            role=auth.role,
            scopes=auth.scopes,
            device_token=auth.token.value if auth.token else None,
            issued_at_ms=auth.token.issued_at_ms if auth.token else None,
        ),
        policy=Policy(
            max_payload=max_payload,
            max_buffered_bytes=MAX_BUFFERED_BYTES,
            tick_interval_ms=TICK_INTERVAL_MS,
            attachments=ATTACHMENTS,
        ),
    )
