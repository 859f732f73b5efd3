"""The command line's own client: one connection, requests and their answers, in order.

Synchronous on `websockets.sync`, so that a command starts quickly. Events go to
`on_event`, or are passed over. Every wait has a deadline, and every failure is one of
`failures`.
"""

from __future__ import annotations

import socket
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from openclaw import __version__
from openclaw.cli.failures import GatewayClosed, GatewayTimeout, NotAGateway
from openclaw.cli.place import Place
from openclaw.cli.refusals import (
    Refusal,
    call_refused,
    connection_refused,
    not_reachable,
    not_running,
    read_refusal,
)
from openclaw.domain.terminaltext import one_line
from openclaw.protocol.connect import PROTOCOL_VERSION
from openclaw.protocol.frames import encode_json

Json = dict[str, Any]

# More than a gateway ever buffers for one client.
MAX_FRAME_BYTES = 64 * 1024 * 1024
CONNECT_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 1.0


class Deadline:
    """A moment after which waiting is over; None never is."""

    def __init__(self, timeout_s: float | None) -> None:
        self.timeout_s = timeout_s
        self._end = None if timeout_s is None else time.monotonic() + timeout_s

    def left_s(self) -> float | None:
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    def allows(self, wait_s: float) -> bool:
        left = self.left_s()
        return left is None or wait_s < left


def is_accepted(payload: object) -> bool:
    """Whether an answer is the first of two."""
    return isinstance(payload, dict) and payload.get("status") == "accepted"


class GatewayClient:
    """A connection to the gateway at `place`, with exactly `scopes`; use it as a context manager.

    Entering connects and shakes hands, and waits for a gateway that is still starting.
    """

    def __init__(
        self,
        place: Place,
        scopes: Sequence[str],
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        on_event: Callable[[Json], None] = lambda _frame: None,
    ) -> None:
        self.place = place
        self._on_event = on_event
        self.hello: Json = {}
        self._scopes = list(scopes)
        self._connect_timeout_s = connect_timeout_s
        self._stack = ExitStack()
        self._connection: ClientConnection
        self._sent = 0

    def __enter__(self) -> GatewayClient:
        deadline = Deadline(self._connect_timeout_s)
        while True:
            try:
                refusal = self._shake_hands(deadline)
            except BaseException:
                self.close()
                raise
            if refusal is None:
                return self
            self.close()
            wait_ms = refusal.retry_after_ms
            if wait_ms is None or not refusal.retryable or not deadline.allows(wait_ms / 1000):
                raise connection_refused(self.place, refusal)
            time.sleep(wait_ms / 1000)

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def call(self, method: str, params: Json | None = None, timeout_s: float | None = 10.0) -> Any:
        """The payload of the answer. Raises RequestRefused, GatewayTimeout or GatewayClosed."""
        deadline = Deadline(timeout_s)
        return self.answer(self.post(method, params), method, deadline)

    def call_twice(self, method: str, params: Json | None = None, timeout_s: float | None = 10.0) -> Any:
        """The payload of the second answer to a method that first says "accepted".

        A first answer that is final already is returned as it is.
        """
        deadline = Deadline(timeout_s)
        request_id = self.post(method, params)
        payload = self.answer(request_id, method, deadline)
        return self.answer(request_id, method, deadline) if is_accepted(payload) else payload

    def post(self, method: str, params: Json | None) -> str:
        """Send a request; returns the id for `answer`."""
        self._sent += 1
        request_id = f"{self._sent}:{uuid.uuid4()}"
        frame: Json = {"type": "req", "id": request_id, "method": method}
        if params is not None:
            frame["params"] = params
        try:
            self._connection.send(encode_json(frame).decode())
        except ConnectionClosed as closed:
            raise _closed(self.place, closed) from None
        return request_id

    def answer(self, request_id: str, method: str, deadline: Deadline) -> Any:
        """The payload of the next answer to a request."""
        answer = self._response(request_id, method, deadline)
        if answer.get("ok") is not True:
            raise call_refused(read_refusal(answer.get("error")))
        return answer.get("payload")

    # -- handshake -----------------------------------------------------------------------------

    def _shake_hands(self, deadline: Deadline) -> Refusal | None:
        """Connect and introduce ourselves. Returns None when let in, else the refusal."""
        self._connection = self._stack.enter_context(self._open(deadline))
        challenge = self._receive("the first word", deadline)
        if challenge.get("event") != "connect.challenge":
            raise NotAGateway(f"what answers at {self.place.shown_url} is not an openclaw gateway")
        request_id = self.post("connect", self._introduction())
        answer = self._response(request_id, "connect", deadline)
        if answer.get("ok") is not True:
            return read_refusal(answer.get("error"))
        hello = answer.get("payload")
        if not isinstance(hello, dict) or hello.get("type") != "hello-ok":
            raise NotAGateway(f"what answers at {self.place.shown_url} is not an openclaw gateway")
        self.hello = hello
        return None

    def _introduction(self) -> Json:
        place = self.place
        auth = {
            name: secret
            for name, secret in (("token", place.token), ("password", place.password))
            if secret is not None
        }
        # A gateway without a secret lets a local program in, and asks a person's client for its device.
        client_id, mode = ("cli", "cli") if auth else ("gateway-client", "backend")
        return {
            "minProtocol": PROTOCOL_VERSION,
            "maxProtocol": PROTOCOL_VERSION,
            "client": {
                "id": client_id,
                "version": __version__,
                "platform": sys.platform,
                "mode": mode,
                "instanceId": str(uuid.uuid4()),
            },
            "caps": [],
            "role": "operator",
            "scopes": self._scopes,
        } | ({"auth": auth} if auth else {})

    def _open(self, deadline: Deadline) -> ClientConnection:
        place = self.place
        # On a socket of our own no redirect is followed and no proxy is asked: the credential
        # goes where the person said.
        raw = _dial(place, deadline)
        try:
            return connect(
                place.url,
                sock=raw,
                compression=None,
                user_agent_header=f"openclaw/{__version__}",
                open_timeout=deadline.left_s(),
                close_timeout=CLOSE_TIMEOUT_S,
                max_size=MAX_FRAME_BYTES,
            )
        except InvalidStatus as answer:
            raise NotAGateway(_http_answer(place, answer)) from None
        except TimeoutError:
            raise _too_late(place, "a connection to", deadline) from None
        except (InvalidHandshake, EOFError, ValueError):
            raise NotAGateway(
                f"what answers at {place.shown_url} does not speak WebSocket; is it the right port?"
            ) from None
        except OSError as error:
            raise not_reachable(place, error.strerror or str(error)) from None

    # -- frames --------------------------------------------------------------------------------

    def _response(self, request_id: str, method: str, deadline: Deadline) -> Json:
        while True:
            frame = self._receive(f"the answer to {method}", deadline)
            if frame.get("type") == "res" and frame.get("id") == request_id:
                return frame
            if frame.get("type") == "event":
                self._on_event(frame)

    def next_frame(self, deadline: Deadline) -> Json:
        """Whatever comes next, for a reader that takes events and answers alike."""
        return self._receive("the next word", deadline)

    def _receive(self, awaited: str, deadline: Deadline) -> Json:
        try:
            data = self._connection.recv(timeout=deadline.left_s())
            frame = msgspec.json.decode(data)
        except TimeoutError:
            raise _too_late(self.place, f"{awaited} from", deadline) from None
        except ConnectionClosed as closed:
            raise _closed(self.place, closed) from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            frame = None
        if not isinstance(frame, dict):
            raise NotAGateway(f"what answers at {self.place.shown_url} is not an openclaw gateway")
        return frame


