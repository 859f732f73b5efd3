"""What people on a channel see of one run besides its reply: tools, thinking, compactions (CMD-10, COMP-5).

Each note is a delivery like any other: written in the commit of the step that it
tells of, or by itself where there is none, and carried by the outbox. A session that may
not send shows nothing (SEND-9), nor does a turn that no person reads.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from openclaw.domain import showing
from openclaw.domain.entry import DeliveryContext
from openclaw.domain.policy import decide_send, send_facts
from openclaw.domain.showing import ShownLevels
from openclaw.domain.transcript import AssistantMessage, ToolResultMessage, encode, tool_calls_of
from openclaw.engine import events
from openclaw.engine.compaction import Compacted, CompactionResult
from openclaw.engine.events import EventSink, RunScope
from openclaw.engine.ports import Clock
from openclaw.engine.replies import DELIVERY_TTL_MS, is_read_by_people, reply_route
from openclaw.engine.settings import EngineSettings
from openclaw.engine.started import StartedRun
from openclaw.engine.tools.registry import ToolRegistry
from openclaw.store import outbox
from openclaw.store.database import Transaction
from openclaw.store.records import DeliveryDraft, EntryDraft
from openclaw.store.runs import Effects
from openclaw.store.sidenotes import SideNoteDesk
from openclaw.store.store import Store


class SideNotes:
    def __init__(
        self,
        start: StartedRun,
        scope: RunScope,
        shown: ShownLevels,
        settings: EngineSettings,
        *,
        store: Store,
        desk: SideNoteDesk,
        tools: ToolRegistry,
        clock: Clock,
        emit: EventSink,
    ) -> None:
        self._start = start
        self._scope = scope
        self._shown = shown
        self._settings = settings
        self._store = store
        self._desk = desk
        self._tools = tools
        self._clock = clock
        self._emit = emit
        self._count = 0
        self._in_step = False
        self.route = _route_of(start)

    # -- in the commit of a step ---------------------------------------------------------------

    async def of_calls(self, message: AssistantMessage) -> Effects | None:
        """What the step that keeps these calls shall tell besides, if anything."""
        parts = []
        if self._shown.reasoning == "on" and (thought := showing.thinking_of(message)):
            parts.append(showing.thinking_text(thought))
        if self._shown.verbose != "off":
            parts.append(showing.calls_text(tool_calls_of(message), self._tools.secrets()))
        if not parts or self._scope.hidden or not await self._may_leave():
            return None
        draft, now_ms = self._draft("\n\n".join(parts)), self._clock.now_ms()

        def effects(tx: Transaction) -> Sequence[EntryDraft]:
            self._prepare(tx, draft, now_ms)
            return ()

        self._in_step = True
        return effects

    async def of_results(self, effects: Effects, kept: Sequence[ToolResultMessage]) -> Effects:
        """The effects of a step of tools, with a note of what they answered where it is wanted."""
        if self._shown.verbose != "full" or self._scope.hidden or not await self._may_leave():
            return effects
        empty, now_ms, secrets = self._draft(""), self._clock.now_ms(), self._tools.secrets()

        def both(tx: Transaction) -> Sequence[EntryDraft]:
            drafts = effects(tx)
            body = encode({"text": showing.results_text(kept, secrets)})
            self._prepare(tx, msgspec.structs.replace(empty, body=body), now_ms)
            return drafts

        self._in_step = True
        return both

    def told(self) -> None:
        """A step was kept: if a note came with it, whoever carries deliveries hears of it."""
        if self._in_step:
            self._in_step = False
            self._emit(events.SideNotePosted(self._scope))

    # -- by themselves -------------------------------------------------------------------------

    async def compaction_begins(self) -> None:
        if self._settings.agent(self._scope.agent_id).notify_compaction:
            await self._post(showing.COMPACTION_BEGINS)

    async def compaction_ended(self, result: CompactionResult) -> None:
        """Told to people who asked for it, and to those who turned verbose on (COMP-5, COMP-11)."""
        wanted = self._settings.agent(self._scope.agent_id).notify_compaction
        done = isinstance(result, Compacted)
        if wanted or (done and self._shown.verbose != "off"):
            tokens = (result.tokens_before, result.tokens_after) if isinstance(result, Compacted) else None
            await self._post(showing.compaction_ended_text(tokens))

    async def _post(self, text: str) -> None:
        if await self._may_leave():
            await self._desk.post(self._draft(text), self._scope.session_key, now_ms=self._clock.now_ms())
            self._emit(events.SideNotePosted(self._scope))

    # -- the parts -----------------------------------------------------------------------------

    async def _may_leave(self) -> bool:
        """Asked of the row as it is now: a person may have closed the session meanwhile."""
        if self.route is None:
            return False
        row = await self._store.session(self._scope.session_key)
        if row is None:
            return False
        facts = send_facts(row.entry, row.session_key, request_channel=self.route.channel)
        return decide_send(self._settings.send_policy, facts).action == "allow"

    def _draft(self, text: str) -> DeliveryDraft:
        assert self.route is not None
        self._count += 1
        # A run that goes on after a crash begins to count anew, under another fence.
        key = f"{self._scope.run_id}:{self._start.run.fence}:note:{self._count}"
        expires_at = self._clock.now_ms() + DELIVERY_TTL_MS
        return DeliveryDraft(key, self.route, encode({"text": text}), expires_at)

    def _prepare(self, tx: Transaction, draft: DeliveryDraft, now_ms: int) -> None:
        # Not under the run's id: that is for its reply, which may take over a draft that people see.
        outbox.prepare(tx, draft, self._scope.session_key, None, now_ms)


def _route_of(start: StartedRun) -> DeliveryContext | None:
    """Where the person is who reads along; a memory flush belongs to the turn that caused it."""
    if start.inputs and start.inputs[0].body.purpose == "flush":
        return start.inputs[0].body.route
    return reply_route(start) if is_read_by_people(start) else None
