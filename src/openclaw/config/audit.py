"""What a configuration makes possible that its owner may not want, each with the change that closes it.

Pure: a config and its text in, findings out. A finding is advice, never a refusal;
what may not be configured at all is the business of `checks`. Files and rows are
looked at elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from openclaw.config import views
from openclaw.config.json5 import Json5Error, parse
from openclaw.config.load import LoadedConfig
from openclaw.config.nodes import Array, Node, Object, Path, format_path
from openclaw.config.references import has_references
from openclaw.config.schema import Config
from openclaw.domain.redaction import is_secret_name
from openclaw.domain.toolpolicy import ToolStages, effective_tools

Severity = Literal["critical", "warn", "info"]
SHORTEST_TOKEN = 24
SHORTEST_PASSWORD = 12
FEWEST_DIFFERENT = 8
# The gateway itself keeps its own credential there, because existing clients read it there.
_OWN_CREDENTIAL = ("gateway.auth.token", "gateway.auth.password", "gateway.remote.token")


class Finding(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing to know. `check` is a stable name; `fixed` says that it was put right just now."""

    check: str
    severity: Severity
    detail: str
    fix: str
    # The path of what `--fix` puts right, where it can.
    path: str | None = None
    fixed: bool = False


def audit_config(loaded: LoadedConfig) -> tuple[Finding, ...]:
    """Everything that the configuration alone gives away, in the order of its sections."""
    config = loaded.config
    return (
        *_gateway(config),
        *_origins(config),
        *_channels(config),
        *_execution(config),
        *_agents(config),
        *_written_secrets(loaded.raw_text),
    )


# -- the gateway ----------------------------------------------------------------------------------


def _gateway(config: Config) -> Iterator[Finding]:
    gateway, auth = config.gateway, config.gateway.auth
    open_to_others = gateway.bind != "loopback"
    if open_to_others:
        yield Finding(
            "gateway.bind",
            "warn",
            f'gateway.bind is "{gateway.bind}": other machines can reach the gateway',
            "openclaw config set gateway.bind loopback, and reach it through an SSH tunnel",
        )
    mode = auth.mode_in_force
    if mode == "none":
        yield Finding(
            "gateway.auth",
            "warn",  # beyond loopback it is refused altogether
            "gateway.auth.mode is none: every program on this machine is the owner",
            "openclaw config set gateway.auth.mode token",
        )
        return
    secret = auth.token if mode == "token" else auth.password
    shortest = SHORTEST_TOKEN if mode == "token" else SHORTEST_PASSWORD
    if secret and (len(secret) < shortest or len(set(secret)) < FEWEST_DIFFERENT):
        yield Finding(
            f"gateway.auth.{mode}",
            "critical" if open_to_others else "warn",
            f"gateway.auth.{mode} is easy to guess: under {shortest} characters, or few different ones",
            f"openclaw config set gateway.auth.{mode} "
            "\"$(python3 -c 'import secrets; print(secrets.token_urlsafe(32))')\"",
        )


def _origins(config: Config) -> Iterator[Finding]:
    if "*" in config.gateway.control_ui.allowed_origins:
        yield Finding(
            "gateway.controlUi.allowedOrigins",
            "critical",
            "gateway.controlUi.allowedOrigins holds *: any web page may try to talk to the gateway",
            "name the pages that you use, such as https://ui.example.org",
        )
    if "*" in config.gateway.allowed_hosts:
        yield Finding(
            "gateway.allowedHosts",
            "warn",
            "gateway.allowedHosts holds *: a web page can reach the gateway under a name of its own",
            "name the hosts under which you reach the gateway",
        )


# -- who may talk ---------------------------------------------------------------------------------


def _channels(config: Config) -> Iterator[Finding]:
    for where, dm_policy, group_policy in _doors(config):
        if dm_policy == "open":
            yield Finding(
                "channels.dmPolicy",
                "critical",
                f'{where}.dmPolicy is "open": anybody who finds the account talks to the agent',
                f"openclaw config set {where}.dmPolicy pairing",
            )
        if group_policy == "open":
            yield Finding(
                "channels.groupPolicy",
                "warn",
                f'{where}.groupPolicy is "open": everybody in every group of the account is heard',
                f"openclaw config set {where}.groupPolicy allowlist",
            )


def _doors(config: Config) -> Iterator[tuple[str, str | None, str | None]]:
    for name, channel in config.channels.items():
        where = format_path(("channels", name))
        yield where, channel.dm_policy, channel.group_policy
        for account_id, account in channel.accounts.items():
            yield (
                format_path(("channels", name, "accounts", account_id)),
                account.dm_policy,
                account.group_policy,
            )


def is_open(config: Config) -> bool:
    """Whether some channel lets strangers talk to an agent."""
    return any("open" in (dm_policy, group_policy) for _, dm_policy, group_policy in _doors(config))


# -- what agents may do ---------------------------------------------------------------------------


def _execution(config: Config) -> Iterator[Finding]:
    """Commands on the host are for owners only; an open door makes that the one wall left."""
    severity: Severity = "warn" if is_open(config) else "info"
    for agent_id in views.agent_ids(config):
        stages = ToolStages(
            global_rules=views.tool_rules(config), agent=views.agent_tool_rules(config, agent_id)
        )
        own = next((one.sandbox.mode for one in config.agents.list if one.id.lower() == agent_id), None)
        mode = own or config.agents.defaults.sandbox.mode or "off"
        if mode != "all" and effective_tools(("exec",), stages).tools:
            yield Finding(
                "tools.exec",
                severity,
                f'agent {agent_id} may run commands on this machine for its owner (sandbox.mode is "{mode}")',
                'deny it with tools.deny: ["group:runtime"], or set agents.defaults.sandbox.mode to "all"',
            )


def _agents(config: Config) -> Iterator[Finding]:
    between = config.tools.agent_to_agent
    if between.enabled and not between.allow and len(views.agent_ids(config)) > 1:
        yield Finding(
            "tools.agentToAgent",
            "info",
            "tools.agentToAgent is on for every agent: one that reads foreign text can reach all others",
            "list the agents that need one another in tools.agentToAgent.allow",
        )


# -- secrets in the file --------------------------------------------------------------------------


def _written_secrets(text: str) -> Iterator[Finding]:
    try:
        root = parse(text).root if text.strip() else None
    except Json5Error:
        return
    names = [] if root is None else [path for path in _secret_paths(root, ()) if path not in _OWN_CREDENTIAL]
    if names:
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        yield Finding(
            "config.secrets",
            "info",
            f"written out in the config: {shown}; every copy of the file carries them",
            'write "${NAME}" instead and set the variable where the gateway starts',
        )


def _secret_paths(node: Node, path: Path) -> Iterator[str]:
    if isinstance(node, Object):
        for member in node.members:
            yield from _secret_paths(member.value, (*path, member.key))
    elif isinstance(node, Array):
        for index, item in enumerate(node.items):
            yield from _secret_paths(item, (*path, index))
    elif isinstance(node.value, str) and node.value and not has_references(node.value):
        name = next((str(step) for step in reversed(path) if isinstance(step, str)), "")
        in_url = name.lower().endswith("url") and "://" in node.value and "@" in node.value
        if is_secret_name(name) or in_url:
            yield format_path(path)
