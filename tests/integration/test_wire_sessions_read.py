"""sessions.preview, get, usage, search, resolve: looking at sessions over the wire."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from openclaw.app import Gateway
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

OK = FakeReply(texts=("fine",))
PAID = FakeReply(texts=("paid",), usage={"prompt_tokens": 1000, "completion_tokens": 500})
DAY_MS = 24 * 3600 * 1000
NOON = int(datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp() * 1000)
Json = dict[str, Any]


@pytest.mark.spec("RPC-10")
async def test_previews_are_short_and_say_what_is_missing(house: House, client: WireClient) -> None:
    call = FakeCall("sessions_list", ("{}",))
    house.model.script(FakeReply(calls=(call,)), FakeReply(texts=("word " * 100,)), OK)
    await client.say("proj", "look around", "run-1")
    await client.call("sessions.create", {"key": "empty"})
    asked = {"keys": ["agent:main:proj", "PROJ", "empty", "nope", "agent:x"], "limit": 5, "maxChars": 40}
    answer = await client.call("sessions.preview", asked)
    first, again, empty, missing, broken = answer["previews"]
    assert answer["ts"] > 0
    assert (first["key"], first["status"]) == ("agent:main:proj", "ok")
    assert first["items"][0] == {"role": "user", "text": "look around"}
    assert [item["role"] for item in first["items"]] == ["user", "assistant"]
    assert len(first["items"][1]["text"]) <= 40 and first["items"][1]["text"].endswith("…")
    assert (again["key"], again["items"]) == ("PROJ", first["items"])
    assert empty == {"key": "empty", "status": "empty", "items": []}
    assert missing == {"key": "nope", "status": "missing", "items": []}
    assert broken["status"] == "missing"
    newest = await client.call("sessions.preview", {"keys": ["proj"], "limit": 1})
    assert [item["role"] for item in newest["previews"][0]["items"]] == ["assistant"]


@pytest.mark.spec("RPC-10")
async def test_get_gives_the_newest_messages(house: House, client: WireClient) -> None:
    house.model.script(OK, OK)
    await client.say("proj", "one", "run-1")
    await client.say("proj", "two", "run-2")
    everything = (await client.call("sessions.get", {"key": "proj"}))["messages"]
    assert [m["role"] for m in everything] == ["user", "assistant"] * 2
    newest = (await client.call("sessions.get", {"key": "proj", "limit": 2}))["messages"]
    assert newest == everything[2:] and newest[0]["content"] == "two"
    assert newest[1]["__openclaw"]["runId"] == "run-2"
    assert await client.call("sessions.get", {"key": "nobody"}) == {"messages": []}


@pytest.mark.spec("RPC-10")
async def test_usage_adds_up_per_session_agent_model_and_day(house: House) -> None:
    clock = MovableClock(NOON - 3 * DAY_MS)
    house.model.script(PAID, PAID, PAID, PAID)
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        await client.say("proj", "early", "run-1")
        clock.move(3 * 24 * 3600)
        await client.say("proj", "late", "run-2")
        await client.say("agent:bob:talk", "hello", "run-3")
        await client.call("sessions.patch", {"key": "other", "model": "fake/two"})
        await client.say("other", "unpriced", "run-4")
        await client.call("sessions.delete", {"key": "other"})
        everything = await client.call("sessions.usage")
        assert (everything["startDate"], everything["endDate"]) == ("2026-02-09", "2026-03-10")
        totals = everything["totals"]
        assert (totals["input"], totals["output"], totals["totalTokens"]) == (4000, 2000, 6000)
        assert totals["totalCost"] == pytest.approx(3 * (1000 + 2 * 500) / 1e6)
        assert totals["missingCostEntries"] == 1
        by_key = {row["key"]: row for row in everything["sessions"]}
        assert by_key["agent:main:proj"]["usage"]["totalTokens"] == 3000
        assert by_key["agent:main:proj"]["usage"]["calls"] == 2
        assert "sessionId" not in by_key["agent:main:other"]  # deleted: its numbers are left
        assert by_key["agent:main:other"]["usage"]["input"] == 1000
        aggregates = everything["aggregates"]
        assert aggregates["sessionCount"] == 3
        assert [(row["model"], row["count"]) for row in aggregates["byModel"]] == [("one", 3), ("two", 1)]
        assert [(row["agentId"], row["count"]) for row in aggregates["byAgent"]] == [("bob", 1), ("main", 3)]
        assert [(row["date"], row["tokens"]) for row in aggregates["daily"]] == [
            ("2026-03-07", 1500), ("2026-03-10", 4500),
        ]  # fmt: skip
        assert len(aggregates["modelDaily"]) == 3
        one_day = await client.call("sessions.usage", {"startDate": "2026-03-10", "endDate": "2026-03-10"})
        assert one_day["totals"]["totalTokens"] == 4500
        one = await client.call(
            "sessions.usage", {"key": "proj", "startDate": "2026-03-07", "endDate": "2026-03-09"}
        )
        assert [row["key"] for row in one["sessions"]] == ["agent:main:proj"]
        assert one["totals"]["totalTokens"] == 1500
        bob = await client.call("sessions.usage", {"agentId": "bob"})
        assert (bob["totals"]["totalTokens"], len(bob["sessions"])) == (1500, 1)
        newest = await client.call("sessions.usage", {"limit": 1})
        assert len(newest["sessions"]) == 1 and newest["totals"]["totalTokens"] == 6000


@pytest.mark.spec("RPC-10")
async def test_usage_of_a_session_that_used_nothing_and_bad_days(client: WireClient) -> None:
    await client.call("sessions.create", {"key": "quiet", "label": "Quiet"})
    quiet = await client.call("sessions.usage", {"key": "quiet", "range": "7d"})
    assert [(row["label"], row["usage"]) for row in quiet["sessions"]] == [("Quiet", None)]
    assert quiet["totals"]["totalTokens"] == 0
    assert (await client.call("sessions.usage", {"key": "nobody"}))["sessions"] == []
    for bad in ({"startDate": "2026-02-31"}, {"endDate": "0001-01-01"}, {"endDate": "9999-12-31"}):
        with pytest.raises(RefusedError, match="must be days such as"):
            await client.call("sessions.usage", bad)
    with pytest.raises(RefusedError, match="startDate must not be after endDate"):
        await client.call("sessions.usage", {"startDate": "2026-03-02", "endDate": "2026-03-01"})
    assert (await client.call("sessions.usage", {"range": "all"}))["startDate"] < "2020"


@pytest.mark.spec("SRCH-1", "SRCH-2")
async def test_an_operator_searches_every_session(house: House, client: WireClient) -> None:
    house.model.script(FakeReply(texts=("a needle in hay",)), OK, OK)
    await client.say("proj", "find the Needle please", "run-1")
    await client.say("agent:bob:talk", "bob has a needle", "run-2")
    await client.say("proj", "something else", "run-3")
    found = await client.call("sessions.search", {"query": "NEEDLE"})
    assert found["count"] == 3
    assert [hit["sessionKey"] for hit in found["hits"]] == [
        "agent:bob:talk", "agent:main:proj", "agent:main:proj",
    ]  # fmt: skip
    assert {hit["role"] for hit in found["hits"]} == {"user", "assistant"}
    assert all("eedle" in hit["snippet"] and hit["messageId"] for hit in found["hits"])
    assert (await client.call("sessions.search", {"query": "needle", "agentId": "bob"}))["count"] == 1
    assert (await client.call("sessions.search", {"query": "needle", "key": "proj"}))["count"] == 2
    assert (await client.call("sessions.search", {"query": "needle", "limit": 1}))["count"] == 1
    assert (await client.call("sessions.search", {"query": "needle absent"}))["count"] == 0
    with pytest.raises(RefusedError, match="no word in it"):
        await client.call("sessions.search", {"query": " \u200b "})


@pytest.mark.spec("RPC-6")
async def test_resolve_by_short_id_and_by_a_link(client: WireClient) -> None:
    made = await client.call("sessions.create", {"key": "proj"})
    session_id = made["sessionId"]
    found = await client.call("sessions.resolve", {"shortId": session_id[:8]})
    assert found == {"ok": True, "key": "agent:main:proj", "agentId": "main"}
    by_link = await client.call("sessions.resolve", {"reference": {"key": "proj", "slug": "zzzz"}})
    assert by_link["key"] == "agent:main:proj"
    renamed = await client.call("sessions.resolve", {"reference": {"key": "gone", "slug": session_id[:8]}})
    assert renamed["key"] == "agent:main:proj"
    with pytest.raises(RefusedError, match="No session found: gone"):
        await client.call("sessions.resolve", {"reference": {"key": "gone"}})
    with pytest.raises(RefusedError, match="at least 4 characters"):
        await client.call("sessions.resolve", {"shortId": session_id[:3]})
    await client.call("sessions.reset", {"key": "proj"})
    earlier = await client.call("sessions.resolve", {"shortId": session_id[:8]})
    assert earlier["key"] == "agent:main:proj"  # also by the id of an earlier window
    await client.call("sessions.delete", {"key": "proj"})
    assert await client.call("sessions.resolve", {"shortId": session_id[:8], "allowMissing": True}) == {
        "ok": False
    }


@pytest.mark.spec("RPC-6")
async def test_a_short_id_that_fits_several_sessions_is_refused(gateway: Gateway, client: WireClient) -> None:
    for number in range(2):
        seed_key = f"agent:main:s{number}"
        await client.call("sessions.create", {"key": seed_key})
        await gateway.services.keep(_with_id(seed_key, f"same-{number}"))
    with pytest.raises(RefusedError, match="several sessions have an id that begins with same-"):
        await client.call("sessions.resolve", {"shortId": "same-"})
    assert (await client.call("sessions.resolve", {"shortId": "same-1"}))["key"] == "agent:main:s1"


def _with_id(session_key: str, session_id: str) -> Any:
    def unit(tx: Any) -> None:
        tx.run("UPDATE windows SET session_id = $1 WHERE session_key = $2", (session_id, session_key))

    return unit
