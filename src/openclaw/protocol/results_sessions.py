"""The answers of methods that work on whole sessions, and of the lists that clients ask for."""

from __future__ import annotations

from typing import Literal

from openclaw.protocol.results import Answer, Json, ResolvedModel


class SessionReset(Answer, frozen=True, kw_only=True):
    ok: bool
    key: str
    entry: Json
    resolved: ResolvedModel


class SessionDeleted(Answer, frozen=True, kw_only=True):
    """`deleted` is false, without an error, when there was no such session."""

    ok: bool
    key: str
    deleted: bool
    archived: list[str]


class SessionRestored(Answer, frozen=True, kw_only=True):
    ok: bool
    key: str
    restored: Literal["reset", "delete"]
    entry: Json


class CompactionNumbers(Answer, frozen=True, kw_only=True):
    summary: str
    tokens_before: int
    tokens_after: int


class SessionCompacted(Answer, frozen=True, kw_only=True):
    """RPC-9. `ok` is false when a summary was asked for and none was made; `reason` says why."""

    ok: bool
    key: str
    compacted: bool
    reason: str | None = None
    result: CompactionNumbers | None = None
    kept: int | None = None
    archived: str | None = None


class SessionAborted(Answer, frozen=True, kw_only=True):
    ok: bool
    aborted_run_id: str | None
    status: Literal["aborted", "no-active-run"]
    cleared: list[str] | None = None


class PreviewItem(Answer, frozen=True, kw_only=True):
    role: str
    text: str


class SessionPreview(Answer, frozen=True, kw_only=True):
    """`key` as it was asked for."""

    key: str
    status: Literal["ok", "empty", "missing"]
    items: list[PreviewItem]


class SessionsPreviewed(Answer, frozen=True, kw_only=True):
    ts: int
    previews: list[SessionPreview]


class SessionMessages(Answer, frozen=True, kw_only=True):
    messages: list[Json]


class UsageAmounts(Answer, frozen=True, kw_only=True):
    """`missingCostEntries` are calls whose price is not known; `totalCost` does not count them."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    total_tokens: int
    total_cost: float
    missing_cost_entries: int


class UsageAggregates(Answer, frozen=True, kw_only=True):
    session_count: int
    by_model: list[Json]
    by_provider: list[Json]
    by_agent: list[Json]
    daily: list[Json]
    model_daily: list[Json]


class SessionsUsage(Answer, frozen=True, kw_only=True):
    updated_at: int
    start_date: str
    end_date: str
    sessions: list[Json]
    totals: UsageAmounts
    aggregates: UsageAggregates


class SearchHits(Answer, frozen=True, kw_only=True):
    count: int
    hits: list[Json]


class SessionsTree(Answer, frozen=True, kw_only=True):
    """`nodes` are parts of session rows under the same names, oldest first; `spawnedBy`, and without it
    `parentSessionKey`, names the one above. `task` tells how a helper's own task ended: `status` and
    `runtimeMs` are those of the latest run. `hasMore`: helpers were left out."""

    ts: int
    nodes: list[Json]
    has_more: bool


class SessionWindow(Answer, frozen=True, kw_only=True):
    """One conversation between two resets. `reason` is why it began."""

    session_id: str
    reason: str
    started_at: int
    ended_at: int | None = None
    first_message_id: str | None = None


class SessionWindows(Answer, frozen=True, kw_only=True):
    """The current conversation first, then the one before each."""

    key: str
    windows: list[SessionWindow]


class CommandsList(Answer, frozen=True, kw_only=True):
    commands: list[Json]


class AgentIdentity(Answer, frozen=True, kw_only=True):
    agent_id: str
    name: str
    name_source: Literal["config", "default"]
    avatar: str


class TaskSuggestions(Answer, frozen=True, kw_only=True):
    suggestions: list[Json]


class Approval(Answer, frozen=True, kw_only=True):
    """Something that waits for a yes or no; there is none here."""

    id: str
