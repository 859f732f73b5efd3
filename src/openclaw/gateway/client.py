"""One connected client: its socket, what it follows, and a bounded line of frames to send.

A client that does not read is closed with a code that tells it to resync; frames
are never dropped silently (PITFALLS H3). Frames that wait together leave in one
write: a system call per frame was the largest cost of a turn.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable

from aiohttp import web

from openclaw.errors import Overloaded
from openclaw.protocol.connection import Connection
from openclaw.protocol.events import may_receive
from openclaw.protocol.frames import PreparedEvent
from openclaw.protocol.hello import MAX_BUFFERED_BYTES

SLOW_CLIENT = 4008
MAX_FOLLOWED = 1000
HIGH_WATER = 1 << 20
SLOW_PEER_S = 0.01
LINGER_S = 0.003  # a write for each of fifty listeners costs more than what is written


class Client:
    """The sending side of one socket. `send` never waits; `drain` is run as its own task."""

    def __init__(
        self, connection: Connection, socket: web.WebSocketResponse, transport: asyncio.Transport
    ) -> None:
        self.connection = connection
        self.follows_sessions = False
        self.follows_messages: set[str] = set()
        # Of a node, which holds no scope: its own session, once it asked for that (AUTO-9).
        self.hears_chat_of: set[str] = set()
        self._socket = socket
        self._transport = transport
        self._line: deque[bytes] = deque()
        self._buffered = 0
        self._more = asyncio.Event()
        self._closing: tuple[int, str] | None = None
        self._lingering = False
        self.in_flight = 0
        self._gone = False
        self._waits: set[asyncio.Task[None]] = set()
        self._at_the_end: list[Callable[[], None]] = []

    @property
    def peer_ip(self) -> str | None:
        """Where the socket comes from; a proxy's own address where there is one between."""
        peer = self._transport.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) and peer else None

    def send(self, frame: bytes, *, linger: bool = False) -> None:
        """Put a frame in line. One that may `linger` waits a moment for company, or goes with the next."""
        if self._closing is not None:
            return
        self._buffered += len(frame)
        if self._buffered > MAX_BUFFERED_BYTES:
            self._line.clear()
            self.close(SLOW_CLIENT, "too slow: reconnect and resync")
            return
        self._line.append(frame)
        if not linger:
            self._more.set()
        elif not self._lingering:
            self._lingering = True
            asyncio.get_running_loop().call_later(LINGER_S, self._stop_lingering)

    def _stop_lingering(self) -> None:
        self._lingering = False
        if self._line:
            self._more.set()

    def send_event(self, event: PreparedEvent, *, linger: bool = False) -> None:
        self.send(self.connection.number(event), linger=linger)

    def follow(self, session_key: str) -> None:
        """Get the messages of a session. A client follows a bounded number of them."""
        if len(self.follows_messages) >= MAX_FOLLOWED:
            raise Overloaded(f"one connection follows at most {MAX_FOLLOWED} sessions; unsubscribe some")
        self.follows_messages.add(session_key)

    def _take(self) -> list[bytes]:
        """What waits, as text frames, up to one buffer full."""
        pieces: list[bytes] = []
        size = 0
        while self._line and size < HIGH_WATER:
            frame = self._line.popleft()
            size += len(frame)
            pieces += (_header(len(frame)), frame)
        self._buffered -= size
        return pieces

    def close(self, code: int, reason: str) -> None:
        """Close after what already stands in line."""
        if self._closing is None:
            self._closing = (code, reason)
            self._more.set()

    def wants(self, event: str, session_key: str | None, capability: str | None) -> bool:
        """Whether this client gets an event: by scope, capability and what it follows."""
        connection = self.connection
        if not may_receive(event, connection.scopes, connection.caps, capability):
            return event == "chat" and session_key in self.hears_chat_of
        if event == "sessions.changed":
            return self.follows_sessions
        if event in ("session.message", "session.operation"):
            return self.follows_sessions or session_key in self.follows_messages
        return True

    def cancel_when_gone(self, task: asyncio.Task[None]) -> None:
        """A task that only waits on this client's behalf."""
        self._waits.add(task)
        task.add_done_callback(self._waits.discard)

    def when_gone(self, act: Callable[[], None]) -> None:
        """Do this once the socket is gone; at once when it is already."""
        if self._gone:
            act()
        else:
            self._at_the_end.append(act)

    @property
    def is_gone(self) -> bool:
        return self._gone or self._closing is not None

    def leave(self) -> None:
        """The socket is gone: nothing more is sent, and nobody waits for this client."""
        self._gone = True
        for act in self._at_the_end:
            act()
        self._closing = self._closing or (0, "")
        self._line.clear()
        for task in tuple(self._waits):
            task.cancel()

    async def drain(self) -> None:
        """Send until the client is closed or gone; the reading side cleans up."""
        while not self._transport.is_closing():
            await self._more.wait()
            self._more.clear()
            if self._transport.is_closing():
                return  # while nothing was to be sent; writing to it now would be an error
            while self._line and self._transport.get_write_buffer_size() < HIGH_WATER:
                self._transport.write(b"".join(self._take()))
            if self._line:
                # The peer reads slowly; the line grows until it is cut off or catches up.
                self._more.set()
                await asyncio.sleep(SLOW_PEER_S)
            elif self._closing is not None:
                code, reason = self._closing
                await self._socket.close(code=code, message=reason.encode("utf-8"))
                return


def _header(size: int) -> bytes:
    """The head of an unmasked, unfragmented text frame (RFC 6455, section 5.2)."""
    if size < 126:
        return struct.pack("!BB", 0x81, size)
    if size < 1 << 16:
        return struct.pack("!BBH", 0x81, 126, size)
    return struct.pack("!BBQ", 0x81, 127, size)
