"""A link that outlives the gateway at its other end."""

from __future__ import annotations

import asyncio

import pytest

from openclaw.api.connection import Address
from openclaw.api.failures import GatewayGone
from openclaw.errors import Unavailable
from openclaw.mcp.link import LastingLink
from tests.unit.api.peers import answering, peer

SCOPES = ("operator.read",)


async def test_the_next_call_finds_a_gateway_again() -> None:
    """The peer closes after each answer, as a gateway that restarts would."""
    async with peer(answering(1)) as address:
        async with LastingLink(address, SCOPES) as link:
            for number in range(3):
                assert await link.call("echo", {"n": number}) == {"n": number}
                first = link._connection
                assert first is not None
                await asyncio.wait({first._reader}, timeout=60)
            assert await link.call("echo", {"n": 3}) == {"n": 3}
            assert link._connection is not first
        assert link._connection is not None
        assert not link._connection.is_open


async def test_a_call_whose_answer_was_lost_is_not_sent_again() -> None:
    seen: list[object] = []
    async with peer(answering(1, seen, silent="spawn")) as address, LastingLink(address, SCOPES) as link:
        with pytest.raises(GatewayGone):
            await link.call("spawn", {"n": 1})
        assert await link.call("echo", {"n": 2}) == {"n": 2}
    assert seen == [{"n": 1}, {"n": 2}]


async def test_calls_at_the_same_time_open_one_connection() -> None:
    async with peer(answering(100)) as address, LastingLink(address, SCOPES) as link:
        answers = await asyncio.gather(*(link.call("echo", {"n": n}) for n in range(20)))
        assert [answer["n"] for answer in answers] == list(range(20))


async def test_nobody_there_is_told_at_the_start(unused_tcp_port: int) -> None:
    link = LastingLink(Address(f"ws://127.0.0.1:{unused_tcp_port}"), SCOPES)
    with pytest.raises(Unavailable, match="no gateway at"):
        await link.__aenter__()
    await link.__aexit__(None, None, None)
