"""The answers of methods that look after the store."""

from __future__ import annotations

from openclaw.protocol.results import Answer, Json


class SessionsCleanup(Answer, frozen=True, kw_only=True):
    """CLI-8. When not `applied`, the numbers say what would happen."""

    mode: str
    dry_run: bool
    applied: bool
    stores: list[Json]
    archived: int
    deleted: int
    purged: int
    archives_written: int
    archives_dropped: int
    held_back: int
    used_bytes: int | None
    over_budget: bool
    reasons: dict[str, int]
    examples: list[Json]


class SessionsErased(Answer, frozen=True, kw_only=True):
    """`receipt` names nobody and can be kept."""

    ok: bool
    receipt: Json


class SessionsExported(Answer, frozen=True, kw_only=True):
    """`data` is base64: a transcript is exact, and not all of it need be text. `cursor` null ends it."""

    key: str
    session_id: str
    agent_id: str
    data: bytes
    seq: int
    last_seq: int
    cursor: str | None


class BackupCreated(Answer, frozen=True, kw_only=True):
    ok: bool
    backup: str
    manifest: Json
