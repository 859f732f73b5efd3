"""A family at work, for tests of the page: a parent and helpers that take as long as they are told."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.openai_server import FakeCall, FakeReply
from tests.web.desk import MAIN, Desk

Json = dict[str, Any]
PRICED = """{models: {providers: {fake: {models: [
  {id: "one", contextWindow: 32000, cost: {input: 1, output: 2}},
]}}}}"""
DRIP_S = 0.1


def words(count: int) -> FakeReply:
    """A reply that takes a tenth of a second for each word, and has a price."""
    used = {"prompt_tokens": 1200, "completion_tokens": count, "total_tokens": 1200 + count}
    return FakeReply(texts=("word ",) * count, delay_s=DRIP_S, usage=used)


def set_price(desk: Desk) -> None:
    base = desk.call("config.get")["hash"]
    desk.call("config.patch", raw=PRICED, baseHash=base)


def spawn(label: str) -> FakeCall:
    return FakeCall("sessions_spawn", (json.dumps({"task": f"do {label}", "label": label}),), f"call_{label}")


def ask_helpers(desk: Desk, **helpers: FakeReply) -> None:
    """The main session asks one helper for each name; `helpers` are their replies."""
    parent = [
        FakeReply(calls=tuple(spawn(label) for label in helpers)),
        FakeReply(texts=("I have asked for help.",)),
    ]

    def decide(body: Json) -> FakeReply:
        said = json.dumps(body["messages"])
        if str(body["messages"][0]["content"]).startswith("You are a helper"):
            if "Your task has ended" in said:
                return FakeReply(texts=("ANNOUNCE_SKIP",))
            return next(reply for label, reply in helpers.items() if f"do {label}" in said)
        return parent.pop(0) if parent else FakeReply(texts=("NO_REPLY",))

    desk.model.decide = decide
    desk.call("chat.send", sessionKey=MAIN, message="Compare the three offers", idempotencyKey="ask-1")
