"""/subagents: the sub-agents of a session, listed, looked at, written to."""

from __future__ import annotations

import pytest

from openclaw.domain.transcript import AssistantMessage, TextBlock, encode
from openclaw.engine.commands.ports import ChildMessage, SpawnRequest
from openclaw.errors import InvalidRequest
from openclaw.store.records import EntryDraft
from openclaw.store.runs import RunEnd
from tests.conformance.making import DONE, NOON, begin, create, seed
from tests.unit.engine.commands.house import KEY, House

POET, COOK, IDLE = seed("subagent:aa11"), seed("subagent:bb22"), seed("subagent:aa33")


async def staff(house: House) -> None:
    """A poet who is done, a cook at work, and one who never started."""
    await create(house.store, POET, spawned_by=KEY, label="poet")
    done = await begin(house.store, "run-poet", "write a poem", to=POET)
    reply = AssistantMessage((TextBlock("Roses\nare   red " + "x" * 500),), NOON)
    draft = EntryDraft("message", encode(reply), "assistant", run_id="run-poet", text="Roses")
    end = RunEnd("ok", "stop", input_tokens=50, output_tokens=9, provider="p", model="m")
    await house.store.finish(done.run, (draft,), end, now_ms=NOON)
    await create(house.store, COOK, spawned_by=KEY)
    await begin(house.store, "run-cook", "cook", to=COOK, at=NOON - 90_000)
    await create(house.store, IDLE, spawned_by=KEY)


@pytest.mark.spec("CMD-11")
async def test_the_list_has_active_ones_first_then_the_newest(house: House) -> None:
    for text in ("/subagents", "/subagents list"):
        assert await house.ask(text) == "This session has no sub-agents."
    await staff(house)
    assert await house.ask("/subagents") == (
        "Sub-agents: 1 active of 3\n1. agent:main:subagent:bb22 - running for 1 min 30 s\n"
        "2. agent:main:subagent:aa33 - not started\n3. poet - done"
    )
    assert await house.ask("/subagents list", to=seed("other")) == "This session has no sub-agents."


@pytest.mark.spec("CMD-11")
async def test_a_long_list_is_cut(house: House) -> None:
    for number in range(32):
        await create(house.store, seed(f"subagent:{number:04}"), spawned_by=KEY)
    lines = (await house.ask("/subagents list")).splitlines()
    assert (lines[1], lines[-2], lines[-1]) == (
        "1. agent:main:subagent:0031 - not started",
        "30. agent:main:subagent:0002 - not started",
        "and 2 more",
    )


@pytest.mark.spec("CMD-11")
@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("1", COOK),
        ("#3", POET),
        ("last", IDLE),
        ("POET", POET),
        ("po", POET),
        ("agent:main:subagent:bb22", COOK),
        ("bb22", COOK),
        ("bb", COOK),
        ("run-cook", COOK),
        ("run-p", POET),
        ("aa11", POET),
    ],
)
async def test_a_sub_agent_is_found_by_number_name_key_or_beginning(
    house: House, target: str, found: object
) -> None:
    await staff(house)
    text = await house.ask(f"/subagents info {target}")
    assert f"Session: {getattr(found, 'session_key', '')}" in text.splitlines()


@pytest.mark.spec("CMD-11")
@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("aa", "'aa' fits 2 sub-agents; use a number of the list."),
        ("4", "There is no sub-agent 4; the list has 3."),
        ("0", "There is no sub-agent 0; the list has 3."),
        ("baker", "No sub-agent is called 'baker'; /subagents list shows them."),
        ("", "Which sub-agent? Usage: /kill <target>"),
    ],
)
async def test_an_unclear_target_is_refused(house: House, target: str, text: str) -> None:
    await staff(house)
    assert await house.ask(f"/subagents info {target}") == text
    assert await house.ask(f"/kill {target}") == text


@pytest.mark.spec("CMD-11")
async def test_without_sub_agents_no_target_is_found(house: House) -> None:
    assert await house.ask("/kill 1") == "This session has no sub-agents."
    assert await house.ask("/kill all") == "Nothing was running."


