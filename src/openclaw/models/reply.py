"""What every provider's answer has in common, sans-I/O: chunks of bytes in, model events out.

Tells a server-sent event stream from one plain JSON object, bounds what is kept,
cleans text at the door and merges neighbouring deltas. What the events mean is
known by the reader of each wire, beside this file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from openclaw.domain.doortext import clean_text
from openclaw.domain.transcript import AssistantBlock, AssistantMessage, StopReason, ToolCallBlock, Usage
from openclaw.engine.ports import ModelDone, ModelFailure, ModelRequest, TextDelta, ThinkingDelta
from openclaw.models.failures import excerpt, make_failure
from openclaw.models.sse import SseEvent, SseOverflow, SseParser

MAX_REPLY_CHARS = 8 * 1024 * 1024
MAX_TOOL_CALLS = 256
HEAD_BYTES = 2048

Delta = TextDelta | ThinkingDelta


class ReplyBroken(Exception):
    """The provider's answer cannot be used; `failure` says why."""

    def __init__(self, failure: ModelFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Reply(ABC):
    """One answer. `feed` each chunk and `take_events`; `finish` at the end of the body; then `done` once."""

    # What the wire calls its answers, for messages.
    wire_name = "an answer"

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self._target = request.target
        self._sse = SseParser()
        # None until the first byte that is not white space tells a JSON object from an event stream.
        self._json_body: bytearray | None = None
        self._sniffed = False
        self._head = b""
        self._reply_chars = 0
        self._saw_end = False
        self._saw_chunk = False
        self._events: list[Delta] = []
        # Grows with everything that carries the answer on; keep-alives do not count.
        self.progress = 0

    # -- what a wire knows ---------------------------------------------------------------------

    @property
    @abstractmethod
    def complete(self) -> bool:
        """The answer is whole; what comes after it, if anything, is only usage."""

    @abstractmethod
    def _read_event(self, event: SseEvent, data: bytes) -> None:
        """Read one event of the stream; `data` is its payload without blanks around it."""

    @abstractmethod
    def _read_whole(self, data: bytes) -> None:
        """Read an answer that came as one JSON object."""

    @abstractmethod
    def done(self, failure: ModelFailure | None = None) -> ModelDone:
        """The last event. Without a failure from outside the answer itself is judged."""

    # -- reading -------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """The provider said that nothing follows."""
        return self._saw_end

    def feed(self, data: bytes) -> None:
        """Read the next chunk of the body. Raises ReplyBroken."""
        if len(self._head) < HEAD_BYTES:
            self._head += data[: HEAD_BYTES - len(self._head)]
        if not self._sniffed:
            first = data.lstrip()[:1]
            self._sniffed = bool(first)
            if first == b"{":
                self._json_body = bytearray()
        if self._json_body is None:
            self._read_stream(data)
            return
        self.progress += 1
        self._json_body += data
        if len(self._json_body) > MAX_REPLY_CHARS:
            raise self._broken("sent an answer that is too large.", retryable=False)

    def finish(self) -> None:
        """The body has ended: read what its end completes. Raises ReplyBroken."""
        if self._json_body is not None:
            self._read_whole(bytes(self._json_body))
            self._saw_end = self._saw_chunk
            return
        try:
            self._read_stream(None)
        except ReplyBroken as broken:
            # The tail of a cut stream is not garbage: `done` says that the reply is incomplete.
            if broken.failure.kind != "protocol":
                raise

    def take_events(self) -> list[Delta]:
        """The deltas since the last call, neighbours merged: one network read is one event."""
        events, self._events = self._events, []
        return events

    def _read_stream(self, data: bytes | None) -> None:
        """None is the end of the stream."""
        try:
            events = self._sse.close() if data is None else self._sse.feed(data)
        except SseOverflow as overflow:
            raise self._broken(f"sent more than can be read: {overflow}.", retryable=False)
        for event in events:
            payload = event.data.strip()
            if payload and not self._saw_end:
                self._read_event(event, payload)

    # -- parts of an answer --------------------------------------------------------------------

    def _counted(self, text: str) -> str:
        """Text that may be kept: clean, and within what one reply may hold."""
        self._reply_chars += len(text)
        if self._reply_chars > MAX_REPLY_CHARS:
            raise self._broken("sent a reply that is too long.", retryable=False)
        return clean_text(text)

    def _emit(self, event: Delta) -> None:
        self.progress += 1
        if self._events and type(self._events[-1]) is type(event):
            event = type(event)(self._events.pop().text + event.text)
        self._events.append(event)

    def _require_room_for_call(self, count: int) -> None:
        if count >= MAX_TOOL_CALLS:
            raise self._broken(f"asked for more than {MAX_TOOL_CALLS} tool calls at once.")

    # -- judging -------------------------------------------------------------------------------

    def _message(
        self,
        content: list[AssistantBlock],
        usage: Usage | None,
        stop_reason: StopReason,
        failure: ModelFailure | None,
    ) -> ModelDone:
        """The whole message. Calls of a failed answer are left out: nobody will run them."""
        if failure is not None:
            content = [block for block in content if not isinstance(block, ToolCallBlock)]
        message = AssistantMessage(
            content=tuple(content),
            timestamp=self._request.now_ms,
            api=self._target.api,
            provider=self._target.provider,
            model=self._target.model,
            usage=usage,
            stop_reason="error" if failure else stop_reason,
            error_message=failure.message if failure else None,
        )
        return ModelDone(message, failure)

    def _incomplete(self) -> ModelFailure:
        if self._saw_chunk:
            return make_failure(self._target, "protocol", "the reply stopped half-way.")
        said = excerpt(self._head.decode("utf-8", "replace"), self._target)
        if not said:
            return make_failure(self._target, "protocol", "closed the connection without an answer.")
        what = f"sent something that is not {self.wire_name}: {said}"
        return make_failure(self._target, "protocol", what)

    def _not_understood(self, data: bytes) -> ReplyBroken:
        said = excerpt(data[:HEAD_BYTES].decode("utf-8", "replace"), self._target)
        return self._broken(f"sent something that is not {self.wire_name}: {said}")

    def _broken(self, what: str, *, retryable: bool | None = None) -> ReplyBroken:
        return ReplyBroken(make_failure(self._target, "protocol", what, retryable=retryable))
