"""Hard spending limits: what a call may cost at most, and whether it may be made.

Amounts in, a decision with its reason out. The rows that hold what was spent and
what is reserved belong to the store; a reservation counts as spent.
"""

from __future__ import annotations

from msgspec import Struct


class BudgetLimits(Struct, frozen=True):
    """US dollars; None is no limit, zero allows nothing that costs."""

    per_session_usd: float | None = None
    per_day_usd: float | None = None
    per_tree_usd: float | None = None

    @property
    def any(self) -> bool:
        return not (self.per_session_usd is None and self.per_day_usd is None and self.per_tree_usd is None)


class Spent(Struct, frozen=True):
    """What is spent or reserved already, by the same three measures."""

    session_usd: float = 0.0
    day_usd: float = 0.0
    tree_usd: float = 0.0


class Affordable(Struct, frozen=True):
    pass


class TooExpensive(Struct, frozen=True):
    """The call must not be made; `message` tells a person why and what to change."""

    message: str


def most_it_can_cost(
    *, input_price: float | None, output_price: float | None, prompt_tokens: int, max_tokens: int
) -> float | None:
    """The upper end of one call in US dollars; None when the model has no price."""
    if input_price is None or output_price is None:
        return None
    return (prompt_tokens * input_price + max_tokens * output_price) / 1_000_000


def decide_spend(
    limits: BudgetLimits, spent: Spent, cost_usd: float | None, model: str
) -> Affordable | TooExpensive:
    """Whether a call that costs at most `cost_usd` fits all limits. Without limits everything fits."""
    if not limits.any:
        return Affordable()
    if cost_usd is None:
        return TooExpensive(
            f"{model} has no price, and a spending limit is set. Give it a price "
            "(models.providers.<provider>.models[].cost), or remove agents.defaults.budget."
        )
    for limit, used, name, what in (
        (limits.per_session_usd, spent.session_usd, "perSessionUsd", "this session"),
        (limits.per_day_usd, spent.day_usd, "perDayUsd", "today"),
        (limits.per_tree_usd, spent.tree_usd, "perTreeUsd", "this session and its helpers"),
    ):
        if limit is not None and cost_usd > 0 and used + cost_usd > limit:
            return TooExpensive(
                f"Spending limit reached for {what}: ${used:.4f} of ${limit:.4f} are used, and the next "
                f"call to {model} may cost up to ${cost_usd:.4f}. "
                f"Raise agents.defaults.budget.{name}, or use a cheaper model."
            )
    return Affordable()
