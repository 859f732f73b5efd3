"""Who is connected right now: one entry per client, and a count of changes that clients compare.

Derived from the open connections whenever somebody asks, so it cannot go stale. A
burst of clients is told once, a moment later: telling every arrival to everybody would
cost the square of their number.
"""

from __future__ import annotations

import asyncio
import heapq
import platform
import socket
from collections.abc import Callable
from typing import Any

from openclaw.engine.ports import Clock
from openclaw.gateway.client import Client
from openclaw.gateway.hub import Hub
from openclaw.protocol.auth import AuthOk
from openclaw.protocol.events import PresenceChanged
from openclaw.protocol.frames import StateVersion

Json = dict[str, Any]
MAX_ENTRIES = 200  # the newest ones; more than that is a number, not a list
GATHER_S = 0.25
_MAX_FIELD_CHARS = 128


class Presence:
    """The entries of all open clients and of the gateway itself. `version` grows with every change."""

    def __init__(self, hub: Hub, clock: Clock, *, version: str, instance_id: str) -> None:
        self._hub = hub
        self._clock = clock
        self._started_ms = clock.now_ms()
        self._about_gateway = {"version": version, "instanceId": instance_id}
        self._news = asyncio.Event()
        self.version = 1
        hub.on_members_changed(self._note)

    def entries(self, *, joining: Json | None = None) -> list[Json]:
        """The gateway, then its clients, newest first; `joining` is one that is not in the hub yet."""
        newest = heapq.nlargest(MAX_ENTRIES, self._hub.clients(), key=_connected_ms)
        shown = [] if joining is None else [joining]
        shown += map(entry_of, newest)
        return [self._own_entry(), *shown[:MAX_ENTRIES]]

    def _note(self) -> None:
        self.version += 1
        self._news.set()

    async def tell_forever(self, health_version: Callable[[], int]) -> None:
        """Send a `presence` event whenever somebody came or went."""
        while True:
            await self._news.wait()
            await self._clock.sleep(GATHER_S)
            self._news.clear()
            versions = StateVersion(presence=self.version, health=health_version())
            self._hub.broadcast("presence", PresenceChanged(presence=self.entries()), versions)

    def _own_entry(self) -> Json:
        host, about = socket.gethostname(), self._about_gateway
        return {
            "host": host,
            "version": about["version"],
            "platform": f"{platform.system().lower()} {platform.release()}",
            "mode": "gateway",
            "reason": "self",
            "text": f"Gateway: {host} · app {about['version']} · mode gateway · reason self",
            "ts": self._started_ms,
            "instanceId": about["instanceId"],
        }


def entry_of(client: Client, auth: AuthOk | None = None) -> Json:
    """A client as others see it. `auth` says what it was granted when its handshake is not over."""
    connection = client.connection
    granted = connection if auth is None else auth
    info = connection.client
    assert info is not None, "a client is shown once it has introduced itself"
    host, mode = _cut(info.display_name or info.id), info.mode
    entry: Json = {
        "host": host,
        "ip": client.peer_ip,
        "clientId": info.id,
        "version": _cut(info.version),
        "platform": _cut(info.platform),
        "mode": mode,
        "reason": "connect",
        "text": f"Client: {host} · app {_cut(info.version)} · mode {mode}",
        "ts": _connected_ms(client),
        "instanceId": _cut(info.instance_id or connection.conn_id),
        "deviceId": granted.device_id,
        "deviceFamily": _cut(info.device_family) if info.device_family else None,
        "timeZone": _cut(info.time_zone) if info.time_zone else None,
        "roles": [granted.role],
        "scopes": list(granted.scopes),
    }
    return {name: value for name, value in entry.items() if value is not None}


def _connected_ms(client: Client) -> int:
    """When the socket was opened: its handshake has a fixed time from then on."""
    connection = client.connection
    return connection.handshake_deadline_ms - connection.settings.handshake_timeout_ms


def _cut(text: str) -> str:
    """Names come from strangers and go to everybody."""
    return text[:_MAX_FIELD_CHARS]
