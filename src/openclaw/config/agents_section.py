"""`agents.*`: what an agent is and how its runs behave (SPEC §2.3, §16, §19–§21, §27).

The same section types serve `agents.defaults` and `agents.list[]`; in the list `None`
means "as in the defaults". Merging the two is done once, in `views.agent`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from openclaw.config.tools_section import AgentToolsConfig
from openclaw.config.values import (
    AgentId,
    Bytes,
    Count,
    DurationBareMinutes,
    Milliseconds,
    Minutes,
    ModelRef,
    PeerId,
    Positive,
    Ratio,
    Seconds,
    Section,
    Text,
    Texts,
    ThinkingLevel,
    Usd,
    VerboseLevel,
)

ClockTime = Annotated[
    str,
    Meta(
        pattern=r"^(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00)$",
        extra={"expected": 'a time of day such as "08:30" (up to "24:00")'},
    ),
]


class ModelChoiceConfig(Section, frozen=True):
    """A model and what to try when its provider fails (LOOP-7). A plain string is the primary."""

    primary: ModelRef | None = None
    fallbacks: tuple[ModelRef, ...] | None = None


class KnownModelConfig(Section, frozen=True):
    """One entry of `agents.defaults.models`, keyed by `provider/model`."""

    alias: Text | None = None
    params: dict[str, Any] = msgspec.field(default_factory=dict)


class SandboxConfig(Section, frozen=True):
    """Sandboxing is a policy fact even where no backend is installed (AMB-34)."""

    mode: Literal["off", "non-main", "all"] | None = None
    scope: Literal["session", "agent", "shared"] | None = None
    workspace_access: Literal["none", "ro", "rw"] | None = None
    network: bool | None = None
    session_tools_visibility: Literal["spawned", "all"] | None = None


class SubagentsConfig(Section, frozen=True):
    """Limits and defaults of spawned sessions (SPAWN-6, SPAWN-12, ANN-11)."""

    model: ModelRef | ModelChoiceConfig | None = None
    thinking: ThinkingLevel | None = None
    max_concurrent: Positive | None = None
    archive_after_minutes: Minutes | None = None
    allow_agents: Texts | None = None
    max_spawn_depth: Annotated[int, Meta(ge=1, le=5)] | None = None
    max_children_per_agent: Annotated[int, Meta(ge=1, le=200)] | None = None
    run_timeout_seconds: Seconds | None = None
    announce_timeout_ms: Milliseconds | None = None
    require_agent_id: bool | None = None
    delegation_mode: Literal["suggest", "prefer"] | None = None


class ActiveHoursConfig(Section, frozen=True):
    start: ClockTime = "00:00"
    end: ClockTime = "24:00"
    timezone: Text = "local"


class HeartbeatConfig(Section, frozen=True):
    """A periodic turn in the main session (AUTO-7). An interval of zero switches it off."""

    every_ms: DurationBareMinutes | None = msgspec.field(default=None, name="every")
    target: Text | None = None
    to: PeerId | None = None
    account_id: Text | None = None
    session: Text | None = None
    model: ModelRef | None = None
    prompt: Text | None = None
    ack_max_chars: Count | None = None
    active_hours: ActiveHoursConfig | None = None


class SoftTrimConfig(Section, frozen=True):
    max_chars: Positive = 4000
    head_chars: Count = 1500
    tail_chars: Count = 1500


class HardClearConfig(Section, frozen=True):
    enabled: bool = True
    placeholder: Text = "[Old tool result content cleared]"


class PruningToolsConfig(Section, frozen=True):
    allow: Texts = ()
    deny: Texts = ()


class ContextPruningConfig(Section, frozen=True):
    """Old tool results leave the context of a model call, never the transcript (PRUNE-2, AMB-12)."""

    mode: Literal["off", "cache-ttl"] = "cache-ttl"
    # Five minutes, or as long as the provider keeps the beginnings of requests (PRUNE-6).
    ttl_ms: DurationBareMinutes | None = msgspec.field(default=None, name="ttl")
    keep_last_assistants: Count = 3
    soft_trim_ratio: Ratio = 0.3
    hard_clear_ratio: Ratio = 0.5
    min_prunable_tool_chars: Count = 50_000
    soft_trim: SoftTrimConfig = SoftTrimConfig()
    hard_clear: HardClearConfig = HardClearConfig()
    tools: PruningToolsConfig = PruningToolsConfig()


class MemoryFlushConfig(Section, frozen=True):
    """The silent turn before an automatic compaction (FLUSH-5)."""

    enabled: bool = True
    soft_threshold_tokens: Count = 4000
    prompt: Text | None = None
    system_prompt: Text | None = None
    model: ModelRef | None = None


class CompactionConfig(Section, frozen=True):
    """When older context is summarised and how much stays (COMP-5)."""

    mode: Literal["default", "safeguard"] = "default"
    reserve_tokens: Count = 16_384
    reserve_tokens_floor: Count = 20_000
    keep_recent_tokens: Count = 20_000
    model: ModelRef | None = None
    timeout_seconds: Seconds = 900
    identifier_policy: Literal["strict", "off", "custom"] = "strict"
    identifier_instructions: Text | None = None
    notify_user: bool = False
    max_active_transcript_bytes: Bytes | None = None
    memory_flush: MemoryFlushConfig = MemoryFlushConfig()


class BudgetConfig(Section, frozen=True):
    """Hard spending limits in US dollars; None is no limit, zero allows nothing that costs."""

    per_session_usd: Usd | None = None
    per_day_usd: Usd | None = None
    per_tree_usd: Usd | None = None


class IdentityConfig(Section, frozen=True):
    name: Text | None = None
    theme: Text | None = None
    emoji: Text | None = None
    avatar: Text | None = None


class GroupChatConfig(Section, frozen=True):
    """How a group addresses the agent; patterns are plain text with `*`, never regular expressions."""

    mention_patterns: Texts = ()
    history_limit: Count | None = None


class AgentDefaultsConfig(Section, frozen=True):
    workspace: Text | None = None
    model: ModelRef | ModelChoiceConfig | None = None
    models: dict[str, KnownModelConfig] = msgspec.field(default_factory=dict)
    thinking_default: ThinkingLevel | None = None
    verbose_default: VerboseLevel | None = None
    context_tokens: Positive | None = None
    timeout_seconds: Seconds = 172_800
    max_concurrent: Positive = 4
    context_pruning: ContextPruningConfig = ContextPruningConfig()
    compaction: CompactionConfig = CompactionConfig()
    heartbeat: HeartbeatConfig | None = None
    sandbox: SandboxConfig = SandboxConfig()
    subagents: SubagentsConfig = SubagentsConfig()
    budget: BudgetConfig = BudgetConfig()


class AgentConfig(Section, frozen=True):
    id: AgentId
    default: bool = False
    name: Text | None = None
    workspace: Text | None = None
    model: ModelRef | ModelChoiceConfig | None = None
    thinking_default: ThinkingLevel | None = None
    verbose_default: VerboseLevel | None = None
    context_tokens: Positive | None = None
    timeout_seconds: Seconds | None = None
    subagents: SubagentsConfig = SubagentsConfig()
    sandbox: SandboxConfig = SandboxConfig()
    tools: AgentToolsConfig = AgentToolsConfig()
    heartbeat: HeartbeatConfig | None = None
    budget: BudgetConfig = BudgetConfig()
    identity: IdentityConfig | None = None
    group_chat: GroupChatConfig | None = None


class AgentsConfig(Section, frozen=True):
    defaults: AgentDefaultsConfig = AgentDefaultsConfig()
    list: tuple[AgentConfig, ...] = ()
