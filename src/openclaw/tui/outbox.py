"""What a person wrote and no gateway has acknowledged yet: kept on this machine, sent in order.

A message has its run id from the beginning, so that sending it again after a lost answer
starts nothing twice (RPC-12). What is refused for good is given back with the reason.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any, Protocol

from openclaw.api.failures import GatewayGone
from openclaw.errors import OpenClawError, Unavailable
from openclaw.tui.memory import ClientMemory, Unsent
from openclaw.tui.wire import Link

Json = dict[str, Any]


class Sender(Protocol):
    """Hears what became of a message."""

    def on_accepted(self, unsent: Unsent, answer: Json) -> None: ...

    def on_refused(self, unsent: Unsent, reason: str) -> None: ...

    def on_postponed(self, reason: str) -> None: ...


class Outbox:
    """For one gateway. `manner` goes along with every message."""

    def __init__(self, memory: ClientMemory, gateway: str, link: Link, manner: Json, sender: Sender) -> None:
        self._memory = memory
        self._gateway = gateway
        self._link = link
        self._manner = manner
        self._sender = sender
        self._sending = asyncio.Lock()

    def keep(self, session_key: str, text: str) -> Unsent:
        """Write it down, before anything else is tried with it."""
        unsent = Unsent(str(uuid.uuid4()), session_key, text, time.time_ns() // 1_000_000)
        self._memory.remember_line(text)
        self._memory.keep_unsent(self._gateway, unsent)
        return unsent

    def waiting(self, session_key: str) -> list[Unsent]:
        return [unsent for unsent in self._memory.unsent(self._gateway) if unsent.session_key == session_key]

    async def flush(self) -> None:
        """Send what waits, in the order in which it was written, until one cannot be sent."""
        async with self._sending:
            for unsent in self._memory.unsent(self._gateway):
                if not self._link.is_up or not await self._post(unsent):
                    return

    async def _post(self, unsent: Unsent) -> bool:
        """Whether the gateway has said something final about it."""
        params = {
            "sessionKey": unsent.session_key,
            "message": unsent.message,
            "idempotencyKey": unsent.run_id,
            **self._manner,
        }
        try:
            answer = await self._link.call("chat.send", params)
        except GatewayGone:
            return False  # the next connection sends it
        except Unavailable as busy:
            self._sender.on_postponed(busy.message)
            return False
        except OpenClawError as refusal:
            self._memory.forget_unsent(unsent.run_id)
            self._sender.on_refused(unsent, refusal.message)
        else:
            self._memory.forget_unsent(unsent.run_id)
            self._sender.on_accepted(unsent, answer)
        return True
