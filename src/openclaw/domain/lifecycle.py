"""When a session starts anew by itself (SPEC §7): policy, boundaries, freshness.

Everything is decided from values in hand: the rules, the last interaction of a
person, the clock and the zone of the Gateway host. Nothing here mints an id,
touches an entry or runs on a timer; freshness is asked when a message arrives
(LIFE-1). Resets that a person asks for live in `resets`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from msgspec import Struct

from openclaw.domain.keys import split_thread, strip_agent

DEFAULT_RESET_HOUR = 4
DEFAULT_IDLE_MINUTES = 60

ResetMode = Literal["daily", "idle"]
SessionType = Literal["direct", "group", "thread"]
ExpiryReason = Literal["daily", "idle"]
PolicyOrigin = Literal["channel", "type", "reset", "legacy", "default"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_MINUTE_MS = 60_000


# -- what counts as activity -------------------------------------------------------------------

TurnSource = Literal[
    "channel",  # a message from a platform
    "webchat",  # the web page or an app
    "cli",  # a terminal
    "api",  # an HTTP client
    "hook",  # a webhook, in its own session
    "node",  # a paired device
    "inter_session",  # another session
    "announce",  # a finished sub-agent
    "heartbeat",
    "cron",
    "exec",
    "system",
]
INTERACTIVE_SOURCES: frozenset[TurnSource] = frozenset(("channel", "webchat", "cli", "api", "hook", "node"))


def counts_as_interaction(source: TurnSource) -> bool:
    """Whether a turn refreshes `lastInteractionAt` and may find its session expired (LIFE-12).

    One answer for both: a session is aged by the same turns that keep it young.
    What other sessions and the system itself send does neither, so a late result
    of a sub-agent still meets the conversation that asked for it.
    """
    return source in INTERACTIVE_SOURCES


# -- the policy --------------------------------------------------------------------------------


class ResetRule(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """The shape of `session.reset` and of each value of `resetByType` and `resetByChannel`."""

    mode: ResetMode | None = None
    at_hour: int | float | None = None
    idle_minutes: int | float | None = None


class ResetRules(Struct, frozen=True):
    """All reset settings of `session.*` together. `idle_minutes` is the legacy `session.idleMinutes`."""

    reset: ResetRule | None = None
    by_type: dict[str, ResetRule] = {}
    by_channel: dict[str, ResetRule] = {}
    idle_minutes: int | float | None = None


class ResetPolicy(Struct, frozen=True):
    """The one policy that holds for a session, with numbers already clamped.

    `idle_minutes` None means no idle rule; `origin` names the most specific
    setting that it came from.
    """

    mode: ResetMode
    at_hour: int
    idle_minutes: int | None
    origin: PolicyOrigin


def floor_number(value: object) -> int | None:
    """A finite number rounded down, else None. Booleans are not numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return math.floor(value)
    return None


def clamp_hour(value: object) -> int:
    """`atHour` at use time: floored, 0 to 23; a non-number is 4 (LIFE-9, CFG-12)."""
    hour = floor_number(value)
    return DEFAULT_RESET_HOUR if hour is None else min(max(hour, 0), 23)


def clamp_idle_minutes(value: object) -> int | None:
    """`idleMinutes` at use time: floored, at least 1; a non-number is unset (LIFE-9)."""
    minutes = floor_number(value)
    return None if minutes is None else max(minutes, 1)


