"""From configuration to the values that engine and gateway read, made anew on every reload.

Part of the composition root: it knows the configuration and the model catalogue,
and nobody below knows either.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from openclaw.app.discovery import choose_model as choose_default
from openclaw.app.discovery import providers_in_reach
from openclaw.app.providerdefaults import heartbeat_every_ms, pruning_ttl_ms, with_cache_ttl
from openclaw.app.toolsets import sandboxing_of, tools_of_sessions
from openclaw.config import views
from openclaw.config.agent_view import HeartbeatSettings, SubagentSettings, call_names
from openclaw.config.schema import Config
from openclaw.config.tools_section import SpawnAttachmentsConfig
from openclaw.domain.budget import BudgetLimits
from openclaw.domain.compaction import CompactionSettings
from openclaw.domain.entry import SessionEntry
from openclaw.domain.flush import FlushSettings
from openclaw.domain.heartbeat import PROMPT, ActiveHours, HeartbeatRules, minute_of_day
from openclaw.domain.keys import format_key, main_session_key
from openclaw.domain.pruning import PruningSettings
from openclaw.domain.spawnfiles import SpawnFileLimits
from openclaw.domain.visibility import VisibilityPolicy
from openclaw.engine.lanes import DEFAULT_CAPS
from openclaw.engine.ports import ModelTarget
from openclaw.engine.settings import AgentSettings, EngineSettings, SpawnRules
from openclaw.errors import InvalidRequest, OpenClawError
from openclaw.gateway.services import ModelRow
from openclaw.models.catalog import ProviderInfo, resolve_target
from openclaw.models.discovery import Found
from openclaw.store.inbox import ResetRulesAt


class SettingsSource:
    """Holds the configuration in force. `current` is what everybody asks, on every turn."""

    def __init__(self, config: Config, env: Mapping[str, str]) -> None:
        self._env = env
        self._config = config
        self._zone = local_zone(env)
        self._found: tuple[Found, ...] = ()
        self._tools: tuple[str, ...] = ()
        self._settings = self._build()

    def current(self) -> EngineSettings:
        return self._settings

    def replace(self, config: Config) -> None:
        """Take a new configuration; when it cannot be used, the one in force stays."""
        previous, self._config = self._config, config
        try:
            self._settings = self._build()
        except OpenClawError:
            self._config = previous
            raise

    def offer_tools(self, names: tuple[str, ...]) -> None:
        self._tools = names
        self._settings = self._build()

    def visibility(self, agent_id: str) -> VisibilityPolicy:
        return views.visibility_policy(self._config, agent_id)

    # -- models --------------------------------------------------------------------------------

    def check_model(self, name: str) -> str:
        """The `provider/model` that a person named, by reference or alias; refused when there is none."""
        ref = views.resolve_alias(self._config, name)
        if "/" not in ref and ref != "offline":
            known = [f"{row.provider}/{row.model}" for row in self.model_rows()]
            raise InvalidRequest(f"Unknown model {name[:80]!r}. Known: {', '.join(known[:20])}")
        target = resolve_target(ref, self._providers())
        return f"{target.provider}/{target.model}"

    def model_rows(self) -> tuple[ModelRow, ...]:
        rows = [
            ModelRow(
                one.provider,
                one.model.id,
                one.model.name or one.model.id,
                one.model.context_window or 200_000,
                one.model.reasoning,
            )
            for one in views.provider_models(self._config)
        ]
        return (*rows, ModelRow("offline", "offline", "Offline (no model)", 200_000, False))

    def model_note(self) -> str:
        """Whose money a turn costs, or why nobody's."""
        choice = choose_default(self._config, self._env, self._found)
        return f"{choice.reason}; {choice.payer}"

    def offer_models(self, found: tuple[Found, ...]) -> None:
        """Take what was found on this machine; it counts where nothing is configured."""
        self._found = found
        self._settings = self._build()

    def _providers(self) -> dict[str, ProviderInfo]:
        return providers_in_reach(self._config, self._env, self._found)

    # -- agents --------------------------------------------------------------------------------

    def _build(self) -> EngineSettings:
        config = self._config
        agents = {agent_id: self._agent(agent_id) for agent_id in views.agent_ids(config)}
        return EngineSettings(
            agents=agents,
            default_agent=views.default_agent_id(config),
            keys=views.key_settings(config),
            resets=ResetRulesAt(views.reset_rules(config), self._zone),
            reset_triggers=config.session.reset_triggers,
            send_policy=views.send_policy(config),
            queue=views.queue_config(config),
            lane_caps={
                "main": config.agents.defaults.max_concurrent,
                "subagent": config.agents.defaults.subagents.max_concurrent or DEFAULT_CAPS["subagent"],
                "cron": config.cron.max_concurrent_runs or DEFAULT_CAPS["cron"],
            },
            model_candidates=views.model_candidates(config),
            ping_pong_turns=views.ping_pong_turns(config),
            addresses=views.address_settings(config),
            thread_bindings=views.binding_terms(config),
            spawn_files=_spawn_files(config.tools.sessions_spawn.attachments),
        )

    def _agent(self, agent_id: str) -> AgentSettings:
        agent = views.agent(self._config, agent_id, self._env)
        providers = self._providers()
        primary = agent.model.primary
        if primary is None:
            ref = choose_default(self._config, self._env, self._found).ref
        else:
            ref = views.resolve_alias(self._config, primary)
        ttl_ms = agent.context_pruning.ttl_ms

        def resolve(ref: str) -> ModelTarget:
            return with_cache_ttl(resolve_target(ref, providers), ttl_ms)

        default = resolve(ref)
        choose_models = _choose_models(default, agent.model.fallbacks, resolve)
        tools_of = tools_of_sessions(
            self._config, agent, self._tools, lambda entry: choose_models(entry, None)[0]
        )
        keys = views.key_settings(self._config)
        sandboxing = sandboxing_of(agent, keys)
        summariser = agent.compaction.model
        return AgentSettings(
            agent_id=agent_id,
            name=agent.name or agent_id,
            workspace=str(agent.workspace),
            timeout_s=float(agent.timeout_seconds),
            tools=tools_of(_NOBODY, format_key(main_session_key(agent_id, keys))),
            tools_of=tools_of,
            spawning=_spawn_rules(agent.subagents),
            default_model=default,
            choose_models=choose_models,
            zone=self._zone,
            thinking_default=agent.thinking_default,
            verbose_default=agent.verbose_default,
            call_names=call_names(self._config, agent_id),
            budget=BudgetLimits(
                agent.budget.per_session_usd, agent.budget.per_day_usd, agent.budget.per_tree_usd
            ),
            context_tokens=agent.context_tokens,
            pruning=msgspec.convert(
                msgspec.structs.replace(agent.context_pruning, ttl_ms=pruning_ttl_ms(default, ttl_ms)),
                PruningSettings,
                from_attributes=True,
            ),
            compaction=msgspec.convert(agent.compaction, CompactionSettings, from_attributes=True),
            compaction_model=resolve_target(summariser, providers) if summariser else None,
            notify_compaction=agent.compaction.notify_user,
            flush=msgspec.convert(agent.compaction.memory_flush, FlushSettings, from_attributes=True),
            heartbeat=_heartbeat(agent.heartbeat, self._zone, default),
            workspace_access="rw" if agent.sandbox.mode == "off" else agent.sandbox.workspace_access,
            sandboxed=sandboxing.all,
            outside_sandbox=sandboxing.main_key,
            sandbox_scope=agent.sandbox.scope,
            sandbox_network=agent.sandbox.network,
        )


