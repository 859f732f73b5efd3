"""A link to a gateway that may be restarted while a host keeps this process.

A call finds the gateway again if it went away since the last one. A call whose answer was
lost is not sent again: nobody knows what became of it, and the host is told so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from openclaw.api.connection import Address, Connection

Json = dict[str, Any]


class LastingLink:
    """`async with LastingLink(address, scopes) as link:` connects once, so that a wrong address is told."""

    def __init__(self, address: Address, scopes: Sequence[str]) -> None:
        self._address = address
        self._scopes = scopes
        self._opening = asyncio.Lock()
        self._connection: Connection | None = None

    async def __aenter__(self) -> LastingLink:
        await self._open()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def call(self, method: str, params: Json | None = None) -> Any:
        connection = await self._open()
        return await connection.call(method, params)

    async def _open(self) -> Connection:
        async with self._opening:
            if self._connection is None or not self._connection.is_open:
                if self._connection is not None:
                    await self._connection.close()
                    self._connection = None
                self._connection = await Connection.open(self._address, self._scopes)
            return self._connection
