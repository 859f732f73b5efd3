"""The people, platforms and accidents around a simulated gateway: each action is one kind of step.

An action is either done at once or is a client's request, a task of its own that may be cut off. What a
client is told is checked against the rows at that moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, ClassVar

from msgspec.structs import replace

from openclaw.domain.commands import CommandCaller
from openclaw.domain.transcript import AssistantMessage, Provenance, TextBlock
from openclaw.engine.drafts import draft_message, draft_note
from openclaw.engine.turns import Incoming, Receipt
from openclaw.errors import IdempotencyConflict, OpenClawError
from openclaw.store.inbox import ExternalId
from openclaw.store.records import UserInput
from tests.simulation.configuring import CHANNELS, PLACES, Place
from tests.simulation.memory import Sent
from tests.simulation.process import Process

WEIGHTS = {
    "send": 90, "send again": 10, "reuse a key": 3, "same message id": 4, "abort a run": 8,
    "abort a session": 6, "reset by text": 6, "reset": 2, "undo a reset": 3, "wait": 8, "hang up": 4,
    "inject": 3, "choose a mode": 3, "reload": 3, "jump in time": 4, "sweep": 5, "deliver": 8, "delete": 1,
    "full disk": 1, "stop": 1, "crash": 3,
}  # fmt: skip
MODES = (None, None, None, "steer", "followup", "collect", "interrupt", "queue")
OVERSLEPT_S = 10.0
_PROVENANCE = {
    "inter_session": Provenance("inter_session", source_session_key="agent:main:main"),
    "cron": Provenance("internal_system"),
}


class Actors:
    weights: ClassVar[dict[str, int]] = WEIGHTS

    def __init__(self, process: Process) -> None:
        self.process = process
        self.memory = process.memory
        self.rng = process.rng
        self.clients: dict[asyncio.Task[None], Sent | None] = {}
        self.stop_asked = False

    def act(self) -> None:
        """One step, drawn from the seed."""
        kind = self.rng.choices(tuple(self.weights), tuple(self.weights.values()))[0]
        getattr(self, f"_{kind.replace(' ', '_')}")(kind)

    def _request(self, work: Coroutine[Any, Any, None], sent: Sent | None = None) -> None:
        task = self.process.loop.create_task(work)
        self.clients[task] = sent
        task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self.clients.pop(task, None)
        if not task.cancelled() and (error := task.exception()) and not self.process.database.dead:
            self.memory.violations.append(f"a request failed inside the gateway: {error!r}")

    def _place(self) -> Place:
        return self.rng.choice(PLACES)

    def _recent(self) -> Sent | None:
        recent = list(self.memory.sent.values())[-40:]
        return self.rng.choice(recent) if recent else None

    # -- messages ------------------------------------------------------------------------------

    def _send(self, kind: str) -> None:
        self._send_text(kind, f"message {len(self.memory.sent) + 1}")

    def _reset_by_text(self, kind: str) -> None:
        rest = self.rng.choice(("", f" message {len(self.memory.sent) + 1}"))
        self._send_text(kind, self.rng.choice(("/new", "/reset", "/fresh")) + rest, reset=True)

    def _send_text(self, kind: str, text: str, *, reset: bool = False) -> None:
        place = self._place()
        number = len(self.memory.sent) + 1
        mode = self.rng.choice(MODES)
        principal = self.rng.choice(place.principals)
        route, external = place.route, None
        if route is not None and route.channel and self.rng.random() < 0.7:
            external = ExternalId(route.channel, "home", str(route.to), f"x{number}")
        key = place.seed.session_key
        # One turn has one principal: who steers may overtake others, whoever waits in line may not.
        waits = mode in ("followup", "collect", "interrupt")
        group = (key, mode, place.source, principal == "operator" if waits else principal, route)
        sent = Sent(f"r{number}", key, text, mode, group, external, reset)
        incoming = self._incoming(sent, place, principal)
        if self.rng.random() < 0.06:
            left_ms = self.rng.choice((5, 500, 60_000))
            incoming = replace(incoming, expires_at=self.process.clock.now_ms() + left_ms)
        if self.rng.random() < 0.05:
            incoming = replace(incoming, timeout_s=self.rng.choice((0.5, 20.0)))
        self.memory.sent[sent.run_id] = sent
        self.memory.incoming[sent.run_id] = incoming
        if external is not None:
            self.memory.externals[external] = sent.run_id
        if reset:
            self.memory.quietly_cancelled.add(key)
        self.memory.step(kind, f"{sent.run_id} {text!r} to {key} {mode or ''}")
        self._request(self._hand_in(sent, incoming), sent)

    def _incoming(self, sent: Sent, place: Place, principal: str) -> Incoming:
        body = UserInput(
            sent.text,
            self.process.clock.now_ms(),
            route=place.route,
            provenance=_PROVENANCE.get(place.source),
            deliver=place.route is not None,
            queue_mode=sent.mode,
        )
        caller = CommandCaller(authorised=principal in ("operator", "ann"))
        return Incoming(sent.run_id, place.seed, place.source, principal, body, sent.external, caller=caller)

    async def _hand_in(self, sent: Sent, incoming: Incoming) -> None:
        sent.attempts += 1
        try:
            receipt = await self.process.turns.accept(incoming)
        except OpenClawError as error:
            self.memory.note(f"{sent.run_id} refused: {error}")
            if sent.status == "pending":
                sent.status = "refused"
            if sent.attempts == 1 and self._row_of(sent.run_id) is not None:
                self.memory.broken(f"{sent.run_id} was refused and is stored: {error}")
            return
        self._check_receipt(sent, receipt)

    def _check_receipt(self, sent: Sent, receipt: Receipt) -> None:
        if self.process.database.dead:
            return
        if receipt.run_id != sent.run_id or self._row_of(sent.run_id) is None:
            self.memory.broken(f"{sent.run_id} was acknowledged as {receipt.run_id} and is not stored")
        sent.taken += not receipt.duplicate
        if sent.taken > 1:
            self.memory.broken(f"{sent.run_id} was taken in twice")
        sent.status = "accepted"

    def _row_of(self, run_id: str) -> tuple[Any, ...] | None:
        rows = self.memory.image.peek(
            "SELECT inbox.state, inbox.consumed_by, runs.state FROM inbox "
            "LEFT JOIN runs ON runs.run_id = inbox.consumed_by WHERE inbox.run_id = ?",
            run_id,
        )
        return rows[0] if rows else None

    def _send_again(self, kind: str) -> None:
        sent = self._recent()
        if sent is not None:
            self.memory.step(kind, sent.run_id)
            self._request(self._hand_in(sent, self.memory.incoming[sent.run_id]))

    def _reuse_a_key(self, kind: str) -> None:
        sent = self._recent()
        if sent is not None and sent.status == "accepted":
            self.memory.step(kind, sent.run_id)
            incoming = self.memory.incoming[sent.run_id]
            other = replace(incoming, body=replace(incoming.body, content="something else"))
            self._request(self._expect_conflict(other))

    async def _expect_conflict(self, incoming: Incoming) -> None:
        try:
            await self.process.turns.accept(incoming)
        except IdempotencyConflict:
            return
        except OpenClawError as error:
            self.memory.note(f"refused: {error}")
            return
        self.memory.broken(f"{incoming.run_id} was taken for another message")

    def _same_message_id(self, kind: str) -> None:
        sent = self._recent()
        if sent is not None and sent.status == "accepted" and sent.external is not None:
            self.memory.step(kind, sent.run_id)
            incoming = replace(self.memory.incoming[sent.run_id], run_id=f"again {sent.run_id}")
            self._request(self._expect_known(sent, incoming))

    async def _expect_known(self, sent: Sent, incoming: Incoming) -> None:
        try:
            receipt = await self.process.turns.accept(incoming)
        except OpenClawError as error:
            self.memory.note(f"refused: {error}")
            return
        if receipt.run_id != sent.run_id or not receipt.duplicate:
            self.memory.broken(f"the platform's message of {sent.run_id} was taken twice: {receipt}")

    def _hang_up(self, kind: str) -> None:
        """A client goes away while its message is being taken in."""
        waiting = [(task, sent) for task, sent in self.clients.items() if sent is not None]
        if waiting:
            task, sent = self.rng.choice(waiting)
            assert sent is not None
            self.memory.step(kind, sent.run_id)
            sent.status = "unknown"
            # What its message dropped from the queue is then told to nobody.
            self.memory.quietly_cancelled.add(sent.session_key)
            self.process.excused.add(sent.session_key)
            task.cancel()

    # -- stopping and starting over ------------------------------------------------------------

    def _abort_a_run(self, kind: str) -> None:
        sent = self._recent()
        if sent is not None:
            self.memory.step(kind, sent.run_id)
            self._request(self._abort(sent.session_key, sent.run_id))

    def _abort_a_session(self, kind: str) -> None:
        key = self._place().seed.session_key
        self.memory.step(kind, key)
        self._request(self._abort(key, None))

    async def _abort(self, session_key: str, run_id: str | None) -> None:
        with suppress(OpenClawError):
            stopped = await self.process.turns.abort(session_key, run_id)
            self.memory.note(f"stopped {stopped}")
            for handle in stopped if not self.process.database.dead else ():
                row = self._row_of(handle)
                running = row is not None and row[0] != "cancelled" and row[2] != "ended"
                if running:
                    self.memory.broken(f"{handle} was said to be stopped and is not: {row}")

    def _reset(self, kind: str) -> None:
        key = self._place().seed.session_key
        self.memory.step(kind, key)

        async def reset() -> None:
            with suppress(OpenClawError):
                await self.process.turns.abort(key)
                self.memory.quietly_cancelled.add(key)
                process = self.process
                await process.store.reset_session(
                    key, "reset", session_id=process.ids.uuid(), now_ms=process.clock.now_ms()
                )

        self._request(reset())

    def _undo_a_reset(self, kind: str) -> None:
        key = self._place().seed.session_key
        self.memory.step(kind, key)

        async def undo() -> None:
            with suppress(OpenClawError):
                await self.process.store.undo_reset(key, now_ms=self.process.clock.now_ms())

        self._request(undo())

    def _delete(self, kind: str) -> None:
        key = self._place().seed.session_key
        self.memory.step(kind, key)

        async def delete() -> None:
            with suppress(OpenClawError):
                await self.process.turns.abort(key)
                self.memory.quietly_cancelled.add(key)
                await self.process.store.delete_session(key, now_ms=self.process.clock.now_ms())

        self._request(delete())

    # -- waiting and looking after -------------------------------------------------------------

    def _wait(self, kind: str) -> None:
        sent = self._recent()
        if sent is not None:
            self.memory.step(kind, sent.run_id)
            self._request(self._wait_for(sent))

    async def _wait_for(self, sent: Sent) -> None:
        loop, began_s = self.process.loop, self.process.loop.time()
        try:
            row = await self.process.turns.wait(sent.run_id, self.rng.choice((0.5, 60.0)))
        except OpenClawError:
            return
        if row is None or self.process.database.dead:
            return
        if row.state != "ended":
            self.memory.broken(f"a wait for {sent.run_id} ended before its run")
        ended_s = self.memory.ended_s.get(row.run_id)
        if ended_s is not None and ended_s > began_s and loop.time() - ended_s > OVERSLEPT_S:
            late_s = loop.time() - ended_s
            self.memory.broken(f"a wait for {sent.run_id} overslept the end of {row.run_id} by {late_s} s")

    def _sweep(self, kind: str) -> None:
        self.memory.step(kind)
        self._request(self.sweep())

    async def sweep(self) -> None:
        with suppress(OpenClawError):
            touched = await self.process.watchdog.sweep()
            if touched:
                self.memory.note(f"the sweep took up {touched}")

    def _deliver(self, kind: str) -> None:
        channel = self.rng.choice(CHANNELS)
        self.memory.step(kind, channel)

        async def deliver() -> None:
            store, clock = self.process.store, self.process.clock
            with suppress(OpenClawError):
                for delivery in await store.deliveries_due(channel, now_ms=clock.now_ms()):
                    if await store.start_delivery(delivery.delivery_no, now_ms=clock.now_ms()):
                        self.memory.delivered[delivery.delivery_no] += 1
                        await asyncio.sleep(0.002)
                        await store.settle_delivery(delivery.delivery_no, "sent", now_ms=clock.now_ms())

        self._request(deliver())

    # -- the ground ----------------------------------------------------------------------------

    def _inject(self, kind: str) -> None:
        key = self._place().seed.session_key
        self.memory.step(kind, key)
        now_ms = self.process.clock.now_ms()
        said = draft_message(AssistantMessage((TextBlock("a note"),), now_ms), "injected")
        draft = self.rng.choice((said, draft_note("note", "a hidden note", "injected")))

        async def inject() -> None:
            with suppress(OpenClawError):
                await self.process.store.append(key, (draft,), now_ms=now_ms)

        self._request(inject())

    def _choose_a_mode(self, kind: str) -> None:
        place, mode = self._place(), self.rng.choice(MODES)
        self.memory.step(kind, f"{place.seed.session_key} {mode}")
        process = self.process

        async def choose() -> None:
            with suppress(OpenClawError):
                await process.store.edit_session(
                    place.seed,
                    lambda entry: replace(entry, queue_mode=mode),
                    session_id=process.ids.uuid(),
                    now_ms=process.clock.now_ms(),
                )

        self._request(choose())

    def _reload(self, kind: str) -> None:
        self.memory.step(kind)
        self.process.reload(self.process.draw_settings(self.rng))

    def _jump_in_time(self, kind: str) -> None:
        minutes = self.rng.choice((1, 40, 13 * 60, 26 * 60, -1.5))
        self.memory.step(kind, f"{minutes} min")
        self.memory.jump_ms += round(minutes * 60_000)

    def _full_disk(self, kind: str) -> None:
        self.memory.step(kind)
        faults = self.memory.faults
        faults.broken = True
        self.process.loop.call_later(self.rng.choice((0.002, 0.05, 2)), setattr, faults, "broken", False)

    def _stop(self, kind: str) -> None:
        self.memory.step(kind)
        self.stop_asked = True

    def _crash(self, kind: str) -> None:
        if self.process.loop.crash_in is None:
            self.memory.step(kind)
            self.process.loop.crash_in = self.rng.randrange(400)
