"""What a gateway knows about itself, for the methods that tell it: one value, filled where it starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from openclaw.engine.waking import Waking
from openclaw.gateway.configdoor import ConfigDoor
from openclaw.gateway.healthwatch import HealthWatch
from openclaw.gateway.metrics import Metrics
from openclaw.gateway.presence import Presence
from openclaw.gateway.writebudget import WriteBudget
from openclaw.store.costs import Costs

Json = dict[str, Any]


class ChannelsView(Struct, frozen=True):
    """The channels that run, as health and `channels.status` show them. Empty while none is connected."""

    order: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    states: dict[str, Json] = {}
    accounts: dict[str, list[Json]] = {}
    default_accounts: dict[str, str] = {}
    summary: tuple[str, ...] = ()  # one line each, for people


class About(Struct, frozen=True):
    presence: Presence
    health: HealthWatch
    config: ConfigDoor
    writes: WriteBudget
    waking: Waking
    costs: Costs
    metrics: Metrics
    logs: Path
    channels: Callable[[], ChannelsView]
