"""The session tools as methods: what they ask a gateway for, and how they read odd answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openclaw.api.failures import ToolFailed
from openclaw.api.sessions import Sessions

Json = dict[str, Any]


class Recorder:
    """A gateway that answers every tool with the same text."""

    def __init__(self, text: str, *, exists: bool = True) -> None:
        self.text = text
        self.exists = exists
        self.calls: list[tuple[str, Json]] = []

    async def call(self, method: str, params: Json | None = None) -> Any:
        self.calls.append((method, params or {}))
        if method == "sessions.resolve":
            return {"ok": self.exists}
        if method == "tools.invoke":
            return {"ok": True, "output": {"content": [{"type": "text", "text": self.text}]}}
        return {}

    @property
    def asked(self) -> list[Json]:
        return [params for method, params in self.calls if method == "tools.invoke"]


async def test_what_is_not_given_is_not_sent() -> None:
    gateway = Recorder(json.dumps({"sessions": []}))
    sessions = Sessions(gateway, "agent:main:desk")
    assert await sessions.list() == ()
    assert await sessions.list(kinds=("main", "group"), active_minutes=5, messages=2, titles=True) == ()
    plain, full = gateway.asked
    assert (plain["name"], plain["sessionKey"], plain["args"]) == (
        "sessions_list",
        "agent:main:desk",
        {"limit": 100},
    )
    assert full["args"] == {
        "kinds": ("main", "group"),
        "limit": 100,
        "activeMinutes": 5,
        "messageLimit": 2,
        "includeDerivedTitles": True,
    }
    assert plain["idempotencyKey"] != full["idempotencyKey"]


@pytest.mark.spec("A2A-1", "SPAWN-2")
async def test_arguments_have_the_names_of_the_tools() -> None:
    told = {"status": "accepted", "runId": "r", "childSessionKey": "c"}
    gateway = Recorder(json.dumps(told))
    sessions = Sessions(gateway, "main")
    await sessions.send("other", "hello", timeout_s=0)
    await sessions.send(label="L", agent_id="bob", message="hello")
    await sessions.spawn("dig", agent_id="bob", timeout_s=9, cleanup="delete", context="fork")
    await sessions.subagents("steer", target="last", message="left")
    assert [asked["args"] for asked in gateway.asked] == [
        {"sessionKey": "other", "message": "hello", "timeoutSeconds": 0},
        {"label": "L", "agentId": "bob", "message": "hello"},
        {"task": "dig", "agentId": "bob", "runTimeoutSeconds": 9, "cleanup": "delete", "context": "fork"},
        {"action": "steer", "target": "last", "message": "left"},
    ]


@pytest.mark.parametrize(("exists", "created"), [(True, 0), (False, 1)])
async def test_the_acting_session_is_made_once_if_it_is_missing(exists: bool, created: int) -> None:
    gateway = Recorder("{}", exists=exists)
    sessions = Sessions(gateway, "agent:main:desk")
    for _ in range(3):
        await sessions.use("anything")
    methods = [method for method, _ in gateway.calls]
    assert methods.count("sessions.resolve") == 1
    assert methods.count("sessions.create") == created
    assert methods.count("tools.invoke") == 3


@pytest.mark.spec("TOOL-7")
@pytest.mark.parametrize("text", ["", "not json", "[1]", "null"])
async def test_an_answer_that_is_no_object_is_a_failure(text: str) -> None:
    with pytest.raises(ToolFailed, match="did not answer with an object"):
        await Sessions(Recorder(text), "main").history("main")


async def test_an_answer_in_another_shape_is_a_failure() -> None:
    with pytest.raises(ToolFailed, match="in a way that this version does not know"):
        await Sessions(Recorder('{"sessionKey": 5}'), "main").history("main")
