"""`session.*`: keys, resets, send policy, maintenance (SPEC §2.2, §24).

Only shapes and defaults. `None` means "not set", where unset and default differ in
effect: the resolution itself is the pure core's business, reached through `views`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from openclaw.config.values import (
    Bytes,
    ChatKind,
    Count,
    DurationBareDays,
    HourOfDay,
    Hours,
    Milliseconds,
    PeerIds,
    PositiveMinutes,
    Section,
    Text,
    Texts,
)

MainKey = Annotated[
    str,
    Meta(pattern=r"^[^\s:]{1,128}$", extra={"expected": "a word without spaces or colons"}),
]
DAY_MS = 86_400_000


class ResetConfig(Section, frozen=True):
    """When a session expires; an absent field is inherited (LIFE-9)."""

    mode: Literal["daily", "idle"] | None = None
    at_hour: HourOfDay | None = None
    idle_minutes: PositiveMinutes | None = None


class ResetByTypeConfig(Section, frozen=True):
    key_aliases: ClassVar[dict[str, str]] = {"dm": "direct"}

    direct: ResetConfig | None = None
    group: ResetConfig | None = None
    thread: ResetConfig | None = None


class SendMatchConfig(Section, frozen=True):
    """All given fields must hold; none given matches everything (SEND-6)."""

    channel: Text | None = None
    chat_type: ChatKind | None = None
    key_prefix: Text | None = None
    raw_key_prefix: Text | None = None


class SendRuleConfig(Section, frozen=True):
    action: Literal["allow", "deny"]
    match: SendMatchConfig = SendMatchConfig()


class SendPolicyConfig(Section, frozen=True):
    rules: tuple[SendRuleConfig, ...] = ()
    default: Literal["allow", "deny"] | None = None


class AgentToAgentTurnsConfig(Section, frozen=True):
    max_ping_pong_turns: Annotated[int, Meta(ge=0, le=20)] = 5


class MaintenanceConfig(Section, frozen=True):
    """What is kept and for how long (MAINT-1). Zero switches a limit off."""

    mode: Literal["enforce", "warn"] = "enforce"
    prune_after_ms: DurationBareDays = msgspec.field(default=30 * DAY_MS, name="pruneAfter")
    max_entries: Count = 5000
    reset_archive_retention_ms: bool | DurationBareDays | None = msgspec.field(
        default=None, name="resetArchiveRetention"
    )
    max_disk_bytes: Bytes | None = None
    high_water_bytes: Bytes | None = None


class ThreadBindingsConfig(Section, frozen=True):
    enabled: bool = True
    idle_hours: Hours = 24
    max_age_hours: Hours = 0
    spawn_sessions: bool = True
    default_spawn_context: Literal["fork", "isolated"] = "fork"


class WriteLockConfig(Section, frozen=True):
    acquire_timeout_ms: Milliseconds = 60_000


class SessionConfig(Section, frozen=True):
    """How conversations are keyed, reset, protected and kept.

    `dmScope` stays None when it is not written: the effect is `main`, but only a
    written `main` silences the warning about people who share one session (KEY-3).
    """

    scope: Literal["per-sender", "global"] = "per-sender"
    dm_scope: Literal["main", "per-peer", "per-channel-peer", "per-account-channel-peer"] | None = None
    identity_links: dict[str, PeerIds] = msgspec.field(default_factory=dict)
    reset: ResetConfig | None = None
    reset_by_type: ResetByTypeConfig | None = None
    reset_by_channel: dict[str, ResetConfig] = msgspec.field(default_factory=dict)
    idle_minutes: PositiveMinutes | None = None
    reset_triggers: Texts = ("/new", "/reset")
    store: Text | None = None
    main_key: MainKey = "main"
    agent_to_agent: AgentToAgentTurnsConfig = AgentToAgentTurnsConfig()
    send_policy: SendPolicyConfig | None = None
    maintenance: MaintenanceConfig = MaintenanceConfig()
    thread_bindings: ThreadBindingsConfig = ThreadBindingsConfig()
    write_lock: WriteLockConfig = WriteLockConfig()
