"""A connector that lives in another process: it hands in over RPC and gets its deliveries as events.

The connection that attached is the account's only carrier. When it goes away, what waits stays in
the outbox for the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from openclaw.channels.base import Abilities, Door, NotSent, Outgoing, Sent

AWAY_S = 5.0
Tell = Callable[[dict[str, Any]], bool]


class RemoteConnector:
    """`tell` sends an event to the attached connection, False when it is gone.

    With `acknowledges` a delivery counts as sent only when the other side has said so.
    """

    def __init__(
        self,
        channel: str,
        account_id: str,
        tell: Tell,
        *,
        acknowledges: bool,
        abilities: Abilities,
        credentials_refreshed_at: int | None = None,
    ) -> None:
        self.channel = channel
        self.credentials_refreshed_at = credentials_refreshed_at
        self.account_id = account_id
        self.abilities = abilities
        self._tell = tell
        self._acknowledges = acknowledges
        self._open: dict[str, asyncio.Future[Sent]] = {}

    async def run(self, door: Door) -> None:
        """Nothing to receive here: messages come in as calls."""
        await asyncio.Event().wait()

    async def send(self, outgoing: Outgoing) -> Sent:
        done: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
        if self._acknowledges:
            self._open[outgoing.key] = done
        try:
            if not self._tell(self._event(outgoing)):
                raise NotSent("the connector's connection is gone", retry_after_s=AWAY_S)
            return await done if self._acknowledges else Sent()
        finally:
            self._open.pop(outgoing.key, None)

    def settle(self, key: str, message_ids: tuple[str, ...], error: str | None) -> bool:
        """The other side's word about one delivery. False when nobody waits for it."""
        waiting = self._open.get(key)
        if waiting is None or waiting.done():
            return False
        if error is None:
            waiting.set_result(Sent(message_ids))
        else:
            waiting.set_exception(NotSent(error))
        return True

    async def show_typing(self, to: str, thread_id: str | None) -> None:
        self._tell(
            {
                "kind": "typing",
                "channel": self.channel,
                "accountId": self.account_id,
                "to": to,
                "threadId": thread_id,
            }
        )

    async def draft(self, outgoing: Outgoing) -> str | None:
        return None

    def _event(self, outgoing: Outgoing) -> dict[str, Any]:
        return {
            "kind": "message",
            "key": outgoing.key,
            "channel": self.channel,
            "accountId": self.account_id,
            "to": outgoing.to,
            "threadId": outgoing.thread_id,
            "text": outgoing.text,
        }