@pytest.mark.spec("CMD-11")
async def test_info_and_log(house: House) -> None:
    await staff(house)
    assert await house.ask("/subagents info poet") == (
        "poet\nSession: agent:main:subagent:aa11\nState: done\nTask: write a poem\nModel: p/m\n"
        "Tokens of the last turn: 50 in, 9 out"
    )
    idle = await house.ask("/subagents info aa33")
    assert "Task: not known" in idle and "Model: not called yet" in idle
    log = (await house.ask("/subagents log poet")).splitlines()
    assert log[:2] == ["poet", "user: write a poem"]
    assert log[2].startswith("assistant: Roses are red xxx")
    assert len(log[2]) == len("assistant: ") + 400
    assert await house.ask("/subagents log aa33") == "agent:main:subagent:aa33 has said nothing yet."
    assert await house.ask("/subagents dance") == ("Usage: /subagents [list|info|log|kill|send|steer|spawn]")


@pytest.mark.spec("CMD-11")
async def test_commands_inside_a_sub_agent_are_not_in_its_log(house: House) -> None:
    await create(house.store, POET, spawned_by=KEY, label="poet")
    await house.ask("/verbose on", to=POET)
    assert await house.ask("/subagents log poet") == "poet has said nothing yet."


@pytest.mark.spec("CMD-11")
async def test_a_person_writes_to_a_sub_agent(house: House) -> None:
    await staff(house)
    assert await house.ask("/subagents send poet shorter") == (
        "Writing to a sub-agent is not available in this gateway yet."
    )
    told: list[ChildMessage] = []

    async def tell(message: ChildMessage) -> None:
        told.append(message)

    house.give(tell_child=tell)
    assert await house.ask("/subagents send poet shorter  please", "c1") == "poet has your message."
    assert await house.ask("/subagents steer 1 no salt", "c2") == (
        "agent:main:subagent:bb22 starts again with your message."
    )
    assert told == [
        ChildMessage("c1:child", KEY, POET.session_key, "shorter  please", False),
        ChildMessage("c2:child", KEY, COOK.session_key, "no salt", True),
    ]
    assert (await house.ask("/subagents send poet")).startswith("What shall it be told?")
    long = await house.ask(f"/subagents send poet {'x' * 4001}")
    assert long == "The message is longer than 4000 characters; nothing was sent."
    assert await house.ask(f"/subagents send poet {'x' * 4000}") == "poet has your message."
    assert len(told) == 3


@pytest.mark.spec("CMD-11")
async def test_a_refusal_of_the_power_is_the_answer(house: House) -> None:
    await staff(house)

    async def refuse(message: ChildMessage) -> None:
        raise InvalidRequest("not more often than every 2 s")

    house.give(tell_child=refuse)
    assert await house.ask("/subagents steer poet now") == "not more often than every 2 s"


@pytest.mark.spec("CMD-11")
async def test_spawning_from_a_chat(house: House) -> None:
    assert await house.ask("/subagents spawn") == "What shall it do? /subagents spawn <task>"
    assert await house.ask("/subagents spawn a poet") == (
        "Sub-agents cannot be started from a chat yet; this comes with sub-agents."
    )
    asked: list[SpawnRequest] = []

    async def spawn(request: SpawnRequest) -> str:
        asked.append(request)
        return "agent:main:subagent:new"

    house.give(spawn_child=spawn)
    assert await house.ask("/subagents spawn write a poem", "c1") == "Started agent:main:subagent:new"
    assert asked == [SpawnRequest("c1:spawn", KEY, "write a poem")]


@pytest.mark.spec("CMD-11")
async def test_an_ended_run_can_still_be_named(house: House) -> None:
    await create(house.store, POET, spawned_by=KEY)
    active = await begin(house.store, "run-x", to=POET)
    await house.store.finish(active.run, (), DONE, now_ms=NOON)
    assert "State: done" in await house.ask("/subagents info run-x")
