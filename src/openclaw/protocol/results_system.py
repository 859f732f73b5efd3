"""The answers of methods about the gateway itself."""

from __future__ import annotations

from openclaw.protocol.results import Answer, Json


class PresenceEntry(Answer, frozen=True, kw_only=True):
    """`system-presence` answers with a list of these; the gateway's own is the first."""

    host: str
    version: str
    platform: str
    mode: str
    reason: str
    text: str
    ts: int
    ip: str | None = None
    instance_id: str | None = None
    device_id: str | None = None
    roles: list[str] | None = None
    scopes: list[str] | None = None


class EventTaken(Answer, frozen=True, kw_only=True):
    """The event is on disk."""

    ok: bool
    session_key: str


class LastHeartbeat(Answer, frozen=True, kw_only=True):
    """`last-heartbeat` answers null when none ran."""

    ts: int
    status: str
    agent_id: str
    reason: str | None = None


class ConfigRead(Answer, frozen=True, kw_only=True):
    """Secrets are shown as `__OPENCLAW_REDACTED__`. `raw` is null when the text is too broken to mask."""

    path: str
    exists: bool
    raw: str | None
    parsed: Json
    resolved: Json
    valid: bool
    config: Json
    hash: str
    issues: list[Json]
    warnings: list[Json]
    legacy_issues: list[Json]


class ConfigChanged(Answer, frozen=True, kw_only=True):
    """`applied` settings hold from the next turn on; `restartRequired` ones wait for a restart."""

    ok: bool
    path: str
    hash: str
    config: Json
    changed_paths: list[str]
    applied: bool
    restart_required: list[str]
    reason: str
    warnings: list[Json]


class ConfigSchema(Answer, frozen=True, kw_only=True):
    schema: Json
    ui_hints: Json
    version: str


class LogsTail(Answer, frozen=True, kw_only=True):
    """Each line is one JSON object: time, level, name, message. `cursor` asks for what follows."""

    file: str
    cursor: int
    size: int
    lines: list[str]
    truncated: bool = False
    reset: bool = False


class UsageStatus(Answer, frozen=True, kw_only=True):
    """Limits that providers report; none does so to this gateway, so the list is empty."""

    updated_at: int
    providers: list[Json]


class UsageCost(Answer, frozen=True, kw_only=True):
    """Days are local to the gateway. Calls without a known price are counted in `missingCostEntries`."""

    updated_at: int
    days: int
    daily: list[Json]
    totals: Json


class DiagnosticShown(Answer, frozen=True, kw_only=True):
    """`kind`: start, stop, crash, recovery, refused, watchdog or doctor."""

    at: int
    kind: str
    detail: str


class DiagnosticsList(Answer, frozen=True, kw_only=True):
    """The events of the gateway's own life, oldest first."""

    events: list[DiagnosticShown]


class NodeList(Answer, frozen=True, kw_only=True):
    ts: int
    nodes: list[Json]


class NodePairs(Answer, frozen=True, kw_only=True):
    pending: list[Json]
    paired: list[Json]


class QuestionList(Answer, frozen=True, kw_only=True):
    questions: list[Json]


class ChannelsStatus(Answer, frozen=True, kw_only=True):
    ts: int
    channel_order: list[str]
    channel_labels: Json
    channel_meta: list[Json]
    channels: Json
    channel_accounts: Json
    channel_default_account_id: Json
