"""Nobody gets an answer that was meant for somebody else: many chats, with helpers and jobs between."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from openclaw.channels import registry
from tests.channels.platform import Chat, Person
from tests.channels.suite import until
from tests.fakes.openai_server import FakeCall, FakeOpenAIServer, FakeReply
from tests.fakes.pigeon import Loft
from tests.integration.conftest import House, client_of

CHATS = 50
CODE = re.compile(r"\bchat-(\d+)\b")
Json = dict[str, Any]


@pytest.fixture
def loft(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loft]:
    monkeypatch.setattr(registry, "BUILT_IN", {"pigeon": "tests.fakes.pigeon:build"})
    yield Loft("loft")
    Loft.lofts.clear()


def answer(body: Json) -> FakeReply:
    """Says whose words it was asked last; a task that wants a helper gets one, which says the same."""
    messages = body["messages"]
    last = messages[-1]
    text = str(last["content"])
    codes = CODE.findall(text) or CODE.findall(str(messages))
    code = f"chat-{codes[-1]}" if codes else "nobody"
    if last["role"] == "user" and "use a helper" in text and "Subagent" not in str(messages[:2]):
        task = json.dumps({"task": f"look after {code}"})
        return FakeReply(calls=(FakeCall("sessions_spawn", (task,)),))
    return FakeReply(texts=(f"For {code} alone.",))


async def play(house: House, loft: Loft, turns: int, seed: int) -> Counter[str]:
    """Interleave turns of all chats; the replies that stand in a chat they do not name."""
    rng = Random(seed)
    people = [Person(str(1000 + number), f"P{number}") for number in range(CHATS)]
    async with house.gateway() as gateway, client_of(gateway) as client:
        for number in range(0, CHATS, 10):
            job = {
                "name": f"job {number}",
                "schedule": {"kind": "every", "everyMs": 1000},
                "sessionTarget": "isolated",
                "payload": {"kind": "agentTurn", "message": f"report for chat-{number}"},
                "delivery": {"mode": "announce", "channel": "pigeon", "to": people[number].id},
            }
            await client.call("cron.add", job)
        said = Counter[str]()
        for turn in range(turns):
            number = rng.randrange(CHATS)
            helper = " and use a helper" if rng.random() < 0.1 else ""
            person = people[number]
            await loft.says(person, loft.direct(person), f"turn {turn} of chat-{number}{helper}")
            said[person.id] += 1
            if turn % 50 == 49:
                await until(lambda: not loft.waiting, "the platform's line is empty")
        await until(
            lambda: all(_count(loft, person.id) >= said[person.id] for person in people), "all replies"
        )
        wrong = Counter[str]()
        for one in loft.shown():
            if f"chat-{int(one.chat.id) - 1000} " not in one.text:
                wrong[f"{one.chat.id}: {one.text}"] += 1
        return wrong


def _count(loft: Loft, chat_id: str) -> int:
    return sum(one.chat == Chat("direct", chat_id) for one in loft.shown())


async def _house(tmp_path: Path, model: FakeOpenAIServer) -> House:
    model.decide = answer
    house = House(tmp_path, model)
    house.config["session"] = {"dmScope": "per-channel-peer"}
    house.config["messages"] = {"queue": {"mode": "followup", "cap": 1000}}
    house.config["channels"] = {"pigeon": {"loft": "loft", "dmPolicy": "open"}}
    house.config["agents"]["defaults"]["maxConcurrent"] = 8
    return house


@pytest.mark.spec("ROUTE-2", "ANN-7", "AUTO-2")
async def test_300_turns_in_50_chats_reach_the_chat_that_asked(tmp_path: Path, loft: Loft) -> None:
    async with FakeOpenAIServer() as model:
        wrong = await play(await _house(tmp_path, model), loft, 300, seed=1)
    assert not wrong, wrong.most_common(5)


@pytest.mark.long
@pytest.mark.spec("ROUTE-2", "ANN-7", "AUTO-2")
async def test_5000_turns_in_50_chats_reach_the_chat_that_asked(tmp_path: Path, loft: Loft) -> None:
    async with FakeOpenAIServer() as model:
        wrong = await play(await _house(tmp_path, model), loft, 5000, seed=2)
    print(f"{len(loft.shown())} replies in {CHATS} chats, {sum(wrong.values())} in the wrong one")
    assert not wrong, wrong.most_common(5)


async def test_the_check_would_notice(tmp_path: Path, loft: Loft, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a route that is looked up later, from whoever wrote last, replies do go astray."""
    from openclaw.domain import routing

    seen: list[Any] = []

    def careless(envelope: Any, real: Any = routing.reply_route) -> Any:
        route = real(envelope)
        if not seen or seen[-1] != route:
            seen.append(route)
        return seen[-2] if len(seen) > 1 else route

    monkeypatch.setattr(routing, "reply_route", careless)
    monkeypatch.setattr("tests.channels.test_recipients._count", lambda loft, _chat: len(loft.shown()))
    async with FakeOpenAIServer() as model:
        wrong = await play(await _house(tmp_path, model), loft, 60, seed=3)
    assert wrong
