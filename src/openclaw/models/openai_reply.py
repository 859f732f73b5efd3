"""The OpenAI chat-completions answer, sans-I/O: chunks of bytes in, model events out.

Reads a server-sent event stream, and also one plain JSON object from servers
that ignore `stream`. What is broken beyond repair raises `ReplyBroken` with the
failure inside; the shell around it does the talking.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from openclaw.domain.doortext import clean_text
from openclaw.domain.transcript import (
    AssistantBlock,
    AssistantMessage,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from openclaw.engine.ports import ModelDone, ModelFailure, ModelRequest, TextDelta, ThinkingDelta
from openclaw.models.cleaning import decode_leniently, parse_arguments
from openclaw.models.failures import excerpt, make_failure, reported_failure
from openclaw.models.openai_wire import WireChunk, WireDelta, WireToolCall, decode_chunk, read_usage
from openclaw.models.sse import SseOverflow, SseParser

MAX_REPLY_CHARS = 8 * 1024 * 1024
MAX_TOOL_CALLS = 256
_HEAD_BYTES = 2048
_STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
}


Delta = TextDelta | ThinkingDelta


class ReplyBroken(Exception):
    """The provider's answer cannot be used; `failure` says why."""

    def __init__(self, failure: ModelFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class _OpenCall:
    """A tool call under assembly."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


def _starts_another(piece: WireToolCall, known: _OpenCall) -> bool:
    """Does this piece begin a new call although its index, given or assumed, is taken?"""
    if piece.id and known.id:
        return clean_text(piece.id) != known.id
    named = piece.function is not None and bool(piece.function.name)
    return piece.index is None and named and bool(known.name)


# -- the reader --------------------------------------------------------------------------------


class ChatReply:
    """One answer. `feed` each chunk and `take_events`; `finish` at the end of the body; then `done` once."""

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self._target = request.target
        self._sse = SseParser()
        # None until the first byte that is not white space tells a JSON object from an event stream.
        self._json_body: bytearray | None = None
        self._sniffed = False
        self._head = b""
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._thinking_field: str | None = None
        self._calls: dict[int, _OpenCall] = {}
        self._reply_chars = 0
        self._finish_reason = ""
        self._saw_end = False
        self._saw_chunk = False
        self._usage: Any = None
        self._events: list[Delta] = []

    @property
    def ended(self) -> bool:
        """The provider said that nothing follows."""
        return self._saw_end

    @property
    def complete(self) -> bool:
        """The answer is whole; what comes after it, if anything, is only usage."""
        return self._saw_end or bool(self._finish_reason)

    def feed(self, data: bytes) -> None:
        """Read the next chunk of the body. Raises ReplyBroken."""
        if len(self._head) < _HEAD_BYTES:
            self._head += data[: _HEAD_BYTES - len(self._head)]
        if not self._sniffed:
            first = data.lstrip()[:1]
            self._sniffed = bool(first)
            if first == b"{":
                self._json_body = bytearray()
        if self._json_body is None:
            self._read_stream(data)
            return
        self._json_body += data
        if len(self._json_body) > MAX_REPLY_CHARS:
            raise self._broken("sent an answer that is too large.", retryable=False)

    def finish(self) -> None:
        """The body has ended: read what its end completes. Raises ReplyBroken."""
        if self._json_body is not None:
            self._read_chunk(bytes(self._json_body))
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

    def done(self, failure: ModelFailure | None = None) -> ModelDone:
        """The last event. Without a failure from outside the answer itself is judged."""
        text = "".join(self._text)
        calls = self._finished_calls()
        if failure is None:
            failure = self._judge(text, calls)
        content: list[AssistantBlock] = []
        if self._thinking:
            content.append(ThinkingBlock("".join(self._thinking), self._thinking_field))
        if text.strip():
            content.append(TextBlock(text))
        if failure is None:
            content += calls
        message = AssistantMessage(
            content=tuple(content),
            timestamp=self._request.now_ms,
            api=self._target.api,
            provider=self._target.provider,
            model=self._target.model,
            usage=read_usage(self._usage, self._target.price),
            stop_reason="error" if failure else self._stop_reason(bool(calls)),
            error_message=failure.message if failure else None,
        )
        return ModelDone(message, failure)

    # -- reading ---------------------------------------------------------------------------

    def _read_stream(self, data: bytes | None) -> None:
        """None is the end of the stream."""
        try:
            events = self._sse.close() if data is None else self._sse.feed(data)
        except SseOverflow as overflow:
            raise self._broken(f"sent more than can be read: {overflow}.", retryable=False)
        for event in events:
            data = event.data.strip()
            if not data or self._saw_end:
                continue
            if data == b"[DONE]":
                self._saw_end = True
            elif event.event == "error" and not data.startswith(b"{"):
                raise ReplyBroken(reported_failure(self._target, data.decode("utf-8", "replace")))
            else:
                self._read_chunk(data)

    def _read_chunk(self, data: bytes) -> None:
        try:
            chunk = decode_chunk(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            chunk = self._repair_chunk(data)
        if chunk.error:
            raise ReplyBroken(reported_failure(self._target, chunk.error))
        if chunk.object == "error":
            bare = {"message": chunk.message, "code": chunk.code}
            raise ReplyBroken(reported_failure(self._target, bare))
        if chunk.usage is not None:
            self._usage = chunk.usage
        for choice in chunk.choices or ():
            self._saw_chunk = True
            if choice.index:
                continue
            if choice.delta is not None:
                self._read_delta(choice.delta)
            elif choice.message is not None:
                self._number_calls(choice.message)
                self._read_delta(choice.message)
            if choice.finish_reason:
                self._finish_reason = choice.finish_reason

    def _repair_chunk(self, data: bytes) -> WireChunk:
        try:
            return msgspec.convert(decode_leniently(data), WireChunk)
        except (msgspec.ValidationError, ValueError):
            said = excerpt(data[:_HEAD_BYTES].decode("utf-8", "replace"), self._target)
            raise self._broken(f"sent something that is not a chat completion: {said}")

    def _read_delta(self, delta: WireDelta) -> None:
        thought = delta.reasoning_content or delta.reasoning
        if thought:
            self._thinking_field = "reasoning_content" if delta.reasoning_content else self._thinking_field
            thought = self._counted(thought)
            self._thinking.append(thought)
            self._emit(ThinkingDelta(thought))
        content = delta.content
        if isinstance(content, list):
            content = "".join(part.text or "" for part in content)
        for text in (content, delta.refusal):
            if text:
                text = self._counted(text)
                self._text.append(text)
                self._emit(TextDelta(text))
        for call in delta.tool_calls or ():
            self._read_call(call)

    def _number_calls(self, message: WireDelta) -> None:
        """A whole message lists its calls by position; deltas number them."""
        for position, call in enumerate(message.tool_calls or ()):
            call.index = position

    def _read_call(self, piece: WireToolCall) -> None:
        call = self._call_of(piece)
        if piece.id and not call.id:
            call.id = clean_text(piece.id)
        function = piece.function
        if function is None:
            return
        if function.name and not call.name:
            call.name = self._counted(function.name)
        arguments = function.arguments
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        if arguments:
            call.arguments.append(self._counted(arguments))

    def _call_of(self, piece: WireToolCall) -> _OpenCall:
        """The call that this piece belongs to. Some servers omit the index, others use one index for all."""
        index = max(self._calls, default=0) if piece.index is None else piece.index
        known = self._calls.get(index)
        if known is not None and _starts_another(piece, known):
            index = max(self._calls) + 1
            known = None
        if known is None:
            if len(self._calls) >= MAX_TOOL_CALLS:
                raise self._broken(f"asked for more than {MAX_TOOL_CALLS} tool calls at once.")
            known = self._calls[index] = _OpenCall()
        return known

    def _counted(self, text: str) -> str:
        self._reply_chars += len(text)
        if self._reply_chars > MAX_REPLY_CHARS:
            raise self._broken("sent a reply that is too long.", retryable=False)
        return clean_text(text)

    def _emit(self, event: Delta) -> None:
        if self._events and type(self._events[-1]) is type(event):
            event = type(event)(self._events.pop().text + event.text)
        self._events.append(event)

    # -- judging ---------------------------------------------------------------------------

    def _judge(self, text: str, calls: list[ToolCallBlock]) -> ModelFailure | None:
        target = self._target
        if not self.complete:
            return self._incomplete()
        if self._finish_reason == "content_filter":
            return make_failure(target, "bad_request", "the provider's content filter stopped the reply.")
        if self._finish_reason == "error":
            return make_failure(target, "server_error", "the provider failed during the reply.")
        if text.strip() or calls:
            return None
        if _STOP_REASONS.get(self._finish_reason) == "length":
            what = "used up its output tokens before it said anything; raise maxTokens."
            return make_failure(target, "protocol", what, retryable=False)
        return make_failure(target, "protocol", "sent an empty reply.")

    def _incomplete(self) -> ModelFailure:
        if self._saw_chunk:
            return make_failure(self._target, "protocol", "the reply stopped half-way.")
        said = excerpt(self._head.decode("utf-8", "replace"), self._target)
        if not said:
            return make_failure(self._target, "protocol", "closed the connection without an answer.")
        return make_failure(self._target, "protocol", f"sent something that is not a chat completion: {said}")

    def _stop_reason(self, has_calls: bool) -> StopReason:
        reason = _STOP_REASONS.get(self._finish_reason, "stop")
        if reason == "length":
            return reason
        # What is in the message decides: many servers say "stop" after tool calls.
        return "toolUse" if has_calls else "stop"

    def _finished_calls(self) -> list[ToolCallBlock]:
        calls: list[ToolCallBlock] = []
        used: set[str] = set()
        for index in sorted(self._calls):
            call = self._calls[index]
            call_id = call.id
            if not call_id or call_id in used:
                call_id = f"call_{uuid.uuid4().hex[:24]}"
            used.add(call_id)
            calls.append(ToolCallBlock(call_id, call.name, parse_arguments("".join(call.arguments))))
        return calls

    def _broken(self, what: str, *, retryable: bool | None = None) -> ReplyBroken:
        return ReplyBroken(make_failure(self._target, "protocol", what, retryable=retryable))