_NOBODY = SessionEntry(session_id="", updated_at=0)


def _choose_models(
    default: ModelTarget, fallback_refs: Sequence[str], resolve: Callable[[str], ModelTarget]
) -> Callable[[SessionEntry, str | None], tuple[ModelTarget, ...]]:
    fallbacks = tuple(resolve(ref) for ref in fallback_refs)

    def choose_models(entry: SessionEntry, asked: str | None) -> tuple[ModelTarget, ...]:
        first = default
        if asked is not None:
            first = resolve(asked)
        elif entry.model_override and entry.provider_override:
            with contextlib.suppress(InvalidRequest):  # it may name a model that is no longer configured
                first = resolve(f"{entry.provider_override}/{entry.model_override}")
        others = (target for target in (*fallbacks, default) if target != first)
        return (first, *others)[: 1 + len(fallbacks)]

    return choose_models


def _heartbeat(wanted: HeartbeatSettings | None, zone: ZoneInfo, model: ModelTarget) -> HeartbeatRules | None:
    """What the configuration says about an agent's heartbeat; the local zone counts where none is named."""
    if wanted is None:
        return None
    hours = wanted.active_hours
    active = None
    if hours is not None:
        own = zone if hours.timezone in ("local", "user") else ZoneInfo(hours.timezone)
        active = ActiveHours(minute_of_day(hours.start), minute_of_day(hours.end), own)
    return HeartbeatRules(
        every_ms=heartbeat_every_ms(model, wanted.every_ms),
        target=wanted.target,
        to=wanted.to,
        account_id=wanted.account_id,
        session=wanted.session,
        model=wanted.model,
        prompt=wanted.prompt or PROMPT,
        ack_max_chars=wanted.ack_max_chars,
        active_hours=active,
    )


def _spawn_rules(rules: SubagentSettings) -> SpawnRules:
    return SpawnRules(
        rules.max_spawn_depth,
        rules.max_children_per_agent,
        rules.allow_agents,
        rules.require_agent_id,
        rules.model.primary,
        rules.thinking,
        rules.run_timeout_seconds,
        rules.announce_timeout_ms,
        rules.archive_after_minutes,
    )


def _spawn_files(section: SpawnAttachmentsConfig) -> SpawnFileLimits:
    return SpawnFileLimits(
        enabled=section.enabled,
        count=section.max_files,
        file_bytes=section.max_file_bytes,
        total_bytes=section.max_total_bytes,
        retain=section.retain_on_session_keep,
    )


def local_zone(env: Mapping[str, str]) -> ZoneInfo:
    """The zone of the Gateway host (LIFE-2): TZ, else what /etc/localtime points at, else UTC."""
    candidates = [env.get("TZ", "").lstrip(":")]
    target = os.path.realpath("/etc/localtime")
    if "zoneinfo/" in target:
        candidates.append(target.split("zoneinfo/", 1)[1])
    timezone_file = Path("/etc/timezone")
    if timezone_file.is_file():
        candidates.append(timezone_file.read_text(encoding="utf-8", errors="replace").strip())
    for name in candidates:
        if name:
            try:
                return ZoneInfo(name)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                continue
    return ZoneInfo("UTC")
