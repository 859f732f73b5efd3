"""What clients of the wire see of a turn besides its reply, and whose commands leave the sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.domain.commands import CommandCaller
from openclaw.engine.turns import Incoming
from openclaw.protocol.events import THINKING_EVENTS
from openclaw.store.records import SessionSeed, UserInput
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:main"
THOUGHT = "two and two"
REPLY = FakeReply(thinking=(THOUGHT,), texts=("four",), usage={"prompt_tokens": 900, "completion_tokens": 12})


def thoughts(client: WireClient, run_id: str) -> list[str]:
    payloads = [event["payload"] for event in client.of_run(run_id) if event["event"] == "agent"]
    return [one["data"]["text"] for one in payloads if one["stream"] == "thinking"]


async def told(client: WireClient, text: str, run_id: str) -> str:
    final = await client.say(KEY, text, run_id)
    answer: str = final["message"]["content"][0]["text"]
    return answer


@pytest.mark.spec("CMD-10")
async def test_reasoning_decides_what_clients_get_of_the_thinking(house: House) -> None:
    async with house.gateway() as gateway, client_of(gateway, caps=[THINKING_EVENTS]) as client:
        house.model.script(REPLY, REPLY, REPLY, REPLY)
        plain = await client.say(KEY, "2 + 2", "run-1")
        assert thoughts(client, "run-1") == [THOUGHT], "nobody chose, and this client asks for it"
        assert plain["message"]["content"] == [{"type": "text", "text": "four"}]
        assert "on" in await told(client, "/reasoning on", "cmd-1")
        shown = await client.say(KEY, "2 + 2", "run-2")
        assert shown["message"]["content"] == [
            {"type": "thinking", "thinking": THOUGHT},
            {"type": "text", "text": "four"},
        ]
        hidden = await client.say(KEY, "/reasoning off 2 + 2", "run-3")
        assert thoughts(client, "run-3") == []
        assert hidden["message"]["content"] == [{"type": "text", "text": "four"}]
        await told(client, "/reasoning stream", "cmd-2")
        await client.say(KEY, "2 + 2", "run-4")
        assert thoughts(client, "run-4") == [THOUGHT]


@pytest.mark.spec("CMD-11")
async def test_the_usage_line_stands_in_the_final_and_nowhere_else(house: House, client: WireClient) -> None:
    call = FakeReply(calls=(FakeCall("list", ('{"path": "."}',)),), usage={"prompt_tokens": 800})
    house.model.script(REPLY, call, REPLY, REPLY)
    assert await told(client, "2 + 2", "run-1") == "four"
    assert await told(client, "/usage tokens", "cmd-1") == "Usage below replies: tokens."
    assert await told(client, "look, then 2 + 2", "run-2") == "four\n\n[usage] 1,700 tokens in, 12 out"
    history = await client.call("chat.history", {"sessionKey": KEY})
    assert "[usage]" not in str(history["messages"])
    await told(client, "/usage off", "cmd-2")
    assert await told(client, "2 + 2", "run-3") == "four"
    assert "[usage]" not in str(house.model.requests[-1].body["messages"])
    spent = await told(client, "/usage cost", "cmd-3")
    assert "4 model calls" in spent and "Cost: about $" in spent


@pytest.mark.spec("CMD-11")
async def test_an_aborted_or_silent_turn_has_no_usage_line(house: House, client: WireClient) -> None:
    await told(client, "/usage full", "cmd-1")
    house.model.script(FakeReply(texts=("NO_REPLY",), usage={"prompt_tokens": 5}))
    assert await told(client, "note it", "run-1") == ""


@pytest.mark.spec("CMD-11", "CMD-13")
async def test_config_show_masks_secrets_and_is_for_owners(house: House) -> None:
    house.config["commands"] = {"config": True}
    house.model.script(FakeReply(texts=("what?",)))
    async with house.gateway() as gateway, client_of(gateway) as client:
        whole = await told(client, "/config show gateway", "cmd-1")
        assert '"auth"' in whole and "test-token" not in whole
        part = await told(client, "/config show models.providers.fake", "cmd-2")
        assert '"baseUrl"' in part and "sk-fake" not in part
        assert await told(client, "/config show agents.list[1].id", "cmd-3") == '"bob"'
        assert "nothing at" in await told(client, "/config show agents.list[9]", "cmd-4")
        assert "nothing at" in await told(client, "/config show no.such", "cmd-5")
        friend = CommandCaller(authorised=True, sender="telegram:42", channel="telegram")
        body = UserInput("/config show", gateway.services.clock.now_ms())
        receipt = await gateway.services.turns.accept(
            Incoming("run-1", SessionSeed(KEY, "main"), "channel", "42", body, caller=friend)
        )
        assert receipt.finished and house.model.requests == []


# -- elevated --------------------------------------------------------------------------------------

WHERE = FakeReply(calls=(FakeCall("exec", ('{"command": "echo $HOME; pwd"}',)),))
DONE = FakeReply(texts=("done",))


async def exec_result(house: House, gateway: Any, principal: str, text: str, run_id: str) -> str:
    """What the model was told of its command in a turn of this person."""
    house.model.script(WHERE, DONE)
    caller = CommandCaller(authorised=True, owner=principal == "operator", sender=principal)
    body = UserInput(text, gateway.services.clock.now_ms())
    seed = SessionSeed(KEY, "main")
    await gateway.services.turns.accept(Incoming(run_id, seed, "channel", principal, body, caller=caller))
    await gateway.services.turns.wait(run_id, 60)
    messages = house.model.requests[-1].body["messages"]
    return next(str(one["content"]) for one in reversed(messages) if one["role"] == "tool")


@pytest.mark.spec("CMD-10")
async def test_elevated_lets_an_owners_commands_out_of_the_sandbox(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def missing(self: Any) -> str:
        return "no sandbox backend is installed"

    monkeypatch.setattr("openclaw.engine.tools.workspace.bubblewrap.Bubblewrap.problem", missing)
    house.config["agents"]["defaults"]["sandbox"] = {"mode": "all", "workspaceAccess": "rw"}
    workspace = house.home / "state" / "workspace"
    workspace.mkdir(parents=True)
    async with house.gateway() as gateway, client_of(gateway) as client:
        assert "needs a sandbox" in await exec_result(house, gateway, "operator", "where?", "run-1")
        once = await exec_result(house, gateway, "operator", "/elevated on where?", "run-2")
        assert str(workspace) in once, "for one message"
        assert "needs a sandbox" in await exec_result(house, gateway, "operator", "where?", "run-3")
        await told(client, "/elevated ask", "cmd-1")
        assert "needs a sandbox" in await exec_result(house, gateway, "operator", "where?", "run-4")
        await told(client, "/elevated full", "cmd-2")
        assert str(workspace) in await exec_result(house, gateway, "operator", "where?", "run-5")
        stranger = await exec_result(house, gateway, "telegram:42", "where?", "run-6")
        assert "needs a sandbox" in stranger, "what an owner switched on gives nothing to others"
        await told(client, "/elevated off", "cmd-3")
        assert "needs a sandbox" in await exec_result(house, gateway, "operator", "where?", "run-7")