def resolve_reset(rules: ResetRules, *, session_type: SessionType, channel: str | None) -> ResetPolicy:
    """Find the policy of a session (LIFE-5 to LIFE-9).

    A rule of the channel stands alone. Otherwise each field comes from the rule of
    the type, then from `reset`; minutes fall back to the legacy setting as well.
    """
    of_channel = _rule_of_channel(rules.by_channel, channel)
    if of_channel is not None:
        return _policy("channel", of_channel.mode, of_channel.at_hour, of_channel.idle_minutes)
    of_type = _rule_of_type(rules.by_type, session_type)
    typed, base = of_type or ResetRule(), rules.reset or ResetRule()
    idle_only = rules.idle_minutes is not None and rules.reset is None and not rules.by_type
    origin: PolicyOrigin = "default"
    if of_type is not None:
        origin = "type"
    elif rules.reset is not None:
        origin = "reset"
    elif rules.idle_minutes is not None:
        origin = "legacy"
    return _policy(
        origin,
        typed.mode or base.mode or ("idle" if idle_only else "daily"),
        _first(typed.at_hour, base.at_hour),
        _first(typed.idle_minutes, base.idle_minutes, rules.idle_minutes),
    )


def _policy(
    origin: PolicyOrigin, mode: ResetMode | None, at_hour: object, idle_minutes: object
) -> ResetPolicy:
    minutes = clamp_idle_minutes(idle_minutes)
    if mode == "idle" and minutes is None:
        minutes = DEFAULT_IDLE_MINUTES
    return ResetPolicy(mode=mode or "daily", at_hour=clamp_hour(at_hour), idle_minutes=minutes, origin=origin)


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _rule_of_channel(by_channel: Mapping[str, ResetRule], channel: str | None) -> ResetRule | None:
    if channel is None:
        return None
    wanted = channel.strip().lower()
    return next((rule for name, rule in by_channel.items() if name.strip().lower() == wanted), None)


def _rule_of_type(by_type: Mapping[str, ResetRule], session_type: SessionType) -> ResetRule | None:
    rule = by_type.get(session_type)
    if rule is None and session_type == "direct":
        return by_type.get("dm")
    return rule


def session_type(
    *,
    key_text: str,
    is_group: bool = False,
    thread_id: str | None = None,
    thread_label: str | None = None,
    thread_starter: str | None = None,
    parent_key: str | None = None,
) -> SessionType:
    """Which of the three reset types a session is (LIFE-10). Blank facts count as absent."""
    facts = (thread_id, thread_label, thread_starter, parent_key)
    if any(fact and fact.strip() for fact in facts) or split_thread(key_text).thread_kind is not None:
        return "thread"
    key = key_text.lower()
    if is_group or ":group:" in key or ":channel:" in key:
        return "group"
    return "direct"


# -- daily boundaries --------------------------------------------------------------------------


def daily_boundary_ms(now_ms: int, at_hour: int, zone: ZoneInfo) -> int:
    """The most recent instant, at or before now, at which a local day passed `at_hour` (LIFE-11)."""
    today = _local_day(now_ms, zone)
    # Tomorrow counts too: where clocks fall back across midnight, its hour may already have struck.
    days = (today + timedelta(days=1), today, today - timedelta(days=1))
    return max(instant for day in days if (instant := _boundary_of(day, at_hour, zone)) <= now_ms)


def next_daily_boundary_ms(after_ms: int, at_hour: int, zone: ZoneInfo) -> int:
    """The first boundary that lies strictly after an instant."""
    today = _local_day(after_ms, zone)
    days = (today + timedelta(days=ahead) for ahead in range(3))
    return min(instant for day in days if (instant := _boundary_of(day, at_hour, zone)) > after_ms)


def _local_day(at_ms: int, zone: ZoneInfo) -> date:
    return (_EPOCH + at_ms * _MS).astimezone(zone).date()


def _boundary_of(day: date, at_hour: int, zone: ZoneInfo) -> int:
    """The instant of a wall-clock hour: the first one when it occurs twice, the end of the gap when never."""
    wall = datetime(day.year, day.month, day.day, at_hour)
    high = _as_utc_s(wall.replace(tzinfo=zone, fold=0))
    if _wall_at(high, zone) == wall:
        return high * 1000
    # The hour is skipped. The clock jumps between these two readings of it; halve down to that second.
    low = _as_utc_s(wall.replace(tzinfo=zone, fold=1))
    while high - low > 1:
        middle = (low + high) // 2
        if _wall_at(middle, zone) > wall:
            high = middle
        else:
            low = middle
    return high * 1000


