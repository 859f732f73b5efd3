"""The whole configuration as one value. Every section has its own file; this is the door."""

from __future__ import annotations

import msgspec

from openclaw.config.agents_section import AgentsConfig
from openclaw.config.automation_section import CronConfig, HooksConfig
from openclaw.config.channels_section import BindingConfig, ChannelConfig
from openclaw.config.gateway_section import GatewayConfig, LoggingConfig, StoreConfig
from openclaw.config.messages_section import CommandsConfig, MessagesConfig
from openclaw.config.models_section import ModelsConfig
from openclaw.config.session_section import SessionConfig
from openclaw.config.tools_section import ToolsConfig
from openclaw.config.values import Section


class Config(Section, frozen=True):
    """All settings, with every default in place. `Config()` is a gateway without a file."""

    session: SessionConfig = SessionConfig()
    agents: AgentsConfig = AgentsConfig()
    bindings: tuple[BindingConfig, ...] = ()
    models: ModelsConfig = ModelsConfig()
    tools: ToolsConfig = ToolsConfig()
    messages: MessagesConfig = MessagesConfig()
    commands: CommandsConfig = CommandsConfig()
    channels: dict[str, ChannelConfig] = msgspec.field(default_factory=dict)
    gateway: GatewayConfig = GatewayConfig()
    cron: CronConfig = CronConfig()
    hooks: HooksConfig = HooksConfig()
    logging: LoggingConfig = LoggingConfig()
    store: StoreConfig = StoreConfig()
