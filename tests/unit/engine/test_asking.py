"""Retries and fallbacks of one answer, with a clock that only counts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest

from openclaw.domain.transcript import AssistantMessage, StopReason, TextBlock
from openclaw.engine.asking import RETRIES, Answer, Asking
from openclaw.engine.ports import (
    ModelDone,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    ModelTarget,
    TextDelta,
    ThinkingDelta,
)

ONE = ModelTarget("p", "one", "fake")
TWO = ModelTarget("p", "two", "fake")
PASSING = ModelFailure("overloaded", "busy", True, 503)
LASTING = ModelFailure("auth", "no key", False, 401)


def done(failure: ModelFailure | None = None) -> ModelDone:
    reason: StopReason = "error" if failure else "stop"
    return ModelDone(AssistantMessage((TextBlock("hi"),), 1, stop_reason=reason), failure)


class CountingClock:
    def __init__(self) -> None:
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return 1

    def monotonic(self) -> float:
        return 1.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class ScriptedEnds:
    """A model whose calls end as told; None: the stream ends without its last event."""

    def __init__(self, *ends: ModelFailure | bool | None) -> None:
        self.ends = list(ends)
        self.asked: list[str] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.asked.append(request.target.model)
        end = self.ends.pop(0)
        yield TextDelta("h")
        yield ThinkingDelta("hm")
        if end is not None:
            yield done(end if isinstance(end, ModelFailure) else None)


class Listener:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def calling(self, target: ModelTarget) -> None:
        self.heard.append(f"calling {target.model}")

    def heard_text(self, delta: str) -> None:
        self.heard.append(f"text {delta}")

    def heard_thinking(self, delta: str) -> None:
        self.heard.append(f"thinking {delta}")

    def answered(self, done: ModelDone, target: ModelTarget) -> None:
        self.heard.append(f"answered {done.failure.kind if done.failure else 'ok'}")

    def retrying(self, failure: ModelFailure, delay_s: float) -> None:
        self.heard.append(f"retrying {failure.kind}")


async def free(_request: ModelRequest) -> None:
    return None


async def request_for(target: ModelTarget) -> ModelRequest:
    return ModelRequest(target, "", ())


async def ask(
    model: ScriptedEnds, targets: Sequence[ModelTarget] = (ONE,), jitter: float = 1.0
) -> tuple[Answer, list[float], list[str]]:
    clock, listener = CountingClock(), Listener()
    asking = Asking({"fake": model}, clock, lambda: jitter)
    return await asking.answer(targets, request_for, listener, free), clock.slept, listener.heard


async def test_a_good_answer_is_asked_for_once() -> None:
    answer, slept, heard = await ask(ScriptedEnds(True))
    assert (answer.done.failure, answer.target, answer.fell_back, slept) == (None, ONE, False, [])
    assert heard == ["calling one", "text h", "thinking hm", "answered ok"]


async def test_waiting_grows_and_jitter_takes_up_to_half_of_it() -> None:
    model = ScriptedEnds(PASSING, PASSING, PASSING, True)
    answer, slept, heard = await ask(model)
    assert (answer.done.failure, slept) == (None, [0.5, 1.0, 2.0])
    assert heard.count("retrying overloaded") == 3
    _, slept, _ = await ask(ScriptedEnds(PASSING, PASSING, True), jitter=0.0)
    assert slept == [0.25, 0.5]


async def test_after_the_last_retry_the_failure_is_the_answer() -> None:
    model = ScriptedEnds(*[PASSING] * (RETRIES + 1))
    answer, slept, _ = await ask(model)
    assert (answer.done.failure, len(slept), len(model.asked)) == (PASSING, RETRIES, RETRIES + 1)


async def test_a_provider_that_says_when_to_come_back_is_obeyed_within_reason() -> None:
    soon = ModelFailure("rate_limit", "wait", True, 429, retry_after_s=7.0)
    _, slept, _ = await ask(ScriptedEnds(soon, True))
    assert slept == [7.0]
    late = ModelFailure("rate_limit", "wait", True, 429, retry_after_s=60.5)
    answer, slept, _ = await ask(ScriptedEnds(late, True), (ONE, TWO))
    assert (slept, answer.target, answer.fell_back) == ([], TWO, True)


async def test_a_lasting_failure_goes_to_the_next_model_at_once() -> None:
    model = ScriptedEnds(LASTING, True)
    answer, slept, heard = await ask(model, (ONE, TWO))
    assert (model.asked, slept, answer.target, answer.fell_back) == (["one", "two"], [], TWO, True)
    assert heard[-1] == "answered ok"


@pytest.mark.parametrize("kind", ["overflow", "invalid_entry", "budget"])
async def test_what_no_other_model_can_help_with_is_not_tried_elsewhere(kind: str) -> None:
    model = ScriptedEnds(ModelFailure(kind, "no", False), True)
    answer, _, _ = await ask(model, (ONE, TWO))
    assert (model.asked, answer.target) == (["one"], ONE)


async def test_a_stream_without_an_end_is_a_failure_and_tried_again() -> None:
    answer, slept, heard = await ask(ScriptedEnds(None, True))
    assert (answer.done.failure, slept) == (None, [0.5])
    assert "retrying protocol" in heard


async def test_an_unknown_api_says_where_to_look() -> None:
    asking = Asking({}, CountingClock(), lambda: 1.0)
    answer = await asking.answer((ONE,), request_for, Listener(), free)
    assert answer.done.failure is not None
    assert "'fake'" in answer.done.failure.message
    assert answer.done.message.stop_reason == "error"


async def test_a_refused_reservation_is_the_answer_and_nobody_is_called() -> None:
    model = ScriptedEnds(True)
    refusal = ModelFailure("budget", "too expensive", False)

    async def refuse(_request: ModelRequest) -> ModelFailure:
        return refusal

    answer = await Asking({"fake": model}, CountingClock(), lambda: 1.0).answer(
        (ONE, TWO), request_for, Listener(), refuse
    )
    assert (answer.done.failure, model.asked) == (refusal, [])
