"""`openclaw logs --events`: starts, stops, crashes and recoveries, from the gateway or from its store."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime
from typing import Any

from openclaw.cli.client import GatewayClient
from openclaw.cli.failures import GatewayClosed, GatewayTimeout, GatewayUnreachable
from openclaw.cli.place import URL_NAME, Flags, find_place
from openclaw.cli.render import note, print_json, say
from openclaw.domain.terminaltext import one_line
from openclaw.protocol.scopes import ADMIN

MOST = 500
Json = dict[str, Any]


def show_events(flags: Flags, timeout_s: float, limit: int, as_json: bool) -> None:
    """Ask the gateway; without one, and when none was named, look into the store of this machine."""
    events = _events(flags, timeout_s, min(limit, MOST))
    if as_json:
        print_json(events)
        return
    for event in events:
        at = datetime.fromtimestamp(event["at"] / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        say(f"{at} {event['kind']:8} {one_line(event['detail'])}")
    if not events:
        note("Nothing has happened yet.")


def _events(flags: Flags, timeout_s: float, limit: int) -> list[Json]:
    place = find_place(flags, os.environ, tolerate_invalid=True)
    try:
        with GatewayClient(place, [ADMIN], connect_timeout_s=timeout_s) as client:
            told: list[Json] = client.call("diagnostics.list", {"limit": limit}, timeout_s)["events"]
            return told
    except (GatewayUnreachable, GatewayClosed, GatewayTimeout):
        named = flags.url is not None or bool(os.environ.get(URL_NAME, "").strip())
        if named or place.remote:
            raise
        return asyncio.run(_from_store(limit))


async def _from_store(limit: int) -> list[Json]:
    from openclaw.app.offline import offline_store
    from openclaw.config.load import config_path, load
    from openclaw.store.diagnostics import Diagnostics

    env = dict(os.environ)
    config = load(config_path(env), env).config
    async with offline_store(config, env, doing="looking at its events") as database:
        found = await Diagnostics(database).newest(limit)
    return [{"at": one.at, "kind": one.kind, "detail": one.detail} for one in found]
