"""Rules that need more than one setting at a time: names that must exist, pairs that must agree.

Runs on the typed config and reports by path; never changes anything.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from zoneinfo import ZoneInfo

from openclaw.config.agents_section import HeartbeatConfig, ModelChoiceConfig
from openclaw.config.models_section import BUILT_IN_PROVIDERS
from openclaw.config.nodes import Path
from openclaw.config.problems import Report
from openclaw.config.schema import Config
from openclaw.domain.keys import KeySettings
from openclaw.errors import InvalidSessionKey

_HOOK_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
ModelSetting = str | ModelChoiceConfig | None


def check_all(config: Config, report: Report) -> None:
    """Report every rule that the config breaks."""
    _check_agents(config, report)
    _check_models(config, report)
    _check_session(config, report)
    _check_pruning(config, report)
    _check_heartbeats(config, report)
    _check_gateway(config, report)
    _check_automation(config, report)


def _check_agents(config: Config, report: Report) -> None:
    known: set[str] = set()
    defaults: list[int] = []
    for index, agent in enumerate(config.agents.list):
        here: Path = ("agents", "list", index)
        agent_id = agent.id.lower()
        if agent_id in known:
            report.problem((*here, "id"), f'another agent above has the id "{agent_id}" already')
        known.add(agent_id)
        if agent.default:
            defaults.append(index)
        if agent.sandbox.session_tools_visibility == "all":
            _warn_unlifted_clamp(report, (*here, "sandbox", "sessionToolsVisibility"))
    for index in defaults[1:]:
        report.warning(("agents", "list", index, "default"), "another agent above is the default; it counts")
    if config.agents.defaults.sandbox.session_tools_visibility == "all":
        _warn_unlifted_clamp(report, ("agents", "defaults", "sandbox", "sessionToolsVisibility"))
    if not report.has_problem_under("agents", "list"):
        _check_bindings(config, known or {"main"}, report)


def _check_bindings(config: Config, known: set[str], report: Report) -> None:
    for index, binding in enumerate(config.bindings):
        wanted = binding.agent_id.lower()
        if wanted not in known:
            reason = f'no agent "{binding.agent_id}" in agents.list{_suggest(wanted, known)}'
            report.problem(("bindings", index, "agentId"), reason)


def _warn_unlifted_clamp(report: Report, path: Path) -> None:
    """AMB-2: accepted for compatibility, without effect."""
    report.warning(path, '"all" has no effect: a sandboxed session never sees more than the tree it spawned')


def _suggest(name: str, known: set[str]) -> str:
    close = difflib.get_close_matches(name[:64], sorted(known)[:1000], n=1)
    return f'; did you mean "{close[0]}"?' if close else ""


# -- models ------------------------------------------------------------------------------------


def _check_models(config: Config, report: Report) -> None:
    defaults = config.agents.defaults
    providers = {name.lower() for name in config.models.providers} | BUILT_IN_PROVIDERS
    aliases = {model.alias.lower() for model in defaults.models.values() if model.alias}
    for ref in defaults.models:
        reason = _ref_problem(ref, providers, set())
        if reason:
            report.problem(("agents", "defaults", "models", ref), reason)
    for path, ref in _model_settings(config):
        reason = _ref_problem(ref, providers, aliases)
        if reason:
            report.problem(path, reason)


def _ref_problem(ref: str, providers: set[str], aliases: set[str]) -> str | None:
    """Why a model reference leads nowhere, or None. Aliases are names without an owner."""
    if ref.strip().lower() in aliases:
        return None
    provider, slash, model = ref.strip().partition("/")
    if not (slash and provider and model):
        hint = "" if not aliases else f" or an alias ({', '.join(sorted(aliases)[:5])})"
        return f'expected "provider/model"{hint}, found "{ref[:60]}"'
    if provider.lower() in providers:
        return None
    hint = _suggest(provider.lower(), providers)
    return f'names the provider "{provider[:60]}", which is not in models.providers{hint}'


def _model_settings(config: Config) -> Iterator[tuple[Path, str]]:
    """Every place that names a model, with its path."""
    base: Path = ("agents", "defaults")
    defaults = config.agents.defaults
    yield from _choice((*base, "model"), defaults.model)
    yield from _choice((*base, "subagents", "model"), defaults.subagents.model)
    yield from _choice((*base, "compaction", "model"), defaults.compaction.model)
    flush = defaults.compaction.memory_flush
    yield from _choice((*base, "compaction", "memoryFlush", "model"), flush.model)
    for index, agent in enumerate(config.agents.list):
        here: Path = ("agents", "list", index)
        yield from _choice((*here, "model"), agent.model)
        yield from _choice((*here, "subagents", "model"), agent.subagents.model)
    for path, heartbeat in _heartbeats(config):
        yield from _choice((*path, "model"), heartbeat.model)


def _choice(path: Path, setting: ModelSetting) -> Iterator[tuple[Path, str]]:
    if isinstance(setting, str):
        yield path, setting
    elif setting is not None:
        if setting.primary is not None:
            yield (*path, "primary"), setting.primary
        for index, fallback in enumerate(setting.fallbacks or ()):
            yield (*path, "fallbacks", index), fallback


# -- sessions, context, heartbeats ----------------------------------------------------------------


def _check_session(config: Config, report: Report) -> None:
    session = config.session
    try:
        KeySettings(main_key=session.main_key)
    except InvalidSessionKey:
        report.problem(
            ("session", "mainKey"), f'"{session.main_key}" cannot name a session; use a plain word'
        )
    keep = session.maintenance
    if keep.reset_archive_retention_ms is True:
        report.problem(
            ("session", "maintenance", "resetArchiveRetention"),
            'true says nothing; write a duration such as "30d", or false to keep archives for ever',
        )
    limit, target = keep.max_disk_bytes, keep.high_water_bytes
    if limit is not None and target is not None and target > limit:
        report.problem(("session", "maintenance", "highWaterBytes"), "larger than maxDiskBytes")


def _check_pruning(config: Config, report: Report) -> None:
    pruning = config.agents.defaults.context_pruning
    base: Path = ("agents", "defaults", "contextPruning")
    trim = pruning.soft_trim
    if trim.head_chars + trim.tail_chars > trim.max_chars:
        reason = f"headChars and tailChars together exceed maxChars ({trim.max_chars})"
        report.problem((*base, "softTrim"), reason)
    if pruning.hard_clear_ratio < pruning.soft_trim_ratio:
        report.problem((*base, "hardClearRatio"), f"below softTrimRatio ({pruning.soft_trim_ratio})")


def _heartbeats(config: Config) -> Iterator[tuple[Path, HeartbeatConfig]]:
    if config.agents.defaults.heartbeat is not None:
        yield ("agents", "defaults", "heartbeat"), config.agents.defaults.heartbeat
    for index, agent in enumerate(config.agents.list):
        if agent.heartbeat is not None:
            yield ("agents", "list", index, "heartbeat"), agent.heartbeat


def _check_heartbeats(config: Config, report: Report) -> None:
    for path, heartbeat in _heartbeats(config):
        hours = heartbeat.active_hours
        if hours is not None and not is_time_zone(hours.timezone):
            reason = f'expected "local" or a name such as "Europe/Madrid", found "{hours.timezone[:60]}"'
            report.problem((*path, "activeHours", "timezone"), reason)


def is_time_zone(name: str) -> bool:
    if name.lower() in ("local", "user"):
        return True
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


# -- the gateway ----------------------------------------------------------------------------------


def _check_gateway(config: Config, report: Report) -> None:
    gateway = config.gateway
    if gateway.bind == "custom" and gateway.custom_bind_host is None:
        report.problem(("gateway", "bind"), '"custom" needs gateway.customBindHost')
    if not report.has_problem_under("gateway", "auth"):
        _check_auth(config, report)
    if gateway.mode == "remote" and gateway.remote.url is None:
        report.problem(("gateway", "mode"), '"remote" needs gateway.remote.url')


def _check_auth(config: Config, report: Report) -> None:
    auth = config.gateway.auth
    if auth.mode == "password" and auth.password is None:
        report.problem(("gateway", "auth", "mode"), '"password" needs gateway.auth.password')
    elif config.gateway.bind != "loopback" and not _has_credential(config):
        reason = (
            "refused beyond loopback without authentication; set gateway.auth.token or gateway.auth.password"
        )
        report.problem(("gateway", "bind"), reason)
    elif auth.mode == "none":
        reason = '"none" lets every program on this machine use the gateway'
        report.warning(("gateway", "auth", "mode"), reason)


def _has_credential(config: Config) -> bool:
    auth = config.gateway.auth
    if auth.mode == "none":
        return False
    if auth.mode == "token":
        return auth.token is not None
    return auth.token is not None or auth.password is not None


def _check_automation(config: Config, report: Report) -> None:
    hooks = config.hooks
    if hooks.enabled and hooks.token is None:
        report.problem(("hooks", "enabled"), "webhooks need hooks.token")
    if hooks.token is not None and hooks.token == config.gateway.auth.token:
        report.problem(
            ("hooks", "token"), "must differ from gateway.auth.token: a webhook is not an operator"
        )
    for name in hooks.internal.entries:
        if _HOOK_NAME.fullmatch(name) is None:
            reason = "a hook's name is made of lower-case letters, digits, _ and -, at most 64"
            report.problem(("hooks", "internal", "entries", name), reason)
    if config.cron.session_retention_ms is True:
        reason = 'true says nothing; write a duration such as "24h", or false to keep them for ever'
        report.problem(("cron", "sessionRetention"), reason)
