"""Thinking levels on the Anthropic wire: which form a model takes, and how much."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.models.anthropic_thinking import MIN_BUDGET_TOKENS, claude_version, thinking_fields

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max")


def fields(level: str | None, model: str, max_tokens: int = 200_000, *, reasoning: bool = False) -> Any:
    return thinking_fields(level, model, max_tokens, reasoning=reasoning).fields


def adaptive(effort: str | None) -> Any:
    thinking = {"thinking": {"type": "adaptive", "display": "summarized"}}
    return thinking if effort is None else {**thinking, "output_config": {"effort": effort}}


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("claude-opus-5-5", (5, 5)),
        ("claude-sonnet-5", (5, 0)),
        ("claude-fable-5-1", (5, 1)),
        ("claude-sonnet-4-5-20250929", (4, 5)),
        ("claude-opus-4-20250514", (4, 0)),
        ("claude-3-7-sonnet-20250219", (3, 7)),
        ("claude-3-opus-20240229", (3, 0)),
        ("anthropic/claude-opus-4.6", (4, 6)),
        ("anthropic.claude-opus-4-6-v1", (4, 6)),
        ("Claude-Haiku-4-5", (4, 5)),
        ("claude-mythos-preview", None),
        ("claude", None),
        ("kimi-k2", None),
        ("", None),
    ],
)
def test_the_version_in_a_name(name: str, version: tuple[int, int] | None) -> None:
    assert claude_version(name) == version


@pytest.mark.parametrize(
    ("level", "effort"),
    [
        ("minimal", "low"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("xhigh", "xhigh"),
        ("max", "max"),
        ("adaptive", None),
        ("unheard of", None),
    ],
)
def test_newer_models_take_an_effort(level: str, effort: str | None) -> None:
    for model in ("claude-opus-4-7", "claude-opus-5-5", "claude-sonnet-5"):
        assert fields(level, model, max_tokens=2) == adaptive(effort)
    wanted = adaptive("high" if effort == "xhigh" else effort)
    assert fields(level, "claude-sonnet-4-6") == wanted


def test_off_is_nothing_where_thinking_is_off_anyway_and_little_where_it_is_not() -> None:
    assert fields("off", "claude-opus-4-7") == {}
    assert fields("off", "claude-haiku-4-5") == {}
    # Some of these refuse to be switched off; all of them accept a low effort.
    assert fields("off", "claude-sonnet-5") == {"output_config": {"effort": "low"}}
    assert fields("off", "claude-opus-5-5") == {"output_config": {"effort": "low"}}


@pytest.mark.parametrize(
    ("level", "budget"),
    [
        ("minimal", 1024),
        ("low", 4096),
        ("medium", 10_240),
        ("high", 20_480),
        ("xhigh", 32_768),
        ("max", 65_536),
        ("adaptive", 10_240),
    ],
)
def test_older_models_take_a_number_of_tokens(level: str, budget: int) -> None:
    wanted = {"thinking": {"type": "enabled", "budget_tokens": budget}}
    for model in ("claude-sonnet-4-5-20250929", "claude-3-7-sonnet-20250219", "claude-opus-4-20250514"):
        asked = thinking_fields(level, model, 200_000, reasoning=False)
        assert asked.fields == wanted
        assert asked.budgeted
    assert not thinking_fields(level, "claude-opus-5", 200_000, reasoning=True).budgeted


def test_a_small_limit_leaves_a_quarter_for_the_answer() -> None:
    def budget(max_tokens: int) -> Any:
        return fields("max", "claude-haiku-4-5", max_tokens)["thinking"]["budget_tokens"]

    assert budget(8192) == 6144
    assert budget(2048) == 1024
    assert fields("max", "claude-haiku-4-5", 2047) == {}
    assert fields("minimal", "claude-haiku-4-5", 2048)["thinking"]["budget_tokens"] == 1024
    assert fields("unheard of", "claude-haiku-4-5") == {}


def test_what_cannot_think_is_not_asked_to() -> None:
    assert fields("high", "claude-3-opus-20240229", reasoning=True) == {}
    assert fields("high", "kimi-k2") == {}
    assert fields(None, "claude-opus-5-5") == {}
    # Configured to reason, and without a version of its own.
    assert fields("high", "kimi-k2", reasoning=True)["thinking"]["type"] == "enabled"
    assert fields("xhigh", "claude-mythos-preview", reasoning=True) == adaptive("xhigh")
    assert fields("xhigh", "claude-mythos-preview") == {}


@settings(max_examples=200, deadline=None)
@given(level=st.sampled_from(LEVELS), max_tokens=st.integers(1, 200_000))
def test_a_budget_is_always_one_that_the_provider_accepts(level: str, max_tokens: int) -> None:
    thinking = fields(level, "claude-sonnet-4-5", max_tokens).get("thinking")
    if thinking is not None:
        assert MIN_BUDGET_TOKENS <= thinking["budget_tokens"] < max_tokens
