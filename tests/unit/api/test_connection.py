"""The asynchronous connection against a peer that behaves, misbehaves, or goes away."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from openclaw.api.connection import Address, Connection
from openclaw.api.events import MAX_WAITING, Events
from openclaw.api.failures import GatewayGone
from openclaw.errors import Forbidden, InvalidRequest, OpenClawError, Overloaded, Unavailable
from tests.unit.api.peers import CHALLENGE, Json, answer, let_in, peer, refuse


@pytest.mark.spec("RPC-1")
async def test_it_introduces_itself_and_keeps_answers_apart() -> None:
    introductions: list[Json] = []

    async def behaviour(socket: ServerConnection) -> None:
        introductions.append(await let_in(socket))
        first, second = json.loads(await socket.recv()), json.loads(await socket.recv())
        await socket.send(json.dumps({"type": "res", "id": "unknown", "ok": True, "payload": 0}))
        await answer(socket, second, {"to": second["method"]})
        await answer(socket, first, {"to": first["method"]})
        await socket.wait_closed()

    async with peer(behaviour) as address:
        connection = await Connection.open(address, ("operator.read",))
        assert connection.hello == {"type": "hello-ok"}
        one, two = await asyncio.gather(connection.call("a.one"), connection.call("a.two", {"x": 1}))
        assert (one, two) == ({"to": "a.one"}, {"to": "a.two"})
        await connection.close()
        await connection.close()
        assert not connection.is_open
    (said,) = introductions
    assert (said["scopes"], said["auth"], said["role"]) == (["operator.read"], {"token": "tok"}, "operator")
    assert (said["client"]["id"], said["client"]["mode"]) == ("gateway-client", "backend")


@pytest.mark.spec("RPC-15")
async def test_a_method_may_answer_twice() -> None:
    async def behaviour(socket: ServerConnection) -> None:
        await let_in(socket)
        request = json.loads(await socket.recv())
        await answer(socket, request, {"status": "accepted"})
        await answer(socket, request, {"status": "ok"})
        refused = json.loads(await socket.recv())
        await refuse(socket, refused, {"code": "INVALID_REQUEST", "message": "no"})
        await socket.wait_closed()

    async with peer(behaviour) as address:
        connection = await Connection.open(address, ())
        assert await connection.call_twice("agent") == ({"status": "accepted"}, {"status": "ok"})
        with pytest.raises(InvalidRequest, match="no"):
            await connection.call_twice("agent")
        await connection.close()


@pytest.mark.spec("RPC-2")
@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            {"code": "FORBIDDEN", "message": "missing scope: x", "details": {"a": 1}},
            Forbidden,
            "missing scope",
        ),
        ({"code": "UNAVAILABLE", "message": "later"}, Unavailable, "later"),
        ({"code": "SOMETHING_NEW", "message": "odd"}, OpenClawError, "odd"),
        ({}, Unavailable, "the gateway gave no reason"),
        ("nonsense", Unavailable, "the gateway gave no reason"),
    ],
)
async def test_a_refusal_is_raised_by_its_code(error: Any, kind: type[OpenClawError], message: str) -> None:
    async def behaviour(socket: ServerConnection) -> None:
        await let_in(socket)
        await refuse(socket, json.loads(await socket.recv()), error)
        await socket.wait_closed()

    async with peer(behaviour) as address:
        connection = await Connection.open(address, ())
        with pytest.raises(kind, match=message) as refused:
            await connection.call("x")
        await connection.close()
    given = error if isinstance(error, dict) else {}
    assert type(refused.value) is kind
    assert refused.value.fields["wire_code"] == given.get("code", "UNAVAILABLE")
    assert refused.value.fields["details"] == given.get("details")


async def test_a_cancelled_call_is_forgotten() -> None:
    async def behaviour(socket: ServerConnection) -> None:
        await let_in(socket)
        slow = json.loads(await socket.recv())
        quick = json.loads(await socket.recv())
        await answer(socket, slow, "late")
        await answer(socket, quick, "quick")
        await socket.wait_closed()

    async with peer(behaviour) as address:
        connection = await Connection.open(address, ())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await connection.call("slow")
        assert await connection.call("quick") == "quick"
        assert connection._answers == {}
        await connection.close()


@pytest.mark.parametrize("last_word", [None, "not json", "[1]", b"\xff\xfe"])
async def test_a_gateway_that_goes_away_ends_every_wait(last_word: str | bytes | None) -> None:
    async def behaviour(socket: ServerConnection) -> None:
        await let_in(socket)
        await socket.recv()
        await socket.recv()
        if last_word is not None:
            await socket.send(last_word)

    async with peer(behaviour) as address:
        connection = await Connection.open(address, ())
        async with Events(connection, ("chat",)) as events:
            calls = (connection.call("a"), connection.call("b"), anext(events))
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [GatewayGone] * 3
        await connection.close()
        with pytest.raises(GatewayGone):
            await connection.call("c")


@pytest.mark.parametrize("opening", ["{}", "hello", '{"type":"event","event":"other"}'])
async def test_something_else_is_not_taken_for_a_gateway(opening: str) -> None:
    async def behaviour(socket: ServerConnection) -> None:
        await socket.send(opening)

    async with peer(behaviour) as address:
        with pytest.raises(Unavailable, match="is not an openclaw gateway"):
            await Connection.open(address, ())


async def test_a_silent_peer_is_left_after_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openclaw.api.connection.CONNECT_TIMEOUT_S", 0.5)
    before = asyncio.all_tasks()

    async def behaviour(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async with peer(behaviour) as address:
        with pytest.raises(Unavailable, match="did not answer in time"):
            await Connection.open(address, ())
    assert asyncio.all_tasks() == before


async def test_a_wrong_credential_is_told_and_leaves_nothing_open() -> None:
    async def behaviour(socket: ServerConnection) -> None:
        await socket.send(CHALLENGE)
        error = {"code": "INVALID_REQUEST", "message": "unauthorized: gateway token mismatch"}
        await refuse(socket, json.loads(await socket.recv()), error)
        await socket.wait_closed()

    before = asyncio.all_tasks()
    async with peer(behaviour) as address:
        with pytest.raises(InvalidRequest, match="token mismatch"):
            await Connection.open(address, ())
    assert asyncio.all_tasks() == before


async def test_a_plain_server_is_not_taken_for_a_gateway() -> None:
    async def behaviour(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 301 Moved\r\nLocation: ws://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(behaviour, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unavailable, match="is not an openclaw gateway"):
            await Connection.open(Address(f"ws://127.0.0.1:{port}", token="tok"), ())


@pytest.mark.parametrize("url", ["", "127.0.0.1:18789", "ftp://host", "ws://", "ws://h:99999", "ws://[::1"])
async def test_what_is_no_url_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(InvalidRequest, match=r"ws://127\.0\.0\.1:18789"):
        await Connection.open(Address(url), ())


async def test_nobody_there(unused_tcp_port: int) -> None:
    with pytest.raises(Unavailable, match="start one with `openclaw`"):
        await Connection.open(Address(f"ws://127.0.0.1:{unused_tcp_port}"), ())


# -- events ------------------------------------------------------------------------------------


def told(name: str, **payload: object) -> str:
    return json.dumps({"type": "event", "event": name, "payload": payload})


async def test_only_the_named_events_are_heard_in_order() -> None:
    async def behaviour(socket: ServerConnection) -> None:
        await let_in(socket)
        request = json.loads(await socket.recv())
        for number in range(3):
            await socket.send(told("tick", n=number))
            await socket.send(told("chat", n=number))
        await socket.send(json.dumps({"type": "event", "event": "chat"}))
        await answer(socket, request, None)
        await socket.wait_closed()

    async with peer(behaviour) as address:
        connection = await Connection.open(address, ())
        async with Events(connection, ("chat",)) as events:
            await connection.call("go")
            heard = [(await anext(events)).payload for _ in range(4)]
        assert heard == [{"n": 0}, {"n": 1}, {"n": 2}, {}]
        assert connection._listeners == []
        await connection.close()


@pytest.mark.parametrize(
    ("names", "asked"),
    [(("chat",), []), (("session.message",), ["sessions.subscribe"]), ((), ["sessions.subscribe"])],
)
async def test_session_events_are_asked_for(names: tuple[str, ...], asked: list[str]) -> None:
    methods: list[str] = []

    async def behaviour(socket: ServerConnection) -> None:
        await let_in(socket)
        async for text in socket:
            request = json.loads(text)
            methods.append(request["method"])
            await answer(socket, request, {})

    async with peer(behaviour) as address:
        connection = await Connection.open(address, ())
        async with Events(connection, names):
            pass
        await connection.close()
    assert methods == asked


async def test_events_that_may_not_be_followed_are_refused_at_once() -> None:
    async def behaviour(socket: ServerConnection) -> None:
        await let_in(socket)
        await refuse(socket, json.loads(await socket.recv()), {"code": "FORBIDDEN", "message": "no"})
        await socket.wait_closed()

    async with peer(behaviour) as address:
        connection = await Connection.open(address, ())
        with pytest.raises(Forbidden):
            async with Events(connection, ("sessions.changed",)):
                pass
        assert connection._listeners == []
        await connection.close()


async def test_a_reader_that_falls_behind_is_told_after_what_it_has() -> None:
    async def behaviour(socket: ServerConnection) -> None:
        await let_in(socket)
        request = json.loads(await socket.recv())
        for number in range(MAX_WAITING + 5):
            await socket.send(told("chat", n=number))
        await answer(socket, request, None)
        await socket.wait_closed()

    async with peer(behaviour) as address:
        connection = await Connection.open(address, ())
        async with Events(connection, ("chat",)) as events:
            await connection.call("go")
            heard = [(await anext(events)).payload["n"] for _ in range(MAX_WAITING)]
            with pytest.raises(Overloaded, match="10000 events wait"):
                await anext(events)
        assert heard == list(range(MAX_WAITING))
        await connection.close()
