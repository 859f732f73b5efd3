"""32 clients that do everything at once, and a gateway that is killed under them: every promise is kept.

Each client has a session of its own and mixes sending, patching, creating, reading
and listing; every fourth also resets and stops, so that what it sent may end without
an answer, but never without a trace. The rows are counted at the end, when the
gateway is down. How long each restart took is printed (`-s`).
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.test_kill import settled_history
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.fakes.ports import free_port
from tests.fakes.wire_client import RefusedError, WireClient

CLIENTS = 32
CUT_OFF = (OSError, ConnectionClosed, InvalidHandshake, TimeoutError)


class Promises:
    """What the gateway has acknowledged, and what it was asked without an answer."""

    def __init__(self) -> None:
        self.inputs: dict[str, str] = {}  # run id -> session key
        self.spoken: set[str] = set()  # sessions that have an input
        self.created: set[str] = set()
        self.labels: dict[str, set[str]] = {}  # session key -> the last acknowledged and those after it
        self.resets: Counter[str] = Counter()
        self.rough: set[str] = set()  # sessions in which inputs may be cancelled


class Sender:
    """One client: it goes on until the connection breaks."""

    def __init__(self, promises: Promises, key: str, chance: random.Random, *, rough: bool) -> None:
        self._promises = promises
        self._key = key
        self._chance = chance
        self._number = 0
        ways = [self._send] * 11 + [self._patch, self._patch, self._create, self._create]
        ways += [self._read, self._read, self._list]
        if rough:
            promises.rough.add(key)
            ways += [self._reset, self._abort]
        self._ways = ways

    async def go_on(self, gateway: GatewayProcess) -> None:
        try:
            async with gateway.client() as client:
                while True:
                    self._number += 1
                    await self._chance.choice(self._ways)(client)
                    await asyncio.sleep(self._chance.uniform(0.0, 0.06))
        except CUT_OFF:
            return
        except RefusedError as refused:
            if refused.error["code"] != "CLOSED":
                raise

    async def _send(self, client: WireClient) -> None:
        run_id = f"{self._key}/{self._number}"
        params = {"sessionKey": self._key, "message": f"say {run_id}", "idempotencyKey": run_id}
        await client.call("chat.send", params)
        self._promises.inputs[run_id] = self._key
        self._promises.spoken.add(self._key)

    async def _patch(self, client: WireClient) -> None:
        if self._key not in self._promises.spoken:
            return  # nothing to patch yet
        label = f"{self._key} {self._number}"
        self._promises.labels.setdefault(self._key, {""}).add(label)
        await client.call("sessions.patch", {"key": self._key, "label": label})
        self._promises.labels[self._key] = {label}

    async def _create(self, client: WireClient) -> None:
        key = f"{self._key}-made-{self._number}"
        await client.call("sessions.create", {"key": key})
        self._promises.created.add(key)

    async def _read(self, client: WireClient) -> None:
        history = await client.call("chat.history", {"sessionKey": self._key, "limit": 50})
        assert len(history["messages"]) <= 50

    async def _list(self, client: WireClient) -> None:
        listed = await client.call("sessions.list", {"limit": 20})
        assert listed["count"] <= 20

    async def _reset(self, client: WireClient) -> None:
        if self._key not in self._promises.spoken:
            return
        await client.call("sessions.reset", {"key": self._key})
        self._promises.resets[self._key] += 1

    async def _abort(self, client: WireClient) -> None:
        await client.call("chat.abort", {"sessionKey": self._key})


async def run_round(
    gateway: GatewayProcess, number: int, promises: Promises, chance: random.Random
) -> tuple[float, list[str]]:
    """Load, kill, start again: (seconds until it answered, the sessions of this round)."""
    keys = [f"agent:main:m{number}-c{which}" for which in range(CLIENTS)]
    senders = [
        Sender(promises, key, random.Random(chance.random()), rough=which % 4 == 3)
        for which, key in enumerate(keys)
    ]
    async with asyncio.TaskGroup() as group:
        for sender in senders:
            group.create_task(sender.go_on(gateway))
        await asyncio.sleep(chance.uniform(0.3, 1.2))
        gateway.kill()
    began = time.perf_counter()
    await gateway.start()
    return time.perf_counter() - began, keys


async def run_campaign(home: Path, *, rounds: int, seed: int) -> None:
    chance, promises, ready_s = random.Random(seed), Promises(), []
    async with FakeOpenAIServer(then=FakeReply(texts=("fine",), delay_s=0.002)) as model:
        gateway = GatewayProcess(home, model.base_url, free_port())
        await gateway.start()
        for number in range(rounds):
            took_s, keys = await run_round(gateway, number, promises, chance)
            ready_s.append(took_s)
            if number % 5 == 4:  # in between, one kill follows the other while much is unfinished
                await come_to_rest(gateway, keys, promises)
            model.requests.clear()
        await come_to_rest(gateway, sorted(promises.spoken), promises)
        assert gateway.stop() == 0
    ready_s.sort()
    print(
        f"\n{rounds} kills, {len(promises.inputs)} acknowledged inputs; ready again after "
        f"{ready_s[0]:.2f} / {statistics.median(ready_s):.2f} / {ready_s[-1]:.2f} s (least, median, most), "
        f"{sum(took <= 1 for took in ready_s)} of {rounds} within 1 s"
    )
    assert len(promises.inputs) > rounds * CLIENTS / 2
    connection = apsw.Connection(str(gateway.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        audit(connection, promises)
    finally:
        connection.close()


async def come_to_rest(gateway: GatewayProcess, keys: list[str], promises: Promises) -> None:
    async with gateway.client() as client:
        for key in keys:
            if key in promises.spoken:
                await settled_history(client, key)


def rows(connection: apsw.Connection, sql: str) -> list[Any]:
    return connection.execute(sql).fetchall()


def audit(connection: apsw.Connection, promises: Promises) -> None:
    assert connection.pragma("integrity_check") == "ok"
    assert rows(connection, "SELECT run_id FROM runs WHERE state = 'active'") == []
    assert rows(connection, "SELECT run_id FROM inbox WHERE state = 'queued'") == []
    audit_inputs(connection, promises)
    sessions = dict(rows(connection, "SELECT session_key, label FROM sessions"))
    assert promises.created <= sessions.keys(), "a session that was created is there"
    for key, possible in promises.labels.items():
        assert (sessions[key] or "") in possible, (key, sessions[key], possible)
    windows = dict(rows(connection, "SELECT session_key, count(*) FROM windows GROUP BY session_key"))
    for key, resets in promises.resets.items():
        assert windows[key] > resets, "each reset that was acknowledged has opened a window"
    gaps = "SELECT window_no FROM entries GROUP BY window_no HAVING max(seq) <> count(*)"
    assert rows(connection, gaps) == []


def audit_inputs(connection: apsw.Connection, promises: Promises) -> None:
    """Each acknowledged input stands in a transcript once, or was cancelled where somebody cancelled."""
    states = dict(rows(connection, "SELECT run_id, state FROM inbox"))
    said = Counter(run_id for (run_id,) in rows(connection, "SELECT run_id FROM entries WHERE role = 'user'"))
    assert [run_id for run_id, count in said.items() if count > 1] == [], "said twice"
    lost = [run_id for run_id in promises.inputs if run_id not in states]
    assert lost == [], "acknowledged and gone"
    for run_id, key in promises.inputs.items():
        if states[run_id] == "cancelled":
            assert key in promises.rough, f"nobody cancelled {run_id}"
            assert said[run_id] == 0
        else:
            assert said[run_id] == 1, f"{run_id} was taken and not said"


@pytest.mark.spec("DB-15", "DB-16", "QUE-8", "REST-2")
async def test_3_kills_under_mixed_load_keep_every_promise(tmp_path: Path) -> None:
    await run_campaign(tmp_path, rounds=3, seed=20261116)


@pytest.mark.long
@pytest.mark.spec("DB-15", "DB-16", "QUE-8", "REST-2")
async def test_200_kills_under_mixed_load_keep_every_promise(tmp_path: Path) -> None:
    await run_campaign(tmp_path, rounds=200, seed=7)
