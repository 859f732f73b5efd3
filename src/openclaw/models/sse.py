"""Server-sent events, sans-I/O: bytes in, events out.

It knows the event-stream format and nothing about what the events mean. Work is
linear in the bytes fed, whatever their chunking, and memory is bounded: a line,
an event or a stream past its limit raises `SseOverflow`.
"""

from __future__ import annotations

from msgspec import Struct

MAX_EVENT_BYTES = 4 * 1024 * 1024
MAX_STREAM_BYTES = 128 * 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseOverflow(ValueError):
    """The stream sent more than its reader accepts."""


class SseEvent(Struct, frozen=True, gc=False):
    """One event. `data` lines are joined with a newline; bytes, because only the reader knows the format."""

    data: bytes
    event: str = ""


class SseParser:
    """Incremental parser. Feed it the chunks as they come, then call `close` once at the end."""

    def __init__(
        self, *, max_event_bytes: int = MAX_EVENT_BYTES, max_stream_bytes: int = MAX_STREAM_BYTES
    ) -> None:
        self._max_event_bytes = max_event_bytes
        self._max_stream_bytes = max_stream_bytes
        self._stream_bytes = 0
        # The unfinished last line of what was fed so far.
        self._open_line = bytearray()
        # A chunk that ends in CR may be followed by the LF of the same line end.
        self._skip_line_feed = False
        self._at_start = True
        self._event = ""
        self._data: list[bytes] = []
        self._event_bytes = 0

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that this chunk completes. Raises SseOverflow past a limit."""
        self._stream_bytes += len(chunk)
        if self._stream_bytes > self._max_stream_bytes:
            raise SseOverflow(f"the stream is longer than {self._max_stream_bytes} bytes")
        if self._skip_line_feed and chunk:
            self._skip_line_feed = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if not chunk:
            return []
        lines = chunk.splitlines()
        rest = b""
        if not chunk.endswith((b"\n", b"\r")):
            rest = lines.pop()
        self._skip_line_feed = chunk.endswith(b"\r")
        if lines and self._open_line:
            lines[0] = bytes(self._open_line) + lines[0]
            self._open_line.clear()
        events: list[SseEvent] = []
        for line in lines:
            self._take_line(line, events)
        self._open_line += rest
        if len(self._open_line) > self._max_event_bytes:
            raise SseOverflow(f"a line is longer than {self._max_event_bytes} bytes")
        return events

    def close(self) -> list[SseEvent]:
        """The event that the end of the stream leaves open, if any: many servers omit the last blank line."""
        events: list[SseEvent] = []
        if self._open_line:
            line = bytes(self._open_line)
            self._open_line.clear()
            self._take_line(line, events)
        self._take_line(b"", events)
        return events

    def _take_line(self, line: bytes, events: list[SseEvent]) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            if self._data:
                data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                events.append(SseEvent(data, self._event))
                self._data.clear()
            self._event = ""
            self._event_bytes = 0
            return
        name, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            self._event_bytes += len(value) + 1
            if self._event_bytes > self._max_event_bytes:
                raise SseOverflow(f"an event is longer than {self._max_event_bytes} bytes")
            self._data.append(value)
        elif name == b"event":
            self._event = value[:64].decode("utf-8", "replace")
        # Comments (an empty name), `id`, `retry` and unknown fields mean nothing to us.
