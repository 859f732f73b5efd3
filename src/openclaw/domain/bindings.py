"""Places of a chat that belong to a session of their own: how long, and what `/focus` and `/session` say.

A binding leads the messages of one place, most often a thread, to one session instead
of the one that routing would choose (BIND-1). It ends when it was not used for a while,
when it is too old, or when somebody says so (BIND-2). Values in, values out: who may bind
what is decided with these by the command and the tool, and rows are the store's.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from openclaw.domain.entry import DeliveryContext

HOUR_MS = 3_600_000
MAX_TERM_MS = 10 * 365 * 24 * HOUR_MS
MAX_TITLE_CHARS = 80
_UNITS = {"m": 60_000, "h": HOUR_MS, "d": 24 * HOUR_MS}
_OFF = ("off", "never", "none", "0")


class BindingTerms(Struct, frozen=True):
    """`session.threadBindings`. A term of 0 never ends a binding."""

    enabled: bool = True
    idle_ms: int = 24 * HOUR_MS
    max_age_ms: int = 0
    spawn_sessions: bool = True
    default_context: Literal["fork", "isolated"] = "fork"


class BoundPlace(Struct, frozen=True):
    """Where an answer would go. An absent account is `default`; no thread is the empty string."""

    channel: str
    account_id: str
    to: str
    thread_id: str = ""


class Binding(Struct, frozen=True):
    """One place and its session. A term of None is as configured; `used_at` is the last message."""

    place: BoundPlace
    session_key: str
    origin: Literal["spawn", "focus"]
    bound_at: int
    used_at: int
    idle_ms: int | None = None
    max_age_ms: int | None = None


class Holds(Struct, frozen=True, tag="holds"):
    """The binding counts. `until_ms` is when it ends if nobody writes; None is never."""

    until_ms: int | None


class Lapsed(Struct, frozen=True, tag="lapsed"):
    reason: Literal["off", "idle", "max-age"]


def place_of_route(route: DeliveryContext | None) -> BoundPlace | None:
    """The place that a route leads to; None when it leads nowhere in particular."""
    if route is None or not route.channel or not route.to:
        return None
    return BoundPlace(route.channel, route.account_id or "default", route.to, route.thread_id or "")


def route_of_place(place: BoundPlace) -> DeliveryContext:
    return DeliveryContext(place.channel, place.to, place.account_id, place.thread_id or None)


def judge(binding: Binding, terms: BindingTerms, now_ms: int) -> Holds | Lapsed:
    """Whether a binding still counts. It ends at the very millisecond its term is over."""
    if not terms.enabled:
        return Lapsed("off")
    idle_ms = terms.idle_ms if binding.idle_ms is None else binding.idle_ms
    max_age_ms = terms.max_age_ms if binding.max_age_ms is None else binding.max_age_ms
    ends: list[int] = []
    if max_age_ms > 0:
        ends.append(binding.bound_at + max_age_ms)
        if now_ms >= ends[-1]:
            return Lapsed("max-age")
    if idle_ms > 0:
        ends.append(binding.used_at + idle_ms)
        if now_ms >= ends[-1]:
            return Lapsed("idle")
    return Holds(min(ends) if ends else None)


def read_term(text: str) -> int | None:
    """A term as a person writes it: `90m`, `12h`, `7d`, or `off` for 0. None when it is none of these."""
    word = text.strip().lower()
    if word in _OFF:
        return 0
    number, unit = word[:-1], _UNITS.get(word[-1:])
    if unit is None or not number.isascii() or not number.isdigit() or len(number) > 7:
        return None
    term_ms = int(number) * unit
    return term_ms if 0 < term_ms <= MAX_TERM_MS else None


def show_term(term_ms: int) -> str:
    """The same in words: in whole days, hours or minutes, whichever fits."""
    if term_ms <= 0:
        return "off"
    for unit in ("d", "h"):
        if term_ms % _UNITS[unit] == 0:
            return f"{term_ms // _UNITS[unit]}{unit}"
    return f"{-(-term_ms // 60_000)}m"


def thread_title(label: str | None, task: str) -> str:
    """What a helper's thread is called: its label, else the beginning of its task, on one line."""
    line = " ".join((label or task[: MAX_TITLE_CHARS * 4]).split())
    readable = "".join(character for character in line if character.isprintable())
    if len(readable) > MAX_TITLE_CHARS:
        readable = readable[: MAX_TITLE_CHARS - 1].rstrip() + "…"
    return readable or "helper"