def _as_utc_s(local: datetime) -> int:
    return (local - _EPOCH) // timedelta(seconds=1)


def _wall_at(instant_s: int, zone: ZoneInfo) -> datetime:
    return (_EPOCH + timedelta(seconds=instant_s)).astimezone(zone).replace(tzinfo=None)


# -- freshness ---------------------------------------------------------------------------------


class Fresh(Struct, frozen=True):
    """The session id is used again."""


class Expired(Struct, frozen=True):
    """The policy ended the session; the message that asked starts a new one."""

    reason: ExpiryReason
    since_ms: int


class NextExpiry(Struct, frozen=True):
    """When the policy ends a session, and by which rule. A past instant takes effect on the next message."""

    at_ms: int
    reason: ExpiryReason


def next_expiry(
    policy: ResetPolicy, *, last_interaction_ms: int | None, now_ms: int, zone: ZoneInfo
) -> NextExpiry | None:
    """The rule that expires first after the last interaction (LIFE-2 to LIFE-4).

    None when no usable interaction is known: absent, negative or in the future
    (LIFE-11). Nothing then proves age, so nothing may rotate; the message that
    asks writes a good timestamp, so a bad one never lasts beyond a turn.
    """
    last = last_interaction_ms
    if last is None or last < 0 or last > now_ms:
        return None
    ends: list[NextExpiry] = []
    if policy.mode == "daily":
        ends.append(NextExpiry(next_daily_boundary_ms(last, policy.at_hour, zone), "daily"))
    if policy.idle_minutes is not None:
        # Strictly later than the window: one millisecond past its end.
        ends.append(NextExpiry(last + policy.idle_minutes * _MINUTE_MS + 1, "idle"))
    return min(ends, key=lambda end: end.at_ms, default=None)


def judge_freshness(
    policy: ResetPolicy,
    *,
    last_interaction_ms: int | None,
    now_ms: int,
    zone: ZoneInfo,
    run_active: bool,
    inputs_waiting: bool,
    source: TurnSource,
) -> Fresh | Expired:
    """Whether an arriving turn goes on with the session or finds it expired (LIFE-1 to LIFE-4, LIFE-12).

    `last_interaction_ms` is the entry's `lastInteractionAt`, never `updatedAt`
    (AMB-9). A busy session is never rotated, and neither is one by a turn that no
    person sent.
    """
    if run_active or inputs_waiting or not counts_as_interaction(source):
        return Fresh()
    end = next_expiry(policy, last_interaction_ms=last_interaction_ms, now_ms=now_ms, zone=zone)
    if end is None or end.at_ms > now_ms:
        return Fresh()
    return Expired(reason=end.reason, since_ms=end.at_ms)


# -- telling the person ------------------------------------------------------------------------

_NOTICED_SOURCES: frozenset[TurnSource] = frozenset(("channel", "webchat", "cli"))
_MACHINE_KEY_PREFIXES = ("cron:", "hook:", "node-", "node:", "subagent:")


def reset_notice(reason: ExpiryReason, policy: ResetPolicy) -> str:
    """The one line that goes before the first reply after an automatic reset (PITFALLS C7)."""
    if reason == "daily":
        cause = f"the daily reset at {policy.at_hour:02d}:00 has passed"
    else:
        minutes = policy.idle_minutes
        cause = f"nothing was said for more than {minutes} {'minute' if minutes == 1 else 'minutes'}"
    return f"New session: {cause}. Send /undo reset to go back to the previous one."


def reset_notice_is_due(*, source: TurnSource, key_text: str) -> bool:
    """Whether a person reads this session: never for cron, hook, node, sub-agent and HTTP API sessions."""
    return source in _NOTICED_SOURCES and not strip_agent(key_text.lower()).startswith(_MACHINE_KEY_PREFIXES)
