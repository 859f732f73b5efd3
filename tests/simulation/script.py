"""The model and the tools of the simulation: what they do is drawn from the seed and the number of the call.

The model answers, calls tools, fails in every way that a provider fails, and is silent for long. It hands
every request to a check before it answers. The tools look, change, take their time, and hang.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from random import Random
from typing import Any, ClassVar

from openclaw.domain.transcript import AssistantMessage, Cost, TextBlock, ToolCallBlock, Usage
from openclaw.engine.ports import (
    ModelDone,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    TextDelta,
    ToolContext,
    ToolOutcome,
    ToolSpec,
)
from openclaw.engine.tools.registry import INVALID_JSON
from openclaw.errors import InvalidRequest
from tests.simulation.memory import Memory

OBJECT = {"type": "object", "properties": {}}
KINDS = {
    "says": 46, "says nothing": 4, "calls tools": 30, "rate limit": 5, "overloaded": 2, "bad key": 2,
    "overflow": 2, "invalid entry": 2, "bad request": 1, "half a stream": 3, "no end": 1,
    "silence": 1,
}  # fmt: skip
FAILURES = {
    "rate limit": ModelFailure("rate_limit", "too many requests", True, 429, 2.0),
    "overloaded": ModelFailure("overloaded", "overloaded", True, 529),
    "bad key": ModelFailure("auth", "the key is not valid", False, 401),
    "overflow": ModelFailure("overflow", "the prompt is too long", False, 400),
    "invalid entry": ModelFailure("invalid_entry", "a message is not valid", False, 400),
    "bad request": ModelFailure("bad_request", "not understood", False, 400),
    "half a stream": ModelFailure("network", "the connection was lost", True),
}
TOOLS = ("change", "hang", "look", "peek", "wait")


class SimulatedModel:
    """`on_request` checks what was asked; what it returns is called when the answer has ended."""

    kinds: ClassVar[dict[str, int]] = KINDS

    def __init__(self, memory: Memory, on_request: Callable[[ModelRequest], Callable[[], None]]) -> None:
        self._memory = memory
        self._on_request = on_request

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        number = len(self._memory.calls) + 1
        rng = Random(f"call {self._memory.seed} {number}")
        kind = rng.choices(tuple(self.kinds), tuple(self.kinds.values()))[0]
        cost_usd = number / 1_000_000
        self._memory.calls[number] = cost_usd
        self._memory.step(f"model {kind}", f"call {number}")
        done = self._on_request(request)
        try:
            async with aclosing(self._answer(kind, number, rng, request, cost_usd)) as answer:
                async for event in answer:
                    yield event
        finally:
            done()

    def texts(self, kind: str, number: int, rng: Random) -> tuple[str, ...]:
        return _texts(kind, number, rng)

    def calls(self, kind: str, number: int, rng: Random, request: ModelRequest) -> tuple[ToolCallBlock, ...]:
        return _calls(number, rng) if kind == "calls tools" else ()

    async def _answer(
        self, kind: str, number: int, rng: Random, request: ModelRequest, cost_usd: float
    ) -> AsyncGenerator[ModelEvent, None]:
        await asyncio.sleep(rng.choice((0, 0.001, 0.003, 0.02, 0.5)))
        if kind == "silence":
            await asyncio.sleep(rng.choice((30, 200, 500)))
        texts = self.texts(kind, number, rng)
        for text in texts:
            yield TextDelta(text)
            await asyncio.sleep(rng.choice((0, 0.001, 0.004)))
        if kind == "no end":
            return
        failure = FAILURES.get(kind)
        calls = self.calls(kind, number, rng, request)
        usage = Usage(number, 10, 0, 0, number + 10, Cost(total=cost_usd))
        target = request.target
        yield ModelDone(
            AssistantMessage(
                content=(*((TextBlock("".join(texts)),) if texts else ()), *calls),
                timestamp=request.now_ms,
                api=target.api,
                provider=target.provider,
                model=target.model,
                usage=usage if failure is None or rng.random() < 0.3 else None,
                stop_reason="error" if failure else ("toolUse" if calls else "stop"),
                error_message=failure.message if failure else None,
            ),
            failure,
        )


def _texts(kind: str, number: int, rng: Random) -> tuple[str, ...]:
    if kind == "says nothing":
        return ("NO_", "REPLY")
    if kind in ("says", "half a stream", "silence") or (kind == "calls tools" and rng.random() < 0.4):
        return tuple(f"part {part} of answer {number}. " for part in range(rng.choice((1, 1, 3))))
    return ()


def _calls(number: int, rng: Random) -> tuple[ToolCallBlock, ...]:
    calls = []
    for position in range(rng.choice((1, 1, 2, 3, 4))):
        name = rng.choices((*TOOLS, "no such tool"), (25, 1, 40, 20, 8, 2))[0]
        arguments: dict[str, Any] = {INVALID_JSON: "{"} if rng.random() < 0.05 else {"n": position}
        calls.append(ToolCallBlock(f"c{number}_{position}", name, arguments))
    if len(calls) > 1 and rng.random() < 0.05:
        # A careless model gives two calls one id.
        calls[1] = ToolCallBlock(f"twice{number}", calls[1].name, {})
        calls[0] = ToolCallBlock(f"twice{number}", calls[0].name, {})
    return tuple(calls)


class SimulatedTool:
    """One tool. Checks that its call was committed before it runs, and that it runs once."""

    def __init__(self, name: str, memory: Memory, gone: Callable[[], bool]) -> None:
        self._name = name
        self._memory = memory
        self._gone = gone

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self._name, f"It can {self._name}.", OBJECT, parallel=self._name != "change")

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        call_id = context.tool_call_id
        self._memory.step(f"tool {self._name}", call_id)
        self._check(call_id, context)
        rng = Random(f"tool {self._memory.seed} {call_id}")
        if self._name == "hang":
            await self._hang(rng)
        elif self._name == "wait":
            await asyncio.sleep(rng.choice((0.1, 5, 40)))
        else:
            await asyncio.sleep(rng.choice((0, 0, 0.001, 0.002, 0.05)))
        chance = rng.random()
        if chance < 0.05:
            raise InvalidRequest(f"{self._name} was refused")
        return ToolOutcome((TextBlock(f"{self._name} {call_id} done"),), is_error=chance < 0.1)

    def _check(self, call_id: str, context: ToolContext) -> None:
        if call_id.startswith("twice"):
            return
        self._memory.tool_calls[call_id] += 1
        if self._memory.tool_calls[call_id] > 1:
            self._memory.broken(f"the tool call {call_id} of run {context.run_id} was carried out twice")
        kept = self._memory.image.one(
            "SELECT count(*) FROM entries WHERE run_id = ?1 AND role = 'assistant' AND instr(body, ?2) > 0",
            context.run_id, f'"{call_id}"'.encode(),
        )  # fmt: skip
        if kept != 1:
            self._memory.broken(f"the tool call {call_id} runs and is not in the transcript")

    async def _hang(self, rng: Random) -> None:
        """A tool that does not stop when it is asked to."""
        deadline_s = asyncio.get_running_loop().time() + rng.choice((400, 2000))
        while not self._gone() and (left_s := deadline_s - asyncio.get_running_loop().time()) > 0.001:
            try:
                await asyncio.sleep(left_s)
            except asyncio.CancelledError:
                if self._gone():
                    raise
