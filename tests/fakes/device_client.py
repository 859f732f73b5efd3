"""A client with a device: it signs the challenge, and can come from afar, as a page or with another claim."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Self

from websockets.asyncio.client import connect

from tests.fakes.device import TestDevice
from tests.fakes.wire_client import ALL_SCOPES, Json, WireClient

# A proxy speaks for somebody on another machine.
FROM_AFAR = {"X-Forwarded-For": "203.0.113.7"}


class DeviceClient(WireClient):
    """`auth` replaces the token; `change` may spoil the parameters after they were signed."""

    def __init__(
        self,
        url: str,
        auth: Mapping[str, str] | None,
        *,
        device: TestDevice | None = None,
        role: str = "operator",
        version: int = 3,
        scopes: tuple[str, ...] = ALL_SCOPES,
        client: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        protocols: tuple[int, int] = (4, 4),
        signed_late_ms: int = 0,
        nonce: str | None = None,
        change: Callable[[Json], Json] = lambda params: params,
    ) -> None:
        super().__init__(url, None, scopes=scopes)
        self.client |= dict(client or {})
        self._auth, self._device, self._role, self._version = auth, device, role, version
        self._headers, self._protocols = dict(headers or {}), protocols
        self._late_ms, self._nonce, self._change = signed_late_ms, nonce, change
        self.challenge: Json = {}

    async def __aenter__(self) -> Self:
        self._socket = await connect(
            self.url, max_size=1 << 26, compression=None, additional_headers=self._headers
        )
        self._reader = asyncio.create_task(self._read())
        event = await self.wait_for(lambda event: event["event"] == "connect.challenge")
        self.challenge = event["payload"]
        try:
            self.hello = await self.call("connect", self._params())
        except BaseException:
            # The refusal comes before the close: wait until the gateway has closed.
            await asyncio.wait_for(self._socket.wait_closed(), 60)
            await self.__aexit__(None, None, None)
            raise
        return self

    def _params(self) -> Json:
        low, high = self._protocols
        params: Json = {
            "minProtocol": low,
            "maxProtocol": high,
            "client": self.client,
            "role": self._role,
            "scopes": list(self.scopes),
        }
        if self._auth is not None:
            params["auth"] = dict(self._auth)
        if self._device is not None:
            signed_at = self.challenge["ts"] - self._late_ms
            params = self._device.sign(
                params, self._nonce or self.challenge["nonce"], signed_at, self._version
            )
        return self._change(params)

    @property
    def granted(self) -> dict[str, Any]:
        auth: dict[str, Any] = self.hello["auth"]
        return auth

    async def closed(self) -> tuple[int | None, str | None]:
        """How the gateway closed this connection; waits until it has."""
        await asyncio.wait_for(self._socket.wait_closed(), 60)
        return self.close_code, self.close_reason
