"""The sending side of a socket: what happens when the peer goes away in the middle."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from openclaw.gateway import client as client_module
from openclaw.gateway.client import Client


class GoneTransport:
    """A transport as a peer leaves it that hung up: it is closing, and writing to it is an error."""

    def __init__(self) -> None:
        self.closing = False
        self.written: list[bytes] = []
        self.wrote = asyncio.Event()

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        if self.closing:
            raise RuntimeError("the handler is closed")
        self.written.append(data)
        self.wrote.set()


@pytest.mark.spec("RPC-1")
async def test_a_peer_that_hangs_up_while_nothing_is_sent_ends_the_sender_in_peace() -> None:
    transport = GoneTransport()
    client = Client(cast("Any", None), cast("Any", None), cast("Any", transport))
    sender = asyncio.create_task(client.drain())
    client.send(b"one")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert transport.written == [b"\x81\x03one"]
    transport.closing = True
    client.send(b"two")
    async with asyncio.timeout(60):
        await sender
    assert len(transport.written) == 1


@pytest.mark.spec("RPC-14")
async def test_progress_waits_for_company_and_an_answer_takes_it_along_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_module, "LINGER_S", 3600.0)
    transport = GoneTransport()
    client = Client(cast("Any", None), cast("Any", None), cast("Any", transport))
    sender = asyncio.create_task(client.drain())
    for frame in (b"1", b"2"):
        client.send(frame, linger=True)
    for _ in range(3):
        await asyncio.sleep(0)
    assert transport.written == [], "nobody waits for these yet"
    client.send(b"3")
    async with asyncio.timeout(60):
        await transport.wrote.wait()
    assert transport.written == [b"\x81\x011\x81\x012\x81\x013"]
    sender.cancel()
    await asyncio.wait({sender})


@pytest.mark.spec("RPC-14")
async def test_progress_without_company_leaves_by_itself() -> None:
    transport = GoneTransport()
    client = Client(cast("Any", None), cast("Any", None), cast("Any", transport))
    sender = asyncio.create_task(client.drain())
    client.send(b"1", linger=True)
    async with asyncio.timeout(60):
        await transport.wrote.wait()
    assert transport.written == [b"\x81\x011"]
    sender.cancel()
    await asyncio.wait({sender})
