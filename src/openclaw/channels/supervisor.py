"""Keeps the connectors of the configuration running: started, watched, started again, stopped.

A connector that fails is started again after a pause that grows; what went wrong stands in
`status`. It never takes another connector or the gateway with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from openclaw.channels.base import Complains, Connector, Door, Down
from openclaw.channels.postman import Postman, Spawn
from openclaw.config.channels_section import AccountConfig, ChannelConfig
from openclaw.config.schema import Config
from openclaw.domain.groups import fold_word, normalise_account_id
from openclaw.engine.ports import Clock
from openclaw.errors import InvalidRequest, OpenClawError

log = logging.getLogger("openclaw.channels")
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0
SETTLED_AFTER_S = 60.0  # a connector that ran for so long begins with the short pause again
DEFAULTS = "defaults"

State = Literal["starting", "running", "waiting", "refused", "stopped"]


class Wanted(Struct, frozen=True):
    """One account that the configuration asks for."""

    channel: str
    account_id: str
    options: Mapping[str, Any]


class Health(Struct):
    """How a connector does, for `status`."""

    channel: str
    account_id: str
    state: State = "starting"
    since_ms: int = 0
    restarts: int = 0
    error: str | None = None
    credentials_refreshed_at: int | None = None


Build = Callable[[Wanted], Awaitable[Connector]]


class Supervisor:
    def __init__(self, build: Build, door: Door, postman: Postman, clock: Clock, spawn: Spawn) -> None:
        self._build = build
        self._door = door
        self._postman = postman
        self._clock = clock
        self._spawn = spawn
        self._running: dict[tuple[str, str], tuple[Wanted, asyncio.Task[None]]] = {}
        self._health: dict[tuple[str, str], Health] = {}
        self._connectors: dict[tuple[str, str], Connector] = {}

    async def follow(self, config: Config) -> None:
        """Run exactly what this configuration asks for; accounts whose options changed are restarted."""
        wanted = {(one.channel, one.account_id): one for one in wanted_accounts(config)}
        for place, (one, _task) in tuple(self._running.items()):
            if wanted.get(place) != one:
                await self._stop(place)
        for place, one in wanted.items():
            if place not in self._running:
                self._health[place] = Health(*place, since_ms=self._clock.now_ms())
                self._running[place] = (one, self._spawn(self._keep_running(one)))

    async def _stop(self, place: tuple[str, str]) -> None:
        _, task = self._running.pop(place)
        task.cancel()
        await asyncio.wait({task})
        self._health.pop(place, None)

    async def stop(self) -> None:
        """Receive nothing more. What was handed in is safe, what waits is sent after the next start."""
        for place in tuple(self._running):
            await self._stop(place)

    def health(self) -> tuple[Health, ...]:
        """Every account, in order of channel and account."""
        for place, connector in self._connectors.items():
            if place in self._health:
                self._health[place].credentials_refreshed_at = connector.credentials_refreshed_at
                if isinstance(connector, Complains):
                    self._health[place].error = connector.complaint
        return tuple(self._health[place] for place in sorted(self._health))

    def connector(self, channel: str, account_id: str | None) -> Connector | None:
        return self._connectors.get((channel, account_id or "default"))

    # -- one connector -------------------------------------------------------------------------

    async def _keep_running(self, wanted: Wanted) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            began_s = self._clock.monotonic()
            problem, least_s = await self._run_once(wanted)
            if self._clock.monotonic() - began_s > SETTLED_AFTER_S:
                pause_s = FIRST_PAUSE_S
            wait_s = max(pause_s, least_s)
            self._tell(wanted, "waiting", problem)
            log.error(
                "%s (%s): %s. Trying again in %.0f s.", wanted.channel, wanted.account_id, problem, wait_s
            )
            await self._clock.sleep(wait_s)
            pause_s = min(LONGEST_PAUSE_S, pause_s * 2)
            self._health[wanted.channel, wanted.account_id].restarts += 1

    async def _run_once(self, wanted: Wanted) -> tuple[str, float]:
        """Run until it ends; what went wrong and the least pause."""
        place = (wanted.channel, wanted.account_id)
        connector: Connector | None = None
        try:
            connector = await self._build(wanted)
            self._connectors[place] = connector
            self._postman.attach(connector)
            self._tell(wanted, "running", None)
            await connector.run(self._door)
            return "the connector ended by itself", 0.0
        except Down as down:
            return down.message, down.wait_s
        except InvalidRequest as error:
            # A mistake of the configuration is not mended by trying again soon.
            return error.message, LONGEST_PAUSE_S
        except OpenClawError as error:
            return error.message, 0.0
        except Exception as error:
            log.exception("the connector %s (%s) failed", *place)
            return f"{type(error).__name__}: {error}", 0.0
        finally:
            if connector is not None:
                self._postman.detach(connector)
                self._connectors.pop(place, None)

    def _tell(self, wanted: Wanted, state: State, error: str | None) -> None:
        health = self._health[wanted.channel, wanted.account_id]
        health.state, health.error, health.since_ms = state, error, self._clock.now_ms()


def wanted_accounts(config: Config) -> tuple[Wanted, ...]:
    """The accounts to run: each that is listed, else the one that the channel's own keys describe."""
    found = []
    for name, section in config.channels.items():
        channel = fold_word(name)
        if channel == DEFAULTS or section.enabled is False:
            continue
        listed: Mapping[str, AccountConfig] = section.accounts or {"default": AccountConfig()}
        for account_name, account in listed.items():
            if account.enabled is False or not _has_options(section, account):
                continue
            options = {**section.extra, **account.extra}
            found.append(Wanted(channel, normalise_account_id(account_name), options))
    return tuple(found)


def _has_options(section: ChannelConfig, account: AccountConfig) -> bool:
    """Rules alone do not make a channel: a connector of another process may come for them."""
    return bool(section.extra or account.extra or section.enabled)
