"""/status and /context: what is known is told, what is not says so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from openclaw.domain.commands import CommandCaller
from openclaw.domain.promptreport import EXPLANATION, InjectedFile, PartSize, PromptReport
from openclaw.engine.commands.status import duration
from openclaw.engine.ports import ModelPrice, ModelTarget
from openclaw.store.runs import RunEnd
from tests.conformance.making import MAIN, NOON, begin, create, queue, seed
from tests.unit.engine.commands.house import KEY, THINKER, TOOLS, House, settings_of

GROUP = seed("discord:group:1", chat_type="group")


@pytest.mark.spec("CMD-2")
@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-5, "0 s"),
        (59_999, "59 s"),
        (60_000, "1 min 0 s"),
        (3_599_000, "59 min 59 s"),
        (3_600_000, "1 h 0 min"),
        (86_399_000, "23 h 59 min"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_lengths_of_time(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text


@pytest.mark.spec("CMD-1", "CMD-2")
async def test_the_card_of_a_new_session_guesses_nothing(house: House) -> None:
    assert (await house.ask("/status")).splitlines() == [
        "OpenClaw 1.2.3, up 1 h 0 min",
        "Agent: main, reachable; idle",
        "Model: anthropic/claude-opus-4 (API key)",
        "Tokens of the last turn: not known in, not known out",
        "Cost of this session: not known, no price is configured",
        "Context: not known of 20,000; compactions: 0",
        "Session: agent:main:main, not started yet",
        "Sub-agents: none",
        "Runtime: direct; think default, verbose default, reasoning default, elevated default",
        "Queue: steer, 0 waiting",
        "WhatsApp: not connected to this gateway",
    ]


async def used_session(house: House) -> None:
    await begin(house.store, "r1", at=NOON - 7_200_000)
    run: Any = await house.store.active_run(KEY)
    end = RunEnd(
        "ok", "stop", input_tokens=4000, output_tokens=120, cache_read=1000, context_tokens=20_000,
        provider="anthropic", model="claude-opus-4",
    )  # fmt: skip
    await house.store.finish(run, (), end, now_ms=NOON - 7_100_000)
    await create(
        house.store, MAIN, compaction_count=2, thinking_level="high", verbose_level="on",
        reasoning_level="off", elevated_level="ask", queue_mode="collect", estimated_cost_usd=0.1234,
    )  # fmt: skip


@pytest.mark.spec("CMD-1", "CMD-2")
async def test_the_card_of_a_used_session_has_every_line(house: House) -> None:
    await used_session(house)
    for name in ("a", "b"):
        await create(house.store, seed(f"subagent:{name}"), spawned_by=KEY)
    await begin(house.store, "r2", to=seed("subagent:b"))
    await queue(house.store, "w1")

    house.give(
        channel_lines=lambda _now_ms: ("WhatsApp (default): running, credentials refreshed 5 min 0 s ago",)
    )
    assert (await house.ask("/status")).splitlines()[1:] == [
        "Agent: main, reachable; idle",
        "Model: anthropic/claude-opus-4 (API key)",
        "Tokens of the last turn: 4,000 in, 120 out",
        "Cost of this session: $0.1234",
        "Context: 5,000/20,000 (25 %); compactions: 2",
        "Session: agent:main:main, started 2 h 0 min ago, 1 messages",
        "Sub-agents: 1 active of 2",
        "Runtime: direct; think high, verbose on, reasoning off, elevated ask",
        "Queue: collect, 1 waiting",
        "WhatsApp (default): running, credentials refreshed 5 min 0 s ago",
    ]


@pytest.mark.spec("CMD-2", "ENT-10")
async def test_numbers_that_are_not_fresh_are_not_shown(house: House) -> None:
    await used_session(house)
    await create(house.store, MAIN, total_tokens_fresh=False)
    assert "Context: not known of 20,000; compactions: 2" in await house.ask("/status")


@pytest.mark.spec("CMD-2")
async def test_what_it_is_doing_right_now(house: House) -> None:
    await begin(house.store, "r1", at=NOON - 65_000)
    assert "reachable; working for 1 min 5 s" in await house.ask("/status")
    await house.ask("/stop")
    assert "reachable; last run was stopped" in await house.ask("/status")


@pytest.mark.spec("CMD-2")
async def test_groups_show_when_the_agent_answers(house: House) -> None:
    assert "Answers in this group: as configured" in await house.ask("/status", to=GROUP)
    await house.ask("/activation always", to=GROUP)
    assert "Answers in this group: always" in await house.ask("/status", to=GROUP)
    friend = CommandCaller(authorised=True, in_group=True)
    assert "Answers in this group: as configured" in await house.ask("/status", caller=friend)
    assert "Answers in this group" not in await house.ask("/status")


@pytest.mark.spec("CMD-2", "CMD-10")
async def test_price_key_sandbox_and_the_agents_own_level(house: House) -> None:
    target = ModelTarget("p", "m", "scripted", context_window=1000, price=ModelPrice(input=1.0, output=2.0))
    main = replace(
        settings_of().agents["main"],
        choose_models=lambda _entry, _asked: (target,),
        thinking_default="low",
        sandboxed=True,
    )
    house.settings = settings_of(agents={"main": main})
    text = await house.ask("/status")
    assert "Model: p/m (no key)" in text
    assert "Cost of this session: $0.0000" in text
    assert "Runtime: sandboxed; think low, verbose default" in text
    assert THINKER.api_key not in text.split()


# -- /context ----------------------------------------------------------------------------------


@pytest.mark.spec("CMD-4")
@pytest.mark.parametrize("text", ["/context", "/context banana"])
async def test_context_alone_explains_itself(house: House, text: str) -> None:
    assert await house.ask(text) == EXPLANATION


@pytest.mark.spec("CMD-3", "CMD-4")
async def test_before_a_run_the_context_is_estimated(house: House) -> None:
    lines = (await house.ask("/context detail")).splitlines()
    assert lines[0] == "Context (estimated; no run has measured it yet)"
    assert lines[1].startswith("System prompt: ")
    assert "Session: tokens not known yet" in lines
    sizes = [len(msgspec.json.encode(tool)) for tool in TOOLS]
    assert f"Tool schemas: 2, {sum(sizes):,} chars (~{-(-sum(sizes) // 4):,} tokens)" in lines
    assert lines[-2].startswith("- sessions_list: ") or lines[-2].startswith("- session_status: ")


@pytest.mark.spec("CMD-3", "CMD-4")
async def test_the_report_of_the_last_run_comes_first(house: House) -> None:
    await used_session(house)
    report = PromptReport(
        system_chars=400, files=(InjectedFile("SOUL.md", 9, 5),), tools=(PartSize("exec", 80),)
    )
    asked: list[object] = []

    async def measure(session: object, agent: object) -> PromptReport:
        asked.append(session)
        return replace(report, system_chars=800, source="estimate")

    house.give(prompt_report=measure)
    assert "System prompt: 800 chars (~200 tokens)" in await house.ask("/context list")
    assert len(asked) == 1
    await create(house.store, MAIN, system_prompt_report=msgspec.to_builtins(report))
    shown = await house.ask("/context LIST")
    assert shown.splitlines()[:2] == [
        "Context (measured by the last run)",
        "System prompt: 400 chars (~100 tokens)",
    ]
    assert "- SOUL.md: TRUNCATED" in shown
    assert "Session: 5,000 of 20,000 tokens (25 %)" in shown
    machine = msgspec.json.decode(await house.ask("/context json"))
    assert (machine["sessionTokens"], machine["contextTokens"], machine["source"]) == (5000, 20_000, "run")
    assert len(asked) == 1
    await create(house.store, MAIN, total_tokens_fresh=False)
    assert "Session: tokens not known yet" in await house.ask("/context list")
