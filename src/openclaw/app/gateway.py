"""A whole gateway: the file that chooses implementations and wires them together.

Start order: configuration, store, engine, sockets, recovery. Stop order: sockets
say goodbye, running turns get a short time to finish, what is left stays in the
rows and is resumed at the next start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
from aiohttp import web
from msgspec import Struct

from openclaw.app.about import keep_log, tell_about
from openclaw.app.automation import build_cron
from openclaw.app.channels import build_channels, channel_lines
from openclaw.app.commands import build_commands
from openclaw.app.diary import Diary
from openclaw.app.discovery import find_models
from openclaw.app.door import choose_host
from openclaw.app.engine import Ground, build_engine
from openclaw.app.hooks import find_hooks, stays_here
from openclaw.app.housekeeping import Housekeeper
from openclaw.app.httpdoor import http_settings
from openclaw.app.services import Parts, build_services
from openclaw.app.settings import SettingsSource
from openclaw.app.system import RandomIds, SystemClock, Tasks
from openclaw.app.upkeep import ground_of
from openclaw.config import reload
from openclaw.config.credentials import secrets
from openclaw.config.load import LoadedConfig, state_dir
from openclaw.config.schema import Config
from openclaw.engine.contexts import ContextCache
from openclaw.engine.events import EngineEvent
from openclaw.engine.hooks import Hooks
from openclaw.engine.notices import Notices
from openclaw.engine.ports import Clock
from openclaw.engine.turns import Turns
from openclaw.engine.workers import Workers
from openclaw.errors import OpenClawError, Unavailable
from openclaw.gateway.http.follow import Followers
from openclaw.gateway.http.guards import LOOPBACK_HOSTS
from openclaw.gateway.hub import Hub
from openclaw.gateway.metrics import Metrics
from openclaw.gateway.server import GatewayServer, ServerSettings
from openclaw.gateway.services import GatewayServices
from openclaw.store.database import Database
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.upkeep import Upkeep

log = logging.getLogger("openclaw")
DATABASE_NAME = "openclaw.sqlite"
DRAIN_S = 5.0


class Announcement(Struct, frozen=True):
    """What a started gateway has to say; the surface that started it prints this."""

    url: str
    http_url: str
    config_path: str
    config_created: bool
    database: str
    model: str
    model_note: str
    warnings: tuple[str, ...]
    agents: tuple[str, ...]
    resumed_runs: int
    woken_sessions: int


class Gateway:
    """A whole gateway in one object: `async with Gateway(...)` starts it, leaving stops it."""

    def __init__(
        self,
        loaded: LoadedConfig,
        env: Mapping[str, str],
        *,
        port: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._loaded = loaded
        self._env = env
        self._port = port if port is not None else loaded.config.gateway.port
        self._clock = clock or SystemClock()
        self._ids = RandomIds()
        self._stack = AsyncExitStack()
        self._source = SettingsSource(loaded.config, env)
        self._secrets = secrets(loaded.config, loaded.referenced_secrets)
        self._recovered = (0, 0)
        self.port = self._port
        self.services: GatewayServices
        self.notices: Notices
        self._hooks: Hooks
        self._diary: Diary | None = None
        self._server: GatewayServer

    async def __aenter__(self) -> Gateway:
        try:
            await self._start()
        except BaseException as error:
            if self._diary is not None and isinstance(error, OpenClawError):
                await self._diary.note("refused", error.message)
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._server.say_goodbye()
        told = "in order"
        try:
            async with asyncio.timeout(DRAIN_S):
                await self.services.workers.drain()
                await self.notices.drain()
        except TimeoutError:
            log.info("some turns are still running; they go on at the next start")
            told = "some turns were still running"
        if self._diary is not None:
            await self._diary.end(told)
        await self._stack.aclose()

    # -- starting ------------------------------------------------------------------------------

    async def _start(self) -> None:
        host = choose_host(self._loaded.config.gateway)
        database = await self._open_database()
        keep_log(self._stack, self._env, self._known_secrets)
        # Tasks end before the store closes; the store closes before the lock is released.
        tasks = await self._stack.enter_async_context(Tasks())
        http = await self._stack.enter_async_context(
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        )
        settings = self._source.current
        hub, followers, metrics = Hub(settings, self._clock), Followers(), Metrics()
        notices = self.notices = Notices(tasks.spawn)
        hooks = self._hooks = Hooks(self._clock.now_ms, lambda scope: stays_here(workers, scope))
        self._stack.push_async_callback(hooks.stop)

        def emit(event: EngineEvent) -> None:
            turns.observe(event)
            notices.observe(event)
            hub.publish(event)
            followers.observe(event)
            channels.observe(event)
            cron.observe(event)
            housekeeper.observe(event)
            metrics.observe(event)
            hooks.observe(event)

        ground = Ground(
            database, self._source, lambda: self._loaded, self._env, self._known_secrets, http, self._clock,
            self._ids, tasks.spawn, emit,
        )  # fmt: skip
        engine = build_engine(ground)
        turns, workers, contexts = engine.turns, engine.workers, engine.contexts
        commands = build_commands(engine, ground, lambda now_ms: channel_lines(channels, now_ms))
        turns.use_commands(commands.read)
        channels, cron = build_channels(engine, ground, hooks), build_cron(engine, ground)
        upkeep = self._upkeep(database, turns, workers, contexts)
        housekeeper = Housekeeper(upkeep, self._clock)
        parts = Parts(hub, followers, metrics, channels, cron, upkeep, self.shown_store)
        self.services = build_services(
            ground, engine, parts, services=lambda: self.services, apply=self._take_config
        )
        await self._follow_hooks()
        await engine.budgets.settle_orphans()
        await commands.recover()
        # Before anybody can send: what is unfinished is known before anything new comes.
        self._recovered = await turns.recover()
        await self._listen(host)
        if self._diary is not None:
            await self._diary.begin(*self._recovered)
        tasks.spawn(engine.watchdog.run_forever())
        tasks.spawn(self._server.tick_forever())
        tasks.spawn(self._look_for_models())
        tell_about(self.services.about, tasks.spawn)
        await channels.start(self._loaded.config, tasks.spawn)
        tasks.spawn(cron.run_forever())
        tasks.spawn(self.services.heartbeats.run_forever())
        tasks.spawn(housekeeper.run_forever())
        if self._loaded.exists:
            tasks.spawn(self._watch_config())
        hooks.tell_startup()

    def _upkeep(self, database: Database, turns: Turns, workers: Workers, contexts: ContextCache) -> Upkeep:
        async def quiesce(session_key: str, whole: bool) -> None:
            """Stop what runs in a session before an erase; where others go on, only the run of the moment."""
            if whole:
                await turns.abort(session_key, reason="erase")
            else:
                await workers.abort(session_key, "erase")

        ground = ground_of(lambda: self._loaded, self._env, database, self.shown_store)
        return Upkeep(database, ground, quiesce=quiesce, forget=contexts.clear)

    def _known_secrets(self) -> frozenset[str]:
        """The secret values of the configuration in force, which no tool result may hold (TRX-11)."""
        return self._secrets

    @property
    def shown_store(self) -> str:
        """Where the state is, for people; never the password of a server."""
        url = self._loaded.config.store.url
        is_file = url is None or url.startswith("sqlite://")
        return str(self.database) if is_file else "PostgreSQL (store.url)"

    @property
    def database(self) -> Path:
        return state_dir(self._env) / DATABASE_NAME

    async def _open_database(self) -> Database:
        url = self._loaded.config.store.url
        busy_s = self._loaded.config.session.write_lock.acquire_timeout_ms / 1000
        database: Database
        if url is None or url.startswith("sqlite://"):
            database = await SqliteDatabase.open(self.database, busy_timeout_s=busy_s)
        else:
            try:
                from openclaw.store.postgres import PostgresDatabase  # its driver is an extra
            except ImportError as error:
                raise Unavailable("store.url: PostgreSQL needs `pip install openclaw[postgres]`") from error
            database = await PostgresDatabase.open(url, busy_timeout_s=busy_s)
        self._stack.push_async_callback(database.close)
        self._diary = Diary(database, self._clock)
        await self._refuse_unimported(database)
        return database

    async def _refuse_unimported(self, database: Database) -> None:
        """Never begin with an empty history beside one that was not imported (DB-6)."""
        from openclaw.app.doctor import refuse_unimported  # doctor opens stores, as this room does

        await refuse_unimported(database, self._loaded.config, self._env)

    async def _listen(self, host: str) -> None:
        config = self._loaded.config
        await self.services.signins.recall(self.services.door.settings.secret_digest)
        self._server = GatewayServer(self.services, self._server_settings(config))
        runner = web.AppRunner(self._server.application(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        try:
            site = web.TCPSite(runner, host, self._port, backlog=512)
            await site.start()
        except OSError as error:
            raise Unavailable(
                f"cannot listen on {host}:{self._port}: {error.strerror or error}. "
                "Another program uses the port; choose one with --port."
            ) from error
        sockets = runner.addresses
        self.port = int(sockets[0][1]) if sockets else self._port
        self.services.signins.name_after(self.port)

    def _server_settings(self, config: Config) -> ServerSettings:
        return ServerSettings(
            auth_mode=self.services.door.settings.auth_mode,
            port=self._port,
            allowed_hosts=LOOPBACK_HOSTS | frozenset(name.lower() for name in config.gateway.allowed_hosts),
            config_path=str(self._loaded.path),
            state_dir=str(state_dir(self._env)),
            http=http_settings(config),
        )

    # -- living --------------------------------------------------------------------------------

    async def _look_for_models(self) -> None:
        """Servers on this machine are looked for beside the start, never before it."""
        if any(agent.default_model.api == "offline" for agent in self.services.settings().agents.values()):
            self._source.offer_models(await find_models(self._env))

    async def _watch_config(self) -> None:
        async def on_change(event: reload.ReloadEvent) -> None:
            if isinstance(event, reload.Refused):
                for problem in event.problems:
                    log.error("config not applied: %s", problem)
                return
            if event.loaded.hash != self._loaded.hash:  # else it was written and taken through us
                log.info("config changed: %s", event.action.reason)
                self._take_config(event.loaded, event.action)

        await reload.watch(self._loaded, self._env, on_change)

    async def _follow_hooks(self) -> None:
        config = self._loaded.config.hooks.internal
        self._hooks.use(await asyncio.to_thread(find_hooks, config, state_dir(self._env)))

    def _take_config(self, loaded: LoadedConfig, action: reload.ReloadAction) -> None:
        """Make a valid config the one in force, as far as the action says."""
        if not action.apply:
            return
        try:
            self._source.replace(loaded.config)
        except OpenClawError as error:
            log.error("config not applied: %s", error)
            return
        if loaded.config.hooks.internal != self._loaded.config.hooks.internal:
            self.services.spawn(self._follow_hooks())
        self._loaded = loaded
        self._secrets = secrets(loaded.config, loaded.referenced_secrets)
        self.services.workers.lanes.resize(self._source.current().lane_caps)
        self.services.about.health.look_again()
        self.services.spawn(self.services.channels.supervisor.follow(loaded.config))

    def announcement(self, config_created: bool) -> Announcement:
        settings = self.services.settings()
        target = settings.agent(settings.default_agent).default_model
        return Announcement(
            url=f"ws://127.0.0.1:{self.port}",
            http_url=f"http://127.0.0.1:{self.port}",
            config_path=str(self._loaded.path),
            config_created=config_created,
            database=self.shown_store,
            model=f"{target.provider}/{target.model}",
            model_note=self._source.model_note(),
            warnings=tuple(str(warning) for warning in self._loaded.warnings),
            agents=tuple(sorted(settings.agents)),
            resumed_runs=self._recovered[0],
            woken_sessions=self._recovered[1],
        )
