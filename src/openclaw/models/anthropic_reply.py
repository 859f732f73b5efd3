"""The Anthropic messages answer, sans-I/O: chunks of bytes in, model events out.

Reads the event stream, and also one plain JSON object from servers that ignore
`stream`. Blocks are kept in the order of the provider, thoughts with their
signatures, so that a tool loop can send them back unchanged.
"""

from __future__ import annotations

import uuid

import msgspec

from openclaw.domain.doortext import clean_text
from openclaw.domain.transcript import AssistantBlock, StopReason, TextBlock, ThinkingBlock, ToolCallBlock
from openclaw.engine.ports import ModelDone, ModelFailure, ModelRequest, TextDelta, ThinkingDelta
from openclaw.models.anthropic_request import REDACTED_PREFIX
from openclaw.models.anthropic_wire import (
    WireBlock,
    WireBlockDelta,
    WireEvent,
    WireUsage,
    decode_event,
    merge_usage,
    usage_of,
)
from openclaw.models.cleaning import decode_leniently, parse_arguments
from openclaw.models.failures import make_failure, reported_failure
from openclaw.models.reply import Reply, ReplyBroken
from openclaw.models.sse import SseEvent

MAX_BLOCKS = 1024
_CUT_SHORT = frozenset({"max_tokens", "model_context_window_exceeded"})


