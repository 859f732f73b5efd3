"""A message through the commands: read it, carry out what it asks, answer once (QUE-9, CMD-13).

Commands are answered at once, outside queue and model. Quick ones are one commit:
effect, record and answer together. Those that take their time are taken first and
answered when they are done; the answer is announced as an event. What a crash cut off
is settled by `recover`, visibly.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from msgspec import structs

from openclaw.domain.commands import (
    CommandCaller,
    CommandOnly,
    PlainText,
    Unheard,
    WithText,
    read_message,
)
from openclaw.domain.directives import Asked, ModelWord
from openclaw.domain.entry import SessionEntry
from openclaw.domain.lifecycle import TurnSource
from openclaw.domain.queueing import QueueSet, parse_queue_directive
from openclaw.engine.commands import care, choosing, toggles
from openclaw.engine.commands.ports import (
    CommandServices,
    Handled,
    Ignored,
    NotACommand,
    PassOn,
    ReadOutcome,
    Reply,
    Request,
)
from openclaw.engine.commands.record import answer_of
from openclaw.engine.commands.table import BACKGROUND, HANDLERS, UNSHOWN, is_taken_first
from openclaw.engine.events import CommandAnswered, EngineEvent, MessageStored, RunScope
from openclaw.errors import OpenClawError
from openclaw.store.commands import Also, AnsweredCommand, Edit, SeenCommand, TakenCommand
from openclaw.store.database import Transaction
from openclaw.store.inbox import NewInput
from openclaw.store.records import UserInput

log = logging.getLogger("openclaw.commands")

INTERRUPTED = "The gateway stopped while this command was carried out. Send it again if it is still wanted."
# Only people give commands: text from other sessions, timers and hooks is data.
_PEOPLE: frozenset[TurnSource] = frozenset(("channel", "webchat", "cli", "api", "node"))


class Commands:
    """Reads messages before they become turns."""

    def __init__(self, services: CommandServices) -> None:
        self._services = services
        self._working: set[str] = set()  # commands that were taken and are being carried out

    async def read(self, new: NewInput, caller: CommandCaller) -> ReadOutcome:
        """What becomes of a message. `Handled` means that the command is on disk.

        Raises IdempotencyConflict when the key was used for another message, and store errors; then
        nothing was stored. Everything else that goes wrong is told in the answer.
        """
        text = _readable(new)
        if text is None:
            return NotACommand()
        rules = self._services.rules()
        if not rules.text and new.source == "channel":
            return NotACommand()
        names = self._services.settings().agent(new.seed.agent_id).call_names.plain
        reading = read_message(
            text,
            caller,
            mention_names=(*rules.mention_names, *names),
            model_word=self._names_a_model(new),
        )
        if isinstance(reading, PlainText):
            return NotACommand()
        if isinstance(reading, Unheard):
            return Ignored()
        if isinstance(reading, CommandOnly):
            return await self._handle(new, caller, reading.asked)
        return await self._pass_on(new, caller, reading)

    async def recover(self) -> int:
        """Settle commands that a crash cut off; how many. Call it once, before messages are taken."""
        unanswered = await self._services.commands.unanswered()
        for run_id, _key, body in unanswered:
            await self._settle(run_id, body)
        return len(unanswered)

    async def _settle(self, run_id: str, body: UserInput) -> AnsweredCommand | None:
        """Answer a command that nobody carries out any more; None when it needs no answer."""
        now_ms = self._services.clock.now_ms()
        answer = structs.replace(answer_of(run_id, body, INTERRUPTED, now_ms), interrupted=True)
        answered = await self._services.commands.answer(run_id, answer, now_ms=now_ms)
        if answered is not None:
            self._tell(answered, interrupted=True)
        return answered

    # -- a command alone -----------------------------------------------------------------------

    async def _handle(self, new: NewInput, caller: CommandCaller, asked: tuple[Asked, ...]) -> ReadOutcome:
        first = asked[0]
        if first.name == "steer":
            body = structs.replace(new.body, content=first.args, queue_mode="steer")
            return PassOn(body, asked) if first.args else await self._at_once(new, caller, asked)
        if first.name == "reset" and len(first.args.split(maxsplit=1)) > 1:
            return await self._reset_with_message(new, caller, first)
        if is_taken_first(first):
            return await self._take(new, caller, first)
        return await self._at_once(new, caller, asked)

    async def _at_once(self, new: NewInput, caller: CommandCaller, asked: Sequence[Asked]) -> Handled:
        """Carry out and answer in one commit."""
        services = self._services
        seen = await services.commands.seen(new)
        if seen is not None:
            return self._again(seen)
        replies = [await self._reply(await self._request(new, caller, one)) for one in asked]
        reply = Reply(
            "\n".join(reply.text for reply in replies),
            _one_edit(replies),
            any(reply.undo_reset for reply in replies),
            _one_also(replies),
        )
        answered = await self._commit(new, reply)
        if isinstance(answered, SeenCommand):
            return self._again(answered)
        self._tell(answered, names=tuple(one.name for one in asked))
        return Handled(new.run_id, answered.session.session_key, services.clock.now_ms(), answered.answer)

    async def _commit(self, new: NewInput, reply: Reply) -> AnsweredCommand | SeenCommand:
        services, now_ms = self._services, self._services.clock.now_ms()
        try:
            return await services.commands.handle(
                new,
                answer_of(new.run_id, new.body, reply.text, now_ms),
                session_id=services.ids.uuid(),
                now_ms=now_ms,
                edit=reply.edit,
                undo_reset=reply.undo_reset,
                also=reply.also,
            )
        except OpenClawError as error:
            if error.code != "INVALID_REQUEST" or (reply.edit is None and not reply.undo_reset):
                raise
            # What the command wanted was refused; the person is told why.
            return await self._commit(new, Reply(error.message))

    async def _reset_with_message(self, new: NewInput, caller: CommandCaller, asked: Asked) -> ReadOutcome:
        """`/reset soft` and a message: the prompt is renewed, then the message is an ordinary turn."""
        services = self._services
        await services.store.edit_session(
            new.seed, care.soften, session_id=services.ids.uuid(), now_ms=services.clock.now_ms()
        )
        rest = asked.args.split(maxsplit=1)[1]
        return PassOn(structs.replace(new.body, content=rest), (Asked("reset", "soft"),))

    # -- commands that take their time ---------------------------------------------------------

    async def _take(self, new: NewInput, caller: CommandCaller, asked: Asked) -> Handled:
        services, now_ms = self._services, self._services.clock.now_ms()
        stopping_now = asked.name == "stop"
        taken = await services.commands.take(
            new,
            session_id=services.ids.uuid(),
            now_ms=now_ms,
            edit=_cut_off(new, now_ms) if stopping_now else None,
            cancel=stopping_now,
        )
        if isinstance(taken, SeenCommand):
            return await self._take_again(new, taken)
        self._working.add(new.run_id)
        if asked.name in BACKGROUND:
            services.spawn(self._finish_quietly(new, caller, asked, taken))
            return Handled(new.run_id, taken.session.session_key, now_ms, None)
        text = await self._finish(new, caller, asked, taken)
        return Handled(new.run_id, taken.session.session_key, now_ms, text)

    async def _take_again(self, new: NewInput, seen: SeenCommand) -> Handled:
        """The same message: its answer, or that it is in work; one that was given up is settled."""
        if seen.answer is None and seen.run_id not in self._working:
            settled = await self._settle(seen.run_id, new.body)
            if settled is not None:
                seen = structs.replace(seen, answer=settled.answer)
        return self._again(seen)

    async def _finish(
        self, new: NewInput, caller: CommandCaller, asked: Asked, taken: TakenCommand
    ) -> str | None:
        try:
            return await self._carry_out(new, caller, asked, taken)
        finally:
            self._working.discard(new.run_id)

    async def _carry_out(
        self, new: NewInput, caller: CommandCaller, asked: Asked, taken: TakenCommand
    ) -> str | None:
        services = self._services
        request = structs.replace(await self._request(new, caller, asked), taken=taken)
        reply = await self._reply(request)
        now_ms = services.clock.now_ms()
        answer = answer_of(new.run_id, new.body, reply.text, now_ms, shown=asked.name not in UNSHOWN)
        answered = await services.commands.answer(new.run_id, answer, now_ms=now_ms, edit=reply.edit)
        if answered is None:
            return None  # the session was deleted meanwhile
        self._tell(structs.replace(answered, created=taken.created), names=(asked.name,))
        return answered.answer

    async def _finish_quietly(
        self, new: NewInput, caller: CommandCaller, asked: Asked, taken: TakenCommand
    ) -> None:
        """As a task of its own, where a failing store has nobody to tell: the next start settles it."""
        try:
            await self._finish(new, caller, asked, taken)
        except OpenClawError as error:
            log.error("command /%s in %s has no answer: %s", asked.name, new.seed.session_key, error)
        except Exception:
            # A task that fails would take the gateway with it.
            log.exception("command /%s in %s has no answer", asked.name, new.seed.session_key)

    # -- commands inside a message -------------------------------------------------------------

    async def _pass_on(self, new: NewInput, caller: CommandCaller, reading: WithText) -> PassOn:
        body = structs.replace(new.body, content=reading.rest)
        for one in reading.directives:
            body = self._with_directive(new, body, one)
        if reading.shortcuts:
            await self._answer_shortcuts(structs.replace(new, body=body), caller, reading.shortcuts)
        return PassOn(body, reading.directives)

    def _with_directive(self, new: NewInput, body: UserInput, asked: Asked) -> UserInput:
        """For this message only: what the body has a field for (CMD-10)."""
        value = asked.args
        if asked.name == "think":
            return structs.replace(body, thinking=None if value == "default" else value)
        if asked.name in ("verbose", "reasoning", "elevated"):
            return structs.replace(body, **{asked.name: None if value == "default" else value})
        if asked.name == "queue":
            # The other options are about the queue, not about one message.
            directive = parse_queue_directive(f"/queue {value}")
            mode = directive.overrides.mode if isinstance(directive, QueueSet) else None
            return structs.replace(body, queue_mode=mode)
        if asked.name == "model":
            hint = choosing.model_hint(value, self._services, self._default_model(new))
            return body if hint is None else structs.replace(body, model=f"{hint.provider}/{hint.model}")
        return body

    async def _answer_shortcuts(self, new: NewInput, caller: CommandCaller, shortcuts: Sequence[str]) -> None:
        services = self._services
        replies = [await self._reply(await self._request(new, caller, Asked(name))) for name in shortcuts]
        text = "\n\n".join(reply.text for reply in replies)
        run_id, now_ms = f"{new.run_id}:inline", services.clock.now_ms()
        answer = answer_of(run_id, new.body, text, now_ms, with_message=False)
        answered = await services.commands.note(new, answer, session_id=services.ids.uuid(), now_ms=now_ms)
        if answered is not None:
            self._tell(structs.replace(answered, run_id=run_id))

    # -- the parts -----------------------------------------------------------------------------

    async def _request(self, new: NewInput, caller: CommandCaller, asked: Asked) -> Request:
        services, settings = self._services, self._services.settings()
        return Request(
            asked=asked,
            caller=caller,
            new=new,
            session=await services.store.session(new.seed.session_key),
            settings=settings,
            agent=settings.agent(new.seed.agent_id),
            rules=services.rules(),
            now_ms=services.clock.now_ms(),
        )

    async def _reply(self, request: Request) -> Reply:
        name = request.asked.name
        try:
            return await HANDLERS[name](request, self._services)
        except OpenClawError as error:
            return Reply(error.message)
        except Exception:
            log.exception("command /%s failed in %s", name, request.session_key)
            return Reply(f"/{name} failed inside the gateway; its log has the details.")

    def _again(self, seen: SeenCommand) -> Handled:
        now_ms = self._services.clock.now_ms()
        return Handled(seen.run_id, seen.session_key, now_ms, seen.answer, duplicate=True)

    def _tell(
        self, answered: AnsweredCommand, *, interrupted: bool = False, names: tuple[str, ...] = ()
    ) -> None:
        """Announce what history shows, and the answer between the two, as clients know it."""
        session, emit = answered.session, self._services.emit
        scope = RunScope(answered.run_id, session.session_key, session.agent_id, session.entry.session_id)
        told = CommandAnswered(
            scope, session, answered.answer, self._services.clock.now_ms(), answered.entries,
            answered.created, interrupted, names,
        )  # fmt: skip
        said = [MessageStored(scope, session, entry) for entry in answered.entries if entry.role == "user"]
        replied = [MessageStored(scope, session, entry) for entry in answered.entries[len(said) :]]
        events: list[EngineEvent | CommandAnswered] = [*said, told, *replied]
        for event in events:
            # After the caller's own acknowledgement.
            asyncio.get_running_loop().call_soon(emit, event)

    def _default_model(self, new: NewInput) -> tuple[str, str]:
        target = self._services.settings().agent(new.seed.agent_id).default_model
        return target.provider, target.model

    def _names_a_model(self, new: NewInput) -> ModelWord:
        default = self._default_model(new)
        return lambda word: choosing.model_hint(word, self._services, default) is not None


def _readable(new: NewInput) -> str | None:
    """The text in which a person may have written a command."""
    body = new.body
    if new.source not in _PEOPLE or body.hidden_prompt or not isinstance(body.content, str):
        return None
    provenance = body.provenance
    return None if provenance is not None and provenance.kind != "external_user" else body.content


def _one_edit(replies: Sequence[Reply]) -> Edit | None:
    edits = [reply.edit for reply in replies if reply.edit is not None]
    if not edits:
        return None

    def edit(entry: SessionEntry) -> SessionEntry:
        for one in edits:
            entry = one(entry)
        return entry

    return edit


def _one_also(replies: Sequence[Reply]) -> Also | None:
    changes = [reply.also for reply in replies if reply.also is not None]
    if not changes:
        return None

    def also(tx: Transaction) -> None:
        for change in changes:
            change(tx)

    return also


def _cut_off(new: NewInput, now_ms: int) -> Edit:
    """Note the stop in the row, for clients; what was received before is cancelled with it (CMD-6)."""
    message_id = new.external.message_id if new.external else None
    return toggles.setting(abort_cutoff_message_sid=message_id, abort_cutoff_timestamp=now_ms)
