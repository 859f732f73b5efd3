"""What is Matrix's own, against a real Synapse: invitations, replies, files, long absences, credentials."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.channels.matrix_house import matrix, synapse
from tests.channels.platform import Chat
from tests.channels.suite import building, state_of, texts_in, until
from tests.fakes.matrix_platform import PASSWORD, MatrixPlatform
from tests.integration.conftest import House, client_of

__all__ = ["building", "matrix", "synapse"]
pytestmark = pytest.mark.interop
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def platform(matrix: MatrixPlatform) -> MatrixPlatform:
    return matrix


def note(house: House, name: str, value: bytes | None = None) -> bytes:
    """A note of the connector, read or changed while no gateway runs."""
    connection = apsw.Connection(str(house.home / "state" / "openclaw.sqlite"))
    try:
        if value is not None:
            connection.execute("UPDATE connector_notes SET value = ? WHERE name = ?", (value, name))
        found: list[Any] = connection.execute(
            "SELECT value FROM connector_notes WHERE name = ?", (name,)
        ).fetchall()
        return bytes(found[0][0])
    finally:
        connection.close()


@pytest.mark.spec("GROW-6", "ROUTE-4")
async def test_the_place_to_go_on_is_in_the_store_and_an_old_one_doubles_nothing(
    building: House, platform: MatrixPlatform
) -> None:
    chat = platform.direct(platform.ann)
    async with building.gateway():
        await platform.says(platform.ann, chat, "one")
        await until(lambda: texts_in(platform, chat), "a reply")
    before = note(building, "next_batch")
    async with building.gateway():
        await platform.says(platform.ann, chat, "two")
        await until(lambda: len(texts_in(platform, chat)) >= 2, "a second reply")
    assert note(building, "next_batch") != before
    note(building, "next_batch", before)  # as if the gateway had died before it noted the later one
    async with building.gateway():
        await platform.says(platform.ann, chat, "three")
        await until(lambda: len(texts_in(platform, chat)) >= 3, "a third reply")
        assert texts_in(platform, chat) == ["You said: one", "You said: two", "You said: three"]


@pytest.mark.spec("ROUTE-2")
async def test_an_answer_that_was_lost_on_the_way_doubles_nothing(
    building: House, platform: MatrixPlatform
) -> None:
    chat = platform.direct(platform.ann)
    async with building.gateway():
        platform.door.lost_answers = 1
        await platform.says(platform.ann, chat, "one")
        await until(lambda: len(platform.door.sends) >= 2, "the second try")
        await platform.says(platform.ann, chat, "two")
        await until(lambda: len(texts_in(platform, chat)) >= 2, "the next reply")
        assert texts_in(platform, chat) == ["You said: one", "You said: two"]


@pytest.mark.spec("ROUTE-3", "ORG-1", "ORG-5")
async def test_a_reply_to_the_agent_calls_it_also_after_a_restart(
    building: House, platform: MatrixPlatform
) -> None:
    group = platform.group()
    async with building.gateway():
        await platform.says(platform.ann, group, "first", mention=True)
        await until(lambda: texts_in(platform, group), "a reply")
    (ours,) = platform.posts
    async with building.gateway() as gateway, client_of(gateway) as client:
        relation = {"m.relates_to": {"m.in_reply_to": {"event_id": ours}}}
        await platform.write(platform.bob, platform.group_id, "why?", **relation)
        await until(lambda: len(texts_in(platform, group)) >= 2, "an answer to the reply")
        asked_last = str(building.model.requests[-1].body["messages"][-1])
        assert "In reply to House: You said:" in asked_last and "Bob: " in asked_last
        row = (await client.call("sessions.describe", {"key": platform.session_key(group)}))["session"]
        assert row["origin"]["label"] == "The house" and row["origin"]["from"] == platform.bob.id
        assert row["deliveryContext"]["to"] == platform.group_id


async def test_what_was_said_during_a_long_absence_is_read_to_its_beginning(
    building: House, platform: MatrixPlatform
) -> None:
    group = platform.group()
    async with building.gateway():
        await platform.says(platform.ann, group, "before", mention=True)
        await until(lambda: texts_in(platform, group), "a reply")
    await platform.says(platform.ann, group, "who waters the plants?", mention=True)
    for number in range(130):
        await platform.write(platform.bob, platform.group_id, f"small talk {number}")
    async with building.gateway():
        await until(lambda: len(texts_in(platform, group)) >= 2, "an answer to the old question")
        assert "who waters the plants?" in texts_in(platform, group)[1]


async def test_invitations_are_taken_up_by_the_rules(building: House, platform: MatrixPlatform) -> None:
    matrix = building.config["channels"]["matrix"]
    matrix |= {"dmPolicy": "allowlist", "allowFrom": [platform.ann.id], "groups": {}}
    listed = await platform.make_room(platform.bob, [platform.own_id], name="Listed")
    matrix["groups"][listed] = {}
    bobs = platform.room_of(platform.direct(platform.bob))
    house = platform.clients["house"]

    async def joined() -> set[str]:
        return set((await house.joined_rooms()).rooms)

    async with building.gateway():
        await platform.says(platform.ann, platform.direct(platform.ann), "hello")
        await until(lambda: texts_in(platform, platform.direct(platform.ann)), "a reply")
        rooms = await joined()
        assert {platform.group_id, listed} < rooms and bobs not in rooms
    matrix["allowFrom"].append(platform.bob.id)
    async with building.gateway():
        await platform.says(platform.bob, platform.direct(platform.bob), "now?")
        await until(lambda: texts_in(platform, platform.direct(platform.bob)), "a reply to Bob")
        assert bobs in await joined()


@pytest.mark.spec("CMD-13")
async def test_a_stranger_who_opens_a_direct_chat_gets_a_code(
    building: House, platform: MatrixPlatform
) -> None:
    building.config["channels"]["matrix"]["dmPolicy"] = "pairing"
    chat = platform.direct(platform.bob)
    async with building.gateway():
        await platform.says(platform.bob, chat, "let me in")
        await until(lambda: texts_in(platform, chat), "a code")
        assert "openclaw pairing approve matrix" in texts_in(platform, chat)[0]
        assert building.model.requests == []


async def test_encrypted_messages_are_told_in_status(building: House, platform: MatrixPlatform) -> None:
    secret = {"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}
    room = await platform.make_room(platform.ann, [platform.own_id], direct=True, initial_state=[secret])
    async with building.gateway() as gateway, client_of(gateway) as client:
        content = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x", "session_id": "s",
                   "sender_key": "k", "device_id": "d"}  # fmt: skip
        client_of_ann = platform.clients["ann"]
        client_of_ann.rooms.pop(room, None)
        await client_of_ann._send(
            platform.nio.RoomSendResponse,
            *platform.nio.Api.room_send(client_of_ann.access_token, room, "m.room.encrypted", content, "e1"),
            (room,),
        )
        chat = platform.direct(platform.ann)
        await platform.says(platform.ann, chat, "plainly")
        await until(lambda: texts_in(platform, chat), "a reply elsewhere")
        state: dict[str, Any] = {}
        for _ in range(100):
            state = await state_of(client, platform)
            if state["lastError"]:
                break
        assert room in state["lastError"] and "encrypted" in state["lastError"] and state["running"]


async def test_an_image_comes_to_the_model(building: House, platform: MatrixPlatform, tmp_path: Path) -> None:
    chat = platform.direct(platform.ann)
    picture = tmp_path / "dot.png"
    picture.write_bytes(PIXEL)
    with picture.open("rb") as file:
        answer, _ = await platform.clients["ann"].upload(file, "image/png", "dot.png", filesize=len(PIXEL))
    info = {"mimetype": "image/png", "size": len(PIXEL)}
    named = {"msgtype": "m.image", "body": "what is this?", "filename": "dot.png"}
    content = named | {"url": answer.content_uri, "info": info}
    async with building.gateway():
        await platform.put(platform.ann, platform.room_of(chat), content)
        await until(lambda: texts_in(platform, chat), "a reply")
        asked = str(building.model.requests[0].body["messages"][-1])
        assert base64.b64encode(PIXEL).decode() in asked and "what is this?" in asked


async def test_a_password_is_enough_and_makes_one_device(building: House, platform: MatrixPlatform) -> None:
    options = building.config["channels"]["matrix"]
    del options["accessToken"]
    options["password"] = PASSWORD
    chat: Chat = platform.direct(platform.ann)
    for number in (1, 2):
        async with building.gateway():
            await platform.says(platform.ann, chat, f"try {number}")
            await until(lambda: f"You said: try {number}" in texts_in(platform, chat), "a reply")  # noqa: B023
    devices = (await platform.clients["house"].devices()).devices
    assert [device.display_name for device in devices].count("openclaw") == 1
    assert all("access_token" not in path for path in platform.door.paths)


async def test_a_token_of_somebody_else_is_told(building: House, platform: MatrixPlatform) -> None:
    building.config["channels"]["matrix"]["accessToken"] = platform.clients["bob"].access_token
    async with building.gateway() as gateway, client_of(gateway) as client:
        state: dict[str, Any] = {}
        for _ in range(1000):
            state = await state_of(client, platform)
            if state.get("state") == "waiting":
                break
        assert platform.bob.id in state["lastError"] and platform.own_id in state["lastError"]
