"""One connection: the handshake and everything after it, as a state machine without I/O (RPC-1).

The shell feeds frames and the time, and does what the outcome says: send, close,
check a secret, run a method. It calls `accept` or `refuse` after `Authenticate`,
and sends what these return. One instance per socket; it keeps the granted
scopes, the event counter and two budgets, and nothing of what was said.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import msgspec
from msgspec import Struct

from openclaw.errors import Forbidden, InvalidRequest, OpenClawError, Overloaded
from openclaw.protocol.auth import POLICY_VIOLATION, AuthOk, AuthRefused
from openclaw.protocol.budget import TokenBucket
from openclaw.protocol.connect import (
    OPERATOR,
    ClientInfo,
    ClosedObject,
    ConnectParams,
    ProtocolMismatch,
    Role,
    check_role,
    decode_connect,
    negotiate_protocol,
)
from openclaw.protocol.errors import INVALID_REQUEST, ErrorShape, wire_error
from openclaw.protocol.events import Challenge
from openclaw.protocol.frames import (
    BadFrame,
    PreparedEvent,
    Request,
    decode_request,
    encode_error,
    encode_response,
)
from openclaw.protocol.methods import METHODS, MethodSpec, admit_call
from openclaw.protocol.scopes import WRITE, holds_scope

NORMAL_CLOSURE: Final = 1000
PROTOCOL_ERROR: Final = 1002
MESSAGE_TOO_BIG: Final = 1009
SERVICE_RESTART: Final = 1012
# A close frame carries at most this many bytes of reason.
MAX_REASON_BYTES: Final = 123


class ConnectionSettings(Struct, frozen=True, kw_only=True):
    """Limits of one connection (docs/topics/design.md)."""

    handshake_timeout_ms: int = 15_000
    handshake_max_bytes: int = 65_536
    writer_max_bytes: int = 26_214_400
    reader_max_bytes: int = 1_048_576
    # Refused frames: the Control UI alone polls a few methods that may be unknown every second.
    refusal_burst: int = 200
    refusals_per_second: float = 5
    request_burst: int = 10_000
    requests_per_second: float = 5_000
    capabilities: tuple[str, ...] = ()
    methods: Mapping[str, MethodSpec] = msgspec.field(default_factory=lambda: METHODS)

    def max_bytes(self, scopes: tuple[str, ...]) -> int:
        """The largest frame that a client with these scopes may send."""
        return self.writer_max_bytes if holds_scope(scopes, WRITE) else self.reader_max_bytes


class State(IntEnum):
    """A connection is in one of these four states."""

    CONNECTING, AUTHENTICATING, OPEN, CLOSED = range(4)


class Authenticate(Struct, frozen=True):
    """A well-formed `connect`: decide, then call `accept` or `refuse`."""

    params: ConnectParams
    protocol: int


class Call(Struct, frozen=True):
    """A request that is well formed and allowed. `params` has the type that the table names."""

    request: Request
    params: ClosedObject


class Reply(Struct, frozen=True):
    """Send this frame; the connection goes on."""

    frame: bytes


class Ignore(Struct, frozen=True):
    """Nothing to do."""


class CloseWith(Struct, frozen=True):
    """Send `frame` if there is one, then close."""

    code: int
    reason: str
    frame: bytes | None = None


Outcome = Authenticate | Call | Reply | Ignore | CloseWith


class Connection:
    """See the module. `nonce` and `conn_id` are fresh and unguessable; `now_ms` is when the socket opened."""

    def __init__(self, settings: ConnectionSettings, nonce: str, conn_id: str, now_ms: int) -> None:
        self.settings = settings
        self.nonce = nonce
        self.conn_id = conn_id
        self.state = State.CONNECTING
        # Known from the first request on; who the peer says it is.
        self.client: ClientInfo | None = None
        self.caps: frozenset[str] = frozenset()
        # Empty until the client is accepted.
        self.scopes: tuple[str, ...] = ()
        self.role: Role = OPERATOR
        # The device that was verified, when there is one.
        self.device_id: str | None = None
        # What the socket need accept at most, in the present state.
        self.max_frame_bytes = settings.handshake_max_bytes
        self.handshake_deadline_ms = now_ms + settings.handshake_timeout_ms
        self._opened_ms = now_ms
        self._connect_id = ""
        self._seq = 0
        self._refusals = TokenBucket(settings.refusal_burst, settings.refusals_per_second, now_ms)
        self._requests = TokenBucket(settings.request_burst, settings.requests_per_second, now_ms)

    # -- handshake -----------------------------------------------------------------------------

    def opening(self) -> list[bytes]:
        """What the server says first: the challenge."""
        challenge = Challenge(nonce=self.nonce, ts=self._opened_ms, capabilities=self.settings.capabilities)
        return [PreparedEvent("connect.challenge", challenge).unnumbered()]

    def check_deadline(self, now_ms: int) -> CloseWith | None:
        """Close a connection that has not finished its handshake in time; call when the timer fires."""
        if self.state in (State.CONNECTING, State.AUTHENTICATING) and now_ms >= self.handshake_deadline_ms:
            return self.close(POLICY_VIOLATION, "handshake timeout")
        return None

    def accept(self, auth: AuthOk, hello: object) -> bytes:
        """Open the connection; returns the `hello-ok` response to send."""
        self._expect(State.AUTHENTICATING)
        self.state = State.OPEN
        self.role = auth.role
        self.scopes = auth.scopes
        self.device_id = auth.device_id
        self.max_frame_bytes = self.settings.max_bytes(auth.scopes)
        return encode_response(self._connect_id, hello)

    def refuse(self, refused: AuthRefused) -> CloseWith:
        """Answer `connect` with the error; the close reason repeats its message."""
        self._expect(State.AUTHENTICATING)
        return self.close(
            refused.close_code,
            refused.close_reason or refused.error.message,
            encode_error(self._connect_id, refused.error),
        )

    # -- frames --------------------------------------------------------------------------------

    def receive(self, data: bytes | str, now_ms: int) -> Outcome:
        """Take one text frame. Never raises, whatever the frame holds."""
        if self.state is State.CLOSED:
            return Ignore()
        if self.state is not State.OPEN:
            overdue = self.check_deadline(now_ms)
            if overdue is not None:
                return overdue
            if self.state is State.AUTHENTICATING:
                return self.close(POLICY_VIOLATION, "invalid handshake: wait for hello-ok")
        frame = decode_request(data, self.max_frame_bytes)
        if isinstance(frame, BadFrame) and frame.kind == "too_large":
            return self.close(MESSAGE_TOO_BIG, "" if self.state is State.CONNECTING else frame.message)
        return self._shake_hands(frame) if self.state is State.CONNECTING else self._take(frame, now_ms)

    def next_seq(self) -> int:
        """The number of the next event on this connection: 1, 2, 3 … without gaps.

        Also when it has just been closed, so that fan-out to many clients need not
        ask each one first; nothing is sent any more then.
        """
        if self.state not in (State.OPEN, State.CLOSED):
            raise OpenClawError(f"connection is {self.state.name}: no events before hello-ok")
        self._seq += 1
        return self._seq

    def number(self, event: PreparedEvent) -> bytes:
        """The event as a frame for this connection. While it is open, send every one, in this order."""
        return event.numbered(self.next_seq())

    def close(self, code: int, reason: str, frame: bytes | None = None) -> CloseWith:
        """End it from this side; the shell calls it too, when the gateway stops or a client is slow."""
        self.state = State.CLOSED
        return CloseWith(code, clip_reason(reason), frame)

    # -- inside --------------------------------------------------------------------------------

    def _shake_hands(self, frame: Request | BadFrame) -> Outcome:
        if isinstance(frame, BadFrame):
            if frame.kind == "not_json":
                return self.close(NORMAL_CLOSURE, "")
            answer = None if frame.id is None else encode_error(frame.id, _invalid(frame.message))
            return self.close(POLICY_VIOLATION, frame.message, answer)
        try:
            if frame.method != "connect":
                raise InvalidRequest("invalid handshake: first request must be connect")
            params = decode_connect(frame.params)
            protocol = negotiate_protocol(params)
            check_role(params)
        except InvalidRequest as error:
            code = PROTOCOL_ERROR if isinstance(error, ProtocolMismatch) else POLICY_VIOLATION
            return self.close(code, error.message, encode_error(frame.id, wire_error(error)))
        self.state = State.AUTHENTICATING
        self.client = params.client
        self.caps = frozenset(params.caps)
        self._connect_id = frame.id
        return Authenticate(params, protocol)

    def _take(self, frame: Request | BadFrame, now_ms: int) -> Outcome:
        if isinstance(frame, BadFrame):
            answer = None if frame.id is None else encode_error(frame.id, _invalid(frame.message))
            return self._count_refusal(answer, now_ms)
        try:
            if not self._requests.take(now_ms):
                wait_ms = self._requests.wait_ms()
                raise Overloaded("too many requests; slow down", retry_after_ms=wait_ms)
            if frame.method == "connect":
                raise InvalidRequest("connect is only valid as the first request")
            return Call(frame, admit_call(frame, self.role, self.scopes, self.settings.methods))
        except (InvalidRequest, Forbidden, Overloaded) as error:
            return self._count_refusal(encode_error(frame.id, wire_error(error)), now_ms)

    def _count_refusal(self, answer: bytes | None, now_ms: int) -> Outcome:
        if not self._refusals.take(now_ms):
            return self.close(POLICY_VIOLATION, "too many refused requests", answer)
        return Ignore() if answer is None else Reply(answer)

    def _expect(self, state: State) -> None:
        if self.state is not state:
            raise OpenClawError(f"connection is {self.state.name}, not {state.name}")


def _invalid(message: str) -> ErrorShape:
    return ErrorShape(INVALID_REQUEST, message)


def clip_reason(reason: str) -> str:
    """As much of the reason as fits into a close frame, cut between characters."""
    return reason.encode("utf-8", "replace")[:MAX_REASON_BYTES].decode("utf-8", "ignore")
