"""`cron.*` and `hooks.*`: work that no person starts (SPEC §27)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from openclaw.config.values import Bytes, DurationBareHours, Positive, Secret, Section, Text, Texts
from openclaw.domain.hookevents import HookName

HookPath = Annotated[
    str,
    Meta(
        pattern=r"^/[A-Za-z0-9/_-]{1,128}$", extra={"expected": 'a path that starts with "/", not "/" itself'}
    ),
]


class CronConfig(Section, frozen=True):
    """Scheduled jobs; sessions of finished runs are kept for `sessionRetention`, false for ever (MAINT-6)."""

    enabled: bool = True
    max_concurrent_runs: Positive = 1
    session_retention_ms: bool | DurationBareHours = msgspec.field(
        default=24 * 3_600_000, name="sessionRetention"
    )
    webhook_token: Secret | None = None


class HookEntryConfig(Section, frozen=True):
    """One installed hook: a file `hooks/<name>.py` of the state directory, or an installed package's."""

    enabled: bool = True
    events: tuple[HookName, ...] | None = None


class InternalHooksConfig(Section, frozen=True):
    """Python functions that are told what happens (AUTO-10); off unless asked for."""

    enabled: bool = False
    entries: dict[str, HookEntryConfig] = msgspec.field(default_factory=dict)


class HooksConfig(Section, frozen=True):
    """Inbound webhooks (AUTO-6) and installed hooks; off unless asked for."""

    enabled: bool = False
    token: Secret | None = None
    path: HookPath = "/hooks"
    max_body_bytes: Bytes = 262_144
    default_session_key: Text | None = None
    allow_request_session_key: bool = False
    allowed_session_key_prefixes: Texts = ()
    allowed_agent_ids: Texts | None = None
    internal: InternalHooksConfig = InternalHooksConfig()
