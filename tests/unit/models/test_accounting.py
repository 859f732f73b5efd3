"""Tokens and dollars."""

from __future__ import annotations

import pytest

from openclaw.domain.transcript import Cost, Usage
from openclaw.engine.ports import ModelPrice
from openclaw.models.accounting import estimate_tokens, make_usage


def test_cost_is_price_per_million_by_kind_of_token() -> None:
    price = ModelPrice(input=2.0, output=8.0, cache_read=0.5, cache_write=4.0)
    usage = make_usage(
        price, input_tokens=1_000_000, output_tokens=500_000, cache_read=200_000, cache_write=100_000
    )
    assert usage == Usage(
        input=1_000_000,
        output=500_000,
        cache_read=200_000,
        cache_write=100_000,
        total_tokens=1_800_000,
        cost=Cost(input=2.0, output=4.0, cache_read=0.1, cache_write=0.4, total=6.5),
    )


def test_cached_tokens_without_a_price_cost_what_input_costs() -> None:
    counts = {"input_tokens": 0, "output_tokens": 0, "cache_read": 1_000_000, "cache_write": 1_000_000}
    assert make_usage(ModelPrice(input=3.0), **counts).cost == Cost(
        cache_read=3.0, cache_write=3.0, total=6.0
    )
    free = ModelPrice(input=3.0, cache_read=0.0, cache_write=0.0)
    assert make_usage(free, **counts).cost == Cost()
    assert make_usage(ModelPrice(), **counts).cost == Cost()


def test_impossible_counts_are_bounded() -> None:
    usage = make_usage(ModelPrice(), input_tokens=-5, output_tokens=2**80, cache_read=-1)
    assert (usage.input, usage.output, usage.cache_read) == (0, 2**53 - 1, 0)


@pytest.mark.parametrize(("reported", "total"), [(None, 30), (10, 30), (30, 30), (31, 31), (-1, 30)])
def test_the_total_is_at_least_the_sum(reported: int | None, total: int) -> None:
    usage = make_usage(ModelPrice(), input_tokens=10, output_tokens=20, total_tokens=reported)
    assert usage.total_tokens == total


@pytest.mark.parametrize(("chars", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_the_estimate_rounds_up(chars: int, tokens: int) -> None:
    assert estimate_tokens(chars) == tokens
