"""The suite itself. A platform's test module imports these tests and gives a `platform` fixture."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.channels.platform import Chat, Platform
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

PATIENCE_S = 60.0
LOOK_EVERY_S = 0.02
Json = dict[str, Any]


def echo(body: Json) -> FakeReply:
    """The model says what it was asked last, so that every reply tells whose it is."""
    said = next(part["content"] for part in reversed(body["messages"]) if part["role"] == "user")
    text = said if isinstance(said, str) else " ".join(str(block.get("text", "")) for block in said)
    return FakeReply(texts=(f"You said: {text.splitlines()[-1]}",))


@pytest.fixture
async def building(tmp_path: Path, platform: Platform) -> Any:
    """A house whose only channel is the platform, with everybody let in and each chat apart."""
    async with FakeOpenAIServer() as model:
        model.decide = echo
        house = House(tmp_path, model)
        house.config["session"] = {"dmScope": "per-channel-peer"}
        house.config["channels"] = {
            platform.channel: platform.options
            | {"dmPolicy": "open", "groupPolicy": "open", "groups": {"*": {"requireMention": True}}}
        }
        yield house


async def until(condition: Callable[[], object], what: str) -> None:
    for _ in range(int(PATIENCE_S / LOOK_EVERY_S)):
        if condition():
            return
        await asyncio.sleep(LOOK_EVERY_S)
    raise AssertionError(f"never came: {what}")


def texts_in(platform: Platform, chat: Chat) -> list[str]:
    return [one.text for one in platform.shown() if one.chat == chat]


async def state_of(client: WireClient, platform: Platform) -> Json:
    status = await client.call("channels.status", {})
    accounts: list[Json] = status["channelAccounts"].get(platform.channel, [{}])
    return accounts[0]


@pytest.mark.spec("ROUTE-2", "ORG-2", "ORG-7", "KEY-5")
async def test_a_person_is_answered_where_they_wrote(building: House, platform: Platform) -> None:
    async with building.gateway() as gateway, client_of(gateway) as client:
        for person in (platform.ann, platform.bob):
            await platform.says(person, platform.direct(person), f"I am {person.name}")
        chats = [platform.direct(platform.ann), platform.direct(platform.bob)]
        await until(lambda: all(texts_in(platform, chat) for chat in chats), "two replies")
        assert texts_in(platform, chats[0]) == [f"You said: I am {platform.ann.name}"]
        assert texts_in(platform, chats[1]) == [f"You said: I am {platform.bob.name}"]
        for chat in chats:
            row = (await client.call("sessions.describe", {"key": platform.session_key(chat)}))["session"]
            assert row is not None, platform.session_key(chat)
            assert row["deliveryContext"]["channel"] == platform.channel
            assert row["origin"]["provider"] == platform.channel and row["origin"]["label"]


@pytest.mark.spec("ROUTE-4")
async def test_a_message_that_is_delivered_three_times_is_answered_once(
    building: House, platform: Platform
) -> None:
    chat = platform.direct(platform.ann)
    async with building.gateway():
        await platform.says(platform.ann, chat, "once please", repeat=3)
        await until(lambda: texts_in(platform, chat), "a reply")
        await platform.says(platform.ann, chat, "the end")
        await until(lambda: len(texts_in(platform, chat)) >= 2, "a second reply")
        assert texts_in(platform, chat) == ["You said: once please", "You said: the end"]


@pytest.mark.spec("ROUTE-3", "KEY-9")
async def test_a_group_is_answered_when_it_calls(building: House, platform: Platform) -> None:
    group = platform.group()
    async with building.gateway() as gateway, client_of(gateway) as client:
        await platform.says(platform.bob, group, "nobody is called")
        await platform.says(platform.ann, group, "what do you think?", mention=True)
        await until(lambda: texts_in(platform, group), "a reply")
        (reply,) = texts_in(platform, group)
        assert "what do you think?" in reply
        asked = str(building.model.requests[0].body["messages"])
        assert f"{platform.bob.name}: nobody is called" in asked
        row = (await client.call("sessions.describe", {"key": platform.session_key(group)}))["session"]
        assert row["kind"] == "group"


@pytest.mark.spec("KEY-10", "KEY-11")
async def test_a_thread_is_a_conversation_of_its_own(building: House, platform: Platform) -> None:
    thread = platform.thread()
    if thread is None:
        return
    async with building.gateway() as gateway, client_of(gateway) as client:
        await platform.says(platform.ann, thread, "in here", mention=True)
        await until(lambda: texts_in(platform, thread), "a reply in the thread")
        assert texts_in(platform, platform.group()) == []
        keys = {row["key"] for row in (await client.call("sessions.list"))["sessions"]}
        assert keys == {f"agent:main:{platform.session_key(thread)}"}


async def test_a_long_reply_comes_in_pieces_that_the_platform_takes(
    building: House, platform: Platform
) -> None:
    words = " ".join(f"word{number}" for number in range(platform.longest_text // 4))
    building.model.decide = None
    building.model.script(FakeReply(texts=(words,)))
    chat = platform.direct(platform.ann)
    async with building.gateway():
        await platform.says(platform.ann, chat, "tell me everything")
        await until(lambda: " ".join(texts_in(platform, chat)).endswith(words[-9:]), "the last word")
        pieces = texts_in(platform, chat)
        assert len(pieces) > 1 and " ".join(pieces) == words
        assert all(len(piece) <= platform.longest_text for piece in pieces)


async def test_a_platform_that_was_away_gets_every_reply_once(building: House, platform: Platform) -> None:
    chat = platform.direct(platform.ann)
    async with building.gateway() as gateway, client_of(gateway) as client:
        await platform.says(platform.ann, chat, "before")
        await until(lambda: texts_in(platform, chat), "a reply")
        await platform.go_away()
        await client.call(
            "chat.send",
            {
                "sessionKey": platform.session_key(chat),
                "message": "meanwhile",
                "idempotencyKey": "run-1",
                "deliver": True,
                "originatingChannel": platform.channel,
                "originatingTo": chat.id,
            },
        )
        await client.ended("run-1")
        await platform.come_back()
        await until(lambda: len(texts_in(platform, chat)) >= 2, "the reply that waited")
        await platform.says(platform.ann, chat, "after")
        await until(lambda: len(texts_in(platform, chat)) >= 3, "the next reply")
        assert texts_in(platform, chat) == [
            "You said: before",
            "You said: meanwhile",
            "You said: after",
        ]
        assert (await state_of(client, platform))["state"] == "running"


async def test_too_many_requests_delay_a_reply_and_do_not_double_it(
    building: House, platform: Platform
) -> None:
    chat = platform.direct(platform.ann)
    async with building.gateway():
        platform.slow_down(2)
        await platform.says(platform.ann, chat, "hurry")
        await until(lambda: texts_in(platform, chat), "a reply")
        await platform.says(platform.ann, chat, "again")
        await until(lambda: len(texts_in(platform, chat)) >= 2, "a second reply")
        assert texts_in(platform, chat) == ["You said: hurry", "You said: again"]


@pytest.mark.spec("CMD-1")
async def test_a_wrong_credential_is_told_and_nothing_is_lost(building: House, platform: Platform) -> None:
    platform.forget_credentials()
    async with building.gateway() as gateway, client_of(gateway) as client:
        state: Json = {}
        for _ in range(int(PATIENCE_S / LOOK_EVERY_S)):
            state = await state_of(client, platform)
            if state.get("state") == "waiting":
                break
            await asyncio.sleep(LOOK_EVERY_S)
        assert state["lastError"] and state["running"] is False
        assert (await client.call("health", {}))["ok"], "the gateway itself is well"


@pytest.mark.spec("ROUTE-4", "REST-7")
async def test_a_restart_answers_what_waited_and_nothing_twice(building: House, platform: Platform) -> None:
    chat = platform.direct(platform.ann)
    async with building.gateway():
        await platform.says(platform.ann, chat, "one")
        await until(lambda: texts_in(platform, chat), "a reply")
    await platform.says(platform.ann, chat, "two")
    async with building.gateway():
        await until(lambda: len(texts_in(platform, chat)) >= 2, "the message that waited")
        await platform.says(platform.ann, chat, "three")
        await until(lambda: len(texts_in(platform, chat)) >= 3, "the next")
        assert texts_in(platform, chat) == ["You said: one", "You said: two", "You said: three"]
