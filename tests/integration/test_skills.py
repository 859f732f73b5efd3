"""Skills in the prompt of a real turn: listed, stable, a boundary when they change, and read (LOOP-2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

KEY = "agent:main:main"
OK = FakeReply(texts=("fine",))


def system(house: House, number: int = -1) -> str:
    first: dict[str, Any] = house.model.requests[number].body["messages"][0]
    assert first["role"] == "system"
    return str(first["content"])


def put(house: House, folder: str, description: str, body: str = "Warm the pot.") -> None:
    path = house.home / "state" / "workspace" / "skills" / folder / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: {folder}\ndescription: {description}\n---\n{body}\n", encoding="utf-8")


async def answer(client: WireClient, text: str, run_id: str) -> str:
    return str((await client.say(KEY, text, run_id))["message"]["content"][0]["text"])


@pytest.mark.spec("LOOP-2")
async def test_the_list_stands_before_what_differs_and_stays_until_a_skill_changes(house: House) -> None:
    clock = MovableClock()
    house.model.decide = lambda _body: OK
    put(house, "tea", "Make good tea")
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        for number in range(2):
            await client.say(KEY, "hello", f"a{number}")
            clock.move(2)
        assert system(house, 0) == system(house, 1)
        text = system(house)
        assert "- tea: Make good tea (skills/tea/SKILL.md)" in text.splitlines()
        assert "with the `read` tool" in text.replace("\n", " ")
        assert text.index("# Skills") < text.index("# Runtime")
        put(house, "brew", "Brew coffee")
        await client.say(KEY, "hello", "b")
        assert "- brew: Brew coffee (skills/brew/SKILL.md)\n- tea: " in system(house)
        row = await gateway.services.store.session(KEY)
        assert row is not None
        kept = await gateway.services.store.context(row.window_no)
        marks = [entry for entry in kept if entry.type == "custom"]
        assert [(json.loads(mark.body)["data"], mark.run_id) for mark in marks] == [({"kind": "prompt"}, "b")]
        assert "Skills: 2," in await answer(client, "/context list", "c")
        detail = await answer(client, "/context detail", "d")
        assert "Skills, the largest first:\n- brew: " in detail


@pytest.mark.spec("LOOP-2")
async def test_the_model_reads_the_file_that_the_list_names(house: House) -> None:
    put(house, "tea", "Make good tea", body="Warm the pot first.")
    call = FakeCall("read", ('{"path": "skills/tea/SKILL.md"}',))
    house.model.script(FakeReply(calls=(call,)), OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.say(KEY, "tea please", "a")
    results = [one for one in house.model.requests[-1].body["messages"] if one["role"] == "tool"]
    assert "Warm the pot first." in str(results)
    assert "Warm the pot first." not in system(house)
