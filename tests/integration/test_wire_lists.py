"""agents.list, agent.identity.get, models.list, commands.list, and lists of what is not there."""

from __future__ import annotations

import pytest

from openclaw.app import Gateway
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of


@pytest.mark.spec("RPC-3")
async def test_agents_are_complete_enough_to_be_talked_to(house: House) -> None:
    house.config["agents"]["list"][1] |= {"name": "Bob", "model": "fake/two"}
    house.config["models"]["providers"]["fake"]["models"][1]["reasoning"] = True
    async with house.gateway() as gateway, client_of(gateway, scopes=("operator.read",)) as client:
        answer = await client.call("agents.list")
        assert (answer["defaultId"], answer["mainKey"], answer["scope"]) == ("main", "main", "per-sender")
        bob, main = answer["agents"]
        assert (bob["id"], bob["name"], bob["model"]["primary"]) == ("bob", "Bob", "fake/two")
        assert main["model"]["primary"] == "fake/one"
        assert main["workspace"].endswith("workspace") and bob["workspace"].endswith("workspace-bob")
        assert main["thinkingOptions"] == ["off"] and main["thinkingLevels"] == [
            {"id": "off", "label": "off"}
        ]
        assert bob["thinkingOptions"][:3] == ["off", "minimal", "low"] and bob["thinkingDefault"] == "off"
        identity = await client.call("agent.identity.get", {"agentId": "bob"})
        assert identity == {"agentId": "bob", "name": "Bob", "nameSource": "config", "avatar": "B"}
        default = await client.call("agent.identity.get")
        assert default == {"agentId": "main", "name": "Assistant", "nameSource": "default", "avatar": "A"}
        by_key = await client.call("agent.identity.get", {"sessionKey": "agent:bob:main"})
        assert by_key["agentId"] == "bob"
        with pytest.raises(RefusedError, match='unknown agent id "nobody"'):
            await client.call("agent.identity.get", {"agentId": "nobody"})


@pytest.mark.spec("RPC-3")
async def test_models_in_their_views(client: WireClient) -> None:
    everything = (await client.call("models.list", {"view": "all"}))["models"]
    assert [(row["provider"], row["id"]) for row in everything] == [
        ("fake", "one"), ("fake", "two"), ("offline", "offline"),
    ]  # fmt: skip
    assert [row.get("tags") for row in everything] == [["default"], None, None]
    assert everything[0]["contextWindow"] == 32000 and everything[0]["available"] is True
    assert (await client.call("models.list"))["models"] == everything
    for view in ("configured", "provider-config"):
        configured = (await client.call("models.list", {"view": view}))["models"]
        assert [row["provider"] for row in configured] == ["fake", "fake"]
    detailed = await client.call("models.list", {"agentId": "main", "includeDetails": True})
    assert detailed["models"] == everything


@pytest.mark.spec("CMD-13")
async def test_commands_are_those_that_the_caller_may_give(gateway: Gateway, client: WireClient) -> None:
    own = {row["name"]: row for row in (await client.call("commands.list"))["commands"]}
    assert own["think"]["textAliases"] == ["/think", "/thinking", "/t"]
    assert own["help"] == {
        "name": "help", "nativeName": "help", "textAliases": ["/help"], "source": "native",
        "description": own["help"]["description"], "category": "status", "scope": "both",
        "acceptsArgs": False,
    }  # fmt: skip
    assert own["tools"]["args"][0]["choices"][0] == {"value": "compact", "label": "compact"}
    bare = await client.call("commands.list", {"agentId": "main", "scope": "text", "includeArgs": False})
    assert [row["name"] for row in bare["commands"]] == list(own)
    assert not any("args" in row for row in bare["commands"])
    async with client_of(gateway, scopes=("operator.read", "operator.write")) as writer:
        theirs = [row["name"] for row in (await writer.call("commands.list"))["commands"]]
    assert "export-session" in own and "export-session" not in theirs and "help" in theirs


@pytest.mark.spec("RPC-3")
async def test_what_this_gateway_does_not_have_is_an_empty_list(client: WireClient) -> None:
    assert await client.call("taskSuggestions.list", {"agentId": "main"}) == {"suggestions": []}
    for method in ("exec.approval.list", "plugin.approval.list"):
        listed: object = await client.call(method)
        assert listed == []
    offered = client.hello["features"]["methods"]
    assert {"taskSuggestions.list", "exec.approval.list", "chat.startup", "sessions.reset"} <= set(offered)
    assert "tasks.list" not in offered  # runs are there, so an empty list would be a lie
    with pytest.raises(RefusedError, match=r"unknown method: tasks\.list"):
        await client.call("tasks.list")


@pytest.mark.spec("RPC-5")
async def test_a_list_can_leave_out_agents_and_machines(house: House) -> None:
    house.config["agents"]["list"].append({"id": "gone"})
    async with house.gateway() as gateway, client_of(gateway) as client:
        for key in ("agent:main:talk", "agent:gone:talk", "agent:main:hook:1", "agent:main:cron:daily"):
            await client.call("sessions.create", {"key": key})
    house.config["agents"]["list"].pop()
    async with house.gateway() as gateway, client_of(gateway) as client:

        async def keys(**asked: bool) -> set[str]:
            answer = await client.call("sessions.list", asked)
            assert answer["totalCount"] == answer["count"] == len(answer["sessions"])
            return {row["key"] for row in answer["sessions"]}

        everything = await keys()
        assert len(everything) == 4
        assert await keys(configuredAgentsOnly=True) == everything - {"agent:gone:talk"}
        assert await keys(excludeCron=True) == everything - {"agent:main:cron:daily"}
        assert await keys(excludeSystem=True) == everything - {"agent:main:hook:1"}
        assert await keys(excludeSubagents=True) == everything
