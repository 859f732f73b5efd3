"""Spending limits: what is allowed to the cent, and what a refusal says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.budget import (
    Affordable,
    BudgetLimits,
    Spent,
    TooExpensive,
    decide_spend,
    most_it_can_cost,
)

USD = st.floats(0, 100)


def test_a_call_costs_at_most_its_prompt_and_every_token_it_may_answer_with() -> None:
    cost = most_it_can_cost(input_price=3.0, output_price=15.0, prompt_tokens=10_000, max_tokens=2_000)
    assert cost == pytest.approx(0.03 + 0.03)


@pytest.mark.parametrize(("price_in", "price_out"), [(None, 1.0), (1.0, None), (None, None)])
def test_a_missing_price_is_not_free(price_in: float | None, price_out: float | None) -> None:
    assert (
        most_it_can_cost(input_price=price_in, output_price=price_out, prompt_tokens=1, max_tokens=1) is None
    )


def test_without_limits_everything_goes_even_without_a_price() -> None:
    assert decide_spend(BudgetLimits(), Spent(1e9, 1e9, 1e9), None, "a/b") == Affordable()
    assert not BudgetLimits().any


def test_without_a_price_nothing_goes_under_a_limit() -> None:
    refused = decide_spend(BudgetLimits(per_day_usd=1.0), Spent(), None, "local/big")
    assert isinstance(refused, TooExpensive)
    assert "local/big has no price" in refused.message
    assert "cost" in refused.message


@pytest.mark.parametrize(
    ("limits", "spent", "setting"),
    [
        (BudgetLimits(per_session_usd=1.0), Spent(session_usd=0.75, day_usd=9, tree_usd=9), "perSessionUsd"),
        (BudgetLimits(per_day_usd=1.0), Spent(session_usd=9, day_usd=0.75, tree_usd=9), "perDayUsd"),
        (BudgetLimits(per_tree_usd=1.0), Spent(session_usd=9, day_usd=9, tree_usd=0.75), "perTreeUsd"),
    ],
)
def test_each_limit_holds_exactly(limits: BudgetLimits, spent: Spent, setting: str) -> None:
    assert limits.any
    assert decide_spend(limits, spent, 0.25, "a/b") == Affordable()
    refused = decide_spend(limits, spent, 0.2501, "a/b")
    assert isinstance(refused, TooExpensive)
    assert f"agents.defaults.budget.{setting}" in refused.message
    assert "$0.7500 of $1.0000" in refused.message
    assert "up to $0.2501" in refused.message


def test_what_is_free_goes_even_when_the_limit_is_reached() -> None:
    assert decide_spend(BudgetLimits(per_day_usd=0.0), Spent(day_usd=5.0), 0.0, "a/b") == Affordable()
    assert isinstance(decide_spend(BudgetLimits(per_day_usd=0.0), Spent(), 0.0001, "a/b"), TooExpensive)


@settings(max_examples=200, deadline=None)
@given(USD, USD, USD)
def test_more_is_never_allowed_where_less_was_refused(limit: float, spent: float, cost: float) -> None:
    limits = BudgetLimits(per_session_usd=limit)
    if isinstance(decide_spend(limits, Spent(spent), cost, "a/b"), TooExpensive):
        assert isinstance(decide_spend(limits, Spent(spent + 1), cost, "a/b"), TooExpensive)
        assert isinstance(decide_spend(limits, Spent(spent), cost + 1, "a/b"), TooExpensive)