def _dial(place: Place, deadline: Deadline) -> socket.socket:
    try:
        raw = socket.create_connection((place.host, place.port), timeout=deadline.left_s())
        raw.settimeout(None)  # from here on every wait has its own deadline
        return raw
    except ConnectionRefusedError:
        raise not_running(place) from None
    except socket.gaierror:
        raise not_reachable(place, f"no such host: {place.host}") from None
    except TimeoutError:
        raise _too_late(place, "a connection to", deadline) from None
    except (OSError, UnicodeError) as error:
        raise not_reachable(place, getattr(error, "strerror", None) or str(error)) from None


def _http_answer(place: Place, answer: InvalidStatus) -> str:
    """A gateway says in the body why it does not open a socket; anything else is not a gateway."""
    status = answer.response.status_code
    try:
        reason = msgspec.json.decode(answer.response.body or b"")["error"]["message"]
        return f"the gateway at {place.shown_url} refused the connection: {one_line(str(reason))}"
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
        return f"what answers at {place.shown_url} is not an openclaw gateway (HTTP {status})"


def _too_late(place: Place, awaited: str, deadline: Deadline) -> GatewayTimeout:
    return GatewayTimeout(
        f"waited {deadline.timeout_s:g} s for {awaited} {place.shown_url} — it is busy, or not a gateway;"
        " try again, or wait longer with --timeout"
    )


def _closed(place: Place, closed: ConnectionClosed) -> GatewayClosed:
    if closed.rcvd is None:
        how = "lost its connection"
    else:
        reason = one_line(closed.rcvd.reason)
        how = f"closed the connection ({closed.rcvd.code}{' ' + reason if reason else ''})"
    return GatewayClosed(f"the gateway at {place.shown_url} {how} before it answered")
