"""One tiny call, to learn whether a model answers, how fast, and what that cost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from msgspec import Struct

from openclaw.domain.transcript import Usage, UserMessage, text_of
from openclaw.engine.ports import Model, ModelDone, ModelFailure, ModelRequest, ModelTarget

_QUESTION = "This is a connection test. Reply with the single word: ok"
# Enough for a model that thinks before it says one word.
_MAX_TOKENS = 1024
_SHOWN_CHARS = 200


class CheckResult(Struct, frozen=True):
    """How a call went. `first_ms` is the time to the first delta, None when none came."""

    ok: bool
    said: str
    took_ms: int
    first_ms: int | None
    usage: Usage | None
    failure: ModelFailure | None


async def check_model(
    model: Model, target: ModelTarget, *, now_ms: int, monotonic: Callable[[], float]
) -> CheckResult:
    """Ask one question and tell what came of it. Raises nothing but cancellation."""
    request = ModelRequest(
        target=target,
        system="",
        messages=(UserMessage(_QUESTION, now_ms),),
        thinking="off",
        max_tokens=min(_MAX_TOKENS, target.max_tokens),
        now_ms=now_ms,
        cache=False,
    )
    started = monotonic()
    first_ms: int | None = None
    done: ModelDone | None = None
    async with aclosing(model.stream(request)) as stream:
        async for event in stream:
            if isinstance(event, ModelDone):
                done = event
            elif first_ms is None:
                first_ms = _elapsed_ms(started, monotonic())
    assert done is not None, "a stream ends with ModelDone"
    return CheckResult(
        ok=done.failure is None,
        said=" ".join(text_of(done.message).split())[:_SHOWN_CHARS],
        took_ms=_elapsed_ms(started, monotonic()),
        first_ms=first_ms,
        usage=done.message.usage,
        failure=done.failure,
    )


def _elapsed_ms(start_s: float, end_s: float) -> int:
    return round((end_s - start_s) * 1000)
