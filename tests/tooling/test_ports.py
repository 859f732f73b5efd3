"""The ports of the tests: nobody else is given them, and a server can use them again and again."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.fakes.ports import free_port


async def test_a_server_can_be_started_there_again_and_again() -> None:
    port = free_port()
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", port)
        async with server:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
            writer.close()


def test_nobody_else_is_given_it() -> None:
    ports = {free_port() for _ in range(30)}
    assert len(ports) == 30
    others = [socket.create_server(("127.0.0.1", 0)) for _ in range(100)]
    try:
        assert not ports & {other.getsockname()[1] for other in others}
    finally:
        for other in others:
            other.close()
