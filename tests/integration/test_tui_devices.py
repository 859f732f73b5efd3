"""The terminal UI on another machine: its device waits for the owner, then needs no secret any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from openclaw.app import Gateway
from openclaw.tui.memory import ClientMemory
from tests.fakes.openai_server import FakeReply
from tests.integration.conftest import House, client_of
from tests.integration.tui_screen import opened

OWNER = ("operator.admin", "operator.pairing")


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def from_afar(port: int) -> AsyncIterator[int]:
    """A proxy that says for whom it speaks, as one in front of a gateway does; its port."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            back, out = await asyncio.open_connection("127.0.0.1", port)
            out.write(head[:-2] + b"X-Forwarded-For: 203.0.113.7\r\n\r\n")
            await asyncio.gather(_pipe(reader, out), _pipe(back, writer))

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.spec("RPC-1", "RPC-3")
async def test_a_device_waits_for_its_owner_and_then_opens_the_door_by_itself(
    house: House, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openclaw.tui.wire.APPROVAL_PAUSE_S", 0.1)
    memory = house.home / "c"
    house.model.script(FakeReply(texts=("welcome",)))
    async with from_afar(gateway.port) as port, client_of(gateway, scopes=OWNER) as owner:
        async with opened(memory, port) as screen:
            await screen.until(lambda: "waiting for approval" in screen.status)
            assert "openclaw devices approve" in screen.status
            (asked,) = (await owner.call("device.pair.list"))["pending"]
            assert asked["clientId"] == "openclaw-tui"
            await owner.call("device.pair.approve", {"requestId": asked["requestId"]})
            await screen.ready()
            await screen.say("may I?")
            await screen.see("welcome")
        with ClientMemory(memory) as kept:
            assert kept.device_token("ws://gateway")
        async with opened(memory, port, token=None) as screen:
            await screen.ready()
            assert (await owner.call("device.pair.list"))["pending"] == []
        await _another_device_is_nobody(house.home / "other", port)


async def _another_device_is_nobody(memory: Path, port: int) -> None:
    async with opened(memory, port, token=None) as screen:
        await screen.until(lambda: screen.app.leaving is not None)
        assert "ready" not in screen.status


async def test_a_wrong_secret_ends_it_with_the_reason(house: House, gateway: Gateway) -> None:
    async with opened(house.home / "c", gateway.port, token="wrong-token-0123456789") as screen:
        await screen.until(lambda: screen.app.leaving is not None)
        assert "token" in (screen.app.leaving or "")


async def test_a_place_where_nobody_answers_ends_it_with_the_reason(house: House) -> None:
    async with opened(house.home / "c", 1) as screen:
        await screen.until(lambda: screen.app.leaving is not None)
        assert "no gateway at ws://127.0.0.1:1" in (screen.app.leaving or "")
