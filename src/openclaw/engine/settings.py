"""What the engine reads of the configuration, as values made once per reload.

The composition root makes these; a changed configuration replaces the whole
value, and takes effect on the next turn (CFG-4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal
from zoneinfo import ZoneInfo

from msgspec import Struct

from openclaw.domain.addressing import AddressSettings
from openclaw.domain.bindings import BindingTerms
from openclaw.domain.budget import BudgetLimits
from openclaw.domain.calling import CallNames
from openclaw.domain.compaction import CompactionSettings
from openclaw.domain.entry import SessionEntry
from openclaw.domain.flush import FlushSettings
from openclaw.domain.heartbeat import HeartbeatRules
from openclaw.domain.keys import KeySettings
from openclaw.domain.modelhint import ModelCandidate
from openclaw.domain.policy import SendPolicy
from openclaw.domain.pruning import PruningSettings
from openclaw.domain.queueing import QueueConfig
from openclaw.domain.spawnfiles import SpawnFileLimits
from openclaw.engine.ports import ModelTarget
from openclaw.store.inbox import ResetRulesAt


class SpawnRules(Struct, frozen=True):
    """What sessions of an agent may start, and how their helpers run (SPEC §16.1)."""

    max_depth: int = 1
    max_children: int = 5
    allow_agents: tuple[str, ...] | None = None
    require_agent_id: bool = False
    model: str | None = None
    thinking: str | None = None
    run_timeout_s: int = 0
    announce_timeout_ms: int = 120_000
    archive_after_minutes: int = 60


class AgentSettings(Struct, frozen=True):
    """One agent as the engine needs it."""

    agent_id: str
    name: str
    workspace: str
    timeout_s: float
    tools: tuple[str, ...]
    default_model: ModelTarget
    # The turn's own choice, then the session's, then the agent's; the fallbacks behind it (LOOP-7).
    choose_models: Callable[[SessionEntry, str | None], tuple[ModelTarget, ...]]
    zone: ZoneInfo
    thinking_default: str | None = None
    verbose_default: str | None = None
    budget: BudgetLimits = BudgetLimits()
    # A ceiling on the window of any model.
    context_tokens: int | None = None
    pruning: PruningSettings = PruningSettings()
    compaction: CompactionSettings = CompactionSettings()
    # None: the model of the session writes its own summaries.
    compaction_model: ModelTarget | None = None
    # Whether people are told when a compaction that nobody asked for begins and ends (COMP-5).
    notify_compaction: bool = False
    flush: FlushSettings = FlushSettings()
    # What a session of this agent may use; a sub-agent has less (SPAWN-9).
    tools_of: Callable[[SessionEntry, str], tuple[str, ...]] | None = None
    spawning: SpawnRules = SpawnRules()
    workspace_access: Literal["rw", "ro", "none"] = "rw"
    # How groups call it.
    call_names: CallNames = CallNames()
    # None: nobody asked for one (PITFALLS F2).
    heartbeat: HeartbeatRules | None = None
    # Every session of the agent, or with `outside_sandbox` every one but that (VIS-2, AMB-34).
    sandboxed: bool = False
    outside_sandbox: str | None = None
    sandbox_scope: Literal["session", "agent", "shared"] = "session"
    sandbox_network: bool = False

    def tools_for(self, entry: SessionEntry, session_key: str) -> tuple[str, ...]:
        return self.tools if self.tools_of is None else self.tools_of(entry, session_key)

    def is_sandboxed(self, session_key: str) -> bool:
        return self.sandboxed or (self.outside_sandbox is not None and session_key != self.outside_sandbox)

    def access_for(self, session_key: str) -> Literal["rw", "ro", "none"]:
        """What a session may do with the workspace; only the sandbox limits it."""
        return self.workspace_access if self.is_sandboxed(session_key) else "rw"

    def scratch_for(self, session_key: str) -> str:
        """Whose folder a sandboxed session works in when the workspace is not for it."""
        owners = {"session": session_key, "agent": f"agent:{self.agent_id}", "shared": "shared"}
        return owners[self.sandbox_scope] if self.is_sandboxed(session_key) else ""


class EngineSettings(Struct, frozen=True):
    agents: dict[str, AgentSettings]
    default_agent: str
    keys: KeySettings
    resets: ResetRulesAt
    reset_triggers: tuple[str, ...]
    send_policy: SendPolicy | None
    queue: QueueConfig
    lane_caps: dict[str, int]
    model_candidates: tuple[ModelCandidate, ...] = ()
    ping_pong_turns: int = 5
    # How people and rooms become session keys (KEY-3).
    addresses: AddressSettings = AddressSettings()
    spawn_files: SpawnFileLimits = SpawnFileLimits()
    thread_bindings: BindingTerms = BindingTerms()

    def agent(self, agent_id: str) -> AgentSettings:
        """The settings of an agent; one that is no longer configured runs with the default's."""
        return self.agents.get(agent_id) or self.agents[self.default_agent]
