"""The runtime part of the prompt: facts that hold still, and boundaries where they do not (LOOP-2)."""

from __future__ import annotations

import platform
from typing import Any

import pytest

from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:main"
OK = FakeReply(texts=("fine",))


def system(house: House, number: int = -1) -> str:
    first: dict[str, Any] = house.model.requests[number].body["messages"][0]
    assert first["role"] == "system"
    return str(first["content"])


@pytest.mark.spec("LOOP-2")
async def test_the_model_is_told_where_it_runs_at_the_very_end_of_its_prompt(
    house: House, client: WireClient
) -> None:
    workspace = house.home / "state" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "AGENTS.md").write_text("Be kind.")
    house.model.script(OK)
    await client.say(KEY, "hi", "run-1")
    text = system(house)
    assert str(workspace) in text.split("# AGENTS.md")[0]
    assert text.index("Be kind.") < text.index("# Runtime"), "what differs between sessions comes last"
    facts = text[text.index("# Runtime") :].splitlines()
    host = f"{platform.node()} ({platform.system()} {platform.machine()})"
    assert facts == ["# Runtime", "", f"Host: {host}", "Time zone: UTC", "Model: fake/one"]


@pytest.mark.spec("LOOP-2")
async def test_it_stays_the_same_until_the_model_changes_and_that_is_written_down(house: House) -> None:
    house.model.decide = lambda _body: OK
    async with house.gateway() as gateway, client_of(gateway) as client:
        for number in range(3):
            await client.say(KEY, f"message {number}", f"run-{number}")
        assert len({system(house, at) for at in range(3)}) == 1
        await client.say(KEY, "/model fake/two", "cmd-1")
        await client.say(KEY, "and now", "run-3")
        assert system(house) == system(house, 0).replace("fake/one", "fake/two")
        await client.say(KEY, "still", "run-4")
        assert system(house) == system(house, 3)


@pytest.mark.spec("LOOP-2")
async def test_a_group_is_told_its_channel_and_a_direct_session_is_not(house: House) -> None:
    house.config["channels"] = {"pigeon": {"dmPolicy": "open", "groupPolicy": "open"}}
    house.model.decide = lambda _body: OK
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("channels.attach", {"channel": "pigeon"})
        places = ({"kind": "direct", "id": "ann"}, {"kind": "group", "id": "flock"})
        for number, peer in enumerate(places):
            message = {"channel": "pigeon", "peer": peer, "senderId": "ann", "mentioned": True}
            taken = await client.call("channels.inbound", message | {"messageId": str(number), "text": "hi"})
            await client.ended(taken["runId"])
        assert "Channel:" not in system(house, 0), "it may be reached from everywhere"
        assert system(house, 1).endswith("\nChannel: pigeon")


@pytest.mark.spec("LOOP-2")
async def test_a_sandboxed_session_learns_nothing_of_the_machine(house: House) -> None:
    house.config["agents"]["defaults"]["sandbox"] = {"mode": "all"}
    house.model.script(OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(KEY, "hi", "run-1")
        assert "Host:" not in system(house) and "Time zone: UTC" in system(house)
        assert str(house.home) not in system(house)
