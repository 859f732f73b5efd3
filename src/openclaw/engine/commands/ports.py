"""What command handlers are given, what they give back, and the powers that they may use.

Narrow on purpose: a handler reads the store, asks a power, and returns a reply. It
writes nothing itself, so that the effect, the answer and the record of the command
are one commit (`store.commands`). A power that is None is not built into this gateway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from msgspec import Struct

from openclaw.domain.commands import CommandCaller
from openclaw.domain.directives import Asked
from openclaw.domain.entry import SessionEntry
from openclaw.domain.modelhint import ModelCandidate
from openclaw.domain.promptreport import PromptReport
from openclaw.engine.events import EventSink
from openclaw.engine.ports import Clock, Ids, ModelTarget, ToolSpec
from openclaw.engine.settings import AgentSettings, EngineSettings
from openclaw.store.bindings import Bindings
from openclaw.store.commands import Also, CommandStore, Edit, TakenCommand
from openclaw.store.inbox import NewInput
from openclaw.store.records import SessionRow, UserInput
from openclaw.store.store import Store

# -- what a message turned out to be -----------------------------------------------------------


class NotACommand(Struct, frozen=True, tag="not-a-command"):
    """An ordinary message: accept it as it is."""


class PassOn(Struct, frozen=True, tag="pass-on"):
    """A message that goes on as a turn, with another body.

    What `UserInput` has a field for (thinking, model, queue mode) is set in the body already;
    `directives` has all of them, in order, for what it has no field for.
    """

    body: UserInput
    directives: tuple[Asked, ...] = ()


class Ignored(Struct, frozen=True, tag="ignored"):
    """A command from somebody who may not give it: nothing is stored, nothing is answered (CMD-13)."""


class Handled(Struct, frozen=True, tag="handled"):
    """A command that is on disk. `text` is None while it is carried out; the answer is announced."""

    run_id: str
    session_key: str
    accepted_at: int
    text: str | None
    duplicate: bool = False


ReadOutcome = NotACommand | PassOn | Ignored | Handled


CommandSink = EventSink


# -- powers ------------------------------------------------------------------------------------


class CompactionReport(Struct, frozen=True):
    """How a compaction ended, in words for the person who asked (COMP-9)."""

    ok: bool
    text: str


class ChildMessage(Struct, frozen=True):
    """A message from a person to a sub-agent. `interrupt`: its run starts anew with it (SUB-5)."""

    run_id: str
    parent_key: str
    child_key: str
    text: str
    interrupt: bool


class SpawnRequest(Struct, frozen=True):
    """A sub-agent that a person asks for."""

    run_id: str
    parent_key: str
    task: str


class CommandPowers(Struct, frozen=True, kw_only=True):
    """What commands may do beside reading the store."""

    # Abort this run of this session and wait until it is settled; the ids that were stopped.
    abort_run: Callable[[str, str, str], Awaitable[tuple[str, ...]]]
    # The `provider/model` behind a name; InvalidRequest when there is none.
    check_model: Callable[[str], str]
    models: Callable[[], tuple[ModelCandidate, ...]]
    tools: Callable[[SessionRow | None, AgentSettings], tuple[ToolSpec, ...]]
    compact: Callable[[str, str | None], Awaitable[CompactionReport]] | None = None
    undo_compaction: Callable[[str], Awaitable[CompactionReport]] | None = None
    # Answer a question over the session's context without writing anything (CMD-16).
    ask_aside: Callable[[str, str], Awaitable[str]] | None = None
    tell_child: Callable[[ChildMessage], Awaitable[None]] | None = None
    # Start a sub-agent; its session key.
    spawn_child: Callable[[SpawnRequest], Awaitable[str]] | None = None
    # Settle stopped helpers of which nothing goes on; whether their requesters hear of it.
    close_children: Callable[[tuple[str, ...], bool], Awaitable[None]] | None = None
    # Write a session's transcript to a file of the agent's workspace; where it is.
    export: Callable[[str, str | None], Awaitable[str]] | None = None
    prompt_report: Callable[[SessionRow | None, AgentSettings], Awaitable[PromptReport]] | None = None
    # A line for every channel in use: how it does now, and how old its credentials are (CMD-1).
    channel_lines: Callable[[int], tuple[str, ...]] | None = None
    # The configuration without secrets, below a dotted path; None when there is no such path.
    show_config: Callable[[str], str | None] | None = None


class CommandRules(Struct, frozen=True, kw_only=True):
    """`commands.*` as far as this room is concerned."""

    # Text commands, on surfaces that have native ones too.
    text: bool = True
    config: bool = False
    debug: bool = False
    # By which names the agent is addressed in groups.
    mention_names: tuple[str, ...] = ()


class CommandServices(Struct, frozen=True, kw_only=True):
    """The parts of a running gateway that commands work with."""

    store: Store
    commands: CommandStore
    powers: CommandPowers
    settings: Callable[[], EngineSettings]
    rules: Callable[[], CommandRules]
    clock: Clock
    ids: Ids
    emit: CommandSink
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    version: str
    started_ms: int
    bindings: Bindings | None = None


# -- handlers ----------------------------------------------------------------------------------


class Request(Struct, frozen=True, kw_only=True):
    """One command to carry out: who asks what, in which session, and what holds right now."""

    asked: Asked
    caller: CommandCaller
    new: NewInput
    session: SessionRow | None
    settings: EngineSettings
    agent: AgentSettings
    rules: CommandRules
    now_ms: int
    # Set for commands that are answered after they were taken.
    taken: TakenCommand | None = None

    @property
    def args(self) -> str:
        return self.asked.args

    @property
    def word(self) -> str:
        """The first word of the arguments, in lower case."""
        return self.args.split(maxsplit=1)[0].lower() if self.args else ""

    @property
    def after_word(self) -> str:
        """What follows the first word."""
        parts = self.args.split(maxsplit=1)
        return parts[1].strip() if len(parts) > 1 else ""

    @property
    def session_key(self) -> str:
        return self.new.seed.session_key

    @property
    def in_group(self) -> bool:
        chat_type = self.entry.chat_type or self.new.seed.chat_type
        return self.caller.in_group or chat_type in ("group", "channel")

    @property
    def target(self) -> ModelTarget:
        """The model that the next turn of this session would use."""
        return self.agent.choose_models(self.entry, None)[0]

    @property
    def entry(self) -> SessionEntry:
        """The entry; that of a session that does not exist yet is empty."""
        if self.session is not None:
            return self.session.entry
        return SessionEntry(session_id="", updated_at=self.now_ms)


class Reply(Struct, frozen=True):
    """What a command answers, and what it changes in the same commit."""

    text: str
    edit: Edit | None = None
    undo_reset: bool = False
    # What it changes beside the session.
    also: Also | None = None


Handler = Callable[[Request, CommandServices], Awaitable[Reply]]


def not_built(what: str) -> Reply:
    """The answer where a power is missing."""
    return Reply(f"{what} is not available in this gateway yet.")
