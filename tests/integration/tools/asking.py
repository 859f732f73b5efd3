"""A session of a whole gateway whose model calls tools; what it is told back is the answer."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec

from openclaw.app import Gateway
from openclaw.domain.transcript import AssistantMessage, TextBlock, UserMessage
from openclaw.engine.drafts import draft_message
from openclaw.store.records import SessionSeed
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.integration.conftest import House, Json, client_of

NOW = 1_794_744_000_000
OK = FakeReply(texts=("done",))
_runs = itertools.count(1)


def calling(calls: list[tuple[str, Json]], run: int = 0) -> FakeReply:
    """A reply of the model that makes all these calls at once."""
    made = (
        FakeCall(name, (json.dumps(arguments),), f"call_{run}_{number}")
        for number, (name, arguments) in enumerate(calls)
    )
    return FakeReply(calls=tuple(made))


async def ask_all(house: House, gateway: Gateway, key: str, calls: list[tuple[str, Json]]) -> list[str]:
    """The results of these calls, as the model of the session reads them, in order."""
    run = next(_runs)
    house.model.script(calling(calls, run), OK)
    async with client_of(gateway) as client:
        final = await client.say(key, "go", f"tools-{run}")
    assert final["state"] == "final"
    told = house.model.requests[-1].body["messages"]
    by_id = {item["tool_call_id"]: item["content"] for item in told if item["role"] == "tool"}
    return [by_id[f"call_{run}_{number}"] for number in range(len(calls))]


async def ask(house: House, gateway: Gateway, key: str, tool: str, **arguments: Any) -> Json:
    (text,) = await ask_all(house, gateway, key, [(tool, arguments)])
    answer: Json = json.loads(text)
    return answer


async def add_session(gateway: Gateway, key: str, *texts: str, **fields: Any) -> None:
    """A session with these lineage and other fields, in which a person and the assistant take turns."""
    store = gateway.services.store
    seed = SessionSeed(key, key.split(":")[1])
    await store.edit_session(
        seed, lambda entry: msgspec.structs.replace(entry, **fields), session_id=f"id-{key}", now_ms=NOW
    )
    for number, text in enumerate(texts):
        message = (
            AssistantMessage((TextBlock(text),), NOW, stop_reason="stop")
            if number % 2
            else UserMessage(text, NOW)
        )
        await store.append(key, (draft_message(message, "made"),), now_ms=NOW)
