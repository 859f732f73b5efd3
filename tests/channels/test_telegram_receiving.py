"""How updates come in: confirmed when they are safe, in order, whatever Telegram and the disk do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from openclaw.channels.base import Down
from openclaw.errors import StoreError
from tests.channels.platform import Chat, Person
from tests.channels.telegram_bench import CHAT, Bench, bench
from tests.fakes.telegram_platform import message_of
from tests.fakes.telegram_server import LARGEST_FETCH, Fault, Json

__all__ = ["bench"]
ANN = Person(CHAT, "Ann")


async def until(condition: Callable[[], object], what: str) -> None:
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"never came: {what}")


def says(bench: Bench, text: str, chat_id: str = CHAT, **more: object) -> Json:
    message = message_of(Person(chat_id, "Ann"), Chat("direct", chat_id), text, bench.server.message_id())
    return bench.server.arrives(message | more)


async def down(bench: Bench, **options: object) -> Down:
    connector = await bench.connector(**options)
    with pytest.raises(Down) as found:
        await asyncio.wait_for(connector.run(bench.door), 60)
    return found.value


@pytest.mark.spec("ROUTE-4")
async def test_an_update_is_confirmed_when_the_door_has_answered(bench: Bench) -> None:
    bench.door.delay_s = 0.05
    numbers = [says(bench, f"m{at}")["update_id"] for at in range(3)]
    async with bench.running():
        await until(lambda: len(bench.door.messages) == 3, "three messages")
        assert bench.door.texts == ["m0", "m1", "m2"]
        await until(lambda: bench.server.confirmed == numbers, "the confirmation")
    says(bench, "m3")
    async with bench.running():  # goes on where it was
        await until(lambda: len(bench.door.messages) == 4, "the fourth")
        offsets = [params.get("offset") for method, params in bench.server.calls if method == "getUpdates"]
        assert offsets[0] is None and offsets[-1] in (numbers[-1] + 1, numbers[-1] + 2)


async def test_what_could_not_be_kept_is_not_confirmed(bench: Bench) -> None:
    bench.door.refusals = 1
    says(bench, "first")
    says(bench, "second")
    connector = await bench.connector()
    with pytest.raises(StoreError, match="disk is full"):
        await asyncio.wait_for(connector.run(bench.door), 60)
    assert bench.server.confirmed == [] and bench.door.texts == []
    async with bench.running():
        await until(lambda: len(bench.door.messages) == 2, "both, later")
    assert bench.door.texts == ["first", "second"]


@pytest.mark.spec("ROUTE-4")
async def test_a_flood_is_taken_in_order_and_several_chats_at_once(bench: Bench) -> None:
    bench.door.delay_s = 0.001
    for at in range(1000):
        says(bench, f"{at}", chat_id=str(300 + at % 20))
    async with bench.running():
        await until(lambda: len(bench.door.messages) == 1000, "all of them")
        await until(lambda: len(bench.server.confirmed) == 1000, "all confirmed")
    for chat in range(20):
        of_chat = [int(m.envelope.text) for m in bench.door.messages if m.envelope.peer_id == str(300 + chat)]
        assert of_chat == list(range(chat, 1000, 20))
    assert 1 < bench.door.most_busy <= 8
    limits = {params["limit"] for method, params in bench.server.calls if method == "getUpdates"}
    assert limits == {100}


async def test_updates_out_of_order_are_put_in_order(bench: Bench) -> None:
    bench.server.repeat = lambda found: [*reversed(found), *found]
    for at in range(5):
        says(bench, f"m{at}")
    async with bench.running():
        await until(lambda: bench.server.confirmed and not bench.server.updates, "the confirmation")
    firsts = list(dict.fromkeys(bench.door.texts))
    assert firsts == ["m0", "m1", "m2", "m3", "m4"]


async def test_a_malformed_update_is_told_and_passed_by(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    says(bench, "before")
    bench.server.raw_update({"update_id": bench.server.next_update, "message": {"message_id": "?"}})
    bench.server.next_update += 1
    says(bench, "after")
    async with bench.running():
        await until(lambda: len(bench.server.confirmed) == 3, "all confirmed")
    assert bench.door.texts == ["before", "after"]
    assert "ignored: malformed" in caplog.text


async def test_numbers_that_begin_anew_are_followed(bench: Bench) -> None:
    says(bench, "old")
    async with bench.running():
        await until(lambda: bench.server.confirmed, "the old one")
    bench.server.next_update = 77
    says(bench, "new")
    async with bench.running():
        await until(lambda: "new" in bench.door.texts, "the new one")


# -- what goes wrong -------------------------------------------------------------------------------


async def test_a_wrong_token_is_named_and_never_shown(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    error = await down(bench, botToken="7000:wrong")
    assert "botToken" in error.message and error.wait_s == 60.0
    assert "7000:" not in error.message + caplog.text


async def test_another_poller_is_named(bench: Bench) -> None:
    async with bench.running() as (_, first):
        await until(lambda: any(method == "getUpdates" for method, _ in bench.server.calls), "a poll")
        await asyncio.sleep(0.05)
        async with bench.running():
            await asyncio.wait({first}, timeout=60)
            error = first.exception()
    assert isinstance(error, Down) and "another program receives" in error.message
    assert error.wait_s == 15.0


async def test_short_troubles_are_overlooked_and_long_ones_told(bench: Bench) -> None:
    bench.server.fail_next(
        Fault("getUpdates", 502, "x"), Fault("getUpdates", cut="before"), Fault("getUpdates", raw=b"<html>")
    )
    says(bench, "through")
    async with bench.running():
        await until(lambda: bench.door.texts == ["through"], "the message")
    bench.server.fail_next(*[Fault("getUpdates", 500, "x")] * 8)
    assert "Telegram failed" in (await down(bench)).message


async def test_a_platform_that_is_away_is_told(bench: Bench) -> None:
    await bench.server.go_away()
    assert "cannot be reached" in (await down(bench)).message
    await bench.server.come_back()
    says(bench, "back")
    async with bench.running() as (connector, _):
        await until(lambda: bench.door.texts == ["back"], "the message")
        assert connector.credentials_refreshed_at is not None


async def test_a_poll_that_comes_too_often_waits_as_it_is_told(bench: Bench) -> None:
    bench.server.fail_next(Fault("getUpdates", 429, "slow", {"retry_after": 4}))
    says(bench, "later")
    async with bench.running():
        await until(lambda: bench.door.texts == ["later"], "the message")
    assert 4 in bench.clock.slept


async def test_a_list_that_is_none_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def odd(_params: Json) -> object:
        return {"not": "a list"}

    monkeypatch.setattr(bench.server, "_do_get_updates", odd)
    assert "cannot be read" in (await down(bench)).message


async def test_a_long_poll_ends_and_begins_again(bench: Bench) -> None:
    bench.server.longest_poll_s = 0.02
    async with bench.running():
        await until(lambda: len([1 for m, _ in bench.server.calls if m == "getUpdates"]) >= 3, "three polls")
    asked = next(params for method, params in bench.server.calls if method == "getUpdates")
    assert asked["timeout"] == 30 and asked["allowed_updates"] == ["message"]


async def test_a_token_that_ends_while_the_menu_is_shown(bench: Bench) -> None:
    bench.server.fail_next(Fault("setMyCommands", 401, "Unauthorized"))
    assert "botToken" in (await down(bench)).message


async def test_a_large_update_is_read_like_any_other(bench: Bench) -> None:
    says(bench, "x", forward_origin={"padding": "y" * 100_000})
    async with bench.running():
        await until(lambda: bench.door.texts == ["x"], "the message")


# -- files -----------------------------------------------------------------------------------------


async def test_a_document_of_20_mb_comes_whole(bench: Bench) -> None:
    bench.server.files["big"] = b"x" * LARGEST_FETCH
    document = {
        "file_id": "big",
        "file_name": "big.txt",
        "mime_type": "text/plain",
        "file_size": LARGEST_FETCH,
    }
    says(bench, "", document=document, caption="read this")
    async with bench.running():
        await until(lambda: bench.door.messages, "the message")
    (attachment,) = bench.door.messages[0].attachments
    assert (attachment.name, attachment.mime) == ("big.txt", "text/plain")
    assert len(attachment.data) == LARGEST_FETCH and attachment.problem is None
    assert bench.door.texts == ["read this"]


@pytest.mark.spec("CMD-13")
async def test_a_file_of_a_stranger_is_not_fetched(bench: Bench) -> None:
    bench.server.files["big"] = b"x" * 1000
    bench.door.wants = False
    says(
        bench, "", document={"file_id": "big", "file_name": "big.txt", "file_size": 1000}, caption="take this"
    )
    async with bench.running():
        await until(lambda: bench.door.messages, "the message")
    (attachment,) = bench.door.messages[0].attachments
    assert attachment.data == b"" and "not let in" in str(attachment.problem)
    assert bench.door.texts == ["take this"]


async def test_a_file_that_is_too_large_is_said_to_be(bench: Bench) -> None:
    bench.server.files["huge"] = b"x" * 2_000_000
    says(bench, "", document={"file_id": "huge", "file_size": 2_000_000})
    says(bench, "", document={"file_id": "huge"})  # Telegram does not always tell the size
    async with bench.running(mediaMaxMb=1):
        await until(lambda: len(bench.door.messages) == 2, "both messages")
    known, unknown = (message.attachments[0] for message in bench.door.messages)
    assert "2000000 bytes" in str(known.problem) and known.data == b""
    assert "more than 1048576 bytes" in str(unknown.problem) and unknown.data == b""


@pytest.mark.parametrize(
    ("data", "claimed", "mime"),
    [
        (b"const a = 1", "video/mp2t", "text/plain"),
        (b"\x89PNG\r\n\x1a\n" + b"0" * 70_000, "image/jpeg", "image/png"),
        (b"\x00\x01", "application/x-odd", "application/x-odd"),
    ],
)
async def test_what_a_file_is_is_told_by_its_bytes(
    bench: Bench, data: bytes, claimed: str, mime: str
) -> None:
    bench.server.files["f"] = data
    says(bench, "", document={"file_id": "f", "file_name": "a.ts", "mime_type": claimed})
    async with bench.running():
        await until(lambda: bench.door.messages, "the message")
    (attachment,) = bench.door.messages[0].attachments
    assert (attachment.mime, attachment.data) == (mime, data)


@pytest.mark.parametrize(
    ("faults", "arrives"),
    [
        ((Fault("file", cut="before"), Fault("file", 503)), True),
        ((Fault("getFile", 429, "slow", {"retry_after": 2}),), True),
        ((Fault("file", 503), Fault("file", 503), Fault("file", 503)), False),
        ((Fault("getFile", 400, "invalid file_id"),), False),
    ],
    ids=["troubles", "too many requests", "no end", "gone"],
)
async def test_a_file_that_does_not_come_at_once(
    bench: Bench, faults: tuple[Fault, ...], arrives: bool
) -> None:
    bench.server.files["p"] = b"\xff\xd8\xff"
    bench.server.fail_next(*faults)
    says(bench, "", photo=[{"file_id": "p", "width": 1, "height": 1}])
    says(bench, "next")
    async with bench.running():
        await until(lambda: len(bench.door.messages) == 2, "both messages")
    (attachment,) = bench.door.messages[0].attachments
    assert (attachment.data == b"\xff\xd8\xff") is arrives
    assert (attachment.problem is None) is arrives
    assert bench.door.texts == ["", "next"]


# -- the bot itself --------------------------------------------------------------------------------


async def test_the_menu_is_shown_once_and_again_when_it_changes(bench: Bench) -> None:
    def polls() -> int:
        return [method for method, _ in bench.server.calls].count("getUpdates")

    bench.commands = (("status", "How  it\ngoes."), ("Bad-Name", "no"), ("long", "x" * 300), ("empty", ""))
    async with bench.running():
        await until(polls, "a poll: what was shown is written down before")
    assert bench.server.menu == [
        {"command": "status", "description": "How it goes."},
        {"command": "long", "description": "x" * 256},
        {"command": "empty", "description": "empty"},
    ]
    bench.server.menu, before = [], polls()
    async with bench.running():
        await until(lambda: polls() > before, "a poll")
    assert bench.server.menu == []
    bench.commands = (("new", "Anew."),)
    async with bench.running():
        await until(lambda: bench.server.menu, "the new menu")


async def test_a_menu_that_is_refused_stops_nothing(bench: Bench) -> None:
    bench.server.fail_next(Fault("setMyCommands", 400, "BOT_COMMAND_INVALID"))
    says(bench, "hello")
    async with bench.running():
        await until(lambda: bench.door.texts == ["hello"], "the message")


async def test_a_group_that_moved_is_known_by_its_old_number_too(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = Chat("group", "-1001"), Chat("group", "-1002")
    bench.server.arrives(message_of(ANN, old, "", 1) | {"migrate_to_chat_id": -1002})
    bench.server.arrives(message_of(ANN, new, "still here", 2))
    async with bench.running():
        await until(lambda: bench.door.messages, "the message")
    envelope = bench.door.messages[0].envelope
    assert (envelope.peer_id, envelope.parent_peer_id) == ("-1002", "-1001")
    assert "-1002" in caplog.text and "channels.telegram.groups" in caplog.text
