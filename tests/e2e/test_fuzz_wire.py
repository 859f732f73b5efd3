"""Whatever comes over the socket: the gateway stays up, serves the others, and strangers change nothing.

Frames are made from the table of methods and then broken (`hostile_frames`). A
client with manners asks all the while and must be answered on the connection that
it has; the log must hold no traceback; before the handshake no row may change.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import pytest

from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.hostile_frames import Fuzzer
from tests.e2e.raw_socket import DEADLINE_S, RawSocket, frame, request
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.fakes.ports import free_port
from tests.fakes.wire_client import WireClient

AT_ONCE = 8
PER_CONNECTION = 100  # below the number of refusals that closes a connection
ALL = ("operator.admin", "operator.read", "operator.write", "operator.pairing")
FEW = ("operator.read", "operator.write")
BROKEN = ("Traceback", "failed inside the gateway", "Fatal Python error", "could not be told")


class Probe:
    """A client that asks again and again, and has to be answered on one and the same connection."""

    def __init__(self, client: WireClient) -> None:
        self._client = client
        self._just_served = asyncio.Event()
        self.served = 0

    async def ask(self) -> None:
        health = await self._client.call("health")
        assert health["ok"] is True
        listed = await self._client.call("sessions.list", {"limit": 5})
        assert listed["count"] <= 5
        self.served += 1
        self._just_served.set()
        self._client.frames.clear()
        self._client.events.clear()

    async def served_again(self) -> None:
        """Wait until it was served twice more: once may have been under way."""
        async with asyncio.timeout(DEADLINE_S):
            for _ in range(2):
                self._just_served.clear()
                await self._just_served.wait()

    async def ask_forever(self) -> None:
        while True:
            await self.ask()
            await asyncio.sleep(0.05)


@asynccontextmanager
async def watched(home: Path) -> AsyncIterator[tuple[GatewayProcess, Probe]]:
    """A gateway with one session, and a probe that fails the test when it is not served any more."""
    async with FakeOpenAIServer(then=FakeReply(texts=("fine",))) as model:
        gateway = GatewayProcess(home, model.base_url, free_port())
        await gateway.start()
        try:
            async with gateway.client() as client:
                await client.say("agent:main:fuzz", "hello", "first")
                probe = Probe(client)
                async with asyncio.TaskGroup() as group:
                    asking = group.create_task(probe.ask_forever())
                    yield gateway, probe
                    asking.cancel()
                await probe.ask()
            assert gateway.stop() == 0
        finally:
            if gateway.is_running:
                gateway.kill()
        log = gateway.log_text()
        assert [word for word in BROKEN if word in log] == [], log[-8000:]


def contents(database: Path) -> dict[str, tuple[int, str]]:
    """Every table of a store: how many rows it has, and a digest of them."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        names = [name for (name,) in connection.execute(tables)]
        found = {}
        for name in names:
            digest, count = hashlib.sha256(), 0
            for row in connection.execute(f'SELECT * FROM "{name}"'):
                digest.update(repr(row).encode("utf-8", "replace"))
                count += 1
            found[name] = (count, digest.hexdigest())
        return found
    finally:
        connection.close()


async def as_stranger(port: int, fuzzer: Fuzzer, outcomes: Counter[str]) -> int:
    """One connection that never says the secret; how many frames it sent."""
    async with RawSocket(port) as socket:
        if outcomes.total() % 4 == 3:
            await socket.send(fuzzer.violation())
            sent = 1
        else:
            first = fuzzer.connect() if outcomes.total() % 2 else fuzzer.request()
            await socket.send(fuzzer.framed(first) + fuzzer.framed(fuzzer.request()))
            sent = 2
        socket.say_no_more()
        for heard in await socket.read_to_end():
            assert b'"ok":true' not in heard.payload, "a stranger was let in"
        outcomes["closed"] += 1
        return sent


async def as_client(port: int, fuzzer: Fuzzer, scopes: tuple[str, ...], outcomes: Counter[str]) -> int:
    """One connection that is let in and talks nonsense; it is answered to the end, or closed."""
    async with RawSocket(port) as socket:
        await socket.sign_in(scopes)
        reading = asyncio.create_task(socket.answer_to("last"))
        for _ in range(PER_CONNECTION // 10):
            await socket.send(b"".join(fuzzer.framed(fuzzer.request()) for _ in range(10)))
        await socket.send(frame(request("last", "health", {})))
        outcomes["answered" if await reading is not None else "closed"] += 1
        return PER_CONNECTION


async def fuzz_strangers(port: int, seed: int, frames: int) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    sent = 0

    async def work(number: int) -> None:
        nonlocal sent
        fuzzer = Fuzzer(seed + number)
        while sent < frames:
            just_now = await as_stranger(port, fuzzer, outcomes)
            sent += just_now

    await asyncio.gather(*(work(number) for number in range(AT_ONCE)))
    return outcomes


async def fuzz_clients(port: int, seed: int, frames: int) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    sent = 0

    async def work(number: int) -> None:
        nonlocal sent
        fuzzer = Fuzzer(seed + number)
        while sent < frames:
            just_now = await as_client(port, fuzzer, ALL if number % 2 else FEW, outcomes)
            sent += just_now

    await asyncio.gather(*(work(number) for number in range(AT_ONCE)))
    return outcomes


async def fuzz(home: Path, *, seed: int, strangers: int, clients: int) -> None:
    async with watched(home) as (gateway, probe):
        before = contents(gateway.database)
        closed = await fuzz_strangers(gateway.port, seed, strangers)
        assert contents(gateway.database) == before, "a stranger changed something"
        assert closed.keys() == {"closed"}
        served = probe.served
        outcomes = await fuzz_clients(gateway.port, seed + 1000, clients)
        assert outcomes["answered"] > outcomes["closed"], "nearly every client is heard to the end"
        assert probe.served > served > 0
    connection = apsw.Connection(str(gateway.database), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


@pytest.mark.spec("RPC-1", "RPC-2", "RPC-3")
async def test_20_000_hostile_frames(tmp_path: Path) -> None:
    await fuzz(tmp_path, seed=20261116, strangers=1_500, clients=18_500)


@pytest.mark.long
@pytest.mark.spec("RPC-1", "RPC-2", "RPC-3")
async def test_a_million_hostile_frames(tmp_path: Path) -> None:
    await fuzz(tmp_path, seed=1, strangers=100_000, clients=900_000)
