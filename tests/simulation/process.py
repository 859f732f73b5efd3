"""One gateway process of a story: the engine as the composition root wires it, in virtual time.

It listens before it has recovered, as the real one does. What it tells is checked as it is told. It ends by
crashing or by a graceful stop; only the image and the memory go on.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from openclaw.engine import events
from openclaw.engine.asking import Asking
from openclaw.engine.care import Care
from openclaw.engine.compaction import Compactor
from openclaw.engine.contexts import ContextCache
from openclaw.engine.lanes import Lanes
from openclaw.engine.ports import Model, ModelRequest, Tool
from openclaw.engine.prompt import Prompts
from openclaw.engine.runs import Run, RunServices
from openclaw.engine.settings import EngineSettings
from openclaw.engine.tools.registry import ToolRegistry
from openclaw.engine.turns import Turns
from openclaw.engine.watchdog import Watchdog
from openclaw.engine.workers import Workers
from openclaw.errors import OpenClawError
from openclaw.store.budgets import Budgets
from openclaw.store.claiming import Claims
from openclaw.store.compactions import Compactions
from openclaw.store.errands import Errands
from openclaw.store.sidenotes import SideNoteDesk
from openclaw.store.store import Store
from tests.simulation import requests
from tests.simulation.configuring import draw_settings
from tests.simulation.database import SimulatedDatabase
from tests.simulation.loop import VirtualLoop
from tests.simulation.memory import Memory
from tests.simulation.script import TOOLS, SimulatedModel, SimulatedTool

STALLED_S = 300.0


class VirtualClock:
    def __init__(self, loop: VirtualLoop, memory: Memory) -> None:
        self._loop = loop
        self._memory = memory

    def now_ms(self) -> int:
        return self._memory.now_ms(self._loop.time())

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class CountedIds:
    def __init__(self, memory: Memory, process_no: int) -> None:
        self._rng = Random(f"ids {memory.seed} {process_no}")

    def uuid(self) -> str:
        return f"{self._rng.getrandbits(128):032x}"


class Process:
    def __init__(self, memory: Memory, model: Model | None = None) -> None:
        memory.processes += 1
        self.number = memory.processes
        self.memory = memory
        self.rng = Random(f"process {memory.seed} {self.number}")
        self.loop = VirtualLoop(self.rng, memory.time())
        memory.time = self.loop.time
        self.settings: EngineSettings = self.draw_settings(self.rng)
        self.clock = VirtualClock(self.loop, memory)
        self.ids = CountedIds(memory, self.number)
        self.tasks: set[asyncio.Task[None]] = set()
        self.streams: dict[str, int] = {}  # session -> model calls under way
        self.started: dict[str, tuple[Run, asyncio.Task[Any]]] = {}
        # Sessions whose work may have been dropped for a reason: a store failure, a client that went away.
        self.excused: set[str] = set()
        self.recovered = False
        self.database = SimulatedDatabase(memory.image, self.rng, memory.faults, self._on_fault)
        self.store = Store(self.database)
        self._stems: dict[tuple[int, str], tuple[int, bytes]] = {}
        self._wire(model or self.make_model())

    def draw_settings(self, rng: Random) -> EngineSettings:
        return draw_settings(rng)

    def make_model(self) -> Model:
        return SimulatedModel(self.memory, self._check_request)

    def make_tools(self) -> list[Tool]:
        return [SimulatedTool(name, self.memory, lambda: self.database.dead) for name in TOOLS]

    def _wire(self, model: Model) -> None:
        models = {"openai-simulated": model, "anthropic-simulated": model}
        tools = ToolRegistry(self.make_tools())
        self.budgets = Budgets(self.database)
        compactions = self.compactions = Compactions(self.database)
        self.contexts = ContextCache(self.store, compactions, limit_bytes=120_000)
        asking = Asking(models, self.clock, self.rng.random)
        compactor = Compactor(compactions, self.clock, lambda _event: None)
        services = RunServices(
            store=self.store,
            claims=Claims(self.database),
            errands=Errands(self.database),
            notes=SideNoteDesk(self.database),
            budgets=self.budgets,
            asking=asking,
            care=Care(compactor, compactions, self.contexts, asking, self.clock),
            prompts=Prompts(_no_files, self.clock),
            tools=tools,
            contexts=self.contexts,
            clock=self.clock,
            emit=self._emit,
        )
        self.lanes = Lanes(self.settings.lane_caps)
        owner = f"process {self.number}"
        self.workers = Workers(services, lambda: self.settings, self.lanes, self.spawn, owner)
        self.turns = Turns(self.store, self.workers, lambda: self.settings, self.clock, self.ids, self._emit)
        self.watchdog = Watchdog(self.store, self.workers, self.clock, stalled_s=STALLED_S)

    # -- life ----------------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """As the gateway's task group: a task that fails takes the gateway down."""
        task = self.loop.create_task(work, context=contextvars.Context())
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not self.database.dead:
            self.memory.violations.append(f"a task of the gateway failed: {error!r}")

    async def recover(self) -> None:
        """What a start does once it listens. A store that fails now is tried again by the sweep."""
        # Whose interrupted run meets a message that is known already is left to the sweep.
        left_over = self.memory.image.peek("SELECT session_key FROM runs WHERE state = 'active'")
        self.excused.update(row[0] for row in left_over)
        try:
            await self.budgets.settle_orphans()
            await self.turns.recover()
        except OpenClawError as error:
            self.memory.note(f"recovery failed: {error}")
            self.excuse_all()
        self.recovered = True

    def excuse_all(self) -> None:
        self.excused.update(row[0] for row in self.memory.image.peek("SELECT session_key FROM sessions"))

    def reload(self, settings: EngineSettings) -> None:
        self.settings = settings
        self.lanes.resize(settings.lane_caps)

    def gone(self) -> None:
        """The process is no more: whatever its tasks still do reaches nobody."""
        self.database.dead = True
        # Told or not: nobody can know.
        self.memory.quietly_cancelled.add("*")
        for sent in self.memory.sent.values():
            if sent.status == "pending":
                sent.status = "unknown"

    # -- what it tells -------------------------------------------------------------------------

    def _on_fault(self, kind: str) -> None:
        self.memory.step(kind)
        self.excuse_all()

    def _emit(self, event: events.EngineEvent) -> None:
        if self.database.dead:
            return
        self.turns.observe(event)
        if isinstance(event, events.InputCancelled):
            self.memory.cancelled_told[event.run_id] += 1
        elif isinstance(event, events.RunStarted):
            self._note_started(event)
        elif isinstance(event, events.RunEnded):
            self.memory.note(f"run {event.scope.run_id} ended {event.outcome}: {event.error}")
            state = self.memory.image.one("SELECT state FROM runs WHERE run_id = ?", event.scope.run_id)
            if state == "active":
                self.memory.unsettled[event.scope.run_id] += 1
            else:
                told = self.memory.ended_told.setdefault(event.scope.run_id, [])
                told.append((self.number, event.outcome))
                self.memory.ended_s[event.scope.run_id] = self.loop.time()

    def _note_started(self, event: events.RunStarted) -> None:
        key = event.scope.session_key
        active = self.workers.active_run(key)
        task = asyncio.current_task()
        assert active is not None and task is not None
        before = self.started.get(key)
        if before is not None and not before[1].done() and not before[0].abandoned.is_set():
            self.memory.broken(f"a second run began in {key} while one was running: {event.scope.run_id}")
        self.started[key] = (active, task)
        self.memory.note(f"run {event.scope.run_id} of {key} {'goes on' if event.resumed else 'begins'}")

    # -- what it asks --------------------------------------------------------------------------

    def _check_request(self, request: ModelRequest) -> Callable[[], None]:
        """Check a request and count the calls of its session; the returned function ends the call."""
        run = self._asking_run()
        key = run.run.session_key
        self.streams[key] = self.streams.get(key, 0) + 1
        if self.streams[key] > 1:
            self.memory.broken(f"two model calls at once in {key}")

        def done() -> None:
            self.streams[key] -= 1

        body = requests.encoded(request)
        problem = requests.problem_of(request, body)
        if problem is not None:
            self.memory.broken(f"a request of {key} that {request.target.api} refuses: {problem}")
        self._compare_beginning(run, request, body)
        return done

    def _asking_run(self) -> Run:
        task = asyncio.current_task()
        for run, its_task in self.started.values():
            if its_task is task:
                return run
        raise AssertionError("a model was asked by something that is no run")

    def _compare_beginning(self, run: Run, request: ModelRequest, body: bytes) -> None:
        """Between two recorded boundaries a request begins with the one before it (LOOP-2)."""
        if not request.tools:
            return  # a summary: nobody goes on from it
        window_no = run.run.window_no
        boundaries = self.memory.image.one(
            "SELECT count(*) FROM entries WHERE window_no = ? AND type NOT IN ('message', 'custom_message')",
            window_no,
        )
        place = (window_no, request.target.model)
        before = self._stems.get(place)
        self._stems[place] = (boundaries, requests.stem(body))
        if before is None or before[0] != boundaries:
            return
        self.memory.prefix_pairs += 1
        if body.startswith(before[1]):
            self.memory.prefix_kept += 1
        else:
            at = next(i for i, (a, b) in enumerate(zip(before[1], body, strict=False)) if a != b)
            self.memory.prefix_lost.append(
                f"{before[1][at - 80 : at + 120]!r} became {body[at - 20 : at + 120]!r}"
            )


async def _no_files(_workspace: str) -> tuple[Any, ...]:
    return ()
