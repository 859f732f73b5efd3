"""One answer from a model: try again after a passing failure, then the fallbacks, each call accounted for.

Used by runs, summaries and side questions alike. Failure stays data: the answer
says what went wrong with the last model that was asked. What to do about a
context that does not fit is not decided here.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Protocol

from msgspec import Struct

from openclaw.domain.transcript import AssistantMessage
from openclaw.engine.ports import (
    Clock,
    Model,
    ModelDone,
    ModelFailure,
    ModelRequest,
    ModelTarget,
    TextDelta,
    ThinkingDelta,
)

log = logging.getLogger("openclaw.models")

RETRIES = 3
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
# A provider that asks for more patience than this is left for the fallback.
LONGEST_PATIENCE_S = 60.0
# Another model would fail in the same way, or must not be tried.
_FINAL_KINDS = frozenset(("overflow", "invalid_entry", "budget"))

Refusal = ModelFailure | None


class CallListener(Protocol):
    """Who hears what happens during a call."""

    def calling(self, target: ModelTarget) -> None: ...

    def heard_text(self, delta: str) -> None: ...

    def heard_thinking(self, delta: str) -> None: ...

    def answered(self, done: ModelDone, target: ModelTarget) -> None:
        """A call came to its end, well or not; what it used is in the message."""
        ...

    def retrying(self, failure: ModelFailure, delay_s: float) -> None: ...


class Answer(Struct, frozen=True):
    """The last call's end, by which model, and whether that was a fallback."""

    done: ModelDone
    target: ModelTarget
    fell_back: bool = False


class Asking:
    def __init__(
        self,
        models: Mapping[str, Model],
        clock: Clock,
        jitter: Callable[[], float],
    ) -> None:
        self._models = models
        self._clock = clock
        self._jitter = jitter

    async def answer(
        self,
        targets: Sequence[ModelTarget],
        make_request: Callable[[ModelTarget], Awaitable[ModelRequest]],
        listener: CallListener,
        reserve: Callable[[ModelRequest], Awaitable[Refusal]],
    ) -> Answer:
        """Ask the first model, and on a failure that another one may not have, the next."""
        answer: Answer | None = None
        for number, target in enumerate(targets):
            if answer is not None:
                log.warning("%s; trying %s/%s", _why(answer), target.provider, target.model)
            done = await self._ask_patiently(await make_request(target), listener, reserve)
            answer = Answer(done, target, number > 0)
            if done.failure is None or done.failure.kind in _FINAL_KINDS:
                break
        assert answer is not None, "there is always a model to ask"
        return answer

    async def _ask_patiently(
        self,
        request: ModelRequest,
        listener: CallListener,
        reserve: Callable[[ModelRequest], Awaitable[Refusal]],
    ) -> ModelDone:
        for attempt in range(RETRIES + 1):
            refusal = await reserve(request)
            if refusal is not None:
                return failed(request.target, refusal, self._clock.now_ms())
            done = await self._ask_once(request, listener)
            delay_s = self._delay(done.failure, attempt)
            if done.failure is None or delay_s is None:
                return done
            listener.retrying(done.failure, delay_s)
            await self._clock.sleep(delay_s)
        raise AssertionError("the last attempt has no delay")

    async def _ask_once(self, request: ModelRequest, listener: CallListener) -> ModelDone:
        target = request.target
        model = self._models.get(target.api)
        if model is None:
            failure = ModelFailure(
                "internal", f"no adapter speaks {target.api!r}; check models.providers", False
            )
            return failed(target, failure, self._clock.now_ms())
        listener.calling(target)
        async with aclosing(model.stream(request)) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    listener.heard_text(event.text)
                elif isinstance(event, ThinkingDelta):
                    listener.heard_thinking(event.text)
                else:
                    listener.answered(event, target)
                    return event
        silent = ModelFailure("protocol", f"{target.provider}/{target.model} ended without an answer", True)
        return failed(target, silent, self._clock.now_ms())

    def _delay(self, failure: ModelFailure | None, attempt: int) -> float | None:
        """How long to wait before trying the same model again; None: not again."""
        if failure is None or not failure.retryable or attempt >= RETRIES:
            return None
        if failure.retry_after_s is not None and failure.retry_after_s > LONGEST_PATIENCE_S:
            return None
        backed_off: float = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2**attempt) * (0.5 + self._jitter() / 2)
        return max(backed_off, failure.retry_after_s or 0.0)


def failed(target: ModelTarget, failure: ModelFailure, now_ms: int) -> ModelDone:
    """A failure as the message that ends a call."""
    message = AssistantMessage(
        (), now_ms, target.api, target.provider, target.model, None, "error", failure.message
    )
    return ModelDone(message, failure)


def _why(answer: Answer) -> str:
    failure = answer.done.failure
    return failure.message if failure else "no answer"
