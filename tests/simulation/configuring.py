"""The configurations that a simulated gateway may have, and the sessions that people and automation use."""

from __future__ import annotations

from random import Random
from zoneinfo import ZoneInfo

from msgspec import Struct

from openclaw.domain.budget import BudgetLimits
from openclaw.domain.entry import DeliveryContext, SessionEntry
from openclaw.domain.keys import KeySettings
from openclaw.domain.lifecycle import ResetRule, ResetRules, TurnSource
from openclaw.domain.queueing import QueueConfig
from openclaw.engine.ports import ModelPrice, ModelTarget
from openclaw.engine.settings import AgentSettings, EngineSettings
from openclaw.store.inbox import ResetRulesAt
from openclaw.store.records import SessionSeed
from tests.simulation.script import TOOLS

ZONE = ZoneInfo("Europe/Berlin")
PRICE = ModelPrice(1.0, 5.0)
DAY_LIMIT_USD = 0.4
MODELS = {
    name: ModelTarget(provider, name, api, max_tokens=1000, price=PRICE)
    for provider, name, api in (
        ("north", "first", "openai-simulated"),
        ("south", "second", "openai-simulated"),
        ("east", "third", "anthropic-simulated"),
    )
}
FIRST_CHOICE = {"main": "first", "frugal": "first", "strict": "third"}


class Place(Struct, frozen=True):
    """A session and who speaks in it."""

    seed: SessionSeed
    source: TurnSource
    principals: tuple[str, ...]
    route: DeliveryContext | None = None


def _place(key: str, source: TurnSource, *principals: str, channel: str | None = None) -> Place:
    parts = key.split(":")
    group = "group" in parts
    seed = SessionSeed(
        key, parts[1], "group" if group else "other", "group" if group else "direct", channel=channel
    )
    route = DeliveryContext(channel, f"to {key}", "home") if channel else None
    return Place(seed, source, principals, route)


PLACES = (
    _place("agent:main:main", "webchat", "operator"),
    _place("agent:main:main", "channel", "ann", channel="telegram"),
    _place("agent:main:telegram:group:7", "channel", "ann", "bob", channel="telegram"),
    _place("agent:main:matrix:group:8", "channel", "ann", "operator", channel="matrix"),
    _place("agent:strict:main", "webchat", "operator"),
    _place("agent:strict:telegram:group:9", "channel", "cyd", channel="telegram"),
    _place("agent:frugal:main", "api", "operator"),
    _place("agent:main:subagent:0f1e", "inter_session", "agent:main:main"),
    _place("agent:main:cron:job-1", "cron", "system"),
    _place("agent:main:cron:job-2", "cron", "system"),
)
CHANNELS = ("telegram", "matrix")


def draw_settings(rng: Random) -> EngineSettings:
    """A configuration; the agents, their names and their tools stay the same, so that prompts do."""
    timeout_s = rng.choice((0.0, 60.0, 300.0, 600.0))
    agents = {
        name: AgentSettings(
            name, name.title(), "", timeout_s, TOOLS, MODELS[first],
            _Chooser(first, fallback=rng.random() < 0.5), ZONE,
            budget=BudgetLimits(per_day_usd=DAY_LIMIT_USD) if name == "frugal" else BudgetLimits(),
        )
        for name, first in FIRST_CHOICE.items()
    }  # fmt: skip
    queue = QueueConfig(
        mode=rng.choice((None, "steer", "followup", "collect", "interrupt", "queue")),
        debounce_ms=rng.choice((None, 0, 50, 2000)),
        cap=rng.choice((None, 3, 5)),
        drop=rng.choice((None, "summarize", "old", "new")),
    )
    rules = ResetRules(
        reset=rng.choice((None, ResetRule(mode="idle", idle_minutes=30), ResetRule(mode="daily", at_hour=4)))
    )
    caps = {"main": rng.choice((1, 2, 4)), "subagent": rng.choice((1, 8)), "cron": 1}
    return EngineSettings(
        agents, "main", KeySettings(), ResetRulesAt(rules, ZONE), ("/fresh",), None, queue, caps
    )


class _Chooser:
    """The model that the session chose, then the agent's; a fallback of the same dialect behind it."""

    def __init__(self, first: str, *, fallback: bool) -> None:
        self._first = first
        self._fallback = fallback and first != "third"

    def __call__(self, entry: SessionEntry, _wanted: str | None) -> tuple[ModelTarget, ...]:
        chosen = entry.model_override if entry.model_override in MODELS else self._first
        others = [name for name in ("first", "second") if name != chosen] if self._fallback else []
        return tuple(MODELS[name] for name in (chosen, *others))
