"""A bad day with Telegram, from the first wrong token to a minute without the platform: nobody helps."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from tests.channels.platform import Person
from tests.channels.suite import echo
from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.test_telegram_kill import prepare
from tests.fakes.openai_server import FakeOpenAIServer
from tests.fakes.ports import free_port
from tests.fakes.telegram_platform import TelegramPlatform, message_of
from tests.fakes.telegram_server import LARGEST_FETCH, FakeTelegram, Json
from tests.fakes.wire_client import WireClient

PEOPLE = tuple(Person(str(300 + number), f"Person{number}") for number in range(20))
FLOOD = 1000
DOCUMENTS = 8
PATIENCE_S = 300.0
MOST_MIB = 400


async def state_of(client: WireClient) -> Json:
    accounts: list[Json] = (await client.call("channels.status", {}))["channelAccounts"]["telegram"]
    return accounts[0]


async def until_state(client: WireClient, state: str, words: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = await state_of(client)
            if found["state"] == state and words in str(found["lastError"]):
                return
            await asyncio.sleep(0.1)


def most_memory_mib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) // 1024


async def said_by(client: WireClient, person: Person) -> list[str]:
    asked = {"sessionKey": f"agent:main:telegram:dm:{person.id}", "limit": 1000}
    history = await client.call("chat.history", asked)
    users = [message["content"] for message in history["messages"] if message["role"] == "user"]
    return re.findall(r"\bword-\d{4}\b", json.dumps(users))


async def until_all_said(client: WireClient, wanted: dict[str, list[str]]) -> None:
    """Every person's words are in their session, each once and in order."""
    async with asyncio.timeout(PATIENCE_S):
        for person in PEOPLE:
            while (said := await said_by(client, person)) != wanted[person.id]:
                assert len(said) <= len(wanted[person.id]), "something came twice"
                await asyncio.sleep(0.2)


def say(server: FakeTelegram, platform: TelegramPlatform, person: Person, text: str, **more: object) -> None:
    message = message_of(person, platform.direct(person), text, server.message_id())
    server.arrives(message | more)


@pytest.mark.long
@pytest.mark.spec("ROUTE-4", "CMD-1")
async def test_a_bad_day(tmp_path: Path) -> None:
    wanted: dict[str, list[str]] = {person.id: [] for person in PEOPLE}
    async with FakeOpenAIServer() as model, FakeTelegram() as server:
        model.decide = echo
        platform = TelegramPlatform(server)
        gateway = GatewayProcess(tmp_path, model.base_url, free_port())
        prepare(gateway, platform.options | {"botToken": "7000:wrong"})
        for number in range(FLOOD):
            person = PEOPLE[number % len(PEOPLE)]
            wanted[person.id].append(f"word-{number:04d}")
            say(server, platform, person, wanted[person.id][-1])
        server.raw_update({"update_id": server.next_update, "message": {"chat": "none"}})
        server.next_update += 1
        server.files["big"] = b"\x00" * LARGEST_FETCH
        for number in range(DOCUMENTS):
            document = {"file_id": "big", "file_name": "big.bin", "file_size": LARGEST_FETCH}
            say(server, platform, PEOPLE[number], "", document=document)
        await gateway.start()
        async with gateway.client() as client:
            await until_state(client, "waiting", "does not accept the bot token")
            assert server.confirmed == []
            prepare(gateway, platform.options)  # somebody mends the file; nobody restarts anything
            await until_state(client, "running", "None")
            await until_all_said(client, wanted)

            await server.go_away()
            await until_state(client, "waiting", "Telegram")
            for number in range(FLOOD, FLOOD + len(PEOPLE)):
                person = PEOPLE[number % len(PEOPLE)]
                wanted[person.id].append(f"word-{number:04d}")
                say(server, platform, person, wanted[person.id][-1])
            await asyncio.sleep(60)
            await server.come_back()
            await until_all_said(client, wanted)
            await until_state(client, "running", "None")
            assert (await client.call("health", {}))["ok"]
        used = most_memory_mib(gateway.pid)
        print(f"most memory: {used} MiB")
        assert used < MOST_MIB
        assert gateway.stop() == 0
        assert "7000:" not in gateway.log_text(), "the token is nowhere in the log"
