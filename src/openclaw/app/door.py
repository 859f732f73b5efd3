"""The door of a gateway as the configuration asks for it: which secret opens it, and where it stands.

A gateway that others on the network could reach is refused without a secret; that
check stands here, before a socket is bound.
"""

from __future__ import annotations

from msgspec import Struct

from openclaw.config.gateway_section import GatewayConfig
from openclaw.domain.hosts import is_loopback
from openclaw.engine.ports import Clock, Ids
from openclaw.errors import ConfigInvalid
from openclaw.gateway.doorkeeper import Doorkeeper, DoorSettings
from openclaw.gateway.hub import Hub
from openclaw.protocol.auth import AuthMode, digest_secret
from openclaw.protocol.guesses import GuessLimits
from openclaw.store.database import Database
from openclaw.store.devices import Devices

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"


class Lock(Struct, frozen=True):
    """How clients prove themselves; without a digest only tokens of paired devices do."""

    mode: AuthMode
    secret_digest: bytes | None


def choose_lock(gateway: GatewayConfig) -> Lock:
    """The secret that the mode in force asks for."""
    auth = gateway.auth
    mode: AuthMode = auth.mode_in_force
    secret = {"token": auth.token, "password": auth.password, "none": None}[mode]
    return Lock(mode, digest_secret(secret) if secret else None)


def choose_host(gateway: GatewayConfig) -> str:
    """The address to listen on. Raises ConfigInvalid when others could reach it and nothing locks it."""
    host = LOOPBACK if gateway.bind == "loopback" else (gateway.custom_bind_host or EVERYWHERE)
    if not is_loopback(host) and choose_lock(gateway).secret_digest is None:
        raise ConfigInvalid(
            f'gateway.bind "{gateway.bind}" lets other machines reach {host}, and no secret is set: '
            'set gateway.auth.token (or gateway.auth.password), or gateway.bind to "loopback"'
        )
    return host


def build_door(gateway: GatewayConfig, database: Database, hub: Hub, clock: Clock, ids: Ids) -> Doorkeeper:
    lock, limits = choose_lock(gateway), gateway.auth.rate_limit
    settings = DoorSettings(
        lock.mode,
        lock.secret_digest,
        frozenset(gateway.control_ui.allowed_origins),
        GuessLimits(limits.max_attempts, limits.window_ms, limits.lockout_ms, limits.exempt_loopback),
    )
    return Doorkeeper(Devices(database), settings, hub, clock, ids)
