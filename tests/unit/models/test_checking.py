"""One tiny call and what it tells."""

from __future__ import annotations

from openclaw.domain.transcript import Usage, text_of
from openclaw.models.checking import check_model
from openclaw.models.scripted import ScriptedModel, ScriptedStep, fail, say
from tests.unit.models.asking import NOW_MS, make_target


class Ticking:
    """A clock that goes on by a tenth of a second whenever it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.1
        return self.now


async def test_an_answer() -> None:
    usage = Usage(input=5, output=2)
    model = ScriptedModel(say("o", "k\n there", usage=usage))
    result = await check_model(model, make_target(max_tokens=50), now_ms=NOW_MS, monotonic=Ticking())
    assert (result.ok, result.said, result.usage, result.failure) == (True, "ok there", usage, None)
    assert (result.first_ms, result.took_ms) == (100, 200)
    (request,) = model.requests
    assert (request.max_tokens, request.cache, request.thinking, request.tools) == (50, False, "off", ())
    assert len(text_of(request.messages[0])) < 100
    long = ScriptedModel(say("x" * 1000))
    assert len((await check_model(long, make_target(), now_ms=0, monotonic=Ticking())).said) == 200
    assert long.requests[0].max_tokens == 1024


async def test_a_failure_and_an_answer_without_deltas() -> None:
    failed = await check_model(
        ScriptedModel(fail("auth", "no key")), make_target(), now_ms=NOW_MS, monotonic=Ticking()
    )
    assert (failed.ok, failed.first_ms, failed.said) == (False, None, "")
    assert failed.failure is not None and failed.failure.message == "no key"
    silent = await check_model(
        ScriptedModel(ScriptedStep()), make_target(), now_ms=NOW_MS, monotonic=Ticking()
    )
    assert (silent.ok, silent.first_ms, silent.took_ms) == (True, None, 100)
