"""Carries what stands in the outbox, each delivery to its one recipient, in order per recipient.

The rows are the truth: what is due is asked, not remembered. A delivery is marked as being
sent before it is sent. One whose fate nobody knows is `unknown` and stays so until a person
decides; only what the platform refused to take is tried again (PITFALLS C4).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Literal

import msgspec

from openclaw.channels.base import Connector, NotSent, Outgoing
from openclaw.channels.media import NO_GUARD, Guard, load_media
from openclaw.engine.ports import Clock
from openclaw.errors import OpenClawError
from openclaw.store import outbox
from openclaw.store.database import Database, Transaction
from openclaw.store.outbox import Delivery

log = logging.getLogger("openclaw.channels")
SWEEP_S = 5.0
SEND_WITHIN_S = 120.0
AT_ONCE = 16
LOOKED_AT = 500
LEAST_WAIT_S = 0.5
LONGEST_WAIT_S = 300.0

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
Recipient = tuple[str, str, str | None, str | None]
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Postman:
    """One for all channels. `drafts` tells which message already shows the beginning of a run's reply;
    `guard` which files may not leave with one; `on_sent` hears what a platform has taken, and its text.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        spawn: Spawn,
        drafts: Callable[[str | None], Awaitable[str | None]],
        guard: Guard = NO_GUARD,
        on_sent: Callable[[Delivery, str], None] = lambda _delivery, _text: None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._spawn = spawn
        self._drafts = drafts
        self._guard = guard
        self._on_sent = on_sent
        self._connectors: dict[tuple[str, str], Connector] = {}
        self._to_resume: set[tuple[str, str]] = set()
        self._busy: set[Recipient] = set()
        self._not_before: dict[Recipient, float] = {}
        self._more = asyncio.Event()
        self._expire_from = -math.inf

    # -- who carries ---------------------------------------------------------------------------

    def attach(self, connector: Connector) -> None:
        """From now on this connector carries what its account has to send."""
        self._connectors[connector.channel, connector.account_id] = connector
        if connector.abilities.idempotent:
            self._to_resume.add((connector.channel, connector.account_id))
        self.wake()

    def detach(self, connector: Connector) -> None:
        if self._connectors.get((connector.channel, connector.account_id)) is connector:
            del self._connectors[connector.channel, connector.account_id]

    def connector(self, channel: str, account_id: str | None) -> Connector | None:
        return self._connectors.get((channel, account_id or "default"))

    def attached(self) -> tuple[Connector, ...]:
        return tuple(self._connectors.values())

    def wake(self, _channel: str = "") -> None:
        """Something may have to be sent."""
        self._more.set()

    # -- the round -----------------------------------------------------------------------------

    async def run_forever(self) -> None:
        """Look whenever woken, and every few seconds for what nobody told of."""
        await self._guarded(self._settle_left_over)
        while True:
            await self._guarded(self._round)
            waits = [when - self._clock.monotonic() for when in self._not_before.values()]
            pause_s = max(LEAST_WAIT_S, min([SWEEP_S, *waits]))
            try:
                async with asyncio.timeout(pause_s):
                    await self._more.wait()
            except TimeoutError:
                pass
            self._more.clear()

    async def _guarded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except OpenClawError as error:
            log.error("deliveries wait: %s", error)

    async def _settle_left_over(self) -> None:
        now_ms = self._clock.now_ms()
        cut_off = await self._database.write(lambda tx: outbox.forget_sending(tx, now_ms))
        if cut_off:
            log.warning(
                "%d deliveries were being sent when the gateway stopped: see openclaw outbox", cut_off
            )

    async def _resume(self, now_ms: int) -> None:
        """Where one key shows one message, what was cut off is sent again instead of staying open."""
        while self._to_resume:
            channel, account_id = next(iter(self._to_resume))
            await self._database.write(partial(_resume_sending, channel, account_id, now_ms))
            self._to_resume.discard((channel, account_id))

    async def _round(self) -> None:
        now_ms = self._clock.now_ms()
        await self._resume(now_ms)
        # Every turn wakes us. Where nobody carries anything a look now and then is enough, and saves a write.
        if self._connectors or self._clock.monotonic() >= self._expire_from:
            await self._expire(now_ms)
        for channel in {name for name, _ in self._connectors}:
            for delivery in await self._due(channel, now_ms):
                self._begin(delivery)

    async def _expire(self, now_ms: int) -> None:
        self._expire_from = self._clock.monotonic() + SWEEP_S
        late = await self._database.write(lambda tx: outbox.expire(tx, now_ms))
        if late:
            log.warning("%d deliveries waited for too long and were not sent: see openclaw outbox", late)

    async def _due(self, channel: str, now_ms: int) -> tuple[Delivery, ...]:
        return await self._database.read(lambda tx: outbox.due(tx, channel, now_ms, LOOKED_AT))

    def _begin(self, delivery: Delivery) -> None:
        recipient = (delivery.channel, delivery.target, delivery.account_id, delivery.thread_id)
        connector = self.connector(delivery.channel, delivery.account_id)
        if connector is None or recipient in self._busy or len(self._busy) >= AT_ONCE:
            return
        if self._not_before.get(recipient, 0.0) > self._clock.monotonic():
            return
        self._busy.add(recipient)
        self._spawn(self._carry(delivery, recipient, connector))

    # -- one delivery --------------------------------------------------------------------------

    async def _carry(self, delivery: Delivery, recipient: Recipient, connector: Connector) -> None:
        try:
            await self._guarded(lambda: self._send(delivery, recipient, connector))
        finally:
            self._busy.discard(recipient)
            self.wake()

    async def _send(self, delivery: Delivery, recipient: Recipient, connector: Connector) -> None:
        number, now_ms = delivery.delivery_no, self._clock.now_ms()
        if not await self._database.write(lambda tx: outbox.start(tx, number, now_ms)):
            return
        state: Literal["sent", "unknown", "failed"] = "sent"
        error: str | None = None
        try:
            draft_id = await self._drafts(delivery.run_id)
            takes_files = connector.abilities.media
            outgoing = await outgoing_of(delivery, draft_id, media=takes_files, guard=self._guard)
            async with asyncio.timeout(SEND_WITHIN_S):
                await connector.send(outgoing)
        except NotSent as refused:
            if refused.retry_after_s is not None:
                await self._postpone(delivery, recipient, refused)
                return
            state, error = "failed", refused.message
        except TimeoutError:
            state, error = "unknown", f"no answer within {SEND_WITHIN_S:.0f} s"
        except OpenClawError as failure:
            state, error = "unknown", failure.message
        except Exception as failure:
            log.exception("delivery %d on %s", number, delivery.channel)
            state, error = "unknown", f"{type(failure).__name__}: {failure}"
        self._not_before.pop(recipient, None)
        if error is not None:
            log.error("delivery %d on %s is %s: %s", number, delivery.channel, state, error)
        settled_ms = self._clock.now_ms()
        await self._database.write(lambda tx: outbox.settle(tx, number, state, error, settled_ms))
        if state == "sent":
            self._on_sent(delivery, outgoing.text)

    async def _postpone(self, delivery: Delivery, recipient: Recipient, refused: NotSent) -> None:
        wait_s = min(LONGEST_WAIT_S, max(LEAST_WAIT_S, refused.retry_after_s or 0.0))
        self._not_before[recipient] = self._clock.monotonic() + wait_s
        now_ms = self._clock.now_ms()
        await self._database.write(
            lambda tx: outbox.postpone(tx, delivery.delivery_no, refused.message, now_ms)
        )


def _resume_sending(channel: str, account_id: str, now_ms: int, tx: Transaction) -> int:
    return outbox.resume_sending(tx, channel, account_id, now_ms)


async def outgoing_of(
    delivery: Delivery, draft_id: str | None = None, *, media: bool = False, guard: Guard = NO_GUARD
) -> Outgoing:
    """A row of the outbox as a connector gets it, with the bytes of its files where `media` is taken."""
    body = _decode(delivery.body)
    loaded = await load_media(body.get("media"), wanted=media, guard=guard)
    for note in loaded.notes:
        log.warning("delivery %d on %s: %s", delivery.delivery_no, delivery.channel, note)
    return Outgoing(
        key=delivery.idempotency_key,
        to=delivery.target,
        account_id=delivery.account_id or "default",
        thread_id=delivery.thread_id,
        text="\n\n".join(part for part in (str(body.get("text") or ""), *loaded.notes) if part),
        media=loaded.files,
        draft_id=draft_id,
    )
