"""How these tests ask a model: build a request, collect the events, check the contract of the port."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from openclaw.domain.transcript import AssistantMessage, Message, UserMessage, decode_message, text_of
from openclaw.engine.ports import (
    Model,
    ModelDone,
    ModelEvent,
    ModelFailure,
    ModelPrice,
    ModelRequest,
    ModelTarget,
    TextDelta,
    ThinkingDelta,
    ToolSpec,
)

NOW_MS = 1_700_000_000_000
API_KEY = "sk-test-0123456789abcdef"
LIST_TOOL = ToolSpec("sessions_list", "Lists sessions.", {"type": "object", "properties": {}})
STATUS_TOOL = ToolSpec("session_status", "Shows a card.", {"type": "object", "properties": {}})


def make_target(base_url: str = "http://127.0.0.1:9/v1", **changes: Any) -> ModelTarget:
    fields: dict[str, Any] = {
        "provider": "acme",
        "model": "coyote-1",
        "api": "openai-completions",
        "base_url": base_url,
        "api_key": API_KEY,
        "price": ModelPrice(input=2.0, output=8.0, cache_read=0.5),
    }
    return ModelTarget(**{**fields, **changes})


def make_request(
    messages: Sequence[Message] | str = "hello",
    *,
    target: ModelTarget | None = None,
    system: str = "Be brief.",
    tools: tuple[ToolSpec, ...] = (),
    **changes: Any,
) -> ModelRequest:
    if isinstance(messages, str):
        messages = (UserMessage(messages, NOW_MS),)
    return ModelRequest(
        target=target or make_target(),
        system=system,
        messages=tuple(messages),
        tools=tools,
        now_ms=NOW_MS,
        **changes,
    )


class Heard(Struct, frozen=True):
    """A finished stream."""

    deltas: tuple[ModelEvent, ...]
    message: AssistantMessage
    failure: ModelFailure | None

    @property
    def text(self) -> str:
        return text_of(self.message)

    @property
    def streamed_text(self) -> str:
        return "".join(event.text for event in self.deltas if isinstance(event, TextDelta))

    @property
    def streamed_thinking(self) -> str:
        return "".join(event.text for event in self.deltas if isinstance(event, ThinkingDelta))

    @property
    def kind(self) -> str:
        return self.failure.kind if self.failure else ""


async def ask(model: Model, request: ModelRequest, *, timeout_s: float = 60.0) -> Heard:
    """Stream one answer and check what the port promises of every answer."""
    events: list[ModelEvent] = []
    async with asyncio.timeout(timeout_s):
        async for event in model.stream(request):
            events.append(event)
    return check_contract(events, request)


def check_contract(events: list[ModelEvent], request: ModelRequest) -> Heard:
    assert events, "a stream ends with ModelDone"
    done = events[-1]
    assert isinstance(done, ModelDone)
    assert not any(isinstance(event, ModelDone) for event in events[:-1])
    message, failure = done.message, done.failure
    assert message.timestamp == request.now_ms
    target = request.target
    assert (message.api, message.provider, message.model) == (target.api, target.provider, target.model)
    # What is kept must survive the store: it is valid UTF-8, and reads back as it was.
    assert decode_message(msgspec.json.encode(message)) == message
    if failure is None:
        assert message.stop_reason in ("stop", "length", "toolUse")
        assert message.error_message is None
    else:
        assert message.stop_reason == "error"
        assert message.error_message == failure.message
        assert f"{target.provider}/{target.model}" in failure.message
        assert len(failure.message) < 1200
        if target.api_key:
            assert target.api_key not in failure.message
    return Heard(tuple(events[:-1]), message, failure)
