"""A store, the commands over it, and powers that do what the engine would do."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from openclaw.domain.commands import OPERATOR, CommandCaller
from openclaw.domain.entry import SessionEntry
from openclaw.domain.keys import KeySettings
from openclaw.domain.modelhint import ModelCandidate
from openclaw.domain.queueing import QueueConfig
from openclaw.domain.transcript import Message
from openclaw.engine.commands.handling import Commands
from openclaw.engine.commands.ports import (
    CommandPowers,
    CommandRules,
    CommandServices,
    Handled,
    ReadOutcome,
)
from openclaw.engine.contexts import ContextCache
from openclaw.engine.events import CommandAnswered
from openclaw.engine.ports import ModelTarget, ToolSpec
from openclaw.engine.settings import AgentSettings, EngineSettings
from openclaw.errors import InvalidRequest
from openclaw.store.bindings import Bindings
from openclaw.store.commands import CommandStore
from openclaw.store.compactions import Compactions
from openclaw.store.inbox import NewInput
from openclaw.store.records import SessionRow, SessionSeed
from openclaw.store.runs import RunEnd
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, RESETS, say

KEY = MAIN.session_key
MODELS = (
    ModelCandidate("anthropic", "claude-opus-4", "opus"),
    ModelCandidate("openai", "gpt-5"),
    ModelCandidate("openai", "gpt-5-mini"),
)
THINKER = ModelTarget(
    "anthropic", "claude-opus-4", "scripted", api_key="k", context_window=20_000, reasoning=True
)
TOOLS = (
    ToolSpec("sessions_list", "Lists sessions.", {"type": "object"}),
    ToolSpec("session_status", "Shows a card.", {"type": "object"}),
)


class StillClock:
    """Moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.at_ms = NOON

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic(self) -> float:
        return self.at_ms / 1000

    async def sleep(self, seconds: float) -> None:
        self.at_ms += round(seconds * 1000)
        await asyncio.sleep(0)


class CountedIds:
    def __init__(self) -> None:
        self.count = 0

    def uuid(self) -> str:
        self.count += 1
        return f"id-{self.count}"


def choose(entry: SessionEntry, asked: str | None) -> tuple[ModelTarget, ...]:
    if entry.model_override is None or entry.provider_override is None:
        return (THINKER,)
    return (ModelTarget(entry.provider_override, entry.model_override, "scripted"),)


def settings_of(**changes: Any) -> EngineSettings:
    agents = {
        name: AgentSettings(
            agent_id=name, name=name, workspace=f"/work/{name}", timeout_s=60.0, tools=(),
            default_model=THINKER, choose_models=choose, zone=ZoneInfo("UTC"),
        )
        for name in ("main", "bob")
    }  # fmt: skip
    made = EngineSettings(
        agents=agents, default_agent="main", keys=KeySettings(), resets=RESETS, reset_triggers=(),
        send_policy=None, queue=QueueConfig(), lane_caps={},
    )  # fmt: skip
    return replace(made, **changes)


class House:
    """One gateway's worth of commands. Tests change `settings`, `rules` and `powers` before they ask."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database
        self.store = Store(database)
        self.kept = CommandStore(database)
        self.clock = StillClock()
        self.ids = CountedIds()
        self.settings = settings_of()
        self.rules = CommandRules(mention_names=("claw",))
        self.events: list[Any] = []
        self.aborted: list[tuple[str, str, str]] = []
        self.deaf: set[str] = set()  # runs that do not end when they are asked to
        self._tasks: list[asyncio.Task[None]] = []
        self._commands: Commands | None = None
        self.powers = CommandPowers(
            abort_run=self.abort_run,
            check_model=self._check_model,
            models=lambda: MODELS,
            tools=lambda _session, _agent: TOOLS,
        )

    async def abort_run(self, session_key: str, run_id: str, reason: str) -> tuple[str, ...]:
        """As the engine does it: the run ends on its row before this returns."""
        self.aborted.append((session_key, run_id, reason))
        run = await self.store.run(run_id)
        if run is None or run.state == "ended" or run_id in self.deaf:
            return ()
        await self.store.finish(run, (), RunEnd("aborted", reason), now_ms=self.clock.now_ms())
        return (run_id,)

    def _check_model(self, name: str) -> str:
        if "/" not in name:
            raise InvalidRequest(f"Unknown model {name!r}.")
        return name

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.append(task)
        return task

    def commands(self) -> Commands:
        """The same ones until they are given other powers."""
        self._commands = self._commands or self._make()
        return self._commands

    def _make(self) -> Commands:
        return Commands(
            CommandServices(
                store=self.store,
                commands=self.kept,
                powers=self.powers,
                settings=lambda: self.settings,
                rules=lambda: self.rules,
                clock=self.clock,
                ids=self.ids,
                emit=self.events.append,
                spawn=self._spawn,
                version="1.2.3",
                started_ms=NOON - 3_600_000,
                bindings=Bindings(self.database),
            )
        )

    async def context(self, session: SessionRow) -> tuple[Message, ...]:
        """What a model is shown of the session, read anew."""
        cache = ContextCache(self.store, Compactions(self.database))
        return await cache.messages(session.window_no, session.last_seq)

    def give(self, **powers: Any) -> None:
        self.powers = replace(self.powers, **powers)
        self._commands = None

    async def read(self, new: NewInput, caller: CommandCaller = OPERATOR) -> ReadOutcome:
        outcome = await self.commands().read(new, caller)
        await asyncio.sleep(0)
        return outcome

    async def ask(
        self, text: str, run_id: str = "", *, to: SessionSeed = MAIN, caller: CommandCaller = OPERATOR
    ) -> str:
        """The answer to a command, once it is there."""
        outcome = await self.read(say(run_id or f"c-{self.ids.uuid()}", text, to=to), caller)
        assert isinstance(outcome, Handled), outcome
        await self.settled()
        if outcome.text is not None:
            return outcome.text
        answer = await self.kept.answer_of(outcome.run_id)
        assert answer is not None
        return answer

    async def settled(self) -> None:
        """Wait for commands that are carried out in the background."""
        while self._tasks:
            await self._tasks.pop()
        await asyncio.sleep(0)

    async def row(self, key: str = KEY) -> SessionRow:
        found = await self.store.session(key)
        assert found is not None
        return found

    async def entry(self, key: str = KEY) -> SessionEntry:
        return (await self.row(key)).entry

    def answers(self) -> list[CommandAnswered]:
        return [event for event in self.events if isinstance(event, CommandAnswered)]


def decoded(body: bytes) -> Any:
    return msgspec.json.decode(body)
