"""Runs the heartbeats of all agents: ordinary turns that never keep a session young and never wait in line.

A beat that finds its session busy, or comes at a quiet hour, is left out. Missed beats are not made up for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from msgspec import Struct

from openclaw.domain.entry import DeliveryContext
from openclaw.domain.heartbeat import HeartbeatRules, is_active
from openclaw.domain.keys import canonical_key
from openclaw.domain.transcript import Provenance
from openclaw.engine.ports import Clock, Ids
from openclaw.engine.seeds import seed_for_key
from openclaw.engine.settings import EngineSettings
from openclaw.engine.turns import Incoming, Turns
from openclaw.engine.workers import Workers
from openclaw.errors import OpenClawError
from openclaw.store.records import SessionSeed, UserInput
from openclaw.store.store import Store

log = logging.getLogger("openclaw.heartbeat")
LOOK_EVERY_S = 10.0
RUN_PREFIX = "heartbeat:"


class Beat(Struct, frozen=True):
    """The last beat of any agent, for clients that ask."""

    ts: int
    status: str
    agent_id: str
    reason: str | None = None


class Heartbeats:
    def __init__(
        self,
        store: Store,
        turns: Turns,
        workers: Workers,
        settings: Callable[[], EngineSettings],
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._store = store
        self._turns = turns
        self._workers = workers
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._due: dict[str, int] = {}
        self.last: Beat | None = None

    async def run_forever(self) -> None:
        while True:
            try:
                await self.look()
            except OpenClawError as error:
                log.error("a heartbeat was left out: %s", error)
            await self._clock.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Start the beats that are due. An agent's first one comes a whole interval after the start."""
        now_ms = self._clock.now_ms()
        for agent_id, agent in self._settings().agents.items():
            rules = agent.heartbeat
            if rules is None or rules.every_ms <= 0:
                self._due.pop(agent_id, None)
                continue
            due_ms = self._due.setdefault(agent_id, now_ms + rules.every_ms)
            if due_ms - now_ms > rules.every_ms:
                due_ms = now_ms  # the clock was set back, or the interval became shorter
            if now_ms >= due_ms:
                self._due[agent_id] = now_ms + rules.every_ms
                await self.beat(agent_id, rules, now_ms)

    async def beat(self, agent_id: str, rules: HeartbeatRules, now_ms: int) -> Beat:
        """One beat, or the reason why it was left out."""
        seed = self._seed(agent_id, rules)
        reason = None
        if not is_active(rules.active_hours, now_ms):
            reason = "quiet-hours"
        elif self._workers.is_busy(seed.session_key):
            reason = "busy"
        if reason is not None:
            self.last = Beat(now_ms, "skipped", agent_id, reason)
            return self.last
        route = await self._route(seed, rules)
        body = UserInput(
            rules.prompt,
            now_ms,
            route=route,
            deliver=route is not None,
            provenance=Provenance(kind="internal_system"),
            model=rules.model,
            queue_mode="followup",
        )
        run_id = f"{RUN_PREFIX}{self._ids.uuid()}"
        await self._turns.accept(Incoming(run_id, seed, "heartbeat", "system", body))
        self.last = Beat(now_ms, "started", agent_id)
        return self.last

    def _seed(self, agent_id: str, rules: HeartbeatRules) -> SessionSeed:
        keys = self._settings().keys
        key = canonical_key(rules.session or "main", agent_id=agent_id, settings=keys)
        return seed_for_key(key, agent_id, keys, "internal")

    async def _route(self, seed: SessionSeed, rules: HeartbeatRules) -> DeliveryContext | None:
        """From the typed stored route, never from words (AUTO-8)."""
        if rules.target == "none":
            return None
        if rules.target != "last":
            return DeliveryContext(rules.target, rules.to, rules.account_id) if rules.to else None
        row = await self._store.session(seed.session_key)
        return row.entry.delivery_context if row is not None else None
