"""What the engine reads of the configuration, as values made once per reload.

The composition root makes these; a changed configuration replaces the whole
value, and takes effect on the next turn (CFG-4).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from openclaw.domain.entry import SessionEntry
from openclaw.domain.keys import KeySettings
from openclaw.domain.policy import SendPolicy
from openclaw.domain.queueing import QueueConfig
from openclaw.engine.ports import ModelTarget
from openclaw.store.inbox import ResetRulesAt


class AgentSettings(Struct, frozen=True):
    """One agent as the engine needs it."""

    agent_id: str
    name: str
    workspace: str
    timeout_s: float
    tools: tuple[str, ...]
    default_model: ModelTarget
    choose_model: Callable[[SessionEntry, str | None], ModelTarget]


class EngineSettings(Struct, frozen=True):
    agents: dict[str, AgentSettings]
    default_agent: str
    keys: KeySettings
    resets: ResetRulesAt
    reset_triggers: tuple[str, ...]
    send_policy: SendPolicy | None
    queue: QueueConfig
    lane_caps: dict[str, int]

    def agent(self, agent_id: str) -> AgentSettings:
        """The settings of an agent; one that is no longer configured runs with the default's."""
        return self.agents.get(agent_id) or self.agents[self.default_agent]
