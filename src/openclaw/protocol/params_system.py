"""The parameters of methods about the gateway itself: config, logs, usage, presence, system events.

Shapes only; what they mean is decided in their handlers.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from openclaw.protocol.connect import ClosedObject
from openclaw.protocol.params import Count, IdText, SessionKeyText

ConfigText = Annotated[str, Meta(max_length=1024 * 1024)]
HashText = Annotated[str, Meta(max_length=128)]
# Longer ones are refused with a sentence of their own.
EventText = Annotated[str, Meta(max_length=65_536)]
DateText = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


class NoParams(ClosedObject, frozen=True, kw_only=True):
    """A question that needs no words."""


class WakeParams(ClosedObject, frozen=True, kw_only=True):
    """CLI-7. `now` begins a turn; `next-heartbeat` waits for the next one, whoever asks for it."""

    mode: Literal["now", "next-heartbeat"]
    text: EventText
    session_key: SessionKeyText | None = None
    agent_id: IdText | None = None


class SystemEventParams(ClosedObject, frozen=True, kw_only=True):
    """CLI-7. An event for the next turn of a session; without a key, of the main session."""

    text: EventText
    session_key: SessionKeyText | None = None
    agent_id: IdText | None = None


class ConfigWriteParams(ClosedObject, frozen=True, kw_only=True):
    """`raw` is JSON5. `baseHash` is the hash of the file that the change was made from."""

    raw: ConfigText
    base_hash: HashText | None = None
    session_key: SessionKeyText | None = None
    note: Annotated[str, Meta(max_length=4096)] | None = None
    restart_delay_ms: Count | None = None


class LogsTailParams(ClosedObject, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=5000)] = 500
    cursor: Count | None = None
    max_bytes: Annotated[int, Meta(ge=1, le=1_000_000)] = 250_000


class DiagnosticsListParams(ClosedObject, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class UsageCostParams(ClosedObject, frozen=True, kw_only=True):
    """The last `days`, today included, or the days from `startDate` to `endDate`."""

    days: Annotated[int, Meta(ge=1, le=366)] | None = None
    start_date: DateText | None = None
    end_date: DateText | None = None


class ChannelsStatusParams(ClosedObject, frozen=True, kw_only=True):
    probe: bool = False
    timeout_ms: Count | None = None
