"""Clients that flood, that stand half in the door, or that never read: the others do not notice.

Each has a bound that is the gateway's own: requests under way and refusals per
connection, strangers at the door, bytes that wait for one reader.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.e2e.raw_socket import PING, RawSocket, frame, memory_kb, request
from tests.e2e.test_fuzz_wire import ALL, watched
from tests.fakes.wire_client import WireClient

STRANGERS = 64  # as many sockets may be at the handshake
SLOW_CLIENT = 4008
BUFFERED_KB = 50 * 1024  # what may wait for one client
KEY = "agent:main:long"


@pytest.mark.spec("RPC-1", "RPC-2")
async def test_a_flood_is_answered_or_refused_and_the_others_are_served(tmp_path: Path) -> None:
    async with watched(tmp_path) as (gateway, probe):
        async with RawSocket(gateway.port) as socket:
            await socket.sign_in(ALL)
            answers = asyncio.create_task(socket.read_to_end())
            for start in range(0, 12_000, 100):
                numbers = range(start, start + 100)
                await socket.send(b"".join(frame(request(f"n{n}", "health", {})) for n in numbers))
                await socket.send(frame(b"are you there?", PING))
            await probe.served_again()
            socket.say_no_more()
            heard = [one.payload for one in await answers]
        answered = sum(b'"ok":true' in text[:60] for text in heard)
        refused = sum(b'"ok":false' in text[:60] for text in heard)
        assert answered + refused >= 1_000, "a burst that a client may send is answered"
        assert all(b"UNAVAILABLE" in text for text in heard if b'"ok":false' in text[:60])


@pytest.mark.spec("RPC-1")
async def test_sockets_that_stand_in_the_door_shut_nobody_out_who_is_in(tmp_path: Path) -> None:
    async with watched(tmp_path) as (gateway, probe):
        async with AsyncExitStack() as door:
            for _ in range(STRANGERS):
                await door.enter_async_context(RawSocket(gateway.port))
            with pytest.raises(ConnectionRefusedError, match="503"):
                await door.enter_async_context(RawSocket(gateway.port))
            await probe.served_again()
        async with asyncio.timeout(60):
            while True:  # they left without a word; the door is free as soon as that is known
                try:
                    async with RawSocket(gateway.port) as socket:
                        await socket.sign_in(ALL)
                        break
                except ConnectionRefusedError:
                    await asyncio.sleep(0.02)


@pytest.mark.spec("RPC-1", "RPC-14")
async def test_a_client_that_never_reads_is_cut_off_with_the_code_to_resync(tmp_path: Path) -> None:
    async with watched(tmp_path) as (gateway, probe):
        async with gateway.client() as writer:
            await fill(writer)
        quiet_kb = memory_kb(gateway.pid)
        async with RawSocket(gateway.port) as socket:
            await socket.sign_in(ALL)
            asked = 0
            for number in range(60):
                await socket.send(frame(request(f"h{number}", "chat.history", {"sessionKey": KEY})))
                asked += 1
            await probe.served_again()
            most_kb = memory_kb(gateway.pid) - quiet_kb
            heard = await socket.read_to_end()
        assert heard[-1].close_code == SLOW_CLIENT, heard[-1]
        assert 0 < len(heard) < asked, "what did not fit was not sent"
        assert most_kb < 4 * BUFFERED_KB


async def fill(client: WireClient) -> None:
    """A conversation whose history is more than a megabyte."""
    await client.call("sessions.create", {"key": KEY})
    for _ in range(200):
        await client.call("chat.inject", {"sessionKey": KEY, "message": "word " * 1_500})
