"""`tools.*`: which tools an agent gets and which sessions they reach (SPEC §12, §16)."""

from __future__ import annotations

from typing import Literal

import msgspec

from openclaw.config.values import Bytes, Count, Section, Texts

ToolProfile = Literal["minimal", "coding", "messaging", "full"]


class ToolRulesConfig(Section, frozen=True):
    """Names or `group:` names, `*` allowed, any case. An empty `allow` restricts nothing; deny wins."""

    allow: Texts = ()
    also_allow: Texts = ()
    deny: Texts = ()


class ProviderToolsConfig(Section, frozen=True):
    profile: ToolProfile | None = None
    allow: Texts = ()
    also_allow: Texts = ()
    deny: Texts = ()


class SandboxToolsConfig(Section, frozen=True):
    tools: ToolRulesConfig = ToolRulesConfig()


class SubagentToolsConfig(Section, frozen=True):
    tools: ToolRulesConfig = ToolRulesConfig()


class SessionToolsConfig(Section, frozen=True):
    visibility: Literal["self", "tree", "agent", "all"] = "tree"


class AgentToAgentConfig(Section, frozen=True):
    enabled: bool = False
    allow: Texts = ()


class SpawnAttachmentsConfig(Section, frozen=True):
    """Inline files for a spawned session (SPAWN-17); off unless asked for."""

    enabled: bool = False
    max_total_bytes: Bytes = 5_242_880
    max_files: Count = 50
    max_file_bytes: Bytes = 1_048_576
    retain_on_session_keep: bool = False


class SpawnToolConfig(Section, frozen=True):
    attachments: SpawnAttachmentsConfig = SpawnAttachmentsConfig()


class ToolsConfig(Section, frozen=True):
    profile: ToolProfile | None = None
    allow: Texts = ()
    also_allow: Texts = ()
    deny: Texts = ()
    by_provider: dict[str, ProviderToolsConfig] = msgspec.field(default_factory=dict)
    sandbox: SandboxToolsConfig = SandboxToolsConfig()
    sessions: SessionToolsConfig = SessionToolsConfig()
    agent_to_agent: AgentToAgentConfig = AgentToAgentConfig()
    subagents: SubagentToolsConfig = SubagentToolsConfig()
    sessions_spawn: SpawnToolConfig = msgspec.field(default=SpawnToolConfig(), name="sessions_spawn")


class AgentToolsConfig(Section, frozen=True):
    """`agents.list[].tools`: the same stages for one agent."""

    profile: ToolProfile | None = None
    allow: Texts = ()
    also_allow: Texts = ()
    deny: Texts = ()
    by_provider: dict[str, ProviderToolsConfig] = msgspec.field(default_factory=dict)
