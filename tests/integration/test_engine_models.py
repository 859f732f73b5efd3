"""What a run does when a model fails: try again, use another, leave out what is refused, stop at a limit."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from openclaw.app import Gateway
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:proj"
USAGE = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
OK = FakeReply(texts=("fine",), usage=USAGE)
BUSY = FakeReply(status=503, body={"error": {"message": "try later"}})
BAD_KEY = FakeReply(status=401, body={"error": {"message": "no such key"}})
REFUSED = FakeReply(status=400, body={"error": {"message": "messages.3: unsupported content"}})


def models(house: House) -> list[str]:
    return [request.body["model"] for request in house.model.requests]


async def describe(client: WireClient) -> dict[str, Any]:
    row: dict[str, Any] = (await client.call("sessions.describe", {"key": KEY}))["session"]
    return row


async def test_a_passing_failure_is_tried_again(house: House, client: WireClient) -> None:
    house.model.script(BUSY, FakeReply(texts=("half",), cut=True), OK)
    final = await client.say(KEY, "hello", "run-1")
    assert (final["state"], final["message"]["content"][0]["text"]) == ("final", "fine")
    assert models(house) == ["one", "one", "one"]
    history = await client.call("chat.history", {"sessionKey": KEY})
    assert [message["role"] for message in history["messages"]] == ["user", "assistant"]


@pytest.mark.spec("LOOP-7")
async def test_a_failure_that_lasts_goes_to_the_fallback_until_the_next_reset(house: House) -> None:
    house.config["agents"]["defaults"]["model"] = {"primary": "fake/one", "fallbacks": ["fake/two"]}
    house.model.script(BAD_KEY, OK, OK, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        final = await client.say(KEY, "hello", "run-1")
        assert final["state"] == "final"
        assert models(house) == ["one", "two"]
        row = await describe(client)
        assert (row["model"], row["modelOverride"], row["modelOverrideSource"]) == ("two", "two", "auto")
        await client.say(KEY, "again", "run-2")
        assert models(house)[2:] == ["two"]
        await client.say(KEY, "/new hello there", "run-3")
        assert models(house)[3:] == ["one"]
        assert "modelOverride" not in await describe(client)


async def test_when_every_model_fails_the_last_reason_is_told(house: House) -> None:
    house.config["agents"]["defaults"]["model"] = {"primary": "fake/one", "fallbacks": ["fake/two"]}
    house.model.script(BAD_KEY, BAD_KEY, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        failed = await client.say(KEY, "hello", "run-1")
        assert failed["state"] == "error"
        assert "fake/two" in failed["errorMessage"]
        assert (await client.say(KEY, "again", "run-2"))["state"] == "final"
        assert "modelOverride" not in await describe(client)


@pytest.mark.spec("LIFE-15", "LIFE-16")
async def test_a_model_named_after_new_is_used_from_then_on(house: House, client: WireClient) -> None:
    house.model.script(OK, OK, OK)
    await client.say(KEY, "hello", "run-1")
    await client.say(KEY, "/new fake/two what can you do?", "run-2")
    asked = house.model.requests[1].body
    assert asked["model"] == "two"
    assert asked["messages"][-1]["content"] == "what can you do?"
    await client.say(KEY, "go on", "run-3")
    assert models(house) == ["one", "two", "two"]
    row = await describe(client)
    assert (row["modelOverride"], row["modelOverrideSource"]) == ("two", "user")


# -- entries that a provider refuses ---------------------------------------------------------------


async def test_a_refused_tool_result_is_left_out_and_the_turn_goes_on(
    house: House, client: WireClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    house.model.script(FakeReply(calls=(FakeCall("session_status"),)), REFUSED, OK, OK)
    final = await client.say(KEY, "look", "run-1")
    assert final["state"] == "final"
    refused, mended = (request.body["messages"] for request in house.model.requests[1:3])
    assert "OpenClaw" in refused[-1]["content"]
    assert "left out" in mended[-1]["content"]
    assert "Left out of the context" in caplog.text
    await client.say(KEY, "and now", "run-2")
    later = house.model.requests[3].body["messages"]
    assert [message["content"] for message in later if message["role"] == "tool"] == [mended[-1]["content"]]


async def test_a_refused_message_does_not_cost_the_session(house: House, client: WireClient) -> None:
    house.model.script(OK, REFUSED, REFUSED, OK, OK)
    await client.say(KEY, "fine so far", "run-1")
    assert (await client.say(KEY, "poison", "run-2"))["state"] == "error"
    assert (await client.say(KEY, "are you there?", "run-3"))["state"] == "final"
    said = [message["content"] for message in house.model.requests[3].body["messages"]]
    assert "poison" not in said
    assert said[-1] == "are you there?"
    assert "fine so far" in said
    history = await client.call("chat.history", {"sessionKey": KEY})
    assert "poison" in [message["content"] for message in history["messages"]]
    assert (await client.say(KEY, "good", "run-4"))["state"] == "final"
    assert len(house.model.requests) == 5


# -- spending limits -------------------------------------------------------------------------------


def limit(house: House, **limits: float) -> None:
    house.config["tools"] = {"profile": "minimal"}  # what the prompt may cost does not grow with new tools
    house.config["agents"]["defaults"]["budget"] = limits
    house.config["models"]["providers"]["fake"]["models"][0] |= {
        "cost": {"input": 1000, "output": 2000},
        "maxTokens": 500,
    }


async def test_a_spending_limit_refuses_before_the_call(house: House) -> None:
    limit(house, perSessionUsd=5.0)
    house.model.script(OK, OK, OK, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        assert (await client.say(KEY, "first", "run-1"))["state"] == "final"  # 1000 in, 500 out: $2
        assert (await client.say(KEY, "second", "run-2"))["state"] == "final"
        refused = await client.say(KEY, "third", "run-3")
        assert refused["state"] == "error"
        assert "Spending limit reached for this session: $4.0000 of $5.0000" in refused["errorMessage"]
        assert "perSessionUsd" in refused["errorMessage"]
        assert len(house.model.requests) == 2
        other = await client.say("agent:main:other", "fresh", "run-4")
        assert other["state"] == "final"


@pytest.mark.parametrize(
    ("limits", "words"), [({"perDayUsd": 3.0}, "for today"), ({"perTreeUsd": 3.0}, "session and its helpers")]
)
async def test_the_other_limits_hold_too(house: House, limits: dict[str, float], words: str) -> None:
    limit(house, **limits)
    house.model.script(OK, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        assert (await client.say(KEY, "first", "run-1"))["state"] == "final"
        refused = await client.say(KEY, "second", "run-2")
        assert words in refused["errorMessage"]
        assert len(house.model.requests) == 1


async def test_a_model_without_a_price_is_refused_under_a_limit(house: House) -> None:
    limit(house, perDayUsd=100.0)
    house.config["agents"]["defaults"]["model"] = "fake/two"
    async with house.gateway() as gateway, client_of(gateway) as client:
        refused = await client.say(KEY, "hello", "run-1")
        assert "fake/two has no price" in refused["errorMessage"]
        assert house.model.requests == []


async def test_a_failed_call_costs_nothing_and_an_aborted_one_counts_with_its_estimate(house: House) -> None:
    limit(house, perSessionUsd=2.2)
    house.model.script(BAD_KEY, FakeReply(texts=("slow", "er"), hang_after=1), OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        assert (await client.say(KEY, "first", "run-1"))["state"] == "error"
        await client.call("chat.send", {"sessionKey": KEY, "message": "second", "idempotencyKey": "run-2"})
        await house.model.wait_for_requests(2)
        await client.call("chat.abort", {"sessionKey": KEY})
        await client.ended("run-2")
        spent = await _spent(gateway)
        assert [state for state, _ in spent] == ["settled"]
        assert 1.1 < spent[0][1] < 2.2
        refused = await client.say(KEY, "third", "run-3")
        assert "Spending limit reached" in refused["errorMessage"]


async def _spent(gateway: Gateway) -> list[tuple[str, float]]:
    database = gateway.services.store._database  # the rows themselves: no verb shows reservations
    return await database.read(
        lambda tx: list(tx.rows("SELECT state, cost_usd FROM usage ORDER BY usage_no"))
    )
