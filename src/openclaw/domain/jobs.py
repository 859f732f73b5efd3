"""A scheduled job: when it is due, what it does, in which session, where the result goes (AUTO-1, AUTO-2).

Values and their checks. When a schedule is due next needs a calendar of time zones and is
computed in the engine; rows and runs belong to others.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from openclaw.domain.addressing import cron_key
from openclaw.domain.doortext import clean_text
from openclaw.domain.keys import KeySettings, SessionKey, canonical_key, main_session_key
from openclaw.errors import InvalidRequest

MAX_JOBS = 1000
MAX_TEXT_CHARS = 100_000
LEAST_EVERY_MS = 1000
_NAMED = "session:"


class AtTime(Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind", tag="at"):
    """Once. `at` is a time with its zone, or milliseconds since 1970."""

    at: str | int


class Interval(
    Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind", tag="every", omit_defaults=True
):
    """Again and again, counted from `anchorMs` (default: when the job was made)."""

    every_ms: int
    anchor_ms: int | None = None


class CronLine(
    Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind", tag="cron", omit_defaults=True
):
    """Five fields of cron in a time zone; without one, in the gateway's own."""

    expr: str
    tz: str | None = None


Schedule = AtTime | Interval | CronLine


class AgentTurn(
    Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind", tag="agentTurn", omit_defaults=True
):
    message: str
    model: str | None = None
    thinking: str | None = None
    timeout_seconds: int | None = None


class EventNote(Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind", tag="systemEvent"):
    text: str


Payload = AgentTurn | EventNote


class JobDelivery(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Where the result goes. Without a target, `announce` uses the route of the agent's main session."""

    mode: Literal["none", "announce", "webhook"] = "none"
    channel: str | None = None
    to: str | None = None
    account_id: str | None = None
    thread_id: str | None = None


class Job(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A job as it is stored and shown. `currentKey` is the session that `current` meant when it was made."""

    id: str
    name: str
    agent_id: str
    schedule: Schedule
    session_target: str
    payload: Payload
    created_at_ms: int
    updated_at_ms: int
    wake_mode: Literal["now", "next-heartbeat"] = "now"
    delivery: JobDelivery = JobDelivery()
    enabled: bool = True
    delete_after_run: bool = False
    description: str | None = None
    current_key: str | None = None

    @property
    def is_isolated(self) -> bool:
        return self.session_target == "isolated"


def check_job(job: Job) -> Job:
    """The job with its texts made clean; InvalidRequest that says what to change."""
    target, payload = job.session_target, job.payload
    named = target.startswith(_NAMED) and bool(target.removeprefix(_NAMED).strip())
    if target not in ("main", "isolated", "current") and not named:
        raise InvalidRequest('sessionTarget must be "main", "isolated", "current" or "session:<name>"')
    if target == "main" and isinstance(payload, AgentTurn):
        raise InvalidRequest(
            'a job of the main session takes payload.kind "systemEvent"; use sessionTarget "isolated" '
            "to run a turn of its own"
        )
    if target != "main" and isinstance(payload, EventNote):
        raise InvalidRequest('payload.kind "systemEvent" goes with sessionTarget "main"')
    if isinstance(job.schedule, Interval) and job.schedule.every_ms < LEAST_EVERY_MS:
        raise InvalidRequest(f"schedule.everyMs must be at least {LEAST_EVERY_MS}")
    if job.delivery.mode == "webhook" and not (job.delivery.to or "").startswith(("http://", "https://")):
        raise InvalidRequest("delivery.to must be an http(s) address for a webhook")
    if bool(job.delivery.to) and job.delivery.mode == "announce" and not job.delivery.channel:
        raise InvalidRequest("delivery.channel is missing: a target belongs to a channel")
    _check_text("name", job.name, 200)
    _check_text("payload", payload.message if isinstance(payload, AgentTurn) else payload.text)
    return job


def _check_text(name: str, text: str, limit: int = MAX_TEXT_CHARS) -> None:
    if not clean_text(text).strip():
        raise InvalidRequest(f"{name} must not be empty")
    if len(text) > limit:
        raise InvalidRequest(f"{name} is longer than {limit} characters")


def job_session_key(job: Job, settings: KeySettings) -> SessionKey:
    """The session that the job works in (KEY-14, AUTO-2)."""
    if job.session_target == "main":
        return main_session_key(job.agent_id, settings)
    if job.session_target == "current":
        return canonical_key(job.current_key or "main", agent_id=job.agent_id, settings=settings)
    if job.session_target.startswith(_NAMED):
        name = job.session_target.removeprefix(_NAMED)
        return canonical_key(name, agent_id=job.agent_id, settings=settings)
    return cron_key(job.agent_id, job.id, settings)
