"""What the gateway knows about itself, put together: presence, health, config, logs, figures, events.

Part of the composition root; `app.gateway` gives the parts that it has made.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import msgspec

from openclaw import __version__
from openclaw.app.engine import Engine, Ground
from openclaw.app.logfile import LogFile
from openclaw.config.load import LoadedConfig, state_dir
from openclaw.config.reload import ReloadAction
from openclaw.engine.waking import Waking
from openclaw.gateway.about import About, ChannelsView
from openclaw.gateway.configdoor import ConfigDoor
from openclaw.gateway.handlers.system import health_now
from openclaw.gateway.healthwatch import HealthWatch
from openclaw.gateway.hub import Hub
from openclaw.gateway.metrics import Metrics
from openclaw.gateway.presence import Presence
from openclaw.gateway.services import GatewayServices
from openclaw.gateway.writebudget import WriteBudget
from openclaw.store.costs import Costs
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.waking import SystemEvents, count_waiting

LOGS = "logs"
LOGGERS = ("openclaw", "aiohttp", "asyncio")  # also what goes wrong below our own code


def build_about(
    ground: Ground,
    engine: Engine,
    hub: Hub,
    metrics: Metrics,
    *,
    services: Callable[[], GatewayServices],
    apply: Callable[[LoadedConfig, ReloadAction], None],
    channels: Callable[[], ChannelsView],
) -> About:
    """Everything but the tasks; see `tell_about`."""
    clock, database = ground.clock, ground.database

    async def health() -> dict[str, Any]:
        told: dict[str, Any] = msgspec.to_builtins(await health_now(services()))
        return told

    async def queued() -> float:
        return float(await database.read(count_waiting))

    metrics.ask("openclaw_active_runs", "Turns that run now.", lambda: len(engine.workers.active_runs()))
    metrics.ask("openclaw_clients", "Clients that are connected.", lambda: len(hub.clients()))
    metrics.count("openclaw_queue_depth", "Inputs that wait for a turn.", queued)
    if isinstance(database, SqliteDatabase):
        metrics.ask("openclaw_store_commits", "Commits since the start.", lambda: database.commits)
        metrics.ask("openclaw_store_units", "Units of work that these carried.", lambda: database.units)
    return About(
        presence=Presence(hub, clock, version=__version__, instance_id=ground.ids.uuid()),
        health=HealthWatch(health, hub, clock),
        config=ConfigDoor(ground.in_force().path, ground.env, ground.in_force, apply),
        writes=WriteBudget(clock),
        waking=Waking(
            SystemEvents(database), engine.workers, ground.source.current, ground.secrets, clock, ground.ids,
            ground.emit,
        ),
        costs=Costs(database),
        metrics=metrics,
        logs=state_dir(ground.env) / LOGS,
        channels=channels,
    )  # fmt: skip


def tell_about(about: About, spawn: Callable[..., object]) -> None:
    """Begin to tell clients who comes and goes, and how the gateway does."""
    spawn(about.presence.tell_forever(lambda: about.health.version))
    spawn(about.health.tell_forever(lambda: about.presence.version))
    spawn(about.metrics.watch_lag())


def keep_log(stack: AsyncExitStack, env: Mapping[str, str], secrets: Callable[[], frozenset[str]]) -> None:
    """Write the gateway's log into files of its state directory until the stack is left."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    handler = LogFile(state_dir(env) / LOGS, secrets)
    handler.note(f"gateway {__version__} starts")
    for logger in loggers:
        logger.addHandler(handler)

    async def close() -> None:
        for logger in loggers:
            logger.removeHandler(handler)
        handler.note(f"gateway {__version__} stops")
        await asyncio.to_thread(handler.close)

    stack.push_async_callback(close)
