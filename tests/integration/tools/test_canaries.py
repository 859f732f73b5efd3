"""Nobody's secret reaches anybody else: each session has a word of its own, and all try to get the others'.

Each message carries a mark of who speaks and that speaker's secret. The model calls
the tool that the message names and repeats everything that it is told, so that what
leaks anywhere comes out in a prompt. A control with open doors shows that it would.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.fakes.openai_server import FakeCall, FakeOpenAIServer, FakeReply
from tests.fakes.wire_client import Json, WireClient
from tests.integration.conftest import House, client_of

WORD = "quokka"  # what everybody searches for
MARK = re.compile(r"\[me:([a-z0-9]+)\]")
SECRET = re.compile(rf"{WORD}-([a-z0-9]+)-[0-9a-f]{{12}}")
SECRET_OR_MARK = re.compile(rf"\[me:[a-z0-9]+\]|{WORD}-[a-z0-9]+-[0-9a-f]{{12}}")
TOGETHER = 4
RESTARTS = 4
OPEN_DOORS = {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}}


class Peer(Struct, frozen=True):
    name: str
    key: str
    secret: str


class Leak(Struct, frozen=True):
    where: str
    names: tuple[str, ...]
    text: str


def make_peers(chance: random.Random) -> list[Peer]:
    keys = {f"p{n}": f"agent:main:telegram:dm:p{n}" for n in range(5)}
    keys |= {f"g{n}": f"agent:main:telegram:group:-100{n}" for n in range(2)}
    keys |= {"bob": "agent:bob:main", "mine": "agent:main:main"}
    return [Peer(name, key, f"{WORD}-{name}-{chance.randbytes(6).hex()}") for name, key in keys.items()]


def names_in(text: str) -> set[str]:
    """Whose marks and secrets stand in a text."""
    return set(MARK.findall(text)) | set(SECRET.findall(text))


# -- what the model does ---------------------------------------------------------------------------


class Parrot:
    """Does what the last message says and repeats what it gets. Every request is looked through."""

    def __init__(self) -> None:
        self.leaks: list[Leak] = []
        self.requests = 0
        self._calls = 0

    def decide(self, body: dict[str, Any]) -> FakeReply:
        messages = body["messages"]
        self.requests += 1
        text = json.dumps(messages)
        if len(names_in(text)) > 1:
            self.leaks.append(Leak("prompt", tuple(sorted(names_in(text))), text[-2000:]))
        last = messages[-1]
        said = last["content"] if isinstance(last["content"], str) else json.dumps(last["content"])
        wish = said.partition(" DO ")[2]
        if not body.get("tools"):  # a summary is asked for: of everything that stands here
            return FakeReply(texts=("In short: " + " ".join(dict.fromkeys(SECRET_OR_MARK.findall(text))),))
        if last["role"] == "user" and wish.startswith("{"):
            tool, _ = json.JSONDecoder().raw_decode(wish)
            self._calls += 1
            name, arguments = tool["tool"], json.dumps(tool["arguments"])
            return FakeReply(calls=(FakeCall(name, (arguments,), f"call_{self._calls}"),))
        return FakeReply(texts=("I was told: ", said.replace(" DO ", " done ")[:3000]))


# -- what people do --------------------------------------------------------------------------------


def wish(chance: random.Random, me: Peer, others: list[Peer], ids: dict[str, str]) -> str:
    """A message of one peer that tries to find out what others said; `ids` are those of their sessions."""
    other = chance.choice(others)
    asks: list[tuple[str, Json]] = [
        ("sessions_history", {"sessionKey": other.key, "includeTools": True}),
        ("sessions_history", {"sessionKey": ids.get(other.key, other.key)}),
        ("sessions_history", {"sessionKey": "current", "limit": 50}),
        ("sessions_search", {"query": WORD, "limit": 50}),
        ("sessions_search", {"query": WORD, "sessionKey": other.key}),
        ("sessions_search", {"query": WORD, "agentId": other.key.split(":")[1]}),
        ("sessions_list", {"messageLimit": 20, "includeLastMessage": True, "includeDerivedTitles": True}),
        ("sessions_list", {"search": WORD, "agentId": "bob"}),
        ("session_status", {"sessionKey": other.key}),
        ("sessions_send", {"sessionKey": other.key, "message": f"[me:{me.name}] tell", "timeoutSeconds": 5}),
        ("subagents", {}),
        ("sessions_yield", {}),
    ]  # fmt: skip
    inner = chance.choice(asks[:9])
    task = f"[me:{me.name}] keep {me.secret} DO {json.dumps({'tool': inner[0], 'arguments': inner[1]})}"
    context = chance.choice(("isolated", "fork"))
    asks += [("sessions_spawn", {"task": task, "context": context})] * 3
    tool, arguments = chance.choice(asks)
    # Long enough that sessions outgrow their window and are compacted.
    intro = f"[me:{me.name}] my secret is {me.secret} {'and so on ' * chance.randrange(800)}"
    if chance.random() < 0.15:
        return intro
    return f"{intro} DO {json.dumps({'tool': tool, 'arguments': arguments})}"


class Crowd:
    """Peers who talk at the same time, over restarts; what comes back is looked through."""

    def __init__(self, house: House, seed: int) -> None:
        self._house = house
        self._chance = random.Random(seed)
        self.peers = make_peers(self._chance)
        self.parrot = Parrot()
        self.leaks = self.parrot.leaks
        self.turns = 0
        self.compactions = 0
        self._commands = 0
        self._ids: dict[str, str] = {}
        house.model.decide = self.parrot.decide
        house.config["agents"]["defaults"] |= {
            "subagents": {"maxSpawnDepth": 2, "maxChildrenPerAgent": 200, "maxConcurrent": 8},
            "maxConcurrent": 8,
        }

    async def talk(self, turns: int) -> None:
        """So many turns, through several lives of the gateway."""
        goal = self.turns
        for _ in range(RESTARTS):
            goal += -(-turns // RESTARTS)
            async with self._house.gateway() as gateway, client_of(gateway) as client:
                rows = (await client.call("sessions.list", {"limit": 200}))["sessions"]
                self._ids = {row["key"]: row["sessionId"] for row in rows}
                for peer in self.peers if self.turns else ():
                    await self._command(client, peer, "/compact")
                while self.turns < goal:
                    speakers = self._chance.sample(self.peers, TOGETHER)
                    await asyncio.gather(*(self._turn(client, peer) for peer in speakers))
                    self._house.model.requests.clear()
                    self._look_at(client.events)
                    client.events.clear()
                    client.frames.clear()

    async def _turn(self, client: WireClient, me: Peer) -> None:
        self.turns += 1
        run_id = f"turn-{self.turns}"
        if self._chance.random() < 0.04:
            await self._command(client, me, self._chance.choice(("/compact", "/new")))
            return
        others = [peer for peer in self.peers if peer is not me]
        text = wish(self._chance, me, others, self._ids)
        params = {"sessionKey": me.key, "message": text, "idempotencyKey": run_id}
        await client.call("chat.send", params)
        waited = await client.call("agent.wait", {"runId": run_id, "timeoutMs": 60_000}, within_s=90)
        # A `/compact` or `/new` of the same person stops what runs.
        assert waited["status"] == "ok" or waited.get("stopReason") in ("compact", "reset"), (text, waited)

    async def _command(self, client: WireClient, peer: Peer, command: str) -> None:
        self._commands += 1
        params = {"sessionKey": peer.key, "message": command, "idempotencyKey": f"cmd-{self._commands}"}
        await client.call("chat.send", params)

    def _look_at(self, events: list[Json]) -> None:
        owners = {peer.key: peer.name for peer in self.peers}
        for event in events:
            text = json.dumps(event)
            owner = owners.get(event["payload"].get("sessionKey", ""))
            self._check("event", text, owner)

    def _check(self, where: str, text: str, owner: str | None) -> None:
        names = names_in(text)
        if len(names | ({owner} if owner and names else set())) > 1:
            self.leaks.append(Leak(f"{where} of {owner}", tuple(sorted(names)), text[-2000:]))

    async def look_at_what_is_kept(self) -> int:
        """Histories and exports of everybody and their helpers; how many hold the secret that belongs."""
        found = 0
        async with self._house.gateway() as gateway, client_of(gateway) as client:
            for peer in self.peers:
                children = (await client.call("sessions.list", {"spawnedBy": peer.key, "limit": 200}))[
                    "sessions"
                ]
                for key in (peer.key, *(child["key"] for child in children)):
                    history = json.dumps(
                        await client.call("chat.history", {"sessionKey": key, "limit": 1000})
                    )
                    exported = await export(client, key)
                    self._check("history", history, peer.name)
                    self._check("export", exported, peer.name)
                    self.compactions += exported.count('"type":"compaction"')
                    found += (peer.secret in history) + (peer.secret in exported)
        return found


async def export(client: WireClient, key: str) -> str:
    data, cursor = b"", None
    while True:
        page = await client.call("sessions.export", {"key": key} | ({"cursor": cursor} if cursor else {}))
        data, cursor = data + base64.b64decode(page["data"]), page["cursor"]
        if cursor is None:
            return data.decode()


class Lines(logging.Handler):
    """Log lines that hold a secret. Nobody's words belong into a log."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.count = 0
        self.telling: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1
        line = logging.Formatter().format(record)
        if SECRET.search(line) or MARK.search(line):
            self.telling.append(line)


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, log = Lines(), logging.getLogger("openclaw")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    yield handler
    log.setLevel(level)
    log.removeHandler(handler)


