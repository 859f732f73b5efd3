"""sessions_search: words of every script, hits only where the caller may look, snippets without secrets."""

from __future__ import annotations

import json

import pytest

from openclaw.engine.tools.sessions.sessions_search import MOST_HITS
from tests.unit.engine.tools.sessions.room import (
    NOW,
    OWN,
    TOKEN,
    Json,
    Room,
    assistant,
    text_of,
    tool_result,
    user,
)

KID = "agent:bob:kid"


def places(answer: Json) -> list[str]:
    return [hit["sessionKey"] for hit in answer["hits"]]


@pytest.mark.spec("SRCH-2", "KEY-2")
async def test_a_hit_has_the_specified_fields(room: Room) -> None:
    await room.add("agent:main:main", session_id="sid-main")
    await room.say("agent:main:main", user("nothing"), assistant("The lighthouse stands"), at=NOW + 7)
    answer = await room.ask("sessions_search", as_key="agent:main:main", query="LIGHTHOUSE")
    (hit,) = answer["hits"]
    message_id = hit.pop("messageId")
    assert len(message_id) == 8
    assert answer["count"] == 1
    assert hit == {
        "sessionKey": "main", "sessionId": "sid-main", "timestamp": NOW + 7, "role": "assistant",
        "snippet": "The lighthouse stands",
    }  # fmt: skip


@pytest.mark.spec("SRCH-2", "SRCH-3")
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("ประชุมพรุ่งนี้เวลาเก้าโมง", "พรุ่งนี้"),
        ("我们明天在上海开会", "上海"),
        ("La reunión será mañana", "manana"),
        ("La reunion sera manana", "REUNIÓN"),
        ("कल बैठक दिल्ली में है", "दिल्ली"),
        ("会議は明日です", "明日"),
        ("Straße nach Łódź", "lodz"),
    ],
)
async def test_words_of_every_script_are_found(room: Room, text: str, query: str) -> None:
    await room.say(OWN, user("something else"), user(text), assistant("noted"))
    answer = await room.ask("sessions_search", query=query)
    assert [hit["snippet"] for hit in answer["hits"]] == [text]
    assert (await room.ask("sessions_search", query=query + " zebra"))["hits"] == []


@pytest.mark.spec("SRCH-2", "VIS-6")
async def test_only_sessions_that_may_be_seen_are_searched_before_the_limit(room: Room) -> None:
    await room.add(KID, spawned_by=OWN)
    await room.add("agent:main:other")
    await room.say(KID, user("the word, oldest"))
    await room.say(OWN, user("the word, older"))
    for number in range(40):
        await room.say("agent:main:other", user(f"the word, hidden {number}"))
    answer = await room.ask("sessions_search", query="word", limit=5)
    assert places(answer) == [OWN, KID]
    assert "hidden" not in json.dumps(answer)
    assert answer["count"] == 2
    alone = await room.ask("sessions_search", query="word", sessionKey=KID)
    assert places(alone) == [KID]
    assert places(await room.ask("sessions_search", query="word", agentId=" BOB ")) == [KID]
    assert places(await room.ask("sessions_search", query="word", agentId="main")) == [OWN]
    refused = await room.ask("sessions_search", query="word", sessionKey="agent:main:other")
    assert refused["status"] == "forbidden"
    assert "hidden" not in json.dumps(refused)
    room.configure(tools={"sessions": {"visibility": "self"}})
    assert places(await room.ask("sessions_search", query="word")) == [OWN]


@pytest.mark.spec("SRCH-2")
async def test_hits_and_snippets_are_bounded_and_masked(room: Room) -> None:
    for number in range(70):
        await room.say(OWN, user(f"needle {number} " + "hay " * 200 + f"password={TOKEN}"))
    newest = await room.ask("sessions_search", query="needle")
    assert newest["count"] == len(newest["hits"]) == 20
    assert newest["hits"][0]["snippet"].startswith("needle 69 hay")
    assert all(len(hit["snippet"]) <= 160 for hit in newest["hits"])
    assert (await room.ask("sessions_search", query="needle", limit=0))["count"] == 1
    most = await room.ask("sessions_search", query="needle", limit=10**6)
    assert most["count"] == MOST_HITS == 50
    found = await room.ask("sessions_search", query="password", limit=1)
    assert TOKEN not in json.dumps(found)
    assert "…" in found["hits"][0]["snippet"]


@pytest.mark.spec("SRCH-3")
async def test_tool_results_thinking_and_deleted_sessions_are_not_found(room: Room) -> None:
    await room.add("agent:main:gone", spawned_by=OWN)
    await room.say("agent:main:gone", user("walrus in a session"))
    await room.say(
        OWN,
        tool_result("walrus in a file"),
        assistant("<think>walrus</think>seal", {"type": "thinking", "thinking": "walrus"}),
    )
    assert places(await room.ask("sessions_search", query="walrus")) == ["agent:main:gone"]
    await room.store.delete_session("agent:main:gone", now_ms=NOW)
    assert (await room.ask("sessions_search", query="walrus"))["hits"] == []


@pytest.mark.spec("TOOL-7")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "missing required field `query`"),
        ({"query": 1}, "query: "),
        ({"query": " ,;! "}, "query: there is no word in it"),
        ({"query": "word " + " ".join(f"w{n}" for n in range(300))}, "too long"),
        ({"query": "word", "sessionKey": "nobody"}, "'nobody'"),
        ({"query": "word", "limit": "x"}, "limit: "),
    ],
)
async def test_what_cannot_be_searched_is_a_result_that_says_why(
    room: Room, arguments: Json, problem: str
) -> None:
    outcome = await room.outcome("sessions_search", arguments)
    answer = json.loads(text_of(outcome))
    assert outcome.is_error
    assert answer["status"] == "error"
    assert problem in answer["error"]


async def test_huge_texts_that_match_cost_only_a_snippet(room: Room) -> None:
    await room.say(OWN, user("x " * 100_000 + "needle"))
    for _ in range(12):
        await room.say(OWN, assistant("needle " + "<think>" * 20_000))
    answer = await room.ask("sessions_search", query="needle")
    assert answer["count"] == 13
    assert [hit["snippet"] for hit in answer["hits"][:12]] == ["needle"] * 12
    assert answer["hits"][12]["snippet"].startswith("x x x")
    assert len(json.dumps(answer)) < 5000


@pytest.mark.spec("SRCH-2")
async def test_a_word_in_the_middle_of_a_long_text_is_in_its_snippet(room: Room) -> None:
    await room.say(OWN, user("far " * 10_000 + "needle " + "far " * 10_000))
    (hit,) = (await room.ask("sessions_search", query="needle"))["hits"]
    assert "needle" in hit["snippet"]
    assert hit["snippet"].startswith("…")
    assert hit["snippet"].endswith("…")
