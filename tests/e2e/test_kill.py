"""Accepted means durable: the gateway is killed under load, again and again, and nothing is missing."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import apsw
import pytest

from tests.e2e.gateway_process import GatewayProcess
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.fakes.ports import free_port
from tests.fakes.wire_client import Json, RefusedError, WireClient

ROUNDS = 25
SESSIONS = 4
SENDERS = 3  # per session, so that inputs queue and steer as well


def key_of(round_number: int, sender: int) -> str:
    return f"agent:main:r{round_number}-s{sender % SESSIONS}"


async def send_until_killed(client: WireClient, key: str, sender: int, acknowledged: dict[str, str]) -> None:
    """Send one message after the other; remember each that was acknowledged."""
    for number in range(10_000):
        text = f"{key}-{sender}-{number}"
        try:
            await client.call("chat.send", {"sessionKey": key, "message": text, "idempotencyKey": text})
        except (RefusedError, OSError, ConnectionError, asyncio.CancelledError):
            return
        except Exception as error:
            if "ConnectionClosed" in type(error).__name__:
                return
            raise
        acknowledged[text] = key
        if number % 3 == 2:
            await asyncio.sleep(0.01)


async def settled_history(client: WireClient, key: str) -> Json:
    """The history once nothing runs: an input may have been stored whose acknowledgement the kill cut off."""
    async with asyncio.timeout(60):
        while True:
            history = await client.call("chat.history", {"sessionKey": key, "limit": 1000})
            if history["pendingInputs"]["total"] == 0 and "inFlightRun" not in history:
                return history
            await asyncio.sleep(0.02)


async def check_round(gateway: GatewayProcess, acknowledged: dict[str, str]) -> None:
    """Every acknowledged input is answered, stands in the history once, and has a reply after it."""
    async with gateway.client() as client:
        for run_id in acknowledged:
            waited = await client.call("agent.wait", {"runId": run_id, "timeoutMs": 60_000}, within_s=90)
            assert waited["status"] == "ok", (run_id, waited)
        for key in set(acknowledged.values()):
            history = await settled_history(client, key)
            said = Counter(m["content"] for m in history["messages"] if m["role"] == "user")
            wanted = {text for text, where in acknowledged.items() if where == key}
            assert wanted <= said.keys(), f"lost: {sorted(wanted - said.keys())}"
            assert {text: count for text, count in said.items() if count > 1} == {}
            assert history["messages"][-1]["role"] == "assistant"


@pytest.mark.spec("DB-15", "DB-16", "QUE-8", "REST-2", "DB-1")
async def test_25_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    chance = random.Random(20261115)
    total = 0
    async with FakeOpenAIServer(then=FakeReply(texts=("fine",), delay_s=0.002)) as model:
        gateway = GatewayProcess(tmp_path, model.base_url, free_port())
        await gateway.start()
        for number in range(ROUNDS):
            acknowledged: dict[str, str] = {}
            async with gateway.client() as client:
                senders = [
                    asyncio.create_task(send_until_killed(client, key_of(number, which), which, acknowledged))
                    for which in range(SESSIONS * SENDERS)
                ]
                await asyncio.sleep(chance.uniform(0.05, 0.35))
                gateway.kill()
                await asyncio.gather(*senders)
            await gateway.start()
            await check_round(gateway, acknowledged)
            total += len(acknowledged)
        assert gateway.stop() == 0
    assert total > ROUNDS * SESSIONS
    connection = apsw.Connection(str(gateway.database))
    assert connection.pragma("integrity_check") == "ok"
    gaps = "SELECT window_no FROM entries GROUP BY window_no HAVING max(seq) <> count(*)"
    assert connection.execute(gaps).fetchall() == []
    connection.close()
