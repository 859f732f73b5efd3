"""A gateway for client tests: the real handshake and frames, with answers that the test writes.

It speaks through `openclaw.protocol.connection` on a real socket, and remembers
who connected and what was called.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from openclaw.errors import OpenClawError
from openclaw.protocol.auth import GATEWAY_STARTING, AuthMode, AuthRefused, decide_auth, digest_secret
from openclaw.protocol.connect import ConnectParams
from openclaw.protocol.connection import Authenticate, Call, CloseWith, Connection, ConnectionSettings, Reply
from openclaw.protocol.errors import wire_error
from openclaw.protocol.frames import PreparedEvent, encode_error, encode_response

Json = dict[str, Any]
TOKEN = "test-token-0123456789abcdef"


class Twice:
    """An answer in two parts; without a second the client waits for it in vain."""

    def __init__(self, first: Json, second: Json | None) -> None:
        self.first, self.second = first, second


class Silence:
    """No answer."""


class HangUp:
    """The connection ends instead of an answer."""

    def __init__(self, code: int = 1012, reason: str = "service restart") -> None:
        self.code, self.reason = code, reason


Answer = Callable[[Json], object]


class FakeGateway:
    def __init__(
        self, answers: Mapping[str, Answer], *, mode: AuthMode = "token", starting: int = 0, protocol: int = 4
    ) -> None:
        self.answers = dict(answers)
        self.mode = mode
        # So many connections are told to come back later.
        self.starting = starting
        self.protocol = protocol
        self.connects: list[ConnectParams] = []
        self.calls: list[tuple[str, Json]] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def called(self, method: str) -> list[Json]:
        return [params for name, params in self.calls if name == method]

    def serve_client(self, peer: ServerConnection) -> None:
        connection = Connection(ConnectionSettings(), str(uuid.uuid4()), str(uuid.uuid4()), _now_ms())
        try:
            for frame in connection.opening():
                peer.send(frame.decode())
            for data in peer:
                self._take(peer, connection, data)
        except ConnectionClosed:
            pass

    def _take(self, peer: ServerConnection, connection: Connection, data: str | bytes) -> None:
        outcome = connection.receive(data, _now_ms())
        if isinstance(outcome, Authenticate):
            self._let_in(peer, connection, outcome.params)
        elif isinstance(outcome, Call):
            params = msgspec.json.decode(outcome.request.params) if outcome.request.params else {}
            self.calls.append((outcome.request.method, params))
            # Events may arrive at any time; a client has to look past them.
            peer.send(connection.number(PreparedEvent("tick", {"ts": _now_ms()})).decode())
            self._answer(peer, outcome.request.method, outcome.request.id, params)
        elif isinstance(outcome, Reply):
            peer.send(outcome.frame.decode())
        elif isinstance(outcome, CloseWith):
            _close(peer, outcome)

    def _let_in(self, peer: ServerConnection, connection: Connection, params: ConnectParams) -> None:
        self.connects.append(params)
        auth = decide_auth(
            self.mode, digest_secret(TOKEN), params, loopback=True, origin=None, allowed_origins=()
        )
        if self.starting:
            self.starting -= 1
            auth = GATEWAY_STARTING
        if isinstance(auth, AuthRefused):
            _close(peer, connection.refuse(auth))
            return
        hello = {
            "type": "hello-ok",
            "protocol": self.protocol,
            "server": {"version": "9.9.9", "connId": connection.conn_id},
            "snapshot": {"uptimeMs": 200_000},
        }
        peer.send(connection.accept(auth, hello).decode())

    def _answer(self, peer: ServerConnection, method: str, request_id: str, params: Json) -> None:
        try:
            answer = self.answers[method](params)
        except OpenClawError as error:
            peer.send(encode_error(request_id, wire_error(error)).decode())
            return
        if isinstance(answer, HangUp):
            peer.close(answer.code, answer.reason)
        elif isinstance(answer, Twice):
            peer.send(encode_response(request_id, answer.first).decode())
            if answer.second is not None:
                peer.send(encode_response(request_id, answer.second).decode())
        elif not isinstance(answer, Silence):
            peer.send(encode_response(request_id, answer).decode())


def _close(peer: ServerConnection, outcome: CloseWith) -> None:
    if outcome.frame is not None:
        peer.send(outcome.frame.decode())
    peer.close(outcome.code, outcome.reason)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@contextmanager
def running(gateway: FakeGateway) -> Iterator[FakeGateway]:
    """Serve on a free port until the block ends."""
    with serve(gateway.serve_client, "127.0.0.1", 0, compression=None) as server:
        gateway.port = server.socket.getsockname()[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield gateway
        finally:
            server.shutdown()
            thread.join(5)


def listing_of(rows: list[Json]) -> Callable[[Json], Json]:
    """`sessions.list` over these rows, with limit and offset."""

    def answer(params: Json) -> Json:
        offset, limit = params.get("offset", 0), params.get("limit", 100)
        shown = rows[offset : offset + limit]
        end = offset + len(shown)
        return {
            "ts": NOW_MS,
            "path": "/state/openclaw.sqlite",
            "count": len(shown),
            "totalCount": len(rows),
            "limitApplied": limit,
            "hasMore": end < len(rows),
            "nextOffset": end if end < len(rows) else None,
            "owners": [],
            "defaults": {"modelProvider": "offline", "model": "rules", "contextTokens": 64_000},
            "sessions": shown,
        }

    return answer


NOW_MS = 1_800_000_000_000


def session(key: str, age_ms: int = 0, **fields: object) -> Json:
    """A row as a gateway gives it."""
    return {
        "key": key,
        "agentId": key.split(":")[1] if key.startswith("agent:") else "main",
        "kind": "direct",
        "updatedAt": NOW_MS - age_ms,
        "sessionId": f"id-of-{key}",
        "modelProvider": "offline",
        "model": "rules",
        "contextTokens": 64_000,
        "totalTokens": 6_400,
        "totalTokensFresh": True,
        "inputTokens": 6_000,
        "outputTokens": 400,
        "hasActiveRun": False,
        **fields,
    }
