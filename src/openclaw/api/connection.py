"""One asynchronous connection to a gateway: many calls at once, and its events.

Speaks the protocol and nothing else; it loads no part of the server. A call that is
cancelled is forgotten here and goes on in the gateway, as for every client.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import sys
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from openclaw import __version__
from openclaw.api.failures import GatewayGone, refusal_of
from openclaw.errors import InvalidRequest, Unavailable
from openclaw.protocol.connect import PROTOCOL_VERSION
from openclaw.protocol.frames import encode_json

Json = dict[str, Any]
Listener = Callable[[str, Json], None]
# From our introduction and the gateway's challenge to what is sent as `connect`.
Introduce = Callable[[Json, Json], Json]

# More than a gateway ever buffers for one client.
MAX_FRAME_BYTES = 64 * 1024 * 1024
CONNECT_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 2.0
_PORTS = {"ws": 80, "wss": 443}


class Link(Protocol):
    """Whatever reaches a gateway: a connection, a gateway of one's own."""

    async def call(self, method: str, params: Json | None = None) -> Any: ...


class Address(Struct, frozen=True):
    """Where a gateway is and what opens it. `dial_host` is the address to dial when the URL's is not it."""

    url: str
    token: str | None = None
    password: str | None = None
    dial_host: str | None = None

    def __repr__(self) -> str:
        # A secret must not reach a log by way of a traceback.
        return f"Address({self.url!r})"


class Connection:
    """`await Connection.open(address, scopes)`; close it when done. For one event loop."""

    def __init__(self, socket: ClientConnection) -> None:
        self.hello: Json = {}
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[str, asyncio.Queue[Json | None]] = {}
        self._listeners: list[Listener] = []
        self._ended: list[Callable[[], None]] = []
        self._heard = asyncio.Event()  # the first word, or that there will be none
        self._challenge: Json | None = None
        self._reader = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def open(
        cls, address: Address, scopes: Sequence[str], introduce: Introduce = lambda params, _challenge: params
    ) -> Connection:
        """Connect and introduce ourselves. Raises an OpenClawError that says why not.

        `introduce` may add to the introduction, such as a device that signs the challenge.
        """
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                connection = cls(await _dial(address))
                try:
                    await connection._shake_hands(address, scopes, introduce)
                except BaseException:
                    await connection.close()
                    raise
        except TimeoutError:
            raise Unavailable(f"the gateway at {address.url} did not answer in time; try again") from None
        return connection

    @property
    def is_open(self) -> bool:
        return not self._reader.done()

    async def close(self) -> None:
        """Leave, and wait until nothing of this connection runs any more. May be called again."""
        await self._socket.close()
        await asyncio.wait({self._reader})

    # -- calls ---------------------------------------------------------------------------------

    async def call(self, method: str, params: Json | None = None) -> Any:
        """The payload of the answer. Raises what the gateway refused with, or GatewayGone."""
        payloads = self._answers_to(method, params)
        async with aclosing(payloads):
            return await anext(payloads)

    async def call_twice(self, method: str, params: Json | None = None) -> tuple[Json, Json]:
        """Both payloads of a method that first says "accepted" and later how it went."""
        payloads = self._answers_to(method, params)
        async with aclosing(payloads):
            return await anext(payloads), await anext(payloads)

    async def _answers_to(self, method: str, params: Json | None) -> AsyncGenerator[Any, None]:
        if not self.is_open:
            raise GatewayGone()
        request_id = str(next(self._numbers))
        answers = self._answers[request_id] = asyncio.Queue()
        try:
            frame = encode_json({"type": "req", "id": request_id, "method": method, "params": params or {}})
            try:
                await self._socket.send(frame.decode())
            except ConnectionClosed:
                raise GatewayGone() from None
            while True:
                yield _payload(await answers.get())
        finally:
            del self._answers[request_id]

    # -- events --------------------------------------------------------------------------------

    def listen(self, listener: Listener, ended: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` with every event, and `ended` when there will be none; returns how to stop."""
        self._listeners.append(listener)
        self._ended.append(ended)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)
                self._ended.remove(ended)

        return stop

    async def _read(self) -> None:
        try:
            async for data in self._socket:
                self._take(data)
        except (ConnectionClosed, NotAFrame):
            pass
        finally:
            self._heard.set()
            for answers in self._answers.values():
                answers.put_nowait(None)
            for ended in tuple(self._ended):
                ended()

    def _take(self, data: str | bytes) -> None:
        frame = _frame(data)
        if frame.get("type") == "res":
            answers = self._answers.get(str(frame.get("id")))
            if answers is not None:  # nobody waits for the answer to a cancelled call
                answers.put_nowait(frame)
            return
        name, payload = str(frame.get("event")), frame.get("payload")
        if name == "connect.challenge":
            self._challenge = payload if isinstance(payload, dict) else {}
            self._heard.set()
        for listener in tuple(self._listeners):
            listener(name, payload if isinstance(payload, dict) else {})

    # -- handshake -----------------------------------------------------------------------------

    async def _shake_hands(self, address: Address, scopes: Sequence[str], introduce: Introduce) -> None:
        await self._heard.wait()
        if self._challenge is None:
            raise Unavailable(f"what answers at {address.url} is not an openclaw gateway")
        secrets = {"token": address.token, "password": address.password}
        auth = {name: secret for name, secret in secrets.items() if secret}
        introduction: Json = {
            "minProtocol": PROTOCOL_VERSION,
            "maxProtocol": PROTOCOL_VERSION,
            "client": {
                "id": "gateway-client",
                "version": __version__,
                "platform": sys.platform,
                "mode": "backend",
                "instanceId": str(uuid.uuid4()),
            },
            "caps": [],
            "role": "operator",
            "scopes": list(scopes),
        }
        if auth:
            introduction["auth"] = auth
        self.hello = await self.call("connect", introduce(introduction, self._challenge))


class NotAFrame(Exception):
    """What came is no frame of the protocol; the connection is of no use any more."""


def _frame(data: str | bytes) -> Json:
    try:
        frame = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        frame = None
    if not isinstance(frame, dict):
        raise NotAFrame
    return frame


def _payload(answer: Json | None) -> Any:
    if answer is None:
        raise GatewayGone()
    if answer.get("ok") is not True:
        raise refusal_of(answer.get("error"))
    return answer.get("payload")


async def _dial(address: Address) -> ClientConnection:
    try:
        # On a socket of our own no redirect is followed and no proxy is asked: the credential goes
        # where the caller said.
        raw = await asyncio.to_thread(_open_socket, address)
        return await connect(
            address.url,
            sock=raw,
            proxy=None,
            compression=None,
            user_agent_header=f"openclaw/{__version__}",
            open_timeout=None,
            close_timeout=CLOSE_TIMEOUT_S,
            max_size=MAX_FRAME_BYTES,
        )
    except (InvalidHandshake, EOFError, ValueError):
        raise Unavailable(f"what answers at {address.url} is not an openclaw gateway") from None
    except OSError as error:
        reason = error.strerror or str(error) or "no answer"
        raise Unavailable(f"no gateway at {address.url}: {reason}; start one with `openclaw`") from None


def _open_socket(address: Address) -> socket.socket:
    try:
        parts = urlsplit(address.url)
        host, port = address.dial_host or parts.hostname, parts.port or _PORTS[parts.scheme]
        if not host:
            raise ValueError("a URL names a host")
    except (ValueError, KeyError):
        raise InvalidRequest("not the URL of a gateway; write it like ws://127.0.0.1:18789") from None
    raw = socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S)
    raw.setblocking(False)
    return raw
