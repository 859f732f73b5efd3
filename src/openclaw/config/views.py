"""The questions that the rest of the product asks of a config, answered in the pure core's own types.

Small pure functions. Whoever needs a setting asks here, so that a key is read in one
place and its default is written in one place.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from openclaw.config.agent_view import agent as agent
from openclaw.config.agent_view import agent_ids as agent_ids
from openclaw.config.agent_view import agent_refs as agent_refs
from openclaw.config.agent_view import default_agent_id as default_agent_id
from openclaw.config.channels_section import AccountConfig, ChannelConfig, GroupConfig
from openclaw.config.credentials import secrets as secrets
from openclaw.config.models_section import ModelConfig
from openclaw.config.schema import Config
from openclaw.config.session_section import ResetConfig
from openclaw.config.tools_section import AgentToolsConfig, ProviderToolsConfig, ToolRulesConfig, ToolsConfig
from openclaw.domain import routing
from openclaw.domain.addressing import AddressSettings
from openclaw.domain.bindings import HOUR_MS, BindingTerms
from openclaw.domain.groups import fold_word
from openclaw.domain.keys import KeySettings
from openclaw.domain.lifecycle import ResetRule, ResetRules
from openclaw.domain.modelhint import ModelCandidate
from openclaw.domain.policy import SendMatch, SendPolicy, SendRule, clamp_ping_pong_turns
from openclaw.domain.queueing import QueueConfig
from openclaw.domain.toolpolicy import NO_RULES, ToolRules
from openclaw.domain.visibility import VisibilityPolicy

# -- sessions --------------------------------------------------------------------------------------


def key_settings(config: Config) -> KeySettings:
    """How session keys are read (KEY-1, KEY-16)."""
    return KeySettings(main_key=config.session.main_key, scope=config.session.scope)


def address_settings(config: Config) -> AddressSettings:
    """How conversations become session keys (KEY-3 to KEY-8)."""
    return AddressSettings(
        keys=key_settings(config),
        dm_scope=config.session.dm_scope or "main",
        identity_links=config.session.identity_links,
    )


def dm_scope_is_set(config: Config) -> bool:
    """Whether someone chose `dmScope`; an unset one is warned about when people share a session (KEY-3)."""
    return config.session.dm_scope is not None


def reset_rules(config: Config) -> ResetRules:
    """Everything about when sessions expire (LIFE-5 to LIFE-9)."""
    session = config.session
    typed = session.reset_by_type
    by_type = {
        name: _reset_rule(rule)
        for name in ("direct", "group", "thread")
        if typed is not None and (rule := getattr(typed, name)) is not None
    }
    return ResetRules(
        reset=None if session.reset is None else _reset_rule(session.reset),
        by_type=by_type,
        by_channel={name: _reset_rule(rule) for name, rule in session.reset_by_channel.items()},
        idle_minutes=session.idle_minutes,
    )


def _reset_rule(rule: ResetConfig) -> ResetRule:
    return ResetRule(mode=rule.mode, at_hour=rule.at_hour, idle_minutes=rule.idle_minutes)


def send_policy(config: Config) -> SendPolicy | None:
    """`session.sendPolicy`, or None when nothing is blocked by rule (SEND-2)."""
    policy = config.session.send_policy
    if policy is None:
        return None
    rules = tuple(
        SendRule(
            rule.action,
            SendMatch(
                channel=rule.match.channel,
                chat_type=rule.match.chat_type,
                key_prefix=rule.match.key_prefix,
                raw_key_prefix=rule.match.raw_key_prefix,
            ),
        )
        for rule in policy.rules
    )
    return SendPolicy(rules=rules, default=policy.default)


def ping_pong_turns(config: Config) -> int:
    """How many reply-back turns follow a send between agents (A2A-12, CFG-12)."""
    return clamp_ping_pong_turns(config.session.agent_to_agent.max_ping_pong_turns)


class Retention(Struct, frozen=True):
    """What maintenance keeps, in numbers; None is no limit (MAINT-1, MAINT-6, PITFALLS A7)."""

    mode: Literal["enforce", "warn"]
    prune_after_ms: int | None
    max_entries: int | None
    reset_archive_ms: int | None
    max_disk_bytes: int | None
    high_water_bytes: int | None
    cron_session_ms: int | None


def retention(config: Config) -> Retention:
    """The maintenance limits, with the defaults that depend on one another filled in."""
    keep = config.session.maintenance
    archive = keep.reset_archive_retention_ms
    disk = keep.max_disk_bytes or None
    high_water = keep.high_water_bytes
    return Retention(
        mode=keep.mode,
        prune_after_ms=keep.prune_after_ms or None,
        max_entries=keep.max_entries or None,
        reset_archive_ms=(keep.prune_after_ms if archive is None else int(archive)) or None,
        max_disk_bytes=disk,
        high_water_bytes=disk * 4 // 5 if disk and high_water is None else high_water,
        cron_session_ms=int(config.cron.session_retention_ms) or None,
    )


# -- messages and routing ------------------------------------------------------------------------------


def queue_config(config: Config) -> QueueConfig:
    """`messages.queue` for `queueing.resolve_queue` (QUE-4)."""
    queue = config.messages.queue
    return QueueConfig(
        mode=queue.mode,
        by_channel={fold_word(name): mode for name, mode in queue.by_channel.items()},
        debounce_ms=queue.debounce_ms,
        debounce_ms_by_channel={fold_word(name): ms for name, ms in queue.debounce_ms_by_channel.items()},
        cap=queue.cap,
        drop=queue.drop,
    )


def debounce_settings(config: Config) -> routing.DebounceSettings:
    """`messages.inbound` (ROUTE-4)."""
    inbound = config.messages.inbound
    by_channel = {fold_word(name): ms for name, ms in inbound.by_channel.items()}
    return routing.DebounceSettings(inbound.debounce_ms, by_channel)


def binding_terms(config: Config) -> BindingTerms:
    """`session.threadBindings`: how long a thread belongs to a session of its own (BIND-2)."""
    section = config.session.thread_bindings
    return BindingTerms(
        section.enabled,
        int(section.idle_hours * HOUR_MS),
        int(section.max_age_hours * HOUR_MS),
        section.spawn_sessions,
        section.default_spawn_context,
    )


def bindings(config: Config) -> tuple[routing.Binding, ...]:
    """`bindings[]` in file order (ROUTE-1)."""
    return tuple(
        routing.Binding(
            agent_id=binding.agent_id,
            match=routing.BindingMatch(
                channel=binding.match.channel,
                account_id=binding.match.account_id,
                peer=None
                if binding.match.peer is None
                else routing.PeerMatch(binding.match.peer.kind, binding.match.peer.id),
                guild_id=binding.match.guild_id,
                team_id=binding.match.team_id,
                roles=binding.match.roles,
            ),
        )
        for binding in config.bindings
    )


def channel(config: Config, name: str) -> ChannelConfig:
    """The section of one channel in any spelling; defaults when the file has none."""
    wanted = fold_word(name)
    return next(
        (section for key, section in config.channels.items() if fold_word(key) == wanted), ChannelConfig()
    )


def group_rules(
    config: Config, channel_name: str, group_id: str, account_id: str | None = None
) -> routing.GroupRules:
    """Which groups and senders a channel listens to, for one group (ROUTE-3)."""
    section = channel(config, channel_name)
    account = section.accounts.get(account_id or "", AccountConfig())
    groups = section.groups if account.groups is None else account.groups
    own = _group(groups, group_id)
    senders = (own.allow_from, account.group_allow_from, section.group_allow_from)
    people = (account.allow_from, section.allow_from)
    mention = next(
        (one.require_mention for one in (own, _group(groups, "*")) if one.require_mention is not None), True
    )
    policies: tuple[routing.GroupPolicy | None, ...] = (
        account.group_policy,
        section.group_policy,
        channel(config, "defaults").group_policy,
        "allowlist",
    )
    return routing.GroupRules(
        policy=next(policy for policy in policies if policy is not None),
        groups=[name for name, group in groups.items() if group.enabled is not False] if groups else None,
        senders=next((listed for listed in (*senders, *people) if listed is not None), None),
        require_mention=mention,
    )


def _group(groups: dict[str, GroupConfig], group_id: str) -> GroupConfig:
    return groups.get(group_id) or groups.get(group_id.lower()) or GroupConfig()


def owner_ids(config: Config) -> tuple[str, ...]:
    """Ids that name an owner: `commands.ownerAllowFrom` and concrete `allowFrom` entries (KEY-3)."""
    listed = [peer for section in config.channels.values() for peer in section.allow_from or ()]
    return tuple(dict.fromkeys(peer for peer in (*config.commands.owner_allow_from, *listed) if peer != "*"))


# -- tools ---------------------------------------------------------------------------------------------


def visibility_policy(config: Config, agent_id: str) -> VisibilityPolicy:
    """What the sessions of an agent may see of others (VIS-1, VIS-3)."""
    own = _own_sandbox_setting(config, agent_id)
    shared = config.agents.defaults.sandbox.session_tools_visibility
    return VisibilityPolicy(
        level=config.tools.sessions.visibility,
        agent_to_agent_enabled=config.tools.agent_to_agent.enabled,
        agent_to_agent_allow=config.tools.agent_to_agent.allow,
        sandbox_session_tools=own or shared or "spawned",
    )


def _own_sandbox_setting(config: Config, agent_id: str) -> Literal["spawned", "all"] | None:
    entries = (entry for entry in config.agents.list if entry.id.lower() == agent_id.lower())
    return next((entry.sandbox.session_tools_visibility for entry in entries), None)


def tool_rules(config: Config) -> ToolRules:
    """The global stage: `tools.*` (TOOL-5)."""
    return _tool_rules(config.tools)


def agent_tool_rules(config: Config, agent_id: str) -> ToolRules:
    """The agent stage: `agents.list[].tools`."""
    entries = (entry for entry in config.agents.list if entry.id.lower() == agent_id.lower())
    return next((_tool_rules(entry.tools) for entry in entries), NO_RULES)


def group_tool_rules(config: Config, channel_name: str, group_id: str) -> ToolRules:
    """The group stage: the group's own rules, else those of `*`."""
    groups = channel(config, channel_name).groups
    rules = _group(groups, group_id).tools or _group(groups, "*").tools
    return NO_RULES if rules is None else _tool_rules(rules)


