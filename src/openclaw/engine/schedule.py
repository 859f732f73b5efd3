"""When a job is due next: one time, an interval, or a line of cron in its zone.

A time that a change of clocks skips is due when the clocks have jumped; one that comes twice is due
once, except for lines that run every hour or more often, which follow the real hours.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from openclaw.domain.jobs import AtTime, CronLine, Interval, Schedule
from openclaw.errors import InvalidRequest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def next_due(schedule: Schedule, *, after_ms: int, made_ms: int, zone: ZoneInfo) -> int | None:
    """The first time after `after_ms`; None when there is none. `zone` counts where no other is named."""
    match schedule:
        case AtTime():
            at_ms = time_of(schedule.at, zone)
            return at_ms if at_ms > after_ms else None
        case Interval():
            anchor_ms = made_ms if schedule.anchor_ms is None else schedule.anchor_ms
            passed = max(0, after_ms - anchor_ms) // schedule.every_ms
            first = anchor_ms if after_ms < anchor_ms else anchor_ms + (passed + 1) * schedule.every_ms
            return first
        case CronLine():
            return _next_of_cron(schedule, after_ms, zone)


def check_schedule(schedule: Schedule, zone: ZoneInfo) -> None:
    """InvalidRequest when the schedule can never be read."""
    if isinstance(schedule, AtTime):
        time_of(schedule.at, zone)
    elif isinstance(schedule, CronLine):
        _next_of_cron(schedule, 0, zone)


def missed_between(
    schedule: Schedule, *, due_ms: int, now_ms: int, made_ms: int, zone: ZoneInfo, most: int = 1000
) -> int:
    """How many later times passed as well until now, counted up to `most`."""
    missed, at_ms = 0, due_ms
    while missed < most:
        following = next_due(schedule, after_ms=at_ms, made_ms=made_ms, zone=zone)
        if following is None or following > now_ms:
            break
        missed, at_ms = missed + 1, following
    return missed


def time_of(at: str | int, zone: ZoneInfo) -> int:
    """A time that a person wrote, in milliseconds; without an offset it is meant in `zone`."""
    if isinstance(at, int):
        return at
    try:
        moment = datetime.fromisoformat(at.strip())
    except ValueError:
        raise InvalidRequest(
            f"schedule.at: {at[:60]!r} is not a time; write it like 2026-12-24T18:00:00+01:00"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return _ms(moment)


def _next_of_cron(line: CronLine, after_ms: int, zone: ZoneInfo) -> int | None:
    if line.tz is not None:
        try:
            zone = ZoneInfo(line.tz)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise InvalidRequest(
                f"schedule.tz: {line.tz[:60]!r} is no time zone; write it like Europe/Madrid"
            ) from None
    start = (_EPOCH + timedelta(milliseconds=after_ms)).astimezone(zone)
    try:
        return _ms(next(CronSim(line.expr, start)))
    except CronSimError:
        raise InvalidRequest(
            f"schedule.expr: {line.expr[:60]!r} is not a line of cron; write five fields like `0 7 * * 1-5`"
        ) from None
    except StopIteration:
        return None


def _ms(moment: datetime) -> int:
    return int((moment - _EPOCH) / timedelta(milliseconds=1))
