"""A real loopback HTTP server that speaks the Anthropic messages wire by script.

Each request takes the next `FakeAnswer`. Requests and disconnects are recorded by
the server that it is built on, which speaks the other wire.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from tests.fakes.openai_server import FakeOpenAIServer, FakeReply


class Thought(Struct, frozen=True):
    """A block of thinking. `pieces` are streamed; `redacted` sends `signature` as hidden data instead."""

    pieces: tuple[str, ...] = ("hm",)
    signature: str = "c2lnbmF0dXJl"
    redacted: bool = False


class Said(Struct, frozen=True):
    pieces: tuple[str, ...]


class Used(Struct, frozen=True):
    """A tool call. `pieces` are the input as it is streamed; valid JSON or not."""

    name: str
    pieces: tuple[str, ...] = ("{}",)
    call_id: str = "toolu_1"


Block = Thought | Said | Used
START_USAGE = {"input_tokens": 25, "output_tokens": 1}


class FakeAnswer(Struct, frozen=True, kw_only=True):
    """What the server does with one request; the fields of `FakeReply` mean the same here."""

    blocks: tuple[Block, ...] = ()
    stop_reason: str | None = None
    start_usage: dict[str, Any] | None = field(default_factory=lambda: dict(START_USAGE))
    end_usage: dict[str, Any] | None = field(default_factory=lambda: {"output_tokens": 15})
    raw: tuple[bytes, ...] | None = None
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    hang_after: int | None = None
    delay_s: float = 0.0
    stream: bool = True


def event(payload: Mapping[str, Any]) -> bytes:
    """One server-sent event, named as this wire does."""
    return f"event: {payload['type']}\ndata: {json.dumps(payload)}\n\n".encode()


def grow(index: int, **delta: Any) -> bytes:
    return event({"type": "content_block_delta", "index": index, "delta": delta})


def begin(index: int, **block: Any) -> bytes:
    return event({"type": "content_block_start", "index": index, "content_block": block})


def start(usage: Mapping[str, Any] | None = None) -> bytes:
    head: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
    }
    return event({"type": "message_start", "message": head | {"usage": usage or START_USAGE}})


def end(reason: str = "end_turn", usage: Mapping[str, Any] | None = None) -> bytes:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return event({"type": "message_delta", "delta": delta, "usage": usage or {"output_tokens": 15}})


def error(kind: str, message: str = "no") -> bytes:
    return event({"type": "error", "error": {"type": kind, "message": message}})


STOP = event({"type": "message_stop"})
PING = event({"type": "ping"})


class FakeAnthropicServer(FakeOpenAIServer):
    """Use as an async context manager; `base_url` is what a provider's configuration holds."""

    path = "/v1/messages"

    def __init__(self, *answers: FakeAnswer, then: FakeAnswer | None = None) -> None:
        super().__init__(*map(as_reply, answers), then=None if then is None else as_reply(then))


def as_reply(answer: FakeAnswer) -> FakeReply:
    """The exact bytes of an answer."""
    whole = json.dumps(whole_answer(answer)).encode()
    raw = answer.raw if answer.raw is not None else streamed_answer(answer)
    return FakeReply(
        raw=raw if answer.stream else (whole,),
        status=answer.status,
        body=answer.body,
        headers=answer.headers,
        cut=answer.cut,
        hang_after=answer.hang_after,
        delay_s=answer.delay_s,
    )


def streamed_answer(answer: FakeAnswer) -> tuple[bytes, ...]:
    """The events of a well-formed stream; without its end when the answer is to be cut."""
    chunks = [start(answer.start_usage), PING]
    for index, block in enumerate(answer.blocks):
        chunks += _streamed_block(index, block)
    if answer.cut:
        return tuple(chunks)
    return (*chunks, end(_stop_reason(answer), answer.end_usage), STOP)


def _streamed_block(index: int, block: Block) -> list[bytes]:
    if isinstance(block, Said):
        chunks = [begin(index, type="text", text="")]
        chunks += [grow(index, type="text_delta", text=piece) for piece in block.pieces]
    elif isinstance(block, Used):
        chunks = [begin(index, type="tool_use", id=block.call_id, name=block.name, input={})]
        chunks += [grow(index, type="input_json_delta", partial_json=piece) for piece in block.pieces]
    elif block.redacted:
        chunks = [begin(index, type="redacted_thinking", data=block.signature)]
    else:
        chunks = [begin(index, type="thinking", thinking="", signature="")]
        chunks += [grow(index, type="thinking_delta", thinking=piece) for piece in block.pieces]
        chunks.append(grow(index, type="signature_delta", signature=block.signature))
    return [*chunks, event({"type": "content_block_stop", "index": index})]


def whole_answer(answer: FakeAnswer) -> dict[str, Any]:
    """The same answer as one JSON object."""
    usage = {**(answer.start_usage or {}), **(answer.end_usage or {})}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [_whole_block(block) for block in answer.blocks],
        "stop_reason": _stop_reason(answer),
        "usage": usage,
    }


def _whole_block(block: Block) -> dict[str, Any]:
    if isinstance(block, Said):
        return {"type": "text", "text": "".join(block.pieces)}
    if isinstance(block, Used):
        tool_input = json.loads("".join(block.pieces))
        return {"type": "tool_use", "id": block.call_id, "name": block.name, "input": tool_input}
    if block.redacted:
        return {"type": "redacted_thinking", "data": block.signature}
    return {"type": "thinking", "thinking": "".join(block.pieces), "signature": block.signature}


def _stop_reason(answer: FakeAnswer) -> str:
    used = any(isinstance(block, Used) for block in answer.blocks)
    return answer.stop_reason or ("tool_use" if used else "end_turn")
