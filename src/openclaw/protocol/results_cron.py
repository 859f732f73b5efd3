"""The answers of cron.*."""

from __future__ import annotations

from openclaw.protocol.results import Answer, Json


class CronList(Answer, frozen=True, kw_only=True):
    jobs: list[Json]


class CronStatus(Answer, frozen=True, kw_only=True):
    enabled: bool
    jobs: int
    next_wake_at_ms: int | None


class CronRemoved(Answer, frozen=True, kw_only=True):
    ok: bool
    removed: bool


class CronRan(Answer, frozen=True, kw_only=True):
    """`ran` is false for a job that was not due, or that still runs."""

    ok: bool
    ran: bool
    reason: str | None = None


class CronRuns(Answer, frozen=True, kw_only=True):
    entries: list[Json]
