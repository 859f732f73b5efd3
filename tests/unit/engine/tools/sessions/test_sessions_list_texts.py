"""sessions_list: titles, previews and messages; what is read for them, and how much."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openclaw.domain.entry import DeliveryContext
from openclaw.engine.tools.sessions.sessions_list import (
    SessionsListTool,
)
from openclaw.store.recall import Recall, Recalled
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

MINUTE = 60_000


@pytest.fixture(autouse=True)
def _see_the_agent(room: Room) -> None:
    room.configure(tools={"sessions": {"visibility": "agent"}})


@pytest.mark.spec("LIST-9", "LIST-10", "LIST-5", "LIST-2")
async def test_title_preview_and_messages_come_together_when_asked_for(room: Room) -> None:
    call = {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "x"}}
    await room.say(
        OWN,
        user(f"Please   look at\nthis: token={TOKEN}"),
        assistant("I will look.", call),
        tool_result("the file"),
        assistant(call),
        assistant("<think>hm</think>It is fine. " + "word " * 60),
    )
    plain = (await room.ask("sessions_list"))["sessions"][0]
    assert plain.keys().isdisjoint(("derivedTitle", "lastMessagePreview", "messages"))
    answer = await room.ask(
        "sessions_list", includeDerivedTitles=True, includeLastMessage=True, messageLimit=2
    )
    (row,) = answer["sessions"]
    assert row["derivedTitle"].startswith("Please look at this: token=")
    assert row["lastMessagePreview"].startswith("It is fine. word word")
    assert row["lastMessagePreview"].endswith("word…")
    assert len(row["lastMessagePreview"]) <= 160
    assert [message["role"] for message in row["messages"]] == ["assistant", "assistant"]
    assert [block["type"] for message in row["messages"] for block in message["content"]] == ["text", "text"]
    assert row["messages"][0]["content"][0]["text"] == "I will look."
    everything = await room.ask("sessions_list", messageLimit=99)
    assert [message["role"] for message in everything["sessions"][0]["messages"]] == [
        "user", "assistant", "assistant",
    ]  # fmt: skip
    assert TOKEN not in json.dumps([answer, everything])
    assert "the file" not in json.dumps(everything)


@pytest.mark.spec("LIST-2")
async def test_at_most_twenty_messages_a_row(room: Room) -> None:
    await room.say(OWN, *(user(f"m{number}") for number in range(50)))
    for asked, shown in ((1, 1), (20, 20), (21, 20), (-1, None)):
        (row,) = (await room.ask("sessions_list", messageLimit=asked))["sessions"]
        assert len(row.get("messages", ())) == (shown or 0)
        assert ("messages" in row) is (shown is not None)
    (row,) = (await room.ask("sessions_list", messageLimit=20))["sessions"]
    assert [message["content"] for message in row["messages"]] == [f"m{number}" for number in range(30, 50)]


class WatchedRecall(Recall):
    """Notes which windows were opened."""

    def __init__(self, room: Room) -> None:
        super().__init__(room.database)
        self.opened: list[int] = []
        self.read = 0

    async def newest(self, window_no: int, limit: int, **options: Any) -> Recalled:
        self.opened.append(window_no)
        recalled = await super().newest(window_no, limit, **options)
        self.read = max(self.read, len(recalled.entries))
        return recalled


async def call_watched(room: Room, **asked: Any) -> tuple[WatchedRecall, Json]:
    recall = WatchedRecall(room)
    tool = SessionsListTool(room.store, recall, room.reach, room.view, room.secrets)
    answer: Json = json.loads(text_of(await tool.call(asked, room.context())))
    return recall, answer


@pytest.mark.spec("VIS-6", "LIST-2", "LIST-5")
async def test_transcripts_are_opened_only_for_messages_of_rows_that_are_shown(room: Room) -> None:
    shown = [await room.add(f"agent:main:s{number}", at=NOW + number) for number in range(1, 6)]
    await room.add("agent:bob:s", at=NOW + 9)
    await room.say("agent:bob:s", user("not for you"))
    for row in shown:
        await room.say(row.session_key, *(user(f"m{number}") for number in range(40)))
    without, _ = await call_watched(room, includeDerivedTitles=True, includeLastMessage=True, limit=3)
    assert without.opened == []
    watched, answer = await call_watched(room, messageLimit=5, limit=3)
    newest = sorted(shown, key=lambda row: -row.entry.updated_at)[:3]
    assert watched.opened == [row.window_no for row in newest]
    assert watched.read == 20
    assert "not for you" not in json.dumps(answer)


@pytest.mark.spec("LIST-2")
async def test_at_most_a_hundred_rows_have_texts_from_transcripts(room: Room) -> None:
    for number in range(130):
        await room.add(f"agent:main:s{number}", at=NOW + number)
    watched, answer = await call_watched(
        room, messageLimit=1, includeDerivedTitles=True, includeLastMessage=True, limit=200
    )
    assert len(watched.opened) == 100
    assert len(answer["sessions"]) == 131
    assert [("messages" in row, "derivedTitle" in row) for row in answer["sessions"][99:101]] == [
        (True, True), (False, False),
    ]  # fmt: skip


async def test_no_transcript_is_opened_when_there_is_no_room_for_its_messages(room: Room) -> None:
    for number in range(12):
        key = f"agent:main:s{number:02}"
        await room.add(key, at=NOW + number)
        await room.say(key, *(user("x" * 500) for _ in range(20)))
    watched, answer = await call_watched(room, messageLimit=20)
    with_messages = [row for row in answer["sessions"] if row["messages"]]
    assert 2 <= len(with_messages) < 12
    assert with_messages == answer["sessions"][: len(with_messages)]
    assert len(watched.opened) == len(with_messages)
    assert (answer["count"], answer["truncated"]) == (13, True)
    size = sum(len(json.dumps(row["messages"], ensure_ascii=False).encode()) for row in with_messages)
    assert size <= 64 * 1024 + 1000


async def test_messages_that_leave_nothing_cost_only_so_much(room: Room) -> None:
    for number in range(12):
        key = f"agent:main:s{number:02}"
        await room.add(key, at=NOW + number)
        await room.say(key, user("hi"), assistant("<think>" * 30_000))
    watched, answer = await call_watched(room, messageLimit=2)
    assert 4 <= len(watched.opened) <= 7
    assert (answer["count"], answer["truncated"]) == (13, True)
    assert [len(row["messages"]) for row in answer["sessions"][:4]] == [2, 2, 2, 2]
    assert all(row["messages"] == [] for row in answer["sessions"][7:])


async def test_a_list_of_huge_rows_and_messages_stays_one_small_json_object(room: Room) -> None:
    route = DeliveryContext("x" * 5000, "y" * 5000, "z" * 5000)
    for number in range(200):
        key = f"agent:main:s{number}"
        await room.add(key, at=NOW + number, display_name="名" * 5000, delivery_context=route)
        if number >= 180:
            await room.say(key, *(user(f"{number} " + "字" * 50_000) for _ in range(3)))
    outcome = await room.outcome("sessions_list", {"limit": 200, "messageLimit": 20})
    text = text_of(outcome)
    assert len(text.encode()) < 200_000
    answer = json.loads(text)
    assert answer["truncated"] is True
    assert answer["count"] == len(answer["sessions"]) > 20
    assert len(answer["sessions"][0]["displayName"]) == 200
    assert len(answer["sessions"][0]["messages"]) >= 1
    assert answer["sessions"][19]["messages"] == []
    assert outcome.details is not None
    assert "messages" not in outcome.details["sessions"][0]
