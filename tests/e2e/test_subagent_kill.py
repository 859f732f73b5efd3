"""Helpers under kill -9: each is started once, each result reaches its requester once, nobody sleeps on.

The model answers from what it reads alone, so that a turn that is asked again is
answered the same. A requester starts a helper for each `cycle-…` it is told of and
yields; it says `heard cycle-…` for each result that it finds. What was stored is
counted at the end, behind the gateway's back.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import pytest
from websockets.exceptions import ConnectionClosed

from openclaw.domain.transcript import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
)  # fmt: skip
from openclaw.engine.drafts import draft_message
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, begin
from tests.e2e.gateway_process import GatewayProcess
from tests.fakes.openai_server import FakeCall, FakeOpenAIServer, FakeReply
from tests.fakes.ports import free_port
from tests.fakes.wire_client import RefusedError, WireClient

CYCLE = re.compile(r"cycle-[0-9]+-[0-9]+-[0-9]+")
FINISHED = "[Sub-agent finished"
SESSIONS = 4
PATIENCE_S = 120.0
CUT_OFF = (RefusedError, OSError, ConnectionClosed, TimeoutError)


# -- the model -------------------------------------------------------------------------------------


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else json.dumps(content)


def answer(body: dict[str, Any]) -> FakeReply:
    """What the model says to a request: a function of the request alone."""
    messages = body["messages"]
    if text_of(messages[0]).startswith("You are a helper"):
        return helper_answer(messages)
    users = [text_of(message) for message in messages if message["role"] == "user"]
    assistants = [message for message in messages if message["role"] == "assistant"]
    asked = cycles(text for text in users if FINISHED not in text)
    started = [call["id"] for message in assistants for call in message.get("tool_calls") or ()]
    told = cycles(text for text in users if FINISHED in text)
    heard = set(cycles(text_of(message) for message in assistants))
    to_start = [cycle for cycle in asked if cycle not in started]
    if to_start:
        return FakeReply(calls=tuple(spawn(cycle) for cycle in to_start))
    news = [cycle for cycle in told if cycle not in heard]
    if news:
        return FakeReply(texts=("heard " + " ".join(news),))
    waiting = set(started) & set(asked) - set(told)
    if waiting and '"yielded"' not in text_of(messages[-1]):
        return FakeReply(calls=(FakeCall("sessions_yield", ("{}",), f"yield_{len(messages)}"),))
    return FakeReply(texts=("resting",))


def helper_answer(messages: list[dict[str, Any]]) -> FakeReply:
    """A helper does its task, or has a helper of its own do it and waits for that one."""
    users = [text_of(message) for message in messages if message["role"] == "user"]
    task = next(text for text in users if "[Subagent Task]" in text)
    cycle, last = CYCLE.findall(task)[0], text_of(messages[-1])
    if "Your task has ended" in last:
        return FakeReply(texts=(f"Status: failed\nResult: did {cycle}",), delay_s=0.001)
    if "delegate " not in task or any(FINISHED in text for text in users):
        return FakeReply(texts=(f"did {cycle}",), delay_s=0.001)
    if not any(message.get("tool_calls") for message in messages):
        return FakeReply(calls=(FakeCall("sessions_spawn", (json.dumps({"task": f"do {cycle}"}),), "inner"),))
    if messages[-1]["role"] == "tool" and messages[-1]["tool_call_id"] == "inner":
        return FakeReply(calls=(FakeCall("sessions_yield", ("{}",), "rest"),))
    return FakeReply(texts=("resting",))


def is_nested(cycle: str) -> bool:
    """Every first cycle of a session is done by a helper of a helper."""
    return cycle.endswith("-0")


def spawn(cycle: str) -> FakeCall:
    task = f"{'delegate' if is_nested(cycle) else 'do'} {cycle}"
    return FakeCall("sessions_spawn", (json.dumps({"task": task}),), cycle)


def cycles(texts: Any) -> list[str]:
    return list(dict.fromkeys(found for text in texts for found in CYCLE.findall(text)))


# -- the campaign ----------------------------------------------------------------------------------


class Campaign:
    """A gateway that is killed again and again while sessions start helpers and wait for them."""

    def __init__(self, home: Path, model: FakeOpenAIServer, seed: int) -> None:
        self.gateway = GatewayProcess(home, model.base_url, free_port())
        self._raise_limits(home / "state" / "openclaw.json")
        self._model = model
        self._chance = random.Random(seed)
        self.asked: dict[str, str] = {}  # cycle -> session key
        self.acknowledged: set[str] = set()
        self.kills = 0

    @staticmethod
    def _raise_limits(path: Path) -> None:
        config = json.loads(path.read_text(encoding="utf-8"))
        config["agents"]["defaults"]["subagents"] = {
            "maxChildrenPerAgent": 200, "maxConcurrent": 16, "maxSpawnDepth": 2,
        }  # fmt: skip
        path.write_text(json.dumps(config), encoding="utf-8")

    async def round(self, number: int, each: int, *, kill: bool = True) -> None:
        """New sessions ask for `each` cycles; the kill comes whenever it comes, also during recovery."""
        self._model.requests.clear()
        for session in range(SESSIONS):
            for cycle in range(each):
                self.asked[f"cycle-{number}-{session}-{cycle}"] = f"agent:main:r{number}-s{session}"
        async with self.gateway.client() as client:
            sending = asyncio.create_task(self._send_all(client))
            if kill:
                await asyncio.sleep(self._chance.uniform(0.0, 0.7))
                self.gateway.kill()
                self.kills += 1
            await sending
        if kill:
            await self.gateway.start()

    async def _send_all(self, client: WireClient) -> None:
        """Ask for what is not acknowledged yet, as a client does that was cut off: under the same key."""
        open_ones = [cycle for cycle in self.asked if cycle not in self.acknowledged]
        senders = [open_ones[first::SESSIONS] for first in range(SESSIONS)]
        await asyncio.gather(*(self._send(client, mine) for mine in senders))

    async def _send(self, client: WireClient, mine: list[str]) -> None:
        for cycle in mine:
            params = {"sessionKey": self.asked[cycle], "message": f"please {cycle}", "idempotencyKey": cycle}
            try:
                await client.call("chat.send", params)
            except CUT_OFF:
                return
            self.acknowledged.add(cycle)

    async def come_to_rest(self) -> None:
        """Until every requester has heard of every helper. One that sleeps on fails here."""
        await self.round(10**6, 0, kill=False)
        assert self.acknowledged == self.asked.keys()
        async with self.gateway.client() as client:
            for key in dict.fromkeys(self.asked.values()):
                wanted = {cycle for cycle, where in self.asked.items() if where == key}
                await self._heard(client, key, wanted)

    async def _heard(self, client: WireClient, key: str, wanted: set[str]) -> None:
        heard: set[str] = set()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    history = await client.call("chat.history", {"sessionKey": key, "limit": 1000})
                    heard = {cycle for message in history["messages"] for cycle in heard_in(message)}
                    at_rest = history["pendingInputs"]["total"] == 0 and "inFlightRun" not in history
                    if wanted <= heard and at_rest:
                        return
                    await asyncio.sleep(0.02)
        except TimeoutError:
            pytest.fail(f"{key} sleeps on; it never heard of {sorted(wanted - heard)[:20]}")

    def audit(self) -> None:
        """What the rows say, once the gateway is down."""
        connection = apsw.Connection(str(self.gateway.database), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            audit_rows(connection, self.asked)
        finally:
            connection.close()


def heard_in(message: dict[str, Any]) -> list[str]:
    """The cycles that an assistant says it heard of; those that it starts helpers for are not among them."""
    content = message.get("content") or ""
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [block.get("text") or "" for block in blocks if block.get("type") == "text"]
    said = [text for text in texts if message["role"] == "assistant" and text.startswith("heard ")]
    return [cycle for text in said for cycle in CYCLE.findall(text)]


def rows(connection: apsw.Connection, sql: str) -> list[Any]:
    return connection.execute(sql).fetchall()


def audit_rows(connection: apsw.Connection, asked: dict[str, str]) -> None:
    """0 lost, 0 doubled, nobody waits: helpers, completions, and what stands in the transcripts."""
    assert connection.pragma("integrity_check") == "ok"
    spawned = rows(connection, "SELECT parent_key, child_run_id, state, body FROM spawns")
    helpers = Counter(
        (":subagent:" in parent, CYCLE.findall(json.loads(body)["task"])[0]) for parent, _, _, body in spawned
    )
    wanted = [(False, cycle) for cycle in asked] + [(True, cycle) for cycle in asked if is_nested(cycle)]
    assert helpers == Counter(wanted), "each cycle has exactly one helper, and that one at most one"
    assert {state for _, _, state, _ in spawned} <= {"settled"}
    assert {json.loads(body)["status"] for *_, body in spawned} <= {"success"}
    inputs = rows(connection, "SELECT run_id, session_key, state FROM inbox WHERE run_id LIKE '%:completion'")
    assert Counter(inputs) == {(f"{run}:completion", parent, "consumed"): 1 for parent, run, *_ in spawned}
    assert rows(connection, "SELECT * FROM waits") == []
    assert rows(connection, "SELECT run_id FROM runs WHERE state = 'active'") == []
    assert rows(connection, "SELECT run_id FROM inbox WHERE state = 'queued'") == []
    told, heard = said_in(connection)
    assert told == {(key, cycle): 1 for cycle, key in asked.items()}, "each result is read exactly once"
    assert heard == told, "each result is answered exactly once"


def said_in(connection: apsw.Connection) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """How often each requester was told of each cycle, and how often it answered."""
    told: Counter[tuple[str, str]] = Counter()
    heard: Counter[tuple[str, str]] = Counter()
    sql = (
        "SELECT w.session_key, e.role, e.body FROM entries e JOIN windows w ON w.window_no = e.window_no "
        "WHERE e.type = 'message' AND w.session_key NOT LIKE '%:subagent:%'"
    )
    for key, role, body in connection.execute(sql):
        message = {"role": role, **json.loads(body)}
        heard.update((key, cycle) for cycle in heard_in(message))
        text = text_of(message)
        if role == "user" and FINISHED in text:
            told.update((key, cycle) for cycle in re.findall(r"Result: did (cycle-[0-9-]+)", text))
    return told, heard


async def run_campaign(home: Path, *, kills: int, each: int, seed: int, rest_every: int) -> Campaign:
    async with FakeOpenAIServer() as model:
        model.decide = answer
        campaign = Campaign(home, model, seed)
        await campaign.gateway.start()
        for number in range(kills):
            await campaign.round(number, each)
            if (number + 1) % rest_every == 0:
                await campaign.come_to_rest()
        await campaign.come_to_rest()
        assert campaign.gateway.stop() == 0
    campaign.audit()
    return campaign


@pytest.mark.spec("ANN-8", "ANN-10", "REST-2", "REST-4", "YIELD-1", "YIELD-2", "QUE-8")
async def test_15_kills_lose_no_result_and_double_none(tmp_path: Path) -> None:
    campaign = await run_campaign(tmp_path, kills=15, each=3, seed=20261116, rest_every=1000)
    assert campaign.kills == 15
    assert len(campaign.asked) == 15 * SESSIONS * 3


async def leave_behind(path: Path, *, told: bool) -> None:
    """A run as a kill leaves it: it called sessions_yield, and the result was kept or was not."""
    store = Store(await SqliteDatabase.open(path))
    claimed = await begin(store, "run-1", "please wait", at=time.time_ns() // 1_000_000)
    call = AssistantMessage((ToolCallBlock("call_1", "sessions_yield", {}),), NOON, stop_reason="toolUse")
    kept: list[Message] = [call]
    if told:
        words = (TextBlock('{"status":"yielded","message":"Turn yielded.","pending":0}'),)
        kept.append(ToolResultMessage("call_1", "sessions_yield", words, NOON))
    drafts = tuple(draft_message(message, "run-1") for message in kept)
    await store.step(claimed.run, drafts, (), now_ms=NOON)
    await store.close()


@pytest.mark.spec("YIELD-1", "YIELD-2", "REST-2")
@pytest.mark.parametrize("told", [True, False])
async def test_a_turn_that_yielded_stays_ended_after_a_kill(tmp_path: Path, told: bool) -> None:
    async with FakeOpenAIServer(then=FakeReply(texts=("nobody asked me",))) as model:
        gateway = GatewayProcess(tmp_path, model.base_url, free_port())
        await leave_behind(gateway.database, told=told)
        await gateway.start()
        async with gateway.client() as client:
            waited = await client.call("agent.wait", {"runId": "run-1", "timeoutMs": 60_000}, within_s=90)
            history = await client.call("chat.history", {"sessionKey": MAIN.session_key})
            assert (waited["status"], waited["yielded"]) == ("ok", True)
            assert "nobody asked me" not in json.dumps(history)
            assert model.requests == []
            await client.say(MAIN.session_key, "go on", "run-2")
            (asked,) = model.requests
            assert [message["role"] for message in asked.body["messages"][-3:]] == [
                "assistant",
                "tool",
                "user",
            ]
        assert gateway.stop() == 0


@pytest.mark.long
@pytest.mark.spec("ANN-8", "ANN-10", "REST-2", "REST-4", "YIELD-1", "YIELD-2", "QUE-8")
async def test_500_kills_and_10000_cycles_lose_no_result_and_double_none(tmp_path: Path) -> None:
    campaign = await run_campaign(tmp_path, kills=500, each=5, seed=500, rest_every=10)
    assert campaign.kills == 500
    assert len(campaign.asked) == 10_000
