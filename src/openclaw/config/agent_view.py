"""One agent with every setting decided: its own entry over `agents.defaults` over the built-in values.

The merge happens here and nowhere else. Times and money keep the units of the keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from openclaw.config.agents_section import (
    ActiveHoursConfig,
    AgentConfig,
    BudgetConfig,
    CompactionConfig,
    ContextPruningConfig,
    IdentityConfig,
    ModelChoiceConfig,
)
from openclaw.config.load import expand_path, state_dir
from openclaw.config.schema import Config
from openclaw.config.values import ThinkingLevel, VerboseLevel
from openclaw.domain import routing
from openclaw.domain.calling import CallNames
from openclaw.errors import InvalidRequest


class ModelChoice(Struct, frozen=True):
    """`primary` None: nothing is configured, the gateway picks from what it finds."""

    primary: str | None = None
    fallbacks: tuple[str, ...] = ()


class SandboxSettings(Struct, frozen=True, kw_only=True):
    mode: Literal["off", "non-main", "all"] = "off"
    scope: Literal["session", "agent", "shared"] = "session"
    workspace_access: Literal["none", "ro", "rw"] = "none"
    network: bool = False
    session_tools_visibility: Literal["spawned", "all"] = "spawned"


class SubagentSettings(Struct, frozen=True, kw_only=True):
    """`allow_agents` None: only the agent itself (SPAWN-6). `archive_after_minutes` 0: never."""

    model: ModelChoice = ModelChoice()
    thinking: ThinkingLevel | None = None
    max_concurrent: int = 8
    archive_after_minutes: int = 60
    allow_agents: tuple[str, ...] | None = None
    max_spawn_depth: int = 1
    max_children_per_agent: int = 5
    run_timeout_seconds: int = 0
    announce_timeout_ms: int = 120_000
    require_agent_id: bool = False
    delegation_mode: Literal["suggest", "prefer"] = "suggest"


class HeartbeatSettings(Struct, frozen=True, kw_only=True):
    # None: half an hour, or what suits the credential of the model (PRUNE-6).
    every_ms: int | None = None
    target: str = "none"
    to: str | None = None
    account_id: str | None = None
    session: str | None = None
    model: str | None = None
    prompt: str | None = None
    ack_max_chars: int = 300
    active_hours: ActiveHoursConfig | None = None


class ResolvedAgent(Struct, frozen=True, kw_only=True):
    """`heartbeat` None: nobody asked for one, so none runs (PITFALLS F2)."""

    agent_id: str
    name: str | None
    is_default: bool
    workspace: Path
    model: ModelChoice
    thinking_default: ThinkingLevel | None
    verbose_default: VerboseLevel | None
    context_tokens: int | None
    timeout_seconds: int
    sandbox: SandboxSettings
    subagents: SubagentSettings
    heartbeat: HeartbeatSettings | None
    budget: BudgetConfig
    identity: IdentityConfig
    mention_patterns: tuple[str, ...]
    context_pruning: ContextPruningConfig
    compaction: CompactionConfig


def agent_refs(config: Config) -> tuple[routing.AgentRef, ...]:
    """The configured agents as routing reads them."""
    return tuple(routing.AgentRef(entry.id, entry.default) for entry in config.agents.list)


def default_agent_id(config: Config) -> str:
    """The agent marked as default, else the first one, else `main` (ROUTE-1)."""
    return routing.default_agent_id(agent_refs(config))


def agent_ids(config: Config) -> tuple[str, ...]:
    """All agents that exist, in the order of the file; `main` alone when none is listed."""
    return tuple(entry.id.lower() for entry in config.agents.list) or (default_agent_id(config),)


def call_names(config: Config, agent_id: str) -> CallNames:
    """How groups call an agent: its own patterns, else those of all agents, and its name."""
    wanted = agent_id.strip().lower()
    own = next((entry for entry in config.agents.list if entry.id.lower() == wanted), AgentConfig(id=wanted))
    identity = own.identity or IdentityConfig()
    patterns = (own.group_chat or config.messages.group_chat).mention_patterns
    return CallNames(patterns, identity.name or own.name)


def agent(config: Config, agent_id: str, env: Mapping[str, str]) -> ResolvedAgent:
    """One agent, fully resolved. Raises InvalidRequest for an agent that is not configured."""
    wanted = agent_id.strip().lower()
    known = agent_ids(config)
    if wanted not in known:
        raise InvalidRequest(f'no agent "{wanted[:64]}"; configured: {", ".join(known[:20])}')
    own = next((entry for entry in config.agents.list if entry.id.lower() == wanted), AgentConfig(id=wanted))
    defaults = config.agents.defaults
    group_chat = own.group_chat or config.messages.group_chat
    subagents = _given(defaults.subagents) | _given(own.subagents)
    subagents["model"] = merge_models(own.subagents.model, defaults.subagents.model)
    heartbeat = _given(defaults.heartbeat) | _given(own.heartbeat)
    asked_for_heartbeat = own.heartbeat is not None or defaults.heartbeat is not None
    return ResolvedAgent(
        agent_id=wanted,
        name=own.name,
        is_default=wanted == default_agent_id(config),
        workspace=_workspace(config, own, wanted, env),
        model=merge_models(own.model, defaults.model),
        thinking_default=own.thinking_default or defaults.thinking_default,
        verbose_default=own.verbose_default or defaults.verbose_default,
        context_tokens=own.context_tokens or defaults.context_tokens,
        timeout_seconds=defaults.timeout_seconds if own.timeout_seconds is None else own.timeout_seconds,
        sandbox=SandboxSettings(**(_given(defaults.sandbox) | _given(own.sandbox))),
        subagents=SubagentSettings(**subagents),
        heartbeat=HeartbeatSettings(**heartbeat) if asked_for_heartbeat else None,
        budget=BudgetConfig(**(_given(defaults.budget) | _given(own.budget))),
        identity=own.identity or IdentityConfig(),
        mention_patterns=group_chat.mention_patterns,
        context_pruning=defaults.context_pruning,
        compaction=defaults.compaction,
    )


def merge_models(own: str | ModelChoiceConfig | None, base: str | ModelChoiceConfig | None) -> ModelChoice:
    """A string names the primary and inherits the fallbacks; an object replaces what it gives."""
    chosen = [ModelChoiceConfig(primary=one) if isinstance(one, str) else one for one in (own, base)]
    given = [one for one in chosen if one is not None]
    return ModelChoice(
        primary=next((one.primary for one in given if one.primary is not None), None),
        fallbacks=next((one.fallbacks for one in given if one.fallbacks is not None), ()),
    )


def _given(section: Struct | None) -> dict[str, Any]:
    """The fields of a section that are set."""
    names = () if section is None else section.__struct_fields__
    return {name: value for name in names if (value := getattr(section, name)) is not None}


def _workspace(config: Config, own: AgentConfig, agent_id: str, env: Mapping[str, str]) -> Path:
    """The agent's own directory; agents beside the default one never share its directory by accident."""
    if own.workspace is not None:
        return expand_path(own.workspace, env)
    shared = config.agents.defaults.workspace
    base = state_dir(env) / "workspace" if shared is None else expand_path(shared, env)
    if agent_id == default_agent_id(config):
        return base
    return base.with_name(f"{base.name}-{agent_id}")
