"""Telegram under fire: every update comes three times and out of order, and the gateway is killed.

Each update is consumed once, in its order within a chat; no reply is shown twice; a reply that nobody
saw is listed as `unknown`, and there is at most one for each kill.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import apsw
import pytest

from tests.channels.platform import Person
from tests.channels.suite import echo, until
from tests.e2e.gateway_process import GatewayProcess
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.fakes.ports import free_port
from tests.fakes.telegram_platform import TelegramPlatform
from tests.fakes.telegram_server import FakeTelegram, Json

PEOPLE = tuple(Person(str(200 + number), f"Person{number}") for number in range(3))
PER_ROUND = 4  # messages of each person between two kills
PATIENCE_S = 90.0
SECRET = "webhook-secret-0123456789"
_TOKEN = re.compile(r"m\d+-\d{4}")


class Repeating:
    """Hands out every waiting update three times, with old ones among them, in no order."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._old: list[Json] = []

    def __call__(self, found: list[Json]) -> list[Json]:
        if not found:
            return found
        mixed = found * 3 + self._chance.sample(self._old, min(5, len(self._old)))
        self._old = [*self._old, *found][-50:]
        self._chance.shuffle(mixed)
        return mixed


class Posting:
    """Posts every update three times, several at once, and again whatever was not answered with 200."""

    def __init__(self, server: FakeTelegram, url: str, chance: random.Random) -> None:
        self._server, self._url, self._chance = server, url, chance
        self._left: list[Json] = []

    @property
    def is_done(self) -> bool:
        return not self._left and not self._server.updates

    async def run_forever(self) -> None:
        async with aiohttp.ClientSession() as http:
            while True:
                self._left += [update for update in self._server.updates for _ in range(3)]
                self._server.updates.clear()
                batch = self._left[:12]
                self._chance.shuffle(batch)
                done = await asyncio.gather(*(self._post(http, update) for update in batch))
                self._left = [u for u, ok in zip(batch, done, strict=True) if not ok] + self._left[12:]
                await asyncio.sleep(0.02)

    async def _post(self, http: aiohttp.ClientSession, update: Json) -> bool:
        headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
        try:
            async with http.post(self._url, json=update, headers=headers) as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False


def prepare(gateway: GatewayProcess, options: dict[str, Any]) -> None:
    """Give the gateway its bot."""
    path = gateway.home / "state" / "openclaw.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["session"] = {"dmScope": "per-channel-peer"}
    config["channels"] = {"telegram": options | {"dmPolicy": "open"}}
    path.write_text(json.dumps(config), encoding="utf-8")


async def until_quiet(
    gateway: GatewayProcess,
    server: FakeTelegram,
    posting: Posting | None,
    people: tuple[Person, ...] = PEOPLE,
) -> None:
    """Nothing waits at Telegram, in a session or in the outbox."""
    async with asyncio.timeout(PATIENCE_S), gateway.client() as client:
        while True:
            waiting = bool(server.updates) or (posting is not None and not posting.is_done)
            for person in people:
                key = f"agent:main:telegram:dm:{person.id}"
                history = await client.call("chat.history", {"sessionKey": key, "limit": 1})
                waiting = waiting or bool(history["pendingInputs"]["total"]) or "inFlightRun" in history
            states = (await client.call("outbox.list", {"limit": 1}))["states"]
            if not waiting and not states.get("prepared") and not states.get("sending"):
                return
            await asyncio.sleep(0.05)


