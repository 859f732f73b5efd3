"""A heartbeat: a turn that the gateway starts now and then to let an agent look after things (AUTO-7).

When one is due, what it asks, and what of its answer is worth a person's attention.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from openclaw.domain.display import HEARTBEAT_ACK

PROMPT = (
    "Read HEARTBEAT.md in your workspace if it exists and follow it strictly; do not invent tasks or repeat "
    "old ones. If nothing needs attention, reply HEARTBEAT_OK."
)
_DAY_MINUTES = 24 * 60


class ActiveHours(Struct, frozen=True):
    """From one minute of the day until another, in a zone; over midnight when the end comes first."""

    start_minute: int
    end_minute: int
    zone: ZoneInfo


class HeartbeatRules(Struct, frozen=True, kw_only=True):
    """How often an agent's heartbeat runs and whom it may tell. `target`: none, last, or a channel."""

    every_ms: int
    target: str = "none"
    to: str | None = None
    account_id: str | None = None
    session: str | None = None
    model: str | None = None
    prompt: str = PROMPT
    ack_max_chars: int = 300
    active_hours: ActiveHours | None = None


def minute_of_day(clock_time: str) -> int:
    """`HH:MM` as minutes; `24:00` is the end of the day."""
    hours, _, minutes = clock_time.partition(":")
    return int(hours) * 60 + int(minutes)


def is_active(hours: ActiveHours | None, now_ms: int) -> bool:
    """Whether a heartbeat may run now."""
    if hours is None or hours.start_minute == hours.end_minute:
        return True
    moment = datetime(1970, 1, 1, tzinfo=ZoneInfo("UTC")) + timedelta(milliseconds=now_ms)
    local = moment.astimezone(hours.zone)
    minute = local.hour * 60 + local.minute
    if hours.start_minute < hours.end_minute:
        return hours.start_minute <= minute < hours.end_minute
    return minute >= hours.start_minute or minute < hours.end_minute % _DAY_MINUTES


def worth_telling(text: str, ack_max_chars: int) -> str:
    """The answer without its acknowledgement; empty when there is little beside it."""
    stripped = text.strip()
    acknowledged = False
    if stripped.startswith(HEARTBEAT_ACK):
        acknowledged, stripped = True, stripped.removeprefix(HEARTBEAT_ACK).lstrip(" .,!:;-\n")
    if stripped.endswith(HEARTBEAT_ACK):
        acknowledged, stripped = True, stripped.removesuffix(HEARTBEAT_ACK).rstrip()
    return "" if acknowledged and len(stripped) <= ack_max_chars else stripped
