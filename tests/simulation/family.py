"""Stories with helpers: models spawn, send, yield and kill; people stop trees and write to helpers.

The real session tools and commands, in virtual time. What must hold besides: no completion is lost or
told twice, nobody waits for a helper that is done, nobody has more helpers than allowed.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any, ClassVar

from msgspec.structs import replace

from openclaw.domain.announce import is_silent_announcement
from openclaw.domain.commands import CommandCaller
from openclaw.domain.transcript import AssistantMessage, ToolCallBlock, decode_message, text_of
from openclaw.domain.visibility import VisibilityPolicy
from openclaw.engine.children import Children
from openclaw.engine.commands.handling import Commands
from openclaw.engine.commands.ports import CommandPowers, CommandRules, CommandServices
from openclaw.engine.ports import Model, ModelRequest, Tool, ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.settings import EngineSettings, SpawnRules
from openclaw.engine.subagents import close
from openclaw.engine.tools.sessions.powers import Powers
from openclaw.engine.tools.sessions.reach import Reach
from openclaw.engine.tools.sessions.sessions_send import SessionsSendTool
from openclaw.engine.tools.sessions.sessions_spawn import SessionsSpawnTool
from openclaw.engine.tools.sessions.sessions_yield import SessionsYieldTool
from openclaw.engine.tools.sessions.subagents import SubagentsTool
from openclaw.engine.turns import Incoming
from openclaw.engine.watchdog import Watchdog
from openclaw.errors import OpenClawError
from openclaw.store.commands import CommandStore
from openclaw.store.database import Transaction
from openclaw.store.recall import Recall
from openclaw.store.records import SessionSeed, UserInput
from openclaw.store.spawns import Spawns
from tests.simulation.actors import WEIGHTS, Actors
from tests.simulation.audit import audit
from tests.simulation.configuring import PLACES
from tests.simulation.memory import Memory
from tests.simulation.process import STALLED_S, Process
from tests.simulation.script import KINDS, TOOLS, SimulatedModel
from tests.simulation.story import Story

FAMILY = ("sessions_send", "sessions_spawn", "sessions_yield", "subagents")
MOST_CHILDREN = 4
COMMANDS = ("/stop", "/stop", "/kill last", "/kill all", "/subagents list", "/kill 1", "/kill nobody")
_LOST_AFTER_S = 61.0
_MOST_SWEEPS = 8


# -- the model ---------------------------------------------------------------------------------------


class FamilyModel(SimulatedModel):
    """Also starts helpers, writes to other sessions, waits for helpers and stops them."""

    kinds: ClassVar[dict[str, int]] = KINDS | {"calls family": 26, "stays silent": 3}

    def texts(self, kind: str, number: int, rng: Random) -> tuple[str, ...]:
        return ("ANNOUNCE_", "SKIP") if kind == "stays silent" else super().texts(kind, number, rng)

    def calls(self, kind: str, number: int, rng: Random, request: ModelRequest) -> tuple[ToolCallBlock, ...]:
        if kind != "calls family":
            return super().calls(kind, number, rng, request)
        names = rng.choices(FAMILY, (20, 45, 25, 20), k=rng.choice((1, 1, 1, 2, 3)))
        return tuple(
            ToolCallBlock(f"f{number}_{at}", name, _arguments(name, number, rng))
            for at, name in enumerate(names)
        )


def _arguments(name: str, number: int, rng: Random) -> dict[str, Any]:
    if name == "sessions_spawn":
        more = {"runTimeoutSeconds": rng.choice((0, 0, 20)), "cleanup": rng.choice(("keep", "delete"))}
        return {"task": f"task {number}", "context": rng.choice(("isolated", "fork")), **more}
    if name == "sessions_send":
        target = rng.choice([*(place.seed.session_key for place in PLACES), "current", "nobody"])
        return {
            "sessionKey": target,
            "message": f"note {number}",
            "timeoutSeconds": rng.choice((0, 0, 5, 40)),
        }
    if name == "subagents":
        action = rng.choice(("list", "kill", "kill", "steer"))
        return {"action": action, "target": rng.choice(("last", "1", "all")), "message": f"hurry {number}"}
    return {}


class Counted:
    """A tool of the product, each use of which is a step of the story."""

    def __init__(self, tool: Tool, memory: Memory) -> None:
        self._tool = tool
        self._memory = memory

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        action = f" {arguments['action']}" if "action" in arguments else ""
        self._memory.step(
            f"tool {self.spec.name}{action}", f"{context.tool_call_id} of {context.session_key}"
        )
        return await self._tool.call(arguments, context)


# -- the process -------------------------------------------------------------------------------------


class FamilyProcess(Process):
    def draw_settings(self, rng: Random) -> EngineSettings:
        settings = super().draw_settings(rng)
        rules = SpawnRules(
            max_depth=rng.choice((1, 2)), max_children=rng.choice((2, MOST_CHILDREN)),
            announce_timeout_ms=20_000, archive_after_minutes=rng.choice((0, 60)),
        )  # fmt: skip
        agents = {
            name: replace(agent, tools=(*TOOLS, *FAMILY), spawning=rules)
            for name, agent in settings.agents.items()
        }
        return replace(settings, agents=agents, ping_pong_turns=rng.choice((0, 2)))

    def make_model(self) -> Model:
        return FamilyModel(self.memory, self._check_request)

    def make_tools(self) -> list[Tool]:
        database = self.database
        self.spawns = Spawns(database)
        self.powers = Powers(self.store, self.spawns, lambda: self.settings, lambda name: name)
        policy = VisibilityPolicy(level="agent")
        reach = Reach(Recall(database), lambda: self.settings.keys, lambda _agent: policy)
        family: list[Tool] = [
            SessionsSendTool(reach, self.powers), SessionsSpawnTool(self.powers), SessionsYieldTool(),
            SubagentsTool(self.powers),
        ]  # fmt: skip
        return [*super().make_tools(), *(Counted(tool, self.memory) for tool in family)]

    def _wire(self, model: Model) -> None:
        super()._wire(model)
        self.powers.fill(self.turns, self.workers)
        self.children = Children(self.spawns, lambda: self.settings, self.clock, self.workers.wake)
        self.watchdog = Watchdog(self.store, self.workers, self.clock, stalled_s=STALLED_S)
        powers = CommandPowers(
            abort_run=self.turns.abort, check_model=lambda name: name, models=lambda: (),
            tools=lambda _session, _agent: (), close_children=self._close_children,
        )  # fmt: skip
        self.commands = Commands(
            CommandServices(
                store=self.store, commands=CommandStore(self.database), powers=powers,
                settings=lambda: self.settings, rules=CommandRules, clock=self.clock, ids=self.ids,
                emit=self._emit, spawn=self.spawn, version="0", started_ms=0,
            )
        )  # fmt: skip
        self.turns.use_commands(self.commands.read)

    async def _close_children(self, child_keys: tuple[str, ...], tell: bool) -> None:
        woken: list[str] = []

        def unit(tx: Transaction) -> None:
            woken.clear()
            for child_key in child_keys:
                close(tx, child_key, self.clock.now_ms(), woken, tell=tell)

        await self.database.write(unit)
        for session_key in woken:
            self.workers.wake(session_key)

    async def recover(self) -> None:
        with suppress(OpenClawError):
            await self.commands.recover()
        await super().recover()


# -- the people --------------------------------------------------------------------------------------


class FamilyActors(Actors):
    weights: ClassVar[dict[str, int]] = WEIGHTS | {
        "give a command": 6, "write to a helper": 6, "abort a helper": 3, "delete a helper": 2,
    }  # fmt: skip
    process: FamilyProcess

    def act(self) -> None:
        super().act()
        crowded = self.memory.image.peek(
            "SELECT parent_key, count(*) FROM spawns WHERE state = 'active' GROUP BY parent_key "
            "HAVING count(*) > ?", MOST_CHILDREN,
        )  # fmt: skip
        if crowded:
            self.memory.broken(f"more helpers than anybody may have: {crowded}")

    def _give_a_command(self, kind: str) -> None:
        place = PLACES[self.rng.choice((0, 2, 4, 6))]
        text = self.rng.choice(COMMANDS)
        run_id = f"command {self.memory.total_steps}"
        self.memory.step(kind, f"{run_id} {text} in {place.seed.session_key}")
        self.memory.quietly_cancelled.add("*")  # a command that the store cut off tells nobody
        body = UserInput(text, self.process.clock.now_ms())
        caller = CommandCaller(authorised=True, owner=True)

        async def give() -> None:
            with suppress(OpenClawError):
                await self.process.turns.accept(
                    Incoming(run_id, place.seed, "webchat", "operator", body, caller=caller)
                )

        self._request(give())

    def _helper(self) -> str | None:
        rows = self.memory.image.peek(
            "SELECT child_key FROM spawns ORDER BY created_at DESC, child_key LIMIT 8"
        )
        return self.rng.choice(rows)[0] if rows else None

    def _write_to_a_helper(self, kind: str) -> None:
        key = self._helper()
        if key is None or not self.memory.image.one(
            "SELECT count(*) FROM sessions WHERE session_key = ?", key
        ):
            return
        run_id = f"person:{self.memory.total_steps}"
        self.memory.step(kind, f"{run_id} to {key}")
        mode = self.rng.choice((None, "interrupt", "followup"))
        body = UserInput(f"a word for you {run_id}", self.process.clock.now_ms(), queue_mode=mode)
        seed = SessionSeed(key, key.split(":")[1], "other")

        async def write() -> None:
            with suppress(OpenClawError):
                await self.process.turns.accept(Incoming(run_id, seed, "cli", "operator", body))

        self._request(write())

    def _abort_a_helper(self, kind: str) -> None:
        key = self._helper()
        if key is not None:
            self.memory.step(kind, key)
            self._request(self._abort(key, None))

    def _delete_a_helper(self, kind: str) -> None:
        key = self._helper()
        if key is None:
            return
        self.memory.step(kind, key)

        async def delete() -> None:
            with suppress(OpenClawError):
                await self.process.store.delete_session(key, now_ms=self.process.clock.now_ms())

        self._request(delete())

    async def sweep(self) -> None:
        await super().sweep()
        with suppress(OpenClawError):
            await self.process.children.sweep()


# -- the story ---------------------------------------------------------------------------------------


class FamilyStory(Story):
    process_kind = FamilyProcess
    actors_kind = FamilyActors

    async def _settle_down(self, process: Process, actors: Actors) -> None:
        """A helper that got lost is settled by the sweep once it had its time."""
        for _ in range(_MOST_SWEEPS):
            if not self.memory.image.one("SELECT count(*) FROM spawns WHERE state = 'active'"):
                return
            await process.clock.sleep(_LOST_AFTER_S)
            await actors.sweep()
            await self._until_idle(process, actors)

    def _audit(self, process: Process) -> None:
        audit(process)
        memory = self.memory
        for child_key, parent_key in memory.image.peek(
            "SELECT child_key, parent_key FROM spawns WHERE state = 'active'"
        ):
            memory.broken(f"the helper {child_key} of {parent_key} is never settled")
        for session_key, target in memory.image.peek(
            "SELECT waits.session_key, target FROM waits JOIN spawns ON child_run_id = target "
            "WHERE state <> 'active'"
        ):
            memory.broken(f"{session_key} waits for {target}, which is done")
        _check_completions(self)


def _check_completions(story: Story) -> None:
    """Each helper that was settled has told its requester once, unless it was silent or nobody was there."""
    memory = story.memory
    gone = {
        row[0] for row in memory.image.peek("SELECT session_key FROM windows WHERE deleted_at IS NOT NULL")
    }
    told: dict[str, list[str]] = {}
    for run_id, state in memory.image.peek("SELECT run_id, state FROM inbox WHERE source = 'announce'"):
        told.setdefault(run_id.partition(":completion")[0], []).append(state)
    stopped = {
        row[0]
        for row in memory.image.peek("SELECT session_key FROM runs WHERE stop_reason IN ('stop', 'kill')")
    }
    killed = {row[0] for row in memory.image.peek(
        "SELECT child_key FROM spawns WHERE instr(body, '\"status\":\"killed\"') > 0")}  # fmt: skip
    for child_run_id, child_key, parent_key in memory.image.peek(
        "SELECT child_run_id, child_key, parent_key FROM spawns WHERE state <> 'active'"
    ):
        states = told.get(child_run_id, [])
        if len(states) > 1:
            memory.broken(f"the completion of {child_key} was handed to {parent_key} {len(states)} times")
        # A helper that was stopped itself is owed nothing any more.
        ended = parent_key in gone or (":subagent:" in parent_key and parent_key in stopped | killed)
        if states == ["cancelled"] and not ended:
            memory.broken(f"the completion of {child_key} waited in {parent_key} and was cancelled")
        excused = parent_key in gone or child_key in stopped | killed or _was_silent(story, child_run_id)
        if not states and not excused:
            memory.broken(f"the completion of {child_key} never reached {parent_key}")


def _was_silent(story: Story, child_run_id: str) -> bool:
    rows = story.memory.image.peek(
        "SELECT body FROM entries WHERE run_id = ? AND role = 'assistant'", f"{child_run_id}:announce"
    )
    messages = [decode_message(row[0]) for row in rows if row[0] is not None]
    return any(
        isinstance(message, AssistantMessage) and is_silent_announcement(text_of(message))
        for message in messages
    )
