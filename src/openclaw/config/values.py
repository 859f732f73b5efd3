"""The small kinds of values that settings are made of, and how people write them.

A kind is an annotated plain type. Its `Meta.extra` tells the validator how to read
what stands in the file: `duration` and `size` accept a unit suffix, `aliases` maps
older words to the ones we keep, `secret` keeps a value out of every message. The
stored value is always the plain type: milliseconds, bytes, canonical words.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

# What stands for a secret wherever a config is shown; never a value of its own.
REDACTED = "__OPENCLAW_REDACTED__"

MS_PER_UNIT = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
BYTES_PER_UNIT = {"b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3}
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([a-z]{1,2})?")
_LARGEST = 2**53


def parse_duration_ms(value: str | int | float, bare_unit: str) -> int | None:
    """Milliseconds of `90`, `"90"`, `"1.5h"`; a bare number is in `bare_unit`. None if unreadable."""
    return _parse_quantity(value, MS_PER_UNIT, bare_unit)


def parse_size(value: str | int | float) -> int | None:
    """Bytes of `4096`, `"512kb"`, `"1.5 GB"`. None if unreadable."""
    return _parse_quantity(value, BYTES_PER_UNIT, "b")


def _parse_quantity(value: str | int | float, factors: dict[str, int], bare_unit: str) -> int | None:
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value.strip().lower())
        unit = None if match is None else match.group(2) or bare_unit
        if match is None or unit not in factors:
            return None
        amount = float(match.group(1)) * factors[unit]
    else:
        amount = float(value) * factors[bare_unit] if abs(value) < _LARGEST else math.inf
    return math.floor(amount) if 0 <= amount < _LARGEST else None


def format_duration(ms: int) -> str:
    """A duration as people write it: the largest unit that needs no fraction."""
    unit = next(unit for unit in ("d", "h", "m", "s", "ms") if ms % MS_PER_UNIT[unit] == 0)
    return f"{ms // MS_PER_UNIT[unit]}{unit}"


class Section(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A closed object of the config: a key that is not a field is a mistake (CFG-3)."""


class OpenSection(Struct, frozen=True, rename="camel"):
    """An object whose owner is someone else too: unknown keys are kept in `extra` as they are."""


# -- numbers -----------------------------------------------------------------------------------

Count: TypeAlias = Annotated[int, Meta(ge=0, le=_LARGEST)]
Positive: TypeAlias = Annotated[int, Meta(ge=1, le=_LARGEST)]
Ratio: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Usd: TypeAlias = Annotated[float, Meta(ge=0)]
PortNumber: TypeAlias = Annotated[int, Meta(ge=1, le=65535)]
HourOfDay: TypeAlias = Annotated[int, Meta(ge=0, le=23)]

# -- durations: the field's name says the unit that is kept, `duration` the unit of a bare number

_MS, _S, _M, _H = ({"duration": unit, "keep": unit} for unit in ("ms", "s", "m", "h"))
Milliseconds: TypeAlias = Annotated[int, Meta(ge=0, extra=_MS)]
Seconds: TypeAlias = Annotated[int, Meta(ge=0, extra=_S)]
Minutes: TypeAlias = Annotated[int, Meta(ge=0, extra=_M)]
PositiveMinutes: TypeAlias = Annotated[int, Meta(ge=1, extra=_M)]
Hours: TypeAlias = Annotated[int, Meta(ge=0, extra=_H)]
DurationBareMinutes: TypeAlias = Annotated[int, Meta(ge=0, extra={"duration": "m", "keep": "ms"})]
DurationBareHours: TypeAlias = Annotated[int, Meta(ge=0, extra={"duration": "h", "keep": "ms"})]
DurationBareDays: TypeAlias = Annotated[int, Meta(ge=0, extra={"duration": "d", "keep": "ms"})]
Bytes: TypeAlias = Annotated[int, Meta(ge=0, extra={"size": True})]

# -- words ---------------------------------------------------------------------------------------

Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Secret: TypeAlias = Annotated[str, Meta(min_length=1, extra={"secret": True})]
# People write ids of chats and senders with and without quotes; a number is kept as its digits.
PeerId: TypeAlias = Annotated[str, Meta(min_length=1, extra={"digits": True})]
PeerIds: TypeAlias = tuple[PeerId, ...]
Texts: TypeAlias = tuple[Text, ...]
AgentId: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$",
        extra={"expected": "an agent id (letters, digits, _ and -, at most 64, first a letter or digit)"},
    ),
]
ModelRef: TypeAlias = Text
ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max"]
VerboseLevel: TypeAlias = Literal["off", "on", "full"]
ChatKind: TypeAlias = Annotated[
    Literal["direct", "group", "channel"], Meta(extra={"aliases": {"dm": "direct", "room": "channel"}})
]