def sandbox_tool_rules(config: Config) -> ToolRules:
    """The sandbox stage: `tools.sandbox.tools`."""
    return _tool_rules(config.tools.sandbox.tools)


def subagent_tool_rules(config: Config) -> ToolRules:
    """The sub-agent stage: `tools.subagents.tools` (SPAWN-11)."""
    return _tool_rules(config.tools.subagents.tools)


def _tool_rules(section: ToolsConfig | AgentToolsConfig | ProviderToolsConfig | ToolRulesConfig) -> ToolRules:
    by_provider: dict[str, ProviderToolsConfig] = getattr(section, "by_provider", {})
    return ToolRules(
        profile=getattr(section, "profile", None),
        allow=section.allow,
        also_allow=section.also_allow,
        deny=section.deny,
        by_provider={name: _tool_rules(rules) for name, rules in by_provider.items()},
    )


# -- models --------------------------------------------------------------------------------------------


class ProviderModel(Struct, frozen=True, kw_only=True):
    """One configured model with the way to reach it."""

    provider: str
    model: ModelConfig
    alias: str | None
    base_url: str | None
    api: str | None
    api_key: str | None


def provider_models(config: Config) -> tuple[ProviderModel, ...]:
    """Every model that `models.providers` lists, in file order."""
    return tuple(
        ProviderModel(
            provider=provider_id,
            model=model,
            alias=model_alias(config, f"{provider_id}/{model.id}"),
            base_url=provider.base_url,
            api=provider.api,
            api_key=provider.api_key,
        )
        for provider_id, provider in config.models.providers.items()
        for model in provider.models
    )


def model_alias(config: Config, ref: str) -> str | None:
    """The alias that `agents.defaults.models` gives to a `provider/model`."""
    known = config.agents.defaults.models.get(ref)
    return None if known is None else known.alias


def resolve_alias(config: Config, name: str) -> str:
    """The `provider/model` behind an alias; any other name is returned as it is."""
    wanted = name.strip().lower()
    models = config.agents.defaults.models.items()
    return next((ref for ref, known in models if known.alias and known.alias.lower() == wanted), name.strip())


def model_candidates(config: Config) -> tuple[ModelCandidate, ...]:
    """The models that `/new <model>` may mean: configured, named in defaults, or in use (LIFE-16)."""
    refs = [f"{one.provider}/{one.model.id}" for one in provider_models(config)]
    refs += [ref for ref in config.agents.defaults.models if ref not in refs]
    split = (ref.partition("/") for ref in refs)
    return tuple(
        ModelCandidate(provider, model, model_alias(config, f"{provider}/{model}"))
        for provider, _, model in split
    )
