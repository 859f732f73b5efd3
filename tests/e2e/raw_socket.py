"""A WebSocket without manners: frames as bytes, so that a test can send what no library would."""

from __future__ import annotations

import asyncio
import json
import os
import struct
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from tests.e2e.gateway_process import TOKEN

TEXT, BINARY, CLOSE, PING = 0x1, 0x2, 0x8, 0x9
DEADLINE_S = 60.0  # a busy machine may stand still for half a minute
_UPGRADE = (
    "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


class Frame(Struct, frozen=True):
    opcode: int
    payload: bytes

    @property
    def close_code(self) -> int | None:
        whole = self.opcode == CLOSE and len(self.payload) >= 2
        return int.from_bytes(self.payload[:2], "big") if whole else None


def frame(
    payload: bytes, opcode: int = TEXT, *, fin: bool = True, reserved: int = 0, masked: bool = True
) -> bytes:
    """One frame of a client. The length is the true one; `reserved` are the three bits after `fin`."""
    first = (0x80 if fin else 0) | (reserved << 4) | opcode
    mask_bit = 0x80 if masked else 0
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", first, mask_bit | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", first, mask_bit | 126, size)
    else:
        head = struct.pack("!BBQ", first, mask_bit | 127, size)
    # A key of zeros masks nothing: the frame is legal, and the test does not spend its time on it.
    return head + (b"\0\0\0\0" if masked else b"") + payload


def request(request_id: str, method: str, params: Any) -> bytes:
    return json.dumps({"type": "req", "id": request_id, "method": method, "params": params}).encode()


def connect_request(scopes: tuple[str, ...]) -> bytes:
    client = {"id": "cli", "mode": "cli", "version": "1", "platform": "test"}
    params = {
        "minProtocol": 4, "maxProtocol": 4, "client": client, "role": "operator",
        "scopes": list(scopes), "auth": {"token": TOKEN},
    }  # fmt: skip
    return request("connect", "connect", params)


class RawSocket:
    """`async with RawSocket(port) as socket:` upgrades and reads the challenge, and says nothing more."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def __aenter__(self) -> Self:
        async with asyncio.timeout(DEADLINE_S):
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
            self._writer.write(_UPGRADE.format(port=self._port).encode())
            head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101"):
            self._writer.close()
            raise ConnectionRefusedError(head.split(b"\r\n", 1)[0].decode())
        challenge = await self.read()
        assert challenge is not None and b"connect.challenge" in challenge.payload
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._writer.transport.abort()  # no goodbye: most peers of a fuzzer leave like this

    async def send(self, data: bytes) -> None:
        """Bytes as they are. A peer that has hung up is no error: reading tells."""
        self._writer.write(data)
        try:
            async with asyncio.timeout(DEADLINE_S):
                await self._writer.drain()
        except ConnectionError:
            return

    def say_no_more(self) -> None:
        """Close the sending side: half a frame would otherwise wait for the other half."""
        with suppress(OSError):  # it has hung up already
            self._writer.write_eof()

    async def read(self) -> Frame | None:
        """The next frame of the gateway; None when it has hung up."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                first, second = await self._reader.readexactly(2)
                size = second & 0x7F
                if size >= 126:
                    size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8), "big")
                return Frame(first & 0x0F, await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def read_to_end(self) -> list[Frame]:
        """Everything until the gateway closes or hangs up."""
        frames: list[Frame] = []
        while (found := await self.read()) is not None:
            frames.append(found)
            if found.opcode == CLOSE:
                break
        return frames

    async def answer_to(self, request_id: str) -> bytes | None:
        """The answer to a request, whatever comes before it; None when the gateway closed instead."""
        wanted = b'"id":"' + request_id.encode() + b'"'
        while (found := await self.read()) is not None and found.opcode != CLOSE:
            if found.payload.startswith(b'{"type":"res"') and wanted in found.payload[:200]:
                return found.payload
        return None

    async def sign_in(self, scopes: tuple[str, ...]) -> None:
        await self.send(frame(connect_request(scopes)))
        answer = await self.answer_to("connect")
        assert answer is not None and b'"ok":true' in answer[:80], answer


def memory_kb(pid: int) -> int:
    """Resident memory of a process."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
