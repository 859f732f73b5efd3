"""What handlers work with, gathered from the parts of one gateway."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from openclaw import __version__
from openclaw.app.about import build_about
from openclaw.app.auditing import Auditor
from openclaw.app.automation import build_heartbeats
from openclaw.app.channels import view_channels
from openclaw.app.door import build_door
from openclaw.app.engine import Engine, Ground
from openclaw.app.explaining import Explainer
from openclaw.app.httpdoor import new_secret
from openclaw.app.sessionwork import build_session_work
from openclaw.channels.front import Channels
from openclaw.config.load import LoadedConfig
from openclaw.config.reload import ReloadAction
from openclaw.engine.cron import Cron
from openclaw.gateway.http.follow import Followers
from openclaw.gateway.http.signin import Signins
from openclaw.gateway.hub import Hub
from openclaw.gateway.metrics import Metrics
from openclaw.gateway.services import GatewayServices
from openclaw.store.commands import CommandStore
from openclaw.store.diagnostics import Diagnostics
from openclaw.store.families import Families
from openclaw.store.outboxdesk import OutboxDesk
from openclaw.store.pages import Pages
from openclaw.store.sessionusage import SessionUsages
from openclaw.store.signins import SigninBook
from openclaw.store.upkeep import Upkeep


class Parts(Struct, frozen=True):
    """What the gateway made before anybody may ask for it."""

    hub: Hub
    followers: Followers
    metrics: Metrics
    channels: Channels
    cron: Cron
    upkeep: Upkeep
    shown_store: str


def build_services(
    ground: Ground,
    engine: Engine,
    parts: Parts,
    *,
    services: Callable[[], GatewayServices],
    apply: Callable[[LoadedConfig, ReloadAction], None],
) -> GatewayServices:
    """`services` is asked later, when the value that is made here is known."""
    database, settings = ground.database, ground.source.current
    store, turns, workers = engine.store, engine.turns, engine.workers
    return GatewayServices(
        store=store,
        commands=CommandStore(database),
        tools=engine.tools,
        keep=database.write,
        upkeep=parts.upkeep,
        session_work=build_session_work(engine, ground),
        pages=Pages(database),
        usages=SessionUsages(database),
        families=Families(database),
        about=build_about(
            ground,
            engine,
            parts.hub,
            parts.metrics,
            services=services,
            apply=apply,
            channels=lambda: view_channels(parts.channels),
        ),
        outbox=OutboxDesk(database),
        diagnostics=Diagnostics(database),
        explain=Explainer(database, ground.in_force, ground.env, ground.clock.now_ms).explain,
        audit=Auditor(database, ground.in_force, ground.env, ground.clock.now_ms).audit,
        turns=turns,
        workers=workers,
        hub=parts.hub,
        emit=ground.emit,
        channels=parts.channels,
        cron=parts.cron,
        heartbeats=build_heartbeats(engine, ground),
        config=lambda: ground.in_force().config,
        door=build_door(ground.in_force().config.gateway, database, parts.hub, ground.clock, ground.ids),
        followers=parts.followers,
        signins=Signins(ground.clock.now_ms, new_secret, SigninBook(database)),
        clock=ground.clock,
        ids=ground.ids,
        settings=settings,
        models=ground.source.model_rows,
        check_model=ground.source.check_model,
        version=__version__,
        database=parts.shown_store,
        started_ms=ground.clock.now_ms(),
        spawn=ground.spawn,
    )
