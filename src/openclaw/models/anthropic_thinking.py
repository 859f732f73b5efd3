"""How much a Claude model thinks: our levels as its request fields. Pure; knows versions, not requests.

From version 4.6 on a model decides by itself how long to think and takes an
effort; before it, from 3.7 on, it takes a number of tokens. Newer versions refuse
the old form and the oldest do not know the new one, so the name decides.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

_VERSION = re.compile(r"claude-(?:[a-z]{1,16}-)?([0-9]{1,2})(?:[.-]([0-9]{1,2}))?(?![0-9])")
_FIRST_ADAPTIVE = (4, 6)
_FIRST_WITH_XHIGH = (4, 7)
_FIRST_BUDGETED = (3, 7)
# These think unless they are told how little, and some of them refuse to be told not at all.
_FIRST_ON_BY_DEFAULT = (5, 0)

# What a provider accepts at least, and what the answer keeps at least.
MIN_BUDGET_TOKENS = 1024
_BUDGETS = {
    "minimal": 1024,
    "low": 4096,
    "medium": 10_240,
    "high": 20_480,
    "xhigh": 32_768,
    "max": 65_536,
    "adaptive": 10_240,
}
_EFFORTS = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
# Without this the newest models keep their thoughts to themselves, and people see nothing for minutes.
_DISPLAY = "summarized"


class Thinking(Struct, frozen=True):
    """Request fields. `budgeted`: the old form, whose tool loops must open with thinking."""

    fields: dict[str, Any]
    budgeted: bool = False


SILENT = Thinking({})


def claude_version(model: str) -> tuple[int, int] | None:
    """The version in a model's name: `claude-sonnet-4-5-20250929` is (4, 5). None when it has none."""
    found = _VERSION.search(model.lower()[:256])
    return None if found is None else (int(found.group(1)), int(found.group(2) or 0))


def thinking_fields(level: str | None, model: str, max_tokens: int, *, reasoning: bool) -> Thinking:
    """The fields for a level; none where nothing was asked or the model cannot think.

    `reasoning` is what the configuration says; a version that is known decides by itself.
    """
    if level is None:
        return SILENT
    version = claude_version(model)
    if version is None:
        if not reasoning:
            return SILENT
        # A Claude without a number is a preview of the newest; servers with other models follow the old form.
        version = _FIRST_WITH_XHIGH if "claude" in model.lower() else _FIRST_BUDGETED
    if version >= _FIRST_ADAPTIVE:
        return _adaptive(level, version)
    return _budgeted(level, max_tokens) if version >= _FIRST_BUDGETED else SILENT


def _adaptive(level: str, version: tuple[int, int]) -> Thinking:
    if level == "off":
        on_anyway = version >= _FIRST_ON_BY_DEFAULT
        return Thinking({"output_config": {"effort": "low"}}) if on_anyway else SILENT
    fields: dict[str, Any] = {"thinking": {"type": "adaptive", "display": _DISPLAY}}
    effort = _EFFORTS.get(level)
    if effort == "xhigh" and version < _FIRST_WITH_XHIGH:
        effort = "high"
    if effort is not None:
        fields["output_config"] = {"effort": effort}
    return Thinking(fields)


def _budgeted(level: str, max_tokens: int) -> Thinking:
    # Thoughts count as output: a quarter of it stays for the answer.
    budget = min(_BUDGETS.get(level, 0), max_tokens - max(MIN_BUDGET_TOKENS, max_tokens // 4))
    if budget < MIN_BUDGET_TOKENS:
        return SILENT
    return Thinking({"thinking": {"type": "enabled", "budget_tokens": budget}}, budgeted=True)
