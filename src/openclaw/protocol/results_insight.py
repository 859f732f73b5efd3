"""The answers of `explain` and `security.audit`."""

from __future__ import annotations

from openclaw.protocol.results import Answer, Json


class Explained(Answer, frozen=True, kw_only=True):
    """The outcome in words, the steps that led to it, and the same as facts for programs."""

    kind: str
    answer: str
    steps: list[Json]
    facts: Json
    decided_by: str | None = None
    fix: str | None = None


class SecurityAudited(Answer, frozen=True, kw_only=True):
    """`ok` is false when a finding is critical. `counts` has every severity."""

    ok: bool
    findings: list[Json]
    counts: dict[str, int]
    deep: bool
