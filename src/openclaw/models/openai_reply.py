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
from openclaw.domain.transcript import AssistantBlock, StopReason, TextBlock, ThinkingBlock, ToolCallBlock
from openclaw.engine.ports import ModelDone, ModelFailure, ModelRequest, TextDelta, ThinkingDelta
from openclaw.models.cleaning import decode_leniently, parse_arguments
from openclaw.models.failures import make_failure, reported_failure
from openclaw.models.openai_wire import WireChunk, WireDelta, WireToolCall, decode_chunk, read_usage
from openclaw.models.reply import Reply, ReplyBroken
from openclaw.models.sse import SseEvent

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
}


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


class ChatReply(Reply):
    """One answer; see `Reply` for the order of calls."""

    wire_name = "a chat completion"

    def __init__(self, request: ModelRequest) -> None:
        super().__init__(request)
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._thinking_field: str | None = None
        self._calls: dict[int, _OpenCall] = {}
        self._finish_reason = ""
        self._usage: Any = None

    @property
    def complete(self) -> bool:
        return self._saw_end or bool(self._finish_reason)

    def done(self, failure: ModelFailure | None = None) -> ModelDone:
        text = "".join(self._text)
        calls = self._finished_calls()
        if failure is None:
            failure = self._judge(text, calls)
        content: list[AssistantBlock] = []
        if self._thinking:
            content.append(ThinkingBlock("".join(self._thinking), self._thinking_field))
        if text.strip():
            content.append(TextBlock(text))
        content += calls
        usage = read_usage(self._usage, self._target.price)
        return self._message(content, usage, self._stop_reason(bool(calls)), failure)

    # -- reading ---------------------------------------------------------------------------

    def _read_event(self, event: SseEvent, data: bytes) -> None:
        if data == b"[DONE]":
            self._saw_end = True
        elif event.event == "error" and not data.startswith(b"{"):
            raise ReplyBroken(reported_failure(self._target, data.decode("utf-8", "replace")))
        else:
            self._read_chunk(data)

    def _read_whole(self, data: bytes) -> None:
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
            raise self._not_understood(data)

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
        self.progress += 1
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
            self._require_room_for_call(len(self._calls))
            known = self._calls[index] = _OpenCall()
        return known

    # -- judging ---------------------------------------------------------------------------

    def _judge(self, text: str, calls: list[ToolCallBlock]) -> ModelFailure | None:
        target = self._target
        if not self.complete:
            return self._incomplete()
        if self._finish_reason == "content_filter":
            return make_failure(target, "refused", "the provider's content filter stopped the reply.")
        if self._finish_reason == "error":
            return make_failure(target, "server_error", "the provider failed during the reply.")
        if text.strip() or calls:
            return None
        if _STOP_REASONS.get(self._finish_reason) == "length":
            what = "used up its output tokens before it said anything; raise maxTokens."
            return make_failure(target, "protocol", what, retryable=False)
        return make_failure(target, "protocol", "sent an empty reply.")

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
