"""Updates that Telegram posts: who is let in, in which order they pass, and what is answered."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from openclaw.channels.base import Down
from openclaw.channels.reception import Reception
from openclaw.channels.telegram.options import read_options
from openclaw.channels.telegram.webhook import GAP_S, JUMP, MOST_WAITING, Turnstile
from openclaw.errors import InvalidRequest, StoreError, Unavailable
from tests.channels.platform import Chat, Person
from tests.channels.suite import echo
from tests.channels.telegram_bench import Bench, QuickClock, bench
from tests.channels.test_telegram_receiving import until
from tests.fakes.openai_server import FakeOpenAIServer
from tests.fakes.telegram_platform import TelegramPlatform, message_of
from tests.fakes.telegram_server import TOKEN, FakeTelegram, Fault, Json
from tests.integration.conftest import House, client_of

__all__ = ["bench"]
SECRET = "a-secret-of-the-house-0123"
HEADER = "X-Telegram-Bot-Api-Secret-Token"
OPTIONS = {"webhookUrl": "https://house.example", "webhookSecret": SECRET}


# -- the order -------------------------------------------------------------------------------------


class Passing:
    """Sends numbers through a turnstile and writes down in which order they came out."""

    def __init__(self, expected: int | None) -> None:
        self.clock = QuickClock()
        self.turnstile = Turnstile(expected, self.clock)
        self.passed: list[int] = []

    async def go(self, number: int) -> None:
        async def work() -> None:
            await asyncio.sleep(0.001)
            self.passed.append(number)

        await self.turnstile.go_through(number, work)


async def test_posts_that_overtake_one_another_are_put_in_order() -> None:
    passing = Passing(10)
    await asyncio.gather(*(passing.go(number) for number in (13, 11, 14, 10, 12)))
    assert passing.passed == [10, 11, 12, 13, 14] and passing.turnstile.expected == 15


async def test_an_old_number_passes_at_once_and_changes_nothing() -> None:
    passing = Passing(10)
    await asyncio.gather(passing.go(3), passing.go(10), passing.go(9))
    assert sorted(passing.passed) == [3, 9, 10] and passing.turnstile.expected == 11


@pytest.mark.parametrize("expected", [None, 10])
async def test_a_beginning_and_a_jump_do_not_wait(expected: int | None) -> None:
    passing = Passing(expected)
    number = 10 + JUMP + 1
    async with asyncio.timeout(1):
        await passing.go(number)
    assert passing.turnstile.expected == number + 1


async def test_a_gap_is_waited_for_but_not_for_ever() -> None:
    passing = Passing(10)
    waiting = asyncio.create_task(passing.go(12))
    await asyncio.sleep(0.02)
    assert passing.passed == []
    await passing.clock.sleep(GAP_S)
    await asyncio.wait_for(waiting, 60)
    await passing.go(11)
    assert passing.passed == [12, 11] and passing.turnstile.expected == 13


async def test_work_that_fails_is_still_expected() -> None:
    passing = Passing(10)

    async def fail() -> None:
        raise Unavailable("the disk is full")

    with pytest.raises(Unavailable):
        await passing.turnstile.go_through(10, fail)
    assert passing.turnstile.expected == 10
    await asyncio.gather(passing.go(11), passing.go(10))
    assert passing.passed == [10, 11]


async def test_a_crowd_is_sent_away() -> None:
    passing = Passing(10)
    crowd = [asyncio.create_task(passing.go(12 + at)) for at in range(MOST_WAITING)]
    await asyncio.sleep(0.02)
    with pytest.raises(Unavailable, match="again later"):
        await passing.go(100)
    for task in crowd:
        task.cancel()
    await asyncio.wait(crowd)
    await passing.go(10)
    assert passing.passed == [10]


# -- the address -----------------------------------------------------------------------------------


async def test_telegram_is_told_where_to_post(bench: Bench) -> None:
    async with bench.running(**OPTIONS):
        await until(lambda: bench.server.webhook, "the webhook")
        assert bench.server.webhook["url"] == "https://house.example/channels/telegram/default"
        assert bench.server.webhook["secret_token"] == SECRET
        assert bench.webhooks.taker("telegram", "default") is not None
    assert bench.webhooks.taker("telegram", "default") is None
    assert bench.server.webhook, "updates wait at Telegram while the gateway is away"


async def test_a_webhook_that_somebody_changed_is_told(bench: Bench) -> None:
    connector = await bench.connector(**OPTIONS)
    task = asyncio.create_task(connector.run(bench.door))
    await until(lambda: bench.server.webhook, "the webhook")
    bench.server.webhook = {"url": "https://thief.example"}
    with pytest.raises(Down, match="changed by somebody else"):
        await asyncio.wait_for(task, 60)


async def test_polling_takes_a_webhook_away_first(bench: Bench) -> None:
    bench.server.webhook = {"url": "https://old.example"}
    async with bench.running():
        await until(lambda: "getUpdates" in [method for method, _ in bench.server.calls], "a poll")
    assert bench.server.webhook == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "botToken is missing"),
        ({"botToken": ""}, "botToken is missing"),
        ({"botToken": 5}, "botToken: Expected `str`, got `int`"),
        ({"botToken": "no token"}, "does not look like a token"),
        ({"botToken": "1:a/../b"}, "does not look like a token"),
        ({"botToken": TOKEN, "apiRoot": "ftp://x"}, "apiRoot must be"),
        ({"botToken": TOKEN, "apiRoot": "https://x?y=1"}, "apiRoot must be"),
        ({"botToken": TOKEN, "mediaMaxMb": 21}, "mediaMaxMb"),
        ({"botToken": TOKEN, "mediaMaxMb": 0}, "mediaMaxMb"),
        ({"botToken": TOKEN, "webhookUrl": "http://x"}, "must be an https address"),
        ({"botToken": TOKEN, "webhookUrl": "https://x"}, "webhookSecret"),
        ({"botToken": TOKEN, "webhookUrl": "https://x", "webhookSecret": "short"}, "16 to 256"),
    ],
)
def test_options_that_cannot_work_are_named(options: Json, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as refused:
        read_options(options, "telegram", "default")
    assert refused.value.message.startswith("channels.telegram")
    with pytest.raises(InvalidRequest, match=r"channels\.telegram\.accounts\.work"):
        read_options(options, "telegram", "work")


def test_options_that_work(caplog: pytest.LogCaptureFixture) -> None:
    given: dict[str, Any] = {
        "botToken": TOKEN,
        "apiRoot": "https://x/y/",
        "streaming": "partial",
        "oddKey": 1,
    }
    options = read_options(given, "telegram", "default")
    assert (options.api_root, options.largest_file) == ("https://x/y", 20 * 1024 * 1024)
    assert "oddKey" in caplog.text and "streaming" not in caplog.text
    plain = read_options({"botToken": TOKEN}, "telegram", "default")
    assert plain.api_root == "https://api.telegram.org" and plain.webhook_url is None
    kept = read_options(
        {"botToken": TOKEN} | OPTIONS | {"webhookUrl": "https://x/my/path"}, "telegram", "work"
    )
    assert kept.webhook_url == "https://x/my/path"


# -- over the gateway's port -----------------------------------------------------------------------


async def post(url: str, body: Any, **headers: str) -> int:
    async with aiohttp.ClientSession() as http, http.post(url, json=body, headers=headers) as response:
        return response.status


@pytest.mark.spec("ROUTE-4", "ROUTE-2")
async def test_a_post_is_answered_when_it_is_safe_and_once_only(tmp_path: Path) -> None:
    async with FakeOpenAIServer() as model, FakeTelegram() as server:
        model.decide = echo
        house, platform = House(tmp_path, model), TelegramPlatform(server)
        house.config["channels"] = {"telegram": platform.options | OPTIONS | {"dmPolicy": "open"}}
        async with house.gateway() as gateway:
            await until(lambda: server.webhook, "the webhook")
            url = f"http://127.0.0.1:{gateway.port}/channels/telegram/default"
            updates = [
                {
                    "update_id": 9 - at,
                    "message": message_of(platform.ann, platform.direct(platform.ann), text, at),
                }
                for at, text in enumerate(("tres", "dos", "uno"), 1)
            ]
            server.chats.add(platform.ann.id)
            assert await post(url, updates[2], **{HEADER: SECRET}) == 200
            rest = [post(url, update, **{HEADER: SECRET}) for update in (*updates, *updates)]
            assert await asyncio.gather(*rest) == [200] * 6
            # A message that comes while another is answered may join it: the last words are answered.
            await until(lambda: any("tres" in one.text for one in server.posts), "the last reply")
            assert len({one.text for one in server.posts}) == len(server.posts)
            async with client_of(gateway) as client:
                history = await client.call("chat.history", {"sessionKey": "main"})
            asked = [str(one["content"]) for one in history["messages"] if one["role"] == "user"]
            assert re.findall(r"uno|dos|tres", " ".join(asked)) == ["uno", "dos", "tres"]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("telegram/default", {}, 401),
        ("telegram/default", {HEADER: SECRET + "x"}, 401),
        ("telegram/default", {HEADER: "é"}, 401),
        ("telegram/other", {HEADER: SECRET}, 404),
        ("matrix/default", {HEADER: SECRET}, 404),
        ("telegram/default", {HEADER: SECRET, "Content-Type": "text/plain"}, 415),
        ("telegram/default", {HEADER: SECRET, "Origin": "https://evil.example"}, 403),
        ("telegram/default", {HEADER: SECRET, "Host": "evil.example"}, 403),
        ("telegram/default", {HEADER: SECRET}, 200),
    ],
)
async def test_strangers_are_not_read(
    tmp_path: Path, path: str, headers: dict[str, str], status: int
) -> None:
    async with FakeOpenAIServer() as model, FakeTelegram() as server:
        house = House(tmp_path, model)
        house.config["channels"] = {"telegram": TelegramPlatform(server).options | OPTIONS}
        async with house.gateway() as gateway:
            await until(lambda: server.webhook, "the webhook")
            url = f"http://127.0.0.1:{gateway.port}/channels/{path}"
            given = {"Content-Type": "application/json"} | headers
            async with (
                aiohttp.ClientSession() as http,
                http.post(url, data=b"nonsense", headers=given) as got,
            ):
                assert got.status == status


async def test_a_post_that_cannot_be_kept_is_answered_with_503(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(_self: Reception, _message: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(Reception, "accept", full)
    async with FakeOpenAIServer() as model, FakeTelegram() as server:
        house = House(tmp_path, model)
        house.config["channels"] = {"telegram": TelegramPlatform(server).options | OPTIONS}
        async with house.gateway() as gateway:
            await until(lambda: server.webhook, "the webhook")
            url = f"http://127.0.0.1:{gateway.port}/channels/telegram/default"
            message = message_of(Person("101", "Ann"), Chat("direct", "101"), "x", 1)
            assert await post(url, {"update_id": 5, "message": message}, **{HEADER: SECRET}) == 503
            assert await post(url, {"update_id": 6, "message": 5}, **{HEADER: SECRET}) == 200


async def test_posts_that_do_not_arrive_are_told(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def info(_params: object) -> Json:
        url = bench.server.webhook.get("url", "")
        return {"url": url, "pending_update_count": 3, "last_error_message": "Connection refused"}

    monkeypatch.setattr(bench.server, "_do_get_webhook_info", info)
    async with bench.running(**OPTIONS):
        await until(lambda: "Connection refused" in caplog.text, "a word in the log")
    assert "Telegram cannot post updates" in caplog.text


async def test_what_cannot_be_kept_is_asked_for_again(bench: Bench) -> None:
    bench.door.refusals = 1
    async with bench.running(**OPTIONS):
        await until(lambda: bench.server.webhook, "the webhook")
        taker = bench.webhooks.taker("telegram", "default")
        assert taker is not None
        message = message_of(Person("101", "Ann"), Chat("direct", "101"), "x", 1)
        body = json.dumps({"update_id": 5, "message": message}).encode()
        with pytest.raises(Exception, match="disk is full"):
            await taker.take(body)
        await taker.take(body)
    assert bench.door.texts == ["x"]
    bench.server.fail_next(Fault("setWebhook", 400, "bad webhook"))
    with pytest.raises(Down, match="bad webhook"):
        await (await bench.connector(**OPTIONS)).run(bench.door)
