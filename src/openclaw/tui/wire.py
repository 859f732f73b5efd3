"""A connection to a gateway that comes back by itself, for one event loop.

It tells `Listener` when it is there, what comes, and when it is lost. What a listener
does with that is not known here. A call is never repeated here: whoever calls decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Literal, Protocol

from openclaw.api.connection import Address, Connection
from openclaw.api.failures import GatewayGone
from openclaw.errors import OpenClawError, Unavailable
from openclaw.tui.identity import Introduction

Json = dict[str, Any]
# Why there is no connection: it comes back, a person has to approve this device, or it will not come.
Outlook = Literal["waiting", "approval", "over"]

PAUSES_S: Final = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
APPROVAL_PAUSE_S: Final = 3.0
ANSWER_S: Final = 60.0
# Waiting does not change these.
_FINAL_CODES: Final = ("AUTH_", "DEVICE_", "CONTROL_UI_", "PROTOCOL_MISMATCH", "ORIGIN_")


class Listener(Protocol):
    """Hears of the connection, on the event loop."""

    async def on_connected(self, hello: Json) -> None: ...

    def on_event(self, name: str, payload: Json) -> None: ...

    def on_lost(self, why: OpenClawError, outlook: Outlook) -> None: ...


def detail_code(refusal: OpenClawError) -> str:
    """The finer code that a gateway gives with a refusal, "" when there is none."""
    details = refusal.fields.get("details")
    return str(details.get("code") or "") if isinstance(details, dict) else ""


def outlook_of(refusal: OpenClawError) -> Outlook:
    """Whether it makes sense to try again."""
    code = detail_code(refusal)
    if code == "PAIRING_REQUIRED":
        return "approval"
    if code == "AUTH_RATE_LIMITED" or isinstance(refusal, Unavailable):
        return "waiting"
    known = code.startswith(_FINAL_CODES)
    return (
        "over" if known or refusal.fields.get("wire_code") in ("NOT_PAIRED", "INVALID_REQUEST") else "waiting"
    )


class Link:
    """`await link.run()` connects and stays until it is over or cancelled."""

    def __init__(
        self, address: Address, scopes: Sequence[str], listener: Listener, introduction: Introduction
    ) -> None:
        self._address = address
        self._scopes = tuple(scopes)
        self._listener = listener
        self._introduction = introduction
        self._connection: Connection | None = None
        self._ended = asyncio.Event()

    @property
    def is_up(self) -> bool:
        return self._connection is not None and self._connection.is_open

    async def call(self, method: str, params: Json | None = None, timeout_s: float = ANSWER_S) -> Any:
        """The payload of the answer. Raises what it was refused with, GatewayGone, or Unavailable."""
        connection = self._connection
        if connection is None:
            raise GatewayGone()
        try:
            async with asyncio.timeout(timeout_s):
                return await connection.call(method, params)
        except TimeoutError:
            raise Unavailable(f"the gateway did not answer {method} in {timeout_s:g} s; try again") from None

    async def run(self) -> None:
        attempt = 0
        while True:
            try:
                await self._stay()
                attempt = 0
                why: OpenClawError = GatewayGone()
            except OpenClawError as refusal:
                why = refusal
            outlook = outlook_of(why)
            self._listener.on_lost(why, outlook)
            if outlook == "over":
                return
            pause_s = PAUSES_S[min(attempt, len(PAUSES_S) - 1)]
            await asyncio.sleep(APPROVAL_PAUSE_S if outlook == "approval" else pause_s)
            attempt += 1

    async def _stay(self) -> None:
        """One connection, from its first word to its last."""
        connection = await Connection.open(self._address, self._scopes, self._introduction)
        self._ended.clear()
        connection.listen(self._listener.on_event, self._ended.set)
        try:
            self._connection = connection
            self._introduction.keep_token(connection.hello)
            await self._listener.on_connected(connection.hello)
            if connection.is_open:
                await self._ended.wait()
        finally:
            self._connection = None
            await connection.close()