async def keep_apart(house: House, lines: Lines, turns: int, seed: int) -> Crowd:
    crowd = Crowd(house, seed)
    await crowd.talk(turns)
    found = await crowd.look_at_what_is_kept()
    assert crowd.leaks == [], crowd.leaks[0]
    assert lines.telling == [], lines.telling[0]
    assert lines.count > 0, "no log was looked at"
    assert crowd.turns >= turns and crowd.parrot.requests > turns
    assert crowd.compactions > 0, "no session was compacted"
    assert found >= 2 * len(crowd.peers), "the secrets were not even where they belong"
    return crowd


@pytest.mark.spec("VIS-1", "VIS-4", "VIS-5", "VIS-6")
async def test_no_secret_gets_out_in_300_turns(house: House, lines: Lines) -> None:
    await keep_apart(house, lines, 300, seed=20261116)


@pytest.mark.spec("VIS-1", "VIS-4", "VIS-6")
async def test_with_the_doors_open_the_secrets_are_found(house: House) -> None:
    house.config["tools"] = OPEN_DOORS
    crowd = Crowd(house, seed=7)
    await crowd.talk(120)
    told = {name for leak in crowd.leaks if leak.where == "prompt" for name in leak.names}
    assert len(told) > len(crowd.peers) // 2, "the control found nothing: the test above proves nothing"
    leaked = "".join(leak.text for leak in crowd.leaks)
    assert "snippet" in leaked and "lastMessagePreview" in leaked, "search and list were not tried"


@pytest.mark.long
@pytest.mark.spec("VIS-1", "VIS-4", "VIS-5", "VIS-6")
async def test_no_secret_gets_out_in_20000_turns(tmp_path: Path, lines: Lines) -> None:
    for campaign in range(20):
        async with FakeOpenAIServer() as model:
            await keep_apart(House(tmp_path / str(campaign), model), lines, 1000, seed=campaign)
