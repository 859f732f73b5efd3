"""What turns used and cost, by day and as counters: usage.cost and the figures for Prometheus."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.domain.transcript import AssistantMessage, Cost, TextBlock, Usage, encode
from openclaw.engine import events
from openclaw.engine.events import RunScope
from openclaw.errors import StoreBusy
from openclaw.gateway.metrics import CONTENT_TYPE, Metrics, resident_bytes
from openclaw.store.records import StoredEntry
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

Json = dict[str, Any]
USED = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
OK = FakeReply(texts=("Fine",), usage=USED)
NOON = int(datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp() * 1000)
DAY_S = 24 * 3600


def figure(text: bytes, name: str) -> float:
    """The value of one line of the exposition."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", text.decode(), re.MULTILINE)
    assert found, f"no figure {name}"
    return float(found.group(1))


async def test_costs_are_told_day_by_day(house: House) -> None:
    house.model.script(OK, OK, OK)
    clock = MovableClock(NOON)
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        await client.say("main", "one", "run-1")
        clock.move(2 * DAY_S)
        await client.say("main", "two", "run-2")
        await client.say("main", "three", "run-3")
        answer = await client.call("usage.cost", {"days": 4})
        assert answer["days"] == 4
        assert [day["date"] for day in answer["daily"]] == [
            "2026-03-09", "2026-03-10", "2026-03-11", "2026-03-12",
        ]  # fmt: skip
        assert [day["totalTokens"] for day in answer["daily"]] == [0, 1500, 0, 3000]
        assert [day["calls"] for day in answer["daily"]] == [0, 1, 0, 2]
        per_turn = (1000 * 1 + 500 * 2) / 1e6
        assert answer["daily"][1]["totalCost"] == pytest.approx(per_turn)
        assert answer["totals"]["totalCost"] == pytest.approx(3 * per_turn)
        assert (answer["totals"]["input"], answer["totals"]["output"]) == (3000, 1500)
        assert answer["totals"]["missingCostEntries"] == 0
        one_day = await client.call("usage.cost", {"startDate": "2026-03-10", "endDate": "2026-03-10"})
        assert [day["totalTokens"] for day in one_day["daily"]] == [1500]
        assert len((await client.call("usage.cost"))["daily"]) == 30
        assert (await client.call("usage.status"))["providers"] == []


async def test_what_costs_an_unknown_amount_is_counted_apart(house: House) -> None:
    house.model.script(OK)
    async with house.gateway(MovableClock(NOON)) as gateway, client_of(gateway) as client:
        await client.say("main", "/model fake/two", "run-0")
        await client.say("main", "hello", "run-1")
        totals = (await client.call("usage.cost", {"days": 1}))["totals"]
    assert (totals["totalTokens"], totals["totalCost"], totals["missingCostEntries"]) == (1500, 0, 1)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"days": 0}, "at /days"),
        ({"days": 367}, "at /days"),
        ({"days": 3, "startDate": "2026-01-01"}, "not both"),
        ({"startDate": "2026-02-30"}, "there is no day 2026-02-30"),
        ({"startDate": "2026-02-02", "endDate": "2026-02-01"}, "startDate must be before endDate"),
        ({"startDate": "2024-01-01", "endDate": "2026-02-01"}, "by less than 366 days"),
        ({"startDate": "0001-01-01"}, "out of range"),
        ({"startDate": "soon"}, "at /startDate"),
    ],
)
async def test_a_span_that_makes_no_sense_is_refused(client: WireClient, params: Json, said: str) -> None:
    with pytest.raises(RefusedError) as refused:
        await client.call("usage.cost", params)
    assert refused.value.error["code"] == "INVALID_REQUEST"
    assert said in refused.value.error["message"]


async def test_the_figures_follow_a_turn(house: House, gateway: Gateway, client: WireClient) -> None:
    house.model.script(OK, FakeReply(status=400, body={"error": {"message": "no"}}))
    await client.say("main", "hello", "run-1")
    await client.say("main", "again", "run-2")
    text = await gateway.services.about.metrics.scrape()
    assert figure(text, 'openclaw_turns_total{outcome="ok"}') == 1
    assert figure(text, 'openclaw_turns_total{outcome="error"}') == 1
    assert figure(text, "openclaw_turn_seconds_count") == 2
    assert figure(text, "openclaw_inputs_total") == 2
    assert figure(text, 'openclaw_tokens_total{kind="input"}') == 1000
    assert figure(text, 'openclaw_tokens_total{kind="output"}') == 500
    assert figure(text, "openclaw_cost_usd_total") == pytest.approx(0.002)
    assert figure(text, 'openclaw_model_calls_total{provider="fake"}') >= 1
    assert figure(text, "openclaw_clients") == 1
    assert figure(text, "openclaw_active_runs") == 0
    assert figure(text, "openclaw_queue_depth") == 0
    assert figure(text, "openclaw_store_units") >= figure(text, "openclaw_store_commits") >= 4
    assert figure(text, "openclaw_resident_memory_bytes") > 1_000_000
    assert "main" not in text.decode().replace("remain", "")  # no session, no person


async def test_two_gateways_do_not_mix_their_figures() -> None:
    first, second = Metrics(), Metrics()
    first.observe(events.InputCancelled("r", "k", "a"))
    assert figure(first.render(), "openclaw_inputs_cancelled_total") == 1
    assert figure(second.render(), "openclaw_inputs_cancelled_total") == 0
    assert "0.0.4" in CONTENT_TYPE
    assert resident_bytes() > 0


async def test_a_figure_that_cannot_be_read_is_not_zero() -> None:
    metrics, reads = Metrics(), 0

    async def fails() -> float:
        nonlocal reads
        reads += 1
        raise StoreBusy()

    metrics.count("openclaw_things", "Things.", fails)
    assert figure(metrics.render(), "openclaw_things") == 0 and reads == 0
    assert (await metrics.scrape()).decode().endswith("openclaw_things NaN\n") and reads == 1


async def test_tokens_of_a_hidden_turn_count_and_a_broken_body_does_not(gateway: Gateway) -> None:
    metrics = Metrics()
    scope = RunScope("r", "k", "main", "s", hidden=True)
    usage = Usage(input=10, output=0, cache_read=3, cost=Cost(total=0.5))
    said = AssistantMessage((TextBlock("x"),), 1, usage=usage)
    session: Any = None
    metrics.observe(events.RunEnded(scope, session, "timeout", None, None, "", said, 1000, 3000))
    body = encode(said)
    for raw in (body, b"{broken"):
        entry = StoredEntry(1, "e", None, "message", "assistant", None, "people", "r", 1, raw)
        metrics.observe(events.MessageStored(scope, session, entry))
    user = StoredEntry(2, "f", None, "message", "user", None, "people", "r", 1, body)
    metrics.observe(events.MessageStored(scope, session, user))
    text = metrics.render()
    assert figure(text, 'openclaw_tokens_total{kind="input"}') == 20
    assert figure(text, 'openclaw_tokens_total{kind="cache_read"}') == 6
    assert 'kind="output"' not in text.decode()
    assert figure(text, "openclaw_cost_usd_total") == 1
    assert figure(text, "openclaw_turn_seconds_sum") == 2
    assert figure(text, 'openclaw_turns_total{outcome="timeout"}') == 1
    assert figure(text, "openclaw_messages_stored_total") == 3
