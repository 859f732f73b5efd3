"""Settings that a session keeps: levels, usage, queue, sending, activation, the model."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from openclaw.domain.commands import CommandCaller
from openclaw.domain.modelhint import ModelCandidate
from openclaw.domain.policy import SendPolicy, SendRule
from openclaw.domain.queueing import QueueConfig
from openclaw.store.records import UsageRow
from tests.conformance.making import DONE, MAIN, NOON, begin, create, seed
from tests.unit.engine.commands.house import KEY, House

GROUP = seed("discord:group:1", chat_type="group")


@pytest.mark.spec("CMD-10")
@pytest.mark.parametrize(
    ("name", "level", "attribute", "title"),
    [
        ("think", "high", "thinking_level", "Thinking"),
        ("verbose", "full", "verbose_level", "Verbose output"),
        ("reasoning", "stream", "reasoning_level", "Shown reasoning"),
        ("elevated", "ask", "elevated_level", "Elevated tools"),
    ],
)
async def test_a_level_is_set_shown_and_given_back(
    house: House, name: str, level: str, attribute: str, title: str
) -> None:
    assert (await house.ask(f"/{name}")).startswith(f"{title}: default. You can choose ")
    assert await house.ask(f"/{name}: {level.upper()}") == f"{title} set to {level} for this session."
    assert getattr(await house.entry(), attribute) == level
    assert (await house.ask(f"/{name}")).startswith(f"{title}: {level}. ")
    wrong = await house.ask(f"/{name} banana")
    assert wrong.startswith(f"{title} knows no level 'banana'. You can choose ")
    assert wrong.endswith(", default.")
    assert getattr(await house.entry(), attribute) == level
    assert await house.ask(f"/{name} default") == f"{title}: back to the default."
    assert getattr(await house.entry(), attribute) is None


@pytest.mark.spec("CMD-10")
async def test_a_level_that_the_model_does_not_have_is_kept_with_a_word(house: House) -> None:
    await house.ask("/model openai/gpt-5")
    text = await house.ask("/think max")
    assert text == (
        "Thinking set to max for this session. "
        "gpt-5 does not think in steps; the level holds for models that do."
    )
    assert (await house.entry()).thinking_level == "max"
    assert await house.ask("/think off") == "Thinking set to off for this session."


@pytest.mark.spec("CMD-11")
async def test_usage_below_replies(house: House) -> None:
    assert await house.ask("/usage") == "Usage below replies: off. Usage: /usage [off|tokens|full|cost]"
    assert await house.ask("/usage full") == "Usage below replies: full."
    assert (await house.entry()).response_usage == "full"
    assert await house.ask("/usage ON") == "Usage below replies: tokens."
    assert (await house.ask("/usage")).startswith("Usage below replies: tokens.")
    assert await house.ask("/usage maybe") == "Usage: /usage [off|tokens|full|cost]"
    await house.ask("/usage off")
    assert (await house.entry()).response_usage == "off"


@pytest.mark.spec("CMD-11")
async def test_the_cost_so_far(house: House) -> None:
    assert await house.ask("/usage cost") == "This session has not called a model yet."
    first = await begin(house.store, "r1")
    await house.store.finish(first.run, (), DONE, (UsageRow("a", "p", "m", 1000, 20),), now_ms=NOON)
    assert await house.ask("/usage cost") == (
        "This session so far: 1 model calls, 1,000 tokens in, 20 out.\n"
        "Cost: not known, because no price is configured for the model."
    )
    second = await begin(house.store, "r2")
    priced = (UsageRow("b", "p", "m", 5, 5, cost_usd=0.25),)
    await house.store.finish(second.run, (), DONE, priced, now_ms=NOON)
    assert (await house.ask("/usage cost")).endswith("Cost: about $0.2500 (1 calls had no price).")


@pytest.mark.spec("QUE-4", "CMD-10")
async def test_the_queue_of_a_session(house: House) -> None:
    house.settings = replace(house.settings, queue=QueueConfig(mode="followup", cap=7))
    assert await house.ask("/queue") == "Queue: followup, debounce 500 ms, cap 7, drop summarize."
    text = await house.ask("/queue collect debounce:2s drop:old")
    assert text == "Queue for this session: collect, debounce 2000 ms, cap 7, drop old."
    await house.ask("/queue cap:3")
    entry = await house.entry()
    assert (entry.queue_mode, entry.queue_debounce_ms, entry.queue_cap, entry.queue_drop) == (
        "collect", 2000, 3, "old",
    )  # fmt: skip
    assert await house.ask("/queue") == "Queue: collect, debounce 2000 ms, cap 3, drop old."
    assert (await house.ask("/queue banana")).startswith("Not understood: 'banana'.")
    back = await house.ask("/queue default")
    assert back == "Queue: back to the default (followup, debounce 500 ms, cap 7, drop summarize)."
    entry = await house.entry()
    assert (entry.queue_mode, entry.queue_debounce_ms, entry.queue_cap, entry.queue_drop) == (
        None, None, None, None,
    )  # fmt: skip


@pytest.mark.spec("QUE-4")
async def test_the_channel_has_its_own_queue_mode(house: House) -> None:
    house.settings = replace(house.settings, queue=QueueConfig(by_channel={"discord": "collect"}))
    group = replace(GROUP, channel="discord")
    assert (await house.ask("/queue", to=group)).startswith("Queue: collect")
    assert (await house.ask("/queue", to=MAIN)).startswith("Queue: steer")


@pytest.mark.spec("SEND-4", "CMD-8", "CMD-7")
@pytest.mark.parametrize(
    ("word", "stored", "text"),
    [
        ("on", "allow", "Sending is on for this session."),
        ("allow", "allow", "Sending is on for this session."),
        ("off", "deny", "Sending is off for this session."),
        ("DENY", "deny", "Sending is off for this session."),
        ("inherit", None, "Sending follows the configuration again: off."),
        ("default", None, "Sending follows the configuration again: off."),
        ("reset", None, "Sending follows the configuration again: off."),
    ],
)
async def test_send_words(house: House, word: str, stored: str | None, text: str) -> None:
    house.settings = replace(house.settings, send_policy=SendPolicy(rules=(SendRule("deny"),)))
    await create(house.store, MAIN, send_policy="allow" if stored == "deny" else "deny")
    assert await house.ask(f"/send {word}") == text
    assert (await house.entry()).send_policy == stored


@pytest.mark.spec("CMD-8")
@pytest.mark.parametrize("text", ["/send", "/send maybe"])
async def test_send_without_a_known_word_explains_itself(house: House, text: str) -> None:
    usage = "Usage: /send <on|allow, off|deny, inherit|default|reset>. Sending is on now."
    assert await house.ask(text) == usage
    assert (await house.entry()).send_policy is None
    await house.ask("/send off")
    assert (await house.ask(text)).endswith("Sending is off now.")


@pytest.mark.spec("CMD-11")
async def test_activation_is_for_groups(house: House) -> None:
    assert (await house.ask("/activation always")).startswith("This is not a group")
    assert (await house.entry()).group_activation is None
    assert (
        await house.ask("/activation", to=GROUP) == "Activation: default. Usage: /activation [mention|always]"
    )
    assert await house.ask("/activation Always", to=GROUP) == "The agent answers every message in this group."
    entry = await house.entry(GROUP.session_key)
    assert (entry.group_activation, entry.group_activation_needs_system_intro) == ("always", True)
    text = await house.ask("/activation mention", to=GROUP)
    assert text == "The agent answers messages that mention it in this group."
    in_group = CommandCaller(authorised=True, in_group=True)
    assert (await house.ask("/activation", caller=in_group)).startswith("Activation: default")


# -- /model ------------------------------------------------------------------------------------


@pytest.mark.spec("CMD-10", "LIFE-16")
@pytest.mark.parametrize(
    ("word", "provider", "model"),
    [
        ("opus", "anthropic", "claude-opus-4"),
        ("OPUS", "anthropic", "claude-opus-4"),
        ("openai/gpt-5", "openai", "gpt-5"),
        ("2", "openai", "gpt-5"),
        ("#3", "openai", "gpt-5-mini"),
        ("claude-opus-5", "anthropic", "claude-opus-4"),
        ("local/anything", "local", "anything"),
    ],
)
async def test_a_model_is_chosen_by_name_number_or_roughly(
    house: House, word: str, provider: str, model: str
) -> None:
    assert await house.ask(f"/model {word}") == f"Model: {provider}/{model} for this session."
    entry = await house.entry()
    assert (entry.provider_override, entry.model_override) == (provider, model)
    assert (entry.model_override_source, entry.live_model_switch_pending) == ("user", None)


@pytest.mark.spec("CMD-10")
async def test_what_is_no_model_changes_nothing(house: House) -> None:
    assert await house.ask("/model xyz") == "Unknown model 'xyz'. /model list shows what there is."
    no_number = "There is no model 4 in the list; it has 3. /model list shows what there is."
    assert await house.ask("/model 4") == no_number
    assert (await house.ask("/model 0")).startswith("There is no model 0")
    assert (await house.entry()).model_override is None


@pytest.mark.spec("CMD-10")
async def test_the_list_marks_what_is_in_use(house: House) -> None:
    assert await house.ask("/model list") == (
        "Models:\n1. anthropic/claude-opus-4 (opus) - in use\n2. openai/gpt-5\n3. openai/gpt-5-mini\n"
        "Choose with /model and a name or a number."
    )
    house.give(models=lambda: ())
    assert (await house.ask("/model list")).startswith("No models are configured.")
    house.give(models=lambda: tuple(ModelCandidate("p", f"m{number}") for number in range(42)))
    lines = (await house.ask("/model list")).splitlines()
    assert (lines[40], lines[41]) == ("40. p/m39", "and 2 more")


@pytest.mark.spec("CMD-10")
async def test_the_model_status_says_who_chose(house: House) -> None:
    default = "Model: anthropic/claude-opus-4 (the default). /model list shows the others."
    assert await house.ask("/model") == default
    await house.ask("/model openai/gpt-5")
    chosen = "Model: openai/gpt-5 (chosen here). Default: anthropic/claude-opus-4."
    assert await house.ask("/model status") == chosen
    await create(house.store, MAIN, model_override_source="auto")
    assert "(a fallback chose it)" in await house.ask("/model")
    assert await house.ask("/model default") == "Model: back to the default, anthropic/claude-opus-4."
    entry = await house.entry()
    assert (entry.provider_override, entry.model_override, entry.model_override_source) == (None, None, None)


@pytest.mark.spec("CMD-14")
async def test_during_a_run_the_choice_is_stored_at_once_and_used_afterwards(house: House) -> None:
    await begin(house.store, "r1")
    text = await house.ask("/model openai/gpt-5")
    assert text == "Model: openai/gpt-5 for this session. The turn in progress finishes with its own."
    entry = await house.entry()
    assert (entry.model_override, entry.live_model_switch_pending) == ("gpt-5", True)
    run: Any = await house.store.active_run(KEY)
    assert run.run_id == "r1"
    assert (await house.ask("/model default")).endswith("The turn in progress finishes with its own.")
    assert (await house.entry()).live_model_switch_pending is True