def rows_of(gateway: GatewayProcess) -> list[tuple[str, str, str]]:
    """State, recipient and text of every delivery; read once the gateway has stopped."""
    connection = apsw.Connection(str(gateway.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = connection.execute("SELECT state, target, body FROM outbox ORDER BY delivery_no")
        rows: list[tuple[Any, ...]] = found.fetchall()
    finally:
        connection.close()
    return [(str(state), str(target), json.loads(body)["text"]) for state, target, body in rows]


async def said_by(gateway: GatewayProcess, person: Person) -> list[str]:
    """The marks of a person's messages in the order in which the agent was given them."""
    async with gateway.client() as client:
        asked = {"sessionKey": f"agent:main:telegram:dm:{person.id}", "limit": 1000}
        history = await client.call("chat.history", asked)
    users = [message["content"] for message in history["messages"] if message["role"] == "user"]
    return _TOKEN.findall(json.dumps(users))


async def fire(tmp_path: Path, kills: int, *, by_post: bool) -> Counter[str]:
    """Run the whole thing; how many deliveries ended in which state, and `missing`."""
    chance = random.Random(20261116)
    sent: dict[str, list[str]] = {person.id: [] for person in PEOPLE}
    async with FakeOpenAIServer() as model, FakeTelegram() as server:
        model.decide = echo
        platform = TelegramPlatform(server)
        gateway = GatewayProcess(tmp_path, model.base_url, free_port())
        options, posting = platform.options, None
        if by_post:
            options = options | {"webhookUrl": "https://house.example", "webhookSecret": SECRET}
            address = f"http://127.0.0.1:{gateway.port}/channels/telegram/default"
            posting = Posting(server, address, chance)
        else:
            server.repeat = Repeating(chance)
        prepare(gateway, options)
        await gateway.start()
        poster = asyncio.create_task(posting.run_forever()) if posting is not None else None
        for _ in range(kills):
            for _ in range(PER_ROUND):
                for person in PEOPLE:
                    mark = f"m{person.id}-{len(sent[person.id]):04d}"
                    sent[person.id].append(mark)
                    await platform.says(person, platform.direct(person), mark)
                await asyncio.sleep(chance.uniform(0.0, 0.15))
            await asyncio.sleep(chance.uniform(0.0, 0.5))
            gateway.kill()
            await gateway.start()
        await until_quiet(gateway, server, posting)
        for person in PEOPLE:
            said = await said_by(gateway, person)
            assert Counter(said) == Counter(sent[person.id]), "each consumed exactly once"
            assert by_post or said == sent[person.id], "in order"
        if poster is not None:
            poster.cancel()
        assert gateway.stop() == 0
        return check_replies(gateway, server)


def check_replies(gateway: GatewayProcess, server: FakeTelegram) -> Counter[str]:
    shown = Counter((post.chat_id, post.text) for post in server.posts)
    assert {one: count for one, count in shown.items() if count > 1} == {}, "no reply twice"
    rows = rows_of(gateway)
    assert {(target, text) for _, target, text in rows} >= set(shown), "everything shown is on record"
    found: Counter[str] = Counter(state for state, _, _ in rows)
    for state, target, text in rows:
        assert state in ("sent", "unknown"), (state, text)
        if shown[target, text] == 0:
            assert state == "unknown", text
            found["missing"] += 1
    return found


@pytest.mark.spec("ROUTE-4", "ROUTE-2", "DB-16")
@pytest.mark.parametrize("by_post", [False, True], ids=["polling", "webhook"])
async def test_three_deliveries_of_everything_and_kills_between(tmp_path: Path, by_post: bool) -> None:
    kills = 3
    found = await fire(tmp_path, kills, by_post=by_post)
    assert found["missing"] <= kills
    assert found["sent"] > kills * len(PEOPLE)


async def test_a_kill_while_a_reply_grows_leaves_one_message(tmp_path: Path) -> None:
    parts = tuple(f"part {number} of the answer. " for number in range(45))
    async with FakeOpenAIServer(then=FakeReply(texts=parts, delay_s=0.1)) as model, FakeTelegram() as server:
        platform = TelegramPlatform(server)
        gateway = GatewayProcess(tmp_path, model.base_url, free_port())
        prepare(gateway, platform.options | {"streaming": "partial"})
        await gateway.start()
        await platform.says(platform.ann, platform.direct(platform.ann), "tell me everything")
        # Once it was edited, its id is on disk; before that nobody could know which message to complete.
        await until(lambda: server.posts and server.posts[0].edits, "a draft that grows")
        gateway.kill()
        assert "part 44" not in server.posts[0].text
        await gateway.start()
        await until_quiet(gateway, server, None, people=(platform.ann,))
        assert [post.text for post in server.posts] == ["".join(parts).strip()]
        assert gateway.stop() == 0


@pytest.mark.long
@pytest.mark.spec("ROUTE-4", "ROUTE-2", "DB-16")
@pytest.mark.parametrize("by_post", [False, True], ids=["polling", "webhook"])
async def test_fifty_kills(tmp_path: Path, by_post: bool) -> None:
    found = await fire(tmp_path, 50, by_post=by_post)
    print(f"50 kills: {dict(found)}")
    assert found["missing"] <= 50