class _OpenBlock:
    """A block under assembly: its pieces of text or of JSON, and its signature."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.pieces: list[str] = []
        self.signature: list[str] = []
        # What had to be cleaned is no longer what was signed.
        self.altered = False
        self.call_id = ""
        self.name = ""


class MessagesReply(Reply):
    """One answer; see `Reply` for the order of calls."""

    wire_name = "an answer of the messages API"

    def __init__(self, request: ModelRequest) -> None:
        super().__init__(request)
        self._blocks: dict[int, _OpenBlock] = {}
        self._calls = 0
        self._stop = ""
        # The event at hand was not what the provider meant to send.
        self._repaired = False
        self._usage: WireUsage | None = None

    @property
    def complete(self) -> bool:
        return self._saw_end or bool(self._stop)

    def done(self, failure: ModelFailure | None = None) -> ModelDone:
        content = self._content()
        if failure is None:
            failure = self._judge(content)
        stop_reason: StopReason = "toolUse" if self._calls else "stop"
        if self._stop in _CUT_SHORT:
            stop_reason = "length"
        return self._message(content, usage_of(self._usage, self._target.price), stop_reason, failure)

    # -- reading ---------------------------------------------------------------------------

    def _read_event(self, event: SseEvent, data: bytes) -> None:
        if event.event == "error" and not data.startswith(b"{"):
            raise ReplyBroken(reported_failure(self._target, data.decode("utf-8", "replace")))
        wire = self._decode(data)
        match wire.type or event.event:
            case "message_start":
                self._saw_chunk = True
                self._usage = merge_usage(self._usage, wire.message.usage if wire.message else None)
            case "content_block_start":
                self._open_block(wire.index, wire.content_block or WireBlock())
            case "content_block_delta":
                self._grow_block(wire.index, wire.delta or WireBlockDelta())
            case "message_delta":
                self._saw_chunk = True
                self._usage = merge_usage(self._usage, wire.usage)
                if wire.delta is not None and wire.delta.stop_reason:
                    self._stop = wire.delta.stop_reason
            case "message_stop":
                self._saw_end = self._saw_chunk
            case "error":
                raise ReplyBroken(reported_failure(self._target, wire.error))
            # Pings, ends of blocks and events of the future carry nothing that we need.

    def _read_whole(self, data: bytes) -> None:
        wire = self._decode(data)
        if wire.error:
            raise ReplyBroken(reported_failure(self._target, wire.error))
        if wire.content is None:
            return
        self._saw_chunk = True
        self._usage = merge_usage(self._usage, wire.usage)
        self._stop = wire.stop_reason or ""
        for index, block in enumerate(wire.content):
            self._open_block(index, block)

    def _decode(self, data: bytes) -> WireEvent:
        self._repaired = False
        try:
            return decode_event(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._repaired = True
        try:
            return msgspec.convert(decode_leniently(data), WireEvent)
        except (msgspec.ValidationError, ValueError):
            raise self._not_understood(data)

    def _open_block(self, index: int | None, block: WireBlock) -> None:
        self._saw_chunk = True
        self.progress += 1
        if len(self._blocks) >= MAX_BLOCKS:
            raise self._broken(f"sent more than {MAX_BLOCKS} blocks in one reply.")
        kind = block.type or ""
        opened = _OpenBlock(kind)
        self._blocks[len(self._blocks) if index is None else index] = opened
        if kind == "text":
            self._add_text(opened, block.text)
        elif kind == "thinking":
            self._add_thought(opened, block.thinking)
            self._add_signature(opened, block.signature)
        elif kind == "redacted_thinking":
            self._add_signature(opened, block.data)
        elif kind == "tool_use":
            self._require_room_for_call(self._calls)
            self._calls += 1
            opened.call_id = clean_text(block.id or "")
            opened.name = self._counted(block.name or "")
            # A stream opens with an empty object and sends the input in pieces.
            if block.input:
                opened.pieces.append(self._counted(msgspec.json.encode(block.input).decode()))

    def _grow_block(self, index: int | None, delta: WireBlockDelta) -> None:
        block = self._blocks.get(max(self._blocks, default=0) if index is None else index)
        if block is None:
            # Some servers leave out the start of a block that holds only text.
            block = self._blocks[index or 0] = _OpenBlock("thinking" if delta.thinking else "text")
        self._saw_chunk = True
        self.progress += 1
        if block.kind == "tool_use":
            if delta.partial_json:
                block.pieces.append(self._counted(delta.partial_json))
        elif block.kind == "thinking":
            self._add_thought(block, delta.thinking)
            self._add_signature(block, delta.signature)
        elif block.kind == "text":
            self._add_text(block, delta.text)

    def _add_text(self, block: _OpenBlock, text: str | None) -> None:
        if text:
            text = self._counted(text)
            block.pieces.append(text)
            self._emit(TextDelta(text))

    def _add_thought(self, block: _OpenBlock, text: str | None) -> None:
        if text:
            clean = self._counted(text)
            block.altered |= self._repaired or clean != text
            block.pieces.append(clean)
            self._emit(ThinkingDelta(clean))

    def _add_signature(self, block: _OpenBlock, signature: str | None) -> None:
        if signature:
            clean = self._counted(signature)
            block.altered |= self._repaired or clean != signature
            block.signature.append(clean)

    # -- judging ---------------------------------------------------------------------------

    def _content(self) -> list[AssistantBlock]:
        content: list[AssistantBlock] = []
        used: set[str] = set()
        for _, block in sorted(self._blocks.items()):
            whole = "".join(block.pieces)
            signature = "" if block.altered else "".join(block.signature)
            if block.kind == "text":
                if whole.strip():
                    content.append(TextBlock(whole))
            elif block.kind == "thinking":
                if whole or signature:
                    content.append(ThinkingBlock(whole, signature or None))
            elif block.kind == "redacted_thinking" and signature:
                content.append(ThinkingBlock("", REDACTED_PREFIX + signature))
            elif block.kind == "tool_use":
                call_id = block.call_id
                if not call_id or call_id in used:
                    call_id = f"toolu_{uuid.uuid4().hex[:24]}"
                used.add(call_id)
                content.append(ToolCallBlock(call_id, block.name, parse_arguments(whole)))
        return content

    def _judge(self, content: list[AssistantBlock]) -> ModelFailure | None:
        target = self._target
        if not self.complete:
            return self._incomplete()
        if self._stop == "refusal":
            return make_failure(target, "refused", "the model declined to answer.")
        if any(not isinstance(block, ThinkingBlock) for block in content):
            return None
        if self._stop == "model_context_window_exceeded":
            return make_failure(target, "overflow", "the conversation leaves no room for an answer.")
        if self._stop == "max_tokens":
            what = "used up its output tokens before it said anything; raise maxTokens."
            return make_failure(target, "protocol", what, retryable=False)
        return make_failure(target, "protocol", "sent an empty reply.")
