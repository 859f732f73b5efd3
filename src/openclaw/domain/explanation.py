"""The shape of an explanation: the outcome, the steps that led to it, and the setting it rests on.

A step is one question in the order in which it was asked. Explanations are made from
what the deciding functions themselves return (`explain_routing`, `explain_rules`), so
that they cannot tell another story than the one that holds. Nothing is decided here.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

ExplainKind = Literal["route", "reset", "send", "visibility"]


class Step(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One question and what it gave. `decided` marks the step on which the outcome rests."""

    question: str
    outcome: str
    setting: str | None = None
    decided: bool = False


class Explanation(Struct, frozen=True, rename="camel"):
    """`answer` is the outcome in one or two sentences; `facts` are the same for programs.

    `decided_by` is the setting to look at and `fix` what to do about it, where there is one.
    """

    kind: ExplainKind
    answer: str
    steps: tuple[Step, ...]
    facts: dict[str, Any]
    decided_by: str | None = None
    fix: str | None = None
