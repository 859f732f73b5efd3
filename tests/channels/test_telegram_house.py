"""Telegram and a whole gateway: commands by the bot's name, files both ways, topics, drafts, trouble."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.channels.suite import Json, building, state_of, texts_in, until
from tests.channels.test_telegram import platform
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.telegram_platform import GROUP, TelegramPlatform, message_of
from tests.fakes.telegram_server import TOKEN, FakeTelegram, Fault
from tests.integration.conftest import House, client_of

__all__ = ["building", "platform"]
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 64


def users(body: Json) -> list[Any]:
    return [part["content"] for part in body["messages"] if part["role"] == "user"]


@pytest.mark.spec("CMD-12", "CMD-1")
async def test_a_command_by_the_bots_name_is_answered_once(
    building: House, platform: TelegramPlatform
) -> None:
    building.config["channels"]["telegram"]["allowFrom"] = ["101"]
    group = platform.group()
    async with building.gateway() as gateway, client_of(gateway) as client:
        await platform.says(platform.ann, group, "/status@other_bot")
        await platform.says(platform.ann, group, "/status@house_bot", repeat=3)
        await until(lambda: texts_in(platform, group), "the status")
        await platform.says(platform.ann, group, "and now?", mention=True)
        await until(lambda: len(texts_in(platform, group)) >= 2, "a reply")
        status, answer = texts_in(platform, group)
        assert "and now?" in answer and "fake/one" in status
        assert len(building.model.requests) == 1, "commands cost no model call"
        state = await state_of(client, platform)
        assert state["credentialsRefreshedAt"] > 0 and state["running"] is True


@pytest.mark.spec("LIFE-14")
@pytest.mark.parametrize("text", ["/new@House_bot", "@House_bot /new"])
async def test_a_reset_by_the_bots_name(building: House, platform: TelegramPlatform, text: str) -> None:
    building.config["channels"]["telegram"]["allowFrom"] = ["101"]
    group = platform.group()
    async with building.gateway() as gateway, client_of(gateway) as client:
        await platform.says(platform.ann, group, "the first words", mention=True)
        await until(lambda: texts_in(platform, group), "a reply")
        key = {"key": platform.session_key(group)}
        before = (await client.call("sessions.describe", key))["session"]["sessionId"]
        await platform.says(platform.ann, group, text)
        await until(lambda: len(texts_in(platform, group)) >= 2, "a greeting")
        assert (await client.call("sessions.describe", key))["session"]["sessionId"] != before


@pytest.mark.spec("LIFE-14")
async def test_a_reset_of_somebody_who_may_not_is_not_one(
    building: House, platform: TelegramPlatform
) -> None:
    building.config["channels"]["telegram"] |= {"dmPolicy": "allowlist", "allowFrom": ["101"]}
    group = platform.group()
    async with building.gateway() as gateway, client_of(gateway) as client:
        await platform.says(platform.ann, group, "the first words", mention=True)
        await until(lambda: texts_in(platform, group), "a reply")
        key = {"key": platform.session_key(group)}
        before = (await client.call("sessions.describe", key))["session"]["sessionId"]
        await platform.says(platform.bob, group, "/new@House_bot please")
        await until(lambda: len(texts_in(platform, group)) >= 2, "a reply")
        assert (await client.call("sessions.describe", key))["session"]["sessionId"] == before
        assert "/new please" in str(users(building.model.requests[-1].body)[-1])


@pytest.mark.spec("ORG-1", "ORG-2", "ORG-7")
async def test_a_topic_says_where_it_is(building: House, platform: TelegramPlatform) -> None:
    topic = platform.thread()
    assert topic is not None
    async with building.gateway() as gateway, client_of(gateway) as client:
        await platform.says(platform.ann, topic, "here", mention=True)
        await until(lambda: texts_in(platform, topic), "a reply")
        row = (await client.call("sessions.describe", {"key": platform.session_key(topic)}))["session"]
    assert row["origin"]["label"].startswith("The house") and row["origin"]["threadId"] == "7"
    assert (
        row["deliveryContext"] | {"to": GROUP, "threadId": "7", "channel": "telegram"}
        == row["deliveryContext"]
    )


@pytest.mark.spec("ANN-7", "KEY-10", "ROUTE-2")
async def test_a_helpers_result_comes_back_to_its_topic(building: House, platform: TelegramPlatform) -> None:
    def decide(body: Json) -> FakeReply:
        if not any(part.get("tool_calls") for part in body["messages"]) and "ask a helper" in str(
            users(body)
        ):
            call = FakeCall("sessions_spawn", (json.dumps({"task": "count the doors"}),))
            return FakeReply(calls=(call,))
        if "ask a helper" not in str(users(body)):
            return FakeReply(texts=("There are 7 doors.",))
        done = "There are 7 doors." in str(body["messages"])
        return FakeReply(texts=("The helper says: 7 doors." if done else "I have asked.",))

    building.model.decide = decide
    topic = platform.thread()
    assert topic is not None
    async with building.gateway():
        await platform.says(platform.ann, topic, "ask a helper to count the doors", mention=True)
        await until(lambda: "The helper says: 7 doors." in texts_in(platform, topic), "the result")
    assert all(post.thread == 7 and post.chat_id == GROUP for post in platform.server.posts)


# -- files -----------------------------------------------------------------------------------------


async def test_a_photo_is_seen_by_the_model(building: House, platform: TelegramPlatform) -> None:
    server, chat = platform.server, platform.direct(platform.ann)
    server.files["p"] = PNG
    photo = [{"file_id": "p", "width": 2, "height": 2, "file_size": len(PNG)}]
    server.arrives(message_of(platform.ann, chat, "", 1) | {"photo": photo, "caption": "what is this?"})
    server.files["z"] = b"PK\x03\x04zip"
    document = {"file_id": "z", "file_name": "a.zip", "mime_type": "application/zip"}
    server.arrives(message_of(platform.ann, chat, "", 2) | {"document": document})
    building.model.decide = lambda body: FakeReply(texts=("I see.",))
    async with building.gateway():
        await until(lambda: "a.zip" in str([r.body for r in building.model.requests]), "both messages")
    asked = str(building.model.requests[-1].body["messages"])
    assert "what is this?" in asked and "data:image/" in str([r.body for r in building.model.requests])
    assert "Attachment a.zip was not read" in asked


async def test_a_reply_brings_a_file_of_the_workspace(
    building: House, platform: TelegramPlatform, tmp_path: Path
) -> None:
    room = tmp_path / "room"
    room.mkdir()
    (room / "cat.png").write_bytes(PNG)
    building.config["agents"]["defaults"]["workspace"] = str(room)
    said = "Here is the cat.\nMEDIA:cat.png\nMEDIA:../state/openclaw.json"
    building.model.decide = lambda body: FakeReply(texts=(said,))
    chat = platform.direct(platform.ann)
    async with building.gateway():
        await platform.says(platform.ann, chat, "the cat please")
        await until(lambda: len(platform.server.posts) >= 2, "text and photo")
    text, photo = platform.server.posts
    assert text.text.startswith("Here is the cat.\n\n[openclaw.json was not sent: ")
    assert (photo.method, photo.file, photo.file_name) == ("sendPhoto", PNG, "cat.png")
    reading = next(
        tool for tool in building.model.requests[0].body["tools"] if tool["function"]["name"] == "read"
    )
    assert "MEDIA:<path" in reading["function"]["description"]


@pytest.mark.spec("TRX-11")
async def test_private_files_stay_also_where_the_workspace_is_a_home(
    building: House, platform: TelegramPlatform
) -> None:
    building.config["agents"]["defaults"]["workspace"] = str(building.home)
    named = ("state/openclaw.json", "state/openclaw.sqlite", "copy.txt", ".env", "plan.txt")
    (building.home / "copy.txt").write_text(f"the key is {TOKEN}\n")
    (building.home / ".env").write_text("A=1\n")
    (building.home / "plan.txt").write_text("a plan\n")
    said = "\n".join(("Here.", *(f"MEDIA:{path}" for path in named)))
    building.model.decide = lambda body: FakeReply(texts=(said,))
    async with building.gateway():
        await platform.says(platform.ann, platform.direct(platform.ann), "everything please")
        await until(lambda: len(platform.server.posts) >= 2, "text and a file")
    text, plan = platform.server.posts
    assert (plan.method, plan.file, plan.file_name) == ("sendDocument", b"a plan\n", "plan.txt")
    refused = [line for line in text.text.split("\n") if line.startswith("[")]
    assert [line[1:].partition(" was not sent: ")[0] for line in refused] == [
        path.rpartition("/")[2] for path in named[:-1]
    ]
    assert "configuration" in refused[0] and "state of the gateway" in refused[1]
    assert "holds a secret" in refused[2] and TOKEN not in text.text


async def test_a_session_that_may_not_read_files_sends_none(
    building: House, platform: TelegramPlatform, tmp_path: Path
) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "notes.txt").write_text("private")
    building.config["agents"]["defaults"]["workspace"] = str(tmp_path / "room")
    building.config["tools"] = {"deny": ["read"]}
    building.model.decide = lambda body: FakeReply(texts=("MEDIA:notes.txt",))
    async with building.gateway():
        await platform.says(platform.ann, platform.direct(platform.ann), "the notes please")
        await until(lambda: platform.server.posts, "a reply")
    assert [post.text for post in platform.server.posts] == ["MEDIA:notes.txt"]


# -- a reply that grows ----------------------------------------------------------------------------


async def test_a_reply_grows_in_one_message(
    building: House, platform: TelegramPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openclaw.channels.live.DRAFT_EVERY_S", 0.02)
    building.config["channels"]["telegram"]["streaming"] = "partial"
    parts = tuple(f"**part {number}** of a long answer. " for number in range(30))
    building.model.decide = lambda body: FakeReply(texts=parts, delay_s=0.02)
    chat = platform.direct(platform.ann)
    async with building.gateway():
        await platform.says(platform.ann, chat, "tell me")
        await until(lambda: any("part 29" in text for text in texts_in(platform, chat)), "the end")
        await platform.says(platform.ann, chat, "again")
        await until(lambda: len(texts_in(platform, chat)) >= 2, "the next")
    first = platform.server.posts[0]
    assert first.edits >= 2 and first.text == "".join(parts).replace("**", "").strip()
    assert platform.server.actions, "typing was shown"


# -- trouble ---------------------------------------------------------------------------------------


async def test_a_platform_that_is_down_is_told_and_comes_back(
    building: House, platform: TelegramPlatform
) -> None:
    chat = platform.direct(platform.ann)
    async with building.gateway() as gateway, client_of(gateway) as client:
        await platform.says(platform.ann, chat, "before")
        await until(lambda: texts_in(platform, chat), "a reply")
        await platform.go_away()
        state: Json = {}
        for _ in range(3000):
            state = await state_of(client, platform)
            if state["state"] == "waiting":
                break
            await asyncio.sleep(0.02)
        assert "cannot be reached" in state["lastError"] or "no answer" in state["lastError"]
        await platform.says(platform.ann, chat, "meanwhile")  # waits at the platform
        await platform.come_back()
        await until(lambda: len(texts_in(platform, chat)) >= 2, "the message that waited")
        assert texts_in(platform, chat) == ["You said: before", "You said: meanwhile"]
        states: Json = {}
        for _ in range(3000):
            states = (await client.call("outbox.list"))["states"]
            if not states.get("sending"):
                break
            await asyncio.sleep(0.02)
        assert states == {"sent": 2}


async def test_a_reply_whose_answer_was_lost_is_listed_and_not_sent_again(
    building: House, platform: TelegramPlatform
) -> None:
    chat = platform.direct(platform.ann)
    platform.server.fail_next(Fault("sendMessage", cut="after"))
    async with building.gateway() as gateway, client_of(gateway) as client:
        await platform.says(platform.ann, chat, "one")
        await until(lambda: texts_in(platform, chat), "a reply")
        await platform.says(platform.ann, chat, "two")
        await until(lambda: len(texts_in(platform, chat)) >= 2, "the next reply")
        assert texts_in(platform, chat) == ["You said: one", "You said: two"]
        listed = (await client.call("outbox.list", {"state": "unknown"}))["deliveries"]
        assert len(listed) == 1 and "no answer of Telegram" in listed[0]["error"]
        assert TOKEN not in json.dumps(listed)


async def test_two_bots_are_two_accounts(building: House, platform: TelegramPlatform) -> None:
    async with FakeTelegram() as other:
        other.token = "8000:second"
        second = TelegramPlatform(other)
        section = building.config["channels"]["telegram"]
        del section["botToken"], section["apiRoot"]
        section["accounts"] = {
            "home": {"botToken": TOKEN, "apiRoot": platform.server.root},
            "work": {"botToken": other.token, "apiRoot": other.root},
        }
        chat = platform.direct(platform.ann)
        async with building.gateway() as gateway, client_of(gateway) as client:
            await platform.says(platform.ann, chat, "at home")
            await second.says(second.ann, chat, "at work")
            await until(lambda: texts_in(platform, chat) and texts_in(second, chat), "both replies")
            assert texts_in(platform, chat) == ["You said: at home"]
            assert texts_in(second, chat) == ["You said: at work"]
            accounts = (await client.call("channels.status", {}))["channelAccounts"]["telegram"]
            assert [(one["accountId"], one["state"]) for one in accounts] == [
                ("home", "running"),
                ("work", "running"),
            ]
