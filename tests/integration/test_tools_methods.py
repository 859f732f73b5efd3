"""tools.catalog, tools.effective, tools.invoke: an agent's tools used from outside a turn, over the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.store.database import Transaction
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of
from tests.integration.tools.asking import add_session

Json = dict[str, Any]


async def invoke(client: WireClient, name: str, session: str | None = None, **args: Any) -> Json:
    asked: Json = {"name": name, "args": args}
    if session is not None:
        asked["sessionKey"] = session
    return await client.call("tools.invoke", asked)


def told(answer: Json) -> Json:
    """The object that a tool answered with."""
    assert answer["ok"], answer
    (block,) = answer["output"]["content"]
    value: Json = json.loads(block["text"])
    return value


# -- showing -----------------------------------------------------------------------------------


@pytest.mark.spec("TOOL-2", "TOOL-3")
async def test_the_catalogue_has_every_tool_under_its_group(client: WireClient) -> None:
    shown = await client.call("tools.catalog")
    assert shown["agentId"] == "main"
    assert [profile["id"] for profile in shown["profiles"]] == ["minimal", "coding", "messaging", "full"]
    groups = {group["id"]: {tool["id"]: tool for tool in group["tools"]} for group in shown["groups"]}
    assert {"sessions_list", "sessions_history", "session_status", "agents_list"} <= groups["sessions"].keys()
    assert "exec" in groups["runtime"]
    assert "read" in groups["fs"]
    assert groups["sessions"]["session_status"]["defaultProfiles"] == [
        "minimal",
        "coding",
        "messaging",
        "full",
    ]
    assert groups["sessions"]["agents_list"]["defaultProfiles"] == ["coding", "full"]
    assert all(tool["description"] for group in groups.values() for tool in group.values())
    assert (await client.call("tools.catalog", {"agentId": "Bob"}))["agentId"] == "bob"
    with pytest.raises(RefusedError, match='unknown agent id "eve"; configured: bob, main'):
        await client.call("tools.catalog", {"agentId": "eve"})


@pytest.mark.spec("TOOL-3", "TOOL-4", "TOOL-5")
async def test_effective_tools_are_those_that_policy_leaves(house: House) -> None:
    house.config["tools"] = {"profile": "messaging", "deny": ["sessions_history"]}
    async with house.gateway() as gateway, client_of(gateway) as client:
        shown = await client.call("tools.effective", {"sessionKey": "main"})
        assert (shown["agentId"], shown["sessionKey"]) == ("main", "agent:main:main")
        tools = {tool["id"]: tool for group in shown["groups"] for tool in group["tools"]}
        assert {"sessions_list", "session_status"} <= tools.keys()
        assert not {"sessions_history", "exec", "read", "agents_list"} & tools.keys()
        schema = tools["sessions_list"]["parameters"]
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert "limit" in schema["properties"]
        await client.call("sessions.create", {"key": "main"})
        refused = await invoke(client, "sessions_history", "main", sessionKey="main")
        assert (refused["ok"], refused["toolName"]) == (False, "sessions_history")
        assert refused["error"]["code"] == "error"
        assert "there is no tool 'sessions_history' here" in refused["error"]["message"]
        assert "output" not in refused


# -- acting as a session -----------------------------------------------------------------------


@pytest.mark.spec("TOOL-7", "VIS-1", "VIS-4")
async def test_a_tool_sees_what_its_session_sees(house: House, client: WireClient) -> None:
    house.model.script(*[FakeReply(texts=("kept to myself",))] * 2)
    await client.say("main", "the word is marmalade", "run-1")
    await client.say("agent:main:other", "the word is quince", "run-2")
    listed = told(await invoke(client, "sessions_list", "main"))
    assert [row["key"] for row in listed["sessions"]] == ["main"]
    as_other = told(await invoke(client, "sessions_list", "agent:main:other"))
    assert [row["key"] for row in as_other["sessions"]] == ["agent:main:other"]
    own = told(await invoke(client, "sessions_history", "main", sessionKey="current"))
    assert "marmalade" in json.dumps(own["messages"])
    hidden = await invoke(client, "sessions_history", "main", sessionKey="agent:main:other")
    assert (hidden["ok"], hidden["error"]["code"]) == (False, "forbidden")
    assert "tools.sessions.visibility" in hidden["error"]["message"]
    assert "quince" not in json.dumps(hidden)


@pytest.mark.spec("TOOL-7", "VIS-1")
async def test_without_a_session_it_is_the_main_one_of_the_agent(client: WireClient) -> None:
    with pytest.raises(
        RefusedError, match=r"No session found: agent:main:main; create it with sessions\.create"
    ):
        await invoke(client, "sessions_list")
    await client.call("sessions.create", {"key": "main"})
    assert [row["key"] for row in told(await invoke(client, "sessions_list"))["sessions"]] == ["main"]
    await client.call("sessions.create", {"key": "agent:bob:main"})
    of_bob = await client.call("tools.invoke", {"name": "agents_list", "agentId": "bob"})
    assert told(of_bob)["requester"] == "bob"
    with pytest.raises(RefusedError, match="No session found: agent:main:nobody"):
        await invoke(client, "sessions_list", "agent:main:nobody")


@pytest.mark.spec("TOOL-7", "RPC-2")
async def test_what_cannot_be_called_says_why(client: WireClient) -> None:
    await client.call("sessions.create", {"key": "main"})
    unknown = await invoke(client, "sessions_teleport", "main")
    assert "there is no tool 'sessions_teleport' here" in unknown["error"]["message"]
    missing = await invoke(client, "sessions_history", "main")
    assert "sessionKey" in missing["error"]["message"]
    wrong = await invoke(client, "sessions_list", "main", limit="many")
    assert wrong["error"]["message"].startswith("invalid arguments: limit:")
    with pytest.raises(RefusedError, match="sessions_yield ends a turn"):
        await invoke(client, "sessions_yield", "main")
    with pytest.raises(RefusedError, match="NUL"):
        await invoke(client, "sessions_list", "main", label="a\0b")
    with pytest.raises(RefusedError, match="unexpected property 'tool'"):
        await client.call("tools.invoke", {"name": "sessions_list", "tool": "x"})


@pytest.mark.spec("RPC-3")
async def test_reading_does_not_let_a_client_invoke(gateway: Gateway) -> None:
    async with client_of(gateway, scopes=("operator.read",)) as reader:
        assert (await reader.call("tools.catalog"))["groups"]
        assert (await reader.call("tools.effective", {"sessionKey": "main"}))["groups"]
        with pytest.raises(RefusedError) as refused:
            await invoke(reader, "sessions_list", "main")
        assert refused.value.error["details"]["missingScope"] == "operator.write"


@pytest.mark.spec("RPC-3")
async def test_only_an_admin_invokes_as_an_owner(gateway: Gateway, client: WireClient) -> None:
    await client.call("sessions.create", {"key": "main"})
    async with client_of(gateway, scopes=("operator.write",)) as writer:
        refused = await invoke(writer, "exec", "main", command="echo as-writer")
        assert refused["ok"] is False
        assert "owners only" in refused["error"]["message"]
    done = await invoke(client, "exec", "main", command="echo as-$((40 + 2))")
    assert done["ok"], done
    assert "as-42" in done["output"]["content"][0]["text"]


@pytest.mark.spec("SPAWN-9", "SPAWN-10")
async def test_acting_as_a_helper_gives_no_more_than_the_helper_has(
    gateway: Gateway, client: WireClient
) -> None:
    leaf = "agent:main:subagent:leaf"
    await add_session(
        gateway, leaf, "do it", spawned_by="agent:main:main", spawn_depth=1, subagent_role="leaf"
    )
    shown = await client.call("tools.effective", {"sessionKey": leaf})
    names = {tool["id"] for group in shown["groups"] for tool in group["tools"]}
    assert "read" in names
    assert not {"sessions_list", "sessions_spawn", "sessions_send", "subagents", "session_status"} & names
    refused = await invoke(client, "sessions_spawn", leaf, task="more of me")
    assert refused["ok"] is False
    assert "there is no tool 'sessions_spawn' here" in refused["error"]["message"]


# -- what a tool changes -----------------------------------------------------------------------


class WritingTool:
    """Stands in for a tool that changes the store: its answer is made in the commit."""

    spec = ToolSpec("agents_list", "writes", {"type": "object"})

    def __init__(self) -> None:
        self.contexts: list[ToolContext] = []
        self.kept: list[str] = []

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        self.contexts.append(context)

        def effect(tx: Transaction) -> ToolOutcome:
            tx.run(
                "UPDATE sessions SET label = ? WHERE session_key = ?",
                (arguments["label"], context.session_key),
            )
            if arguments.get("break"):
                raise ZeroDivisionError
            refused = bool(arguments.get("refuse"))
            answer = {"status": "forbidden", "error": "not this"} if refused else {"status": "ok"}
            return ToolOutcome((TextBlock(json.dumps(answer)),), is_error=refused, details=answer)

        return ToolOutcome(effect=effect, after=lambda: self.kept.append(arguments["label"]))


async def test_an_effect_is_a_transaction_of_its_own(gateway: Gateway, client: WireClient) -> None:
    tool = WritingTool()
    gateway.services.workers._services.tools._tools["agents_list"] = tool
    await client.call("sessions.create", {"key": "main"})

    async def label() -> object:
        rows = await gateway.services.store._database.read(
            lambda tx: tx.rows("SELECT label FROM sessions WHERE session_key = 'agent:main:main'")
        )
        return rows[0][0]

    assert told(await invoke(client, "agents_list", "main", label="kept")) == {"status": "ok"}
    assert (await label(), tool.kept) == ("kept", ["kept"])
    with pytest.raises(RefusedError):
        await invoke(client, "agents_list", "main", **{"label": "lost", "break": True})
    assert (await label(), tool.kept) == ("kept", ["kept"])
    refused = await invoke(client, "agents_list", "main", label="refused", refuse=True)
    assert refused["error"] == {"code": "forbidden", "message": "not this"}
    assert tool.kept == ["kept"]


async def test_an_idempotency_key_names_the_call_within_its_session(
    gateway: Gateway, client: WireClient
) -> None:
    tool = WritingTool()
    gateway.services.workers._services.tools._tools["agents_list"] = tool
    for key in ("main", "agent:bob:main", "main"):
        await client.call("sessions.create", {"key": key})
        asked = {"name": "agents_list", "args": {"label": "x"}, "sessionKey": key, "idempotencyKey": "once"}
        await client.call("tools.invoke", asked)
    for _ in range(2):
        await client.call(
            "tools.invoke", {"name": "agents_list", "args": {"label": "x"}, "sessionKey": "main"}
        )
    names = [(context.run_id, context.tool_call_id) for context in tool.contexts]
    assert names[0] == names[2]
    assert len(set(names)) == 4
    assert all(run_id.startswith("invoke-") and len(run_id) == 39 for run_id, _ in names)
    assert [context.agent_id for context in tool.contexts] == ["main", "bob", "main", "main", "main"]
    assert all(context.owner for context in tool.contexts)
    assert all(context.session_id and context.workspace for context in tool.contexts)


@pytest.mark.spec("SPAWN-3", "SPAWN-4")
async def test_the_same_key_does_not_spawn_twice(house: House, client: WireClient) -> None:
    house.model.decide = lambda _body: FakeReply(texts=("dug",))
    await client.call("sessions.create", {"key": "main"})

    async def spawn(key: str) -> Json:
        args = {"task": "dig"}
        asked = {"name": "sessions_spawn", "args": args, "sessionKey": "main", "idempotencyKey": key}
        return told(await client.call("tools.invoke", asked))

    first, again, other = await spawn("a"), await spawn("a"), await spawn("b")
    assert first["status"] == "accepted"
    assert (first["runId"], first["childSessionKey"]) == (again["runId"], again["childSessionKey"])
    assert other["childSessionKey"] != first["childSessionKey"]
    for run in (first, other):
        waited = await client.call("agent.wait", {"runId": run["runId"], "timeoutMs": 60_000})
        assert (waited["status"], waited["terminalReply"]["text"]) == ("ok", "dug")
    listed = told(await invoke(client, "sessions_list", "main"))
    children = {first["childSessionKey"], other["childSessionKey"]}
    assert {row["key"] for row in listed["sessions"]} == {"main", *children}
