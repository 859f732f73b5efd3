"""Which connectors there are: the built-in ones, and those that installed packages offer.

A connector is imported when the configuration names it, never before. A package offers one
through the entry point group `openclaw.channels`: its name is the channel, its value a
function like `Build`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from openclaw.channels.base import Connector
from openclaw.channels.webhooks import Webhooks
from openclaw.engine.ports import Clock
from openclaw.errors import InvalidRequest
from openclaw.store.connectors import ConnectorNotes

GROUP = "openclaw.channels"
BUILT_IN: Mapping[str, str] = {
    "telegram": "openclaw.channels.telegram.connector:build",
    "matrix": "openclaw.channels.matrix.connector:build",
}


Welcomes = Callable[[str, str, bool], Awaitable[bool]]  # inviter, room, whether it is a direct chat


async def _nobody(_inviter: str, _room_id: str, _direct: bool) -> bool:
    return False


class Ground(Struct, frozen=True):
    """What a connector is given. `options` are its own keys of the configuration, the account's first."""

    channel: str
    account_id: str
    options: Mapping[str, Any]
    http: aiohttp.ClientSession
    clock: Clock
    notes: ConnectorNotes
    # The names of chat commands with their descriptions, for platforms that show a menu.
    commands: tuple[tuple[str, str], ...] = ()
    # Where it may open an address on the gateway's port, for platforms that post.
    webhooks: Webhooks = msgspec.field(default_factory=Webhooks)
    # Whether an invitation may be taken up, for platforms where others bring the agent into a room.
    welcomes: Welcomes = _nobody


Build = Callable[[Ground], Awaitable[Connector]]


def find_connector(channel: str) -> Build:
    """The function that builds a channel's connector; InvalidRequest that names what is missing."""
    place = BUILT_IN.get(channel)
    if place is None:
        offered = [point for point in entry_points(group=GROUP) if point.name == channel]
        if not offered:
            known = ", ".join(sorted({*BUILT_IN, *(point.name for point in entry_points(group=GROUP))}))
            raise InvalidRequest(
                f"channels.{channel}: no connector of this name is installed; known: {known}. "
                "One that lives in another process attaches itself with channels.attach."
            )
        place = offered[0].value
    module, _, name = place.partition(":")
    try:
        build: Build = getattr(import_module(module), name)
    except ImportError as error:
        raise InvalidRequest(
            f"channels.{channel}: {error}. Its libraries are an extra: pip install 'openclaw[{channel}]'"
        ) from error
    return build
