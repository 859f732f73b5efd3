"""The engine of one gateway, put together: stores, models, tools, workers and those who watch over them.

Part of the composition root. Nothing here listens on a socket or reads a file of
configuration; `app.gateway` does, and gives what it found.
"""

from __future__ import annotations

import asyncio
import platform
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import aiohttp
from msgspec import Struct

from openclaw.app.diary import Diary
from openclaw.app.sessiontools import ToolGround, session_tools
from openclaw.app.settings import SettingsSource, local_zone
from openclaw.config.load import LoadedConfig, state_dir
from openclaw.engine import events
from openclaw.engine.asking import Asking
from openclaw.engine.care import Care
from openclaw.engine.children import Children
from openclaw.engine.compaction import Compacted, CompactionEvent, CompactionStarted, Compactor, tell_result
from openclaw.engine.contexts import ContextCache
from openclaw.engine.events import EventSink
from openclaw.engine.handedfiles import HandedFiles
from openclaw.engine.lanes import Lanes
from openclaw.engine.ports import Clock, Ids, Tool
from openclaw.engine.prompt import Prompts
from openclaw.engine.runs import RunServices
from openclaw.engine.sandbox import FOLDER as SCRATCH_FOLDER
from openclaw.engine.sandbox import Scratch
from openclaw.engine.skills import WorkspaceSkills
from openclaw.engine.threads import Threads
from openclaw.engine.tools.registry import ToolRegistry
from openclaw.engine.tools.sessions.powers import Powers
from openclaw.engine.tools.workspace.access import Access, WriteLocks
from openclaw.engine.tools.workspace.bubblewrap import Bubblewrap
from openclaw.engine.tools.workspace.edit import EditTool
from openclaw.engine.tools.workspace.exec import ExecTool
from openclaw.engine.tools.workspace.grep import GrepTool
from openclaw.engine.tools.workspace.list import ListTool
from openclaw.engine.tools.workspace.memory import MemoryTool
from openclaw.engine.tools.workspace.read import ReadTool
from openclaw.engine.tools.workspace.write import WriteTool
from openclaw.engine.turns import Turns
from openclaw.engine.watchdog import Watchdog
from openclaw.engine.workers import Workers
from openclaw.engine.workspace import WorkspaceFiles
from openclaw.models.catalog import build_models
from openclaw.store.attachments import Attachments
from openclaw.store.bindings import Bindings
from openclaw.store.budgets import Budgets
from openclaw.store.claiming import Claims
from openclaw.store.compactions import Compactions
from openclaw.store.database import Database
from openclaw.store.errands import Errands
from openclaw.store.sidenotes import SideNoteDesk
from openclaw.store.spawns import Spawns
from openclaw.store.store import Store


def host_name() -> str:
    """The machine as the model is told of it."""
    return f"{platform.node()} ({platform.system()} {platform.machine()})"


Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class Ground(Struct, frozen=True):
    """What an engine stands on."""

    database: Database
    source: SettingsSource
    in_force: Callable[[], LoadedConfig]
    env: Mapping[str, str]
    secrets: Callable[[], frozenset[str]]
    http: aiohttp.ClientSession
    clock: Clock
    ids: Ids
    spawn: Spawn
    emit: EventSink


class Engine(Struct, frozen=True):
    """The parts that others talk to."""

    store: Store
    budgets: Budgets
    contexts: ContextCache
    asking: Asking
    care: Care
    prompts: Prompts
    workers: Workers
    turns: Turns
    watchdog: Watchdog
    tools: ToolRegistry
    threads: Threads


def build_engine(ground: Ground) -> Engine:
    store, database, clock = Store(ground.database), ground.database, ground.clock
    compactions, budgets = Compactions(database), Budgets(database)
    contexts = ContextCache(store, compactions)
    settings = ground.source.current
    acting = Powers(store, Spawns(database), settings, ground.source.check_model, ground.secrets)
    scratch = Scratch(state_dir(ground.env) / SCRATCH_FOLDER)
    tools = ToolRegistry(
        (*session_tools(database, _tool_ground(ground), acting), *_workspace_tools(ground, scratch)),
        ground.secrets,
    )
    ground.source.offer_tools(tools.names())
    asking = Asking(build_models(ground.http), clock, random.random)
    compactor = Compactor(compactions, clock, lambda event: ground.emit(_told(event)))
    prompts = Prompts(
        WorkspaceFiles(ground.secrets).load, clock, host_name(), WorkspaceSkills(ground.secrets).load
    )
    care = Care(compactor, compactions, contexts, asking, clock)
    services = RunServices(
        store=store,
        claims=Claims(database),
        errands=Errands(database),
        notes=SideNoteDesk(database),
        budgets=budgets,
        asking=asking,
        care=care,
        prompts=prompts,
        tools=tools,
        contexts=contexts,
        clock=clock,
        emit=ground.emit,
    )
    lanes = Lanes(settings().lane_caps)
    workers = Workers(services, settings, lanes, ground.spawn, owner=ground.ids.uuid())
    turns = Turns(store, workers, settings, clock, ground.ids, ground.emit)
    acting.fill(turns, workers)
    files = HandedFiles(Attachments(database), acting.spawns, settings, clock)
    children = Children(acting.spawns, settings, clock, workers.wake, files)

    async def look_after() -> None:
        await children.sweep()
        await scratch.tidy(lambda key: _exists(store, key), clock)
        await Bindings(database).lapse(settings().thread_bindings, clock.now_ms())

    note = Diary(database, clock).note_watchdog
    watchdog = Watchdog(store, workers, clock, look_after_children=look_after, note=note)
    return Engine(
        store,
        budgets,
        contexts,
        asking,
        care,
        prompts,
        workers,
        turns,
        watchdog,
        tools,
        acting.threads,
    )


async def _exists(store: Store, session_key: str) -> bool:
    return await store.session(session_key) is not None


def _tool_ground(ground: Ground) -> ToolGround:
    return ToolGround(ground.in_force, ground.env, ground.source, ground.secrets, ground.emit)


def _workspace_tools(ground: Ground, scratch: Scratch) -> tuple[Tool, ...]:
    locks, zone, state = WriteLocks(), local_zone(ground.env), state_dir(ground.env)
    walls = Bubblewrap(ground.env, ground.secrets, hidden=(str(state),))
    access = Access(walls, scratch)
    return (
        ReadTool(access),
        WriteTool(locks, access),
        EditTool(locks, access),
        ListTool(access),
        GrepTool(access),
        ExecTool(ground.env, ground.secrets, access),
        MemoryTool(locks, lambda: zone, access),
    )


def _told(event: CompactionEvent) -> events.CompactionTold:
    """A compaction as the rest of the gateway hears of it."""
    if isinstance(event, CompactionStarted):
        return events.CompactionTold(event.session, event.run_id, event.trigger, done=False)
    result = event.result
    session = result.session if isinstance(result, Compacted) else event.session
    message = tell_result(result, session.entry.context_tokens or 0)
    return events.CompactionTold(
        session, event.run_id, event.trigger, True, isinstance(result, Compacted), message
    )
