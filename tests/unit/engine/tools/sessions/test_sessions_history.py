"""sessions_history: a bounded view with honest flags, whatever the transcript holds."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from msgspec.structs import replace

from openclaw.domain.history import HISTORY_MAX_BYTES
from openclaw.engine.tools.sessions import sessions_history
from openclaw.engine.tools.sessions.reading import VIEW_MAX_CHARS
from tests.unit.engine.tools.sessions.room import (
    OWN,
    TOKEN,
    Json,
    Room,
    assistant,
    draft,
    text_of,
    tool_result,
    user,
)

FLAGS = {"truncated": False, "droppedMessages": False, "contentTruncated": False, "contentRedacted": False}


def flags_of(answer: Json) -> Json:
    return {name: answer[name] for name in FLAGS}


def said(answer: Json) -> list[str]:
    texts = []
    for message in answer["messages"]:
        content = message["content"]
        texts.append(content if isinstance(content, str) else "".join(b.get("text", "") for b in content))
    return texts


@pytest.mark.spec("HIST-1", "HIST-2", "HIST-3", "HIST-13", "HIST-12", "KEY-2")
async def test_messages_keep_their_shape_and_tool_results_come_when_asked_for(room: Room) -> None:
    call = {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "x"}}
    messages = (
        user("hello", provenance={"kind": "inter_session", "sourceSessionKey": "agent:main:x"}),
        assistant("looking", call),
        tool_result("contents"),
        assistant("done"),
    )
    await room.add("agent:main:main")
    await room.say("agent:main:main", *messages)
    answer = await room.ask("sessions_history", as_key="agent:main:main", sessionKey="current")
    assert answer["sessionKey"] == "main"
    assert answer["messages"] == [messages[0], messages[1], messages[3]]
    assert flags_of(answer) == FLAGS
    assert answer["bytes"] == len(json.dumps(answer["messages"], separators=(",", ":")).encode())
    assert "nextOffset" not in answer
    assert answer.keys() == {"sessionKey", "messages", "bytes", *FLAGS}
    full = await room.ask("sessions_history", as_key="agent:main:main", sessionKey="main", includeTools=True)
    assert full["messages"] == list(messages)


@pytest.mark.spec("HIST-1", "HIST-14")
async def test_the_limit_is_clamped_and_offset_reads_on_backwards(room: Room) -> None:
    await room.say(OWN, *(user(f"m{number}") for number in range(250)), tool_result("last"))
    assert len((await room.ask("sessions_history", sessionKey="current"))["messages"]) == 200
    for limit, shown in ((0, 1), (-5, 1), (1, 1), (3, 3), (5000, 250)):
        answer = await room.ask("sessions_history", sessionKey="current", limit=limit)
        assert len(answer["messages"]) == shown
        assert said(answer)[-1] == "m249"
        assert flags_of(answer) == FLAGS
        assert ("nextOffset" in answer) is (shown < 250)
    pages: list[str] = []
    offset: int | None = 0
    while offset is not None:
        answer = await room.ask("sessions_history", sessionKey="current", limit=60, offset=offset)
        pages = said(answer) + pages
        offset = answer.get("nextOffset")
    assert pages == [f"m{number}" for number in range(250)]
    assert (await room.ask("sessions_history", sessionKey="current", offset=-4, limit=1))["nextOffset"] == 1
    beyond = await room.ask("sessions_history", sessionKey="current", offset=10**30)
    assert (beyond["messages"], "nextOffset" in beyond) == ([], False)


@pytest.mark.spec("TOOL-7", "HIST-1")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "missing required field `sessionKey`"),
        ({"sessionKey": 5}, "sessionKey: "),
        ({"sessionKey": "current", "limit": "all"}, "limit: "),
        ({"sessionKey": "current", "includeTools": 1}, "includeTools: "),
        ({"sessionKey": "nobody"}, "'nobody'"),
        ({"sessionKey": " "}, "is empty"),
    ],
)
async def test_what_cannot_be_read_is_a_result_that_says_why(
    room: Room, arguments: Json, problem: str
) -> None:
    outcome = await room.outcome("sessions_history", arguments)
    answer = json.loads(text_of(outcome))
    assert outcome.is_error
    assert answer["status"] == "error"
    assert problem in answer["error"]
    assert answer.keys() == {"status", "error"}


@pytest.mark.spec("HIST-4", "HIST-6", "HIST-8", "HIST-9")
async def test_text_is_normalised_masked_and_cut(room: Room) -> None:
    await room.say(
        OWN,
        assistant("<think>plan</think>one<relevant-memories>m</relevant-memories> two<tool_call>{"),
        user(f"my token is {TOKEN} and API_KEY=abcdefghijklmnopqrstuvwx"),
        user("x" * 4001),
        user("y" * 4000),
        assistant("fine", usage={"input": 1}),
        {"role": "user", "content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]},
    )
    answer = await room.ask("sessions_history", sessionKey="current")
    texts = said(answer)
    assert texts[0] == "one two"
    assert TOKEN not in json.dumps(answer)
    assert "abcdefghijklmnopqrstuvwx" not in json.dumps(answer)
    assert texts[2] == "x" * 4000 + "\n…(truncated)…"
    assert texts[3] == "y" * 4000
    assert "usage" not in answer["messages"][4]
    assert answer["messages"][5]["content"] == [
        {"type": "image", "mimeType": "image/png", "omitted": True, "bytes": 3}
    ]
    assert flags_of(answer) == {
        **FLAGS, "truncated": True, "contentTruncated": True, "contentRedacted": True,
    }  # fmt: skip


HOSTILE = {
    "nested tags": "<think>" * 150_000,
    "nested memories": "<relevant-memories>" * 55_000,
    "unclosed tools": "<tool_call>{" * 80_000,
    "brackets": "[Tool Call: " * 85_000,
    "look-alike tokens": "<｜" * 350_000,
    "ascii tokens": "<|" * 500_000,
    "minimax": "<invoke " * 120_000,
    "fences": "```" * 340_000,
    "secrets": "sk-" * 340_000,
    "assignments": "API_KEY=" * 125_000,
    "pem": "-----BEGIN PRIVATE KEY-----" * 38_000,
    "quotes": '{"token":"' * 100_000,
}


@pytest.mark.spec("HIST-10", "HIST-11", "HIST-12")
@pytest.mark.parametrize("name", list(HOSTILE))
async def test_a_megabyte_of_hostile_text_costs_little_and_gives_little(room: Room, name: str) -> None:
    text = HOSTILE[name]
    await room.say(OWN, user("before"), assistant(text), user(text), user("after"))
    started = time.process_time()
    answer = await room.ask("sessions_history", sessionKey="current", includeTools=True)
    # Quadratic work on a megabyte takes minutes of the processor; linear work takes less than this.
    assert time.process_time() - started < 30
    size = len(json.dumps(answer["messages"], separators=(",", ":"), ensure_ascii=False).encode())
    assert answer["bytes"] == size <= HISTORY_MAX_BYTES
    assert said(answer)[0] == "before"
    assert said(answer)[3] == "after"
    assert answer["truncated"] is answer["contentTruncated"] is True
    assert answer["droppedMessages"] is False


@pytest.mark.spec("HIST-10", "HIST-11", "HIST-12", "HIST-14")
async def test_a_large_history_drops_the_oldest_rows(room: Room) -> None:
    await room.say(OWN, *(user(f"{number} " + "字" * 3000) for number in range(60)))
    answer = await room.ask("sessions_history", sessionKey="current")
    assert 5 < len(answer["messages"]) < 60
    assert said(answer)[-1].startswith("59 ")
    assert answer["bytes"] <= HISTORY_MAX_BYTES
    assert flags_of(answer) == {**FLAGS, "truncated": True, "droppedMessages": True}
    older = await room.ask("sessions_history", sessionKey="current", offset=answer["nextOffset"])
    oldest_shown = int(said(answer)[0].split()[0])
    assert said(older)[-1].startswith(f"{oldest_shown - 1} ")


@pytest.mark.spec("HIST-10", "HIST-11")
async def test_a_last_message_that_is_too_large_becomes_one_row_that_says_so(room: Room) -> None:
    blocks = [{"type": "text", "text": "z" * 3900} for _ in range(40)]
    await room.say(OWN, user("before"), {"role": "user", "content": blocks, "timestamp": 7})
    answer = await room.ask("sessions_history", sessionKey="current")
    assert answer["messages"] == [
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "[sessions_history omitted: message too large]"}],
            "timestamp": 7,
        }
    ]
    assert flags_of(answer) == {**FLAGS, "truncated": True, "droppedMessages": True}
    assert answer["nextOffset"] == 1
    assert said(await room.ask("sessions_history", sessionKey="current", offset=1)) == ["before"]


@pytest.mark.spec("HIST-12")
async def test_a_page_that_ends_because_of_its_bytes_says_so(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_history, "READ_MAX_BYTES", 5000)
    await room.say(OWN, user("old"), user("x" * 3000), user("y" * 3000), user("z" * 9000))
    answer = await room.ask("sessions_history", sessionKey="current")
    assert len(answer["messages"]) == 1
    assert flags_of(answer) == {
        **FLAGS, "truncated": True, "droppedMessages": True, "contentTruncated": True,
    }  # fmt: skip
    assert answer["nextOffset"] == 1
    exact = await room.ask("sessions_history", sessionKey="current", offset=1, limit=1)
    assert flags_of(exact) == FLAGS
    assert exact["nextOffset"] == 2


@pytest.mark.spec("HIST-3")
async def test_only_what_is_for_people_is_shown_and_each_window_alone(room: Room) -> None:
    hidden = replace(draft(user("for the model only")), audience="model")
    await room.store.append(OWN, (hidden, draft(user("first window"))), now_ms=1)
    first_id = f"id-of-{OWN}"
    await room.store.reset_session(OWN, "new", session_id="window-2", now_ms=2)
    await room.say(OWN, user("second window"))
    assert said(await room.ask("sessions_history", sessionKey="current")) == ["second window"]
    assert said(await room.ask("sessions_history", sessionKey="window-2")) == ["second window"]
    assert said(await room.ask("sessions_history", sessionKey=first_id)) == ["first window"]


async def test_details_hold_the_flags_and_no_messages(room: Room) -> None:
    await room.say(OWN, user("hello"))
    outcome = await room.outcome("sessions_history", {"sessionKey": "current"})
    expected: dict[str, Any] = {"sessionKey": OWN, "count": 1, **FLAGS}
    assert outcome.details is not None
    assert outcome.details.pop("bytes") > 0
    assert outcome.details == expected


@pytest.mark.spec("HIST-14", "SRCH-2")
async def test_a_hit_of_a_search_is_read_with_what_stands_around_it(room: Room) -> None:
    await room.say(OWN, *(user("needle" if number == 30 else f"m{number}") for number in range(60)))
    await room.say(OWN, tool_result("not counted"), user("end"))
    await room.store.reset_session(OWN, "new", session_id="later", now_ms=2)
    await room.say(OWN, user("new window"))
    (hit,) = (await room.ask("sessions_search", query="needle"))["hits"]
    around = {"sessionKey": hit["sessionId"], "messageId": hit["messageId"], "limit": 8}
    answer = await room.ask("sessions_history", **around)
    assert said(answer) == ["m28", "m29", "needle", "m31", "m32", "m33", "m34", "m35"]
    assert flags_of(answer) == FLAGS
    older = await room.ask("sessions_history", **around, offset=answer["nextOffset"])
    assert said(older) == [f"m{number}" for number in range(20, 28)]
    for wrong in ("00000000", "\ud800", "x" * 5000):
        arguments = {"sessionKey": "current", "messageId": wrong}
        refused = json.loads(text_of(await room.outcome("sessions_history", arguments)))
        assert refused["status"] == "error"
        assert refused["error"].startswith("messageId: no message ")
        assert len(refused["error"]) < 400


@pytest.mark.spec("HIST-12")
async def test_text_that_leaves_nothing_costs_only_so_much(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A tenth of the limit and a tenth of the text: what counts is their ratio.
    monkeypatch.setattr(sessions_history, "VIEW_MAX_CHARS", VIEW_MAX_CHARS // 10)
    vanishing = "<think>" * 3_000
    await room.say(OWN, user("old"), *(assistant(vanishing) for _ in range(20)), user("new"))
    answer = await room.ask("sessions_history", sessionKey="current")
    assert 2 <= len(answer["messages"]) < 10
    assert said(answer)[-1] == "new"
    assert answer["droppedMessages"] is answer["truncated"] is True
    assert answer["nextOffset"] == len(answer["messages"])
    rest: list[str] = []
    offset = answer["nextOffset"]
    while offset is not None:
        page = await room.ask("sessions_history", sessionKey="current", offset=offset)
        rest, offset = said(page) + rest, page.get("nextOffset")
    assert rest[0] == "old"
    assert len(rest) + len(answer["messages"]) == 22
