"""The chat commands of a gateway, with the powers that they get from its engine.

Part of the composition root: what a command may do is decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from openclaw import __version__
from openclaw.app.engine import Engine, Ground
from openclaw.config.load import LoadedConfig
from openclaw.config.shown import shown_text
from openclaw.domain.promptreport import PromptReport
from openclaw.domain.transcript import Message
from openclaw.engine.care import Overhead, QuietListener, window_of
from openclaw.engine.commands.aside import MakeRequest, SideQuestions
from openclaw.engine.commands.exporting import workspace_export
from openclaw.engine.commands.handling import Commands
from openclaw.engine.commands.ports import (
    ChildMessage,
    CommandPowers,
    CommandRules,
    CommandServices,
    CompactionReport,
    SpawnRequest,
)
from openclaw.engine.compaction import Compacted, CompactionResult, tell_result
from openclaw.engine.errands import seed_of
from openclaw.engine.ports import ModelDone, ModelTarget, ToolContext
from openclaw.engine.prompt import prompt_report
from openclaw.engine.purse import Purse, account_of
from openclaw.engine.settings import AgentSettings
from openclaw.engine.subagents import close
from openclaw.engine.turns import Incoming
from openclaw.errors import InvalidRequest
from openclaw.store.bindings import Bindings
from openclaw.store.commands import CommandStore
from openclaw.store.database import Transaction
from openclaw.store.export import Export
from openclaw.store.records import SessionRow, UserInput


def build_commands(
    engine: Engine, ground: Ground, channel_lines: Callable[[int], tuple[str, ...]]
) -> Commands:
    """The commands of a gateway that starts now."""
    powers = EnginePowers(engine, ground)
    settings = ground.source.current
    return Commands(
        CommandServices(
            store=engine.store,
            commands=CommandStore(ground.database),
            bindings=Bindings(ground.database),
            powers=CommandPowers(
                abort_run=engine.turns.abort,
                check_model=ground.source.check_model,
                models=lambda: settings().model_candidates,
                tools=lambda session, agent: engine.tools.specs(
                    agent.tools_for(session.entry, session.session_key) if session else agent.tools
                ),
                compact=powers.compact,
                undo_compaction=powers.undo_compaction,
                ask_aside=SideQuestions(
                    engine.store, powers.context, settings, powers.prompt, powers.ask_models, ground.clock
                ).ask,
                tell_child=powers.tell_child,
                spawn_child=powers.spawn_child,
                close_children=powers.close_children,
                export=workspace_export(engine.store, Export(ground.database), settings),
                prompt_report=powers.report,
                channel_lines=channel_lines,
                show_config=lambda path: shown_text(ground.in_force().config, path),
            ),
            settings=settings,
            rules=lambda: _rules(ground.in_force),
            clock=ground.clock,
            ids=ground.ids,
            emit=ground.emit,
            spawn=ground.spawn,
            version=__version__,
            started_ms=ground.clock.now_ms(),
        )
    )


def _rules(in_force: Callable[[], LoadedConfig]) -> CommandRules:
    commands = in_force().config.commands
    return CommandRules(text=commands.text, config=commands.config, debug=commands.debug)


class EnginePowers:
    """What commands ask of the engine, each a few calls put together."""

    def __init__(self, engine: Engine, ground: Ground) -> None:
        self._engine = engine
        self._ground = ground

    async def context(self, session: SessionRow) -> Sequence[Message]:
        return await self._engine.contexts.messages(session.window_no, session.last_seq)

    async def prompt(self, session: SessionRow) -> str:
        prompt = await self._engine.prompts.for_session(session, self._agent(session))
        return prompt.text

    async def ask_models(
        self, session: SessionRow, targets: Sequence[ModelTarget], make_request: MakeRequest
    ) -> ModelDone:
        purse = self._purse(session, "aside")
        try:
            answer = await self._engine.asking.answer(
                targets, make_request, QuietListener(purse), purse.reserve
            )
            return answer.done
        finally:
            await purse.settle()

    async def compact_session(self, session: SessionRow, instructions: str) -> CompactionResult:
        agent, purse = self._agent(session), self._purse(session, "compact")
        try:
            return await self._engine.care.compact(
                session,
                agent,
                "manual",
                await self._overhead(session),
                purse,
                instructions=instructions,
            )
        finally:
            await purse.settle()

    async def overhead_tokens(self, session: SessionRow) -> int:
        """What a call of this session costs besides its messages."""
        return (await self._overhead(session)).tokens()

    async def compact(self, session_key: str, instructions: str | None) -> CompactionReport:
        session = await self._session(session_key)
        result = await self.compact_session(session, instructions or "")
        return CompactionReport(isinstance(result, Compacted), tell_result(result, self._window(session)))

    async def undo_compaction(self, session_key: str) -> CompactionReport:
        session = await self._session(session_key)
        overhead = (await self._overhead(session)).tokens()
        tokens = await self._engine.care.undo(session, self._agent(session), self._window(session), overhead)
        return CompactionReport(True, f"Compaction undone: the context has about {tokens} tokens again.")

    async def report(self, session: SessionRow | None, agent: AgentSettings) -> PromptReport:
        """What a turn would be given now."""
        prompt = await self._engine.prompts.for_session(session, agent)
        tools = self._engine.tools.specs(agent.tools)
        report = msgspec.convert(prompt_report(prompt, tools, ""), PromptReport)
        entry = session.entry if session else None
        return msgspec.structs.replace(
            report,
            session_tokens=entry.total_tokens if entry else None,
            context_tokens=entry.context_tokens if entry else None,
            source="estimate",
        )

    async def tell_child(self, message: ChildMessage) -> None:
        """A person writes to a helper; with `interrupt` its run starts anew with it."""
        row = await self._engine.store.session(message.child_key)
        if row is None:
            raise InvalidRequest("This helper is gone.")
        mode = "interrupt" if message.interrupt else "steer"
        body = UserInput(message.text, self._ground.clock.now_ms(), queue_mode=mode)
        await self._engine.turns.accept(Incoming(message.run_id, seed_of(row), "cli", "operator", body))

    async def spawn_child(self, request: SpawnRequest) -> str:
        """A person starts a helper, by the tool that agents use."""
        row = await self._session(request.parent_key)
        agent = self._agent(row)
        context = ToolContext(
            row.session_key, row.entry.session_id, row.agent_id, request.run_id, "command",
            self._ground.clock.now_ms(), owner=True, workspace=agent.workspace,
            sandboxed=agent.is_sandboxed(row.session_key),
        )  # fmt: skip
        outcome = await self._engine.tools.call(
            "sessions_spawn", {"task": request.task}, context, ("sessions_spawn",)
        )
        if outcome.effect is not None:
            effect, after = outcome.effect, outcome.after
            outcome = await self._ground.database.write(effect)
            if after is not None and not outcome.is_error:
                after()
        told = outcome.details or {}
        if outcome.is_error:
            raise InvalidRequest(str(told.get("error") or "the helper could not be started"))
        return str(told["childSessionKey"])

    async def close_children(self, child_keys: tuple[str, ...], tell: bool) -> None:
        """Settle helpers that were stopped, in one commit."""
        woken: list[str] = []
        now_ms = self._ground.clock.now_ms()

        def unit(tx: Transaction) -> None:
            woken.clear()
            for child_key in child_keys:
                close(tx, child_key, now_ms, woken, tell=tell)

        await self._ground.database.write(unit)
        for session_key in woken:
            self._engine.workers.wake(session_key)

    async def _session(self, session_key: str) -> SessionRow:
        session = await self._engine.store.session(session_key)
        if session is None:
            raise InvalidRequest("There is nothing to compact yet.")
        return session

    def _agent(self, session: SessionRow) -> AgentSettings:
        return self._ground.source.current().agent(session.agent_id)

    def _window(self, session: SessionRow) -> int:
        agent = self._agent(session)
        return window_of(agent, agent.choose_models(session.entry, None)[0])

    async def _overhead(self, session: SessionRow) -> Overhead:
        agent = self._agent(session)
        prompt = await self._engine.prompts.for_session(session, agent)
        return Overhead(prompt.text, self._engine.tools.specs(agent.tools))

    def _purse(self, session: SessionRow, what: str) -> Purse:
        agent, call = self._agent(session), f"{what}-{self._ground.ids.uuid()}"
        return Purse(account_of(session, agent, call, call), agent, self._engine.budgets, self._ground.clock)
