"""`openclaw agents`: who there is, with which model and workspace, and what leads to each of them."""

from __future__ import annotations

import os
from typing import Any

import click

from openclaw.cli.asking import ask_or_own
from openclaw.cli.client import GatewayClient
from openclaw.cli.failures import RequestRefused
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags
from openclaw.cli.render import Column, note, print_json, print_labels, print_table
from openclaw.domain.terminaltext import counted, one_line
from openclaw.errors import InvalidRequest
from openclaw.protocol.scopes import ADMIN, READ

Json = dict[str, Any]
COLUMNS = (
    Column("Agent"),
    Column("Model"),
    Column("Sessions", right=True),
    Column("Bindings", right=True),
    Column("Workspace", fold=True),
)


@click.group()
def agents() -> None:
    """The agents of a gateway.

    \b
    Examples:
      openclaw agents list
      openclaw agents show main
    """


@agents.command(name="list")
@gateway_options
@timeout_option
@json_option
def list_(flags: Flags, timeout_s: float, as_json: bool) -> None:
    """List the agents: model, workspace, sessions, bindings. The default agent has a star.

    \b
    Examples:
      openclaw agents list
      openclaw agents list --json
    """
    told = _told(flags, timeout_s)
    if as_json:
        print_json(told)
        return
    rows = [
        [row["id"] + ("*" if row["isDefault"] else ""), row["model"] or "-", _count(row["sessions"]),
         _count(None if row["bindings"] is None else len(row["bindings"])), row["workspace"] or "-"]
        for row in told["agents"]
    ]  # fmt: skip
    print_table(COLUMNS, rows)


@agents.command()
@click.argument("agent_id", metavar="ID")
@gateway_options
@timeout_option
@json_option
def show(agent_id: str, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Show one agent, with the bindings that lead to it.

    \b
    Example:
      openclaw agents show main
    """
    told = _told(flags, timeout_s)
    wanted = agent_id.strip().lower()
    row = next((one for one in told["agents"] if one["id"].lower() == wanted), None)
    if row is None:
        known = ", ".join(one["id"] for one in told["agents"])
        raise InvalidRequest(f"no agent {agent_id[:64]!r}; there are: {known}")
    if as_json:
        print_json(row)
        return
    facts = [
        ("agent", row["id"] + (" (the default)" if row["isDefault"] else "")),
        ("name", row["name"] or "-"),
        ("model", row["model"] or "-"),
        ("workspace", row["workspace"] or "-"),
        ("sessions", "-" if row["sessions"] is None else counted(row["sessions"], "session")),
    ]
    bindings = row["bindings"]
    if bindings is not None:
        told_bindings = [describe_binding(one) for one in bindings] or ["none lead here"]
        facts += [("bindings" if at == 0 else "", text) for at, text in enumerate(told_bindings)]
    print_labels((label, one_line(value)) for label, value in facts)


def describe_binding(binding: Json) -> str:
    """A binding as one line: its place in the file, and everything that it asks for."""
    match = binding.get("match") or {}
    peer = match.get("peer") or {}
    parts = [str(match.get("channel"))]
    parts += [f"{name} {match[name]}" for name in ("accountId", "guildId", "teamId") if match.get(name)]
    parts += [f"{peer.get('kind')} {peer.get('id')}"] if peer else []
    parts += [f"roles {', '.join(map(str, match['roles']))}"] if match.get("roles") else []
    return f"bindings[{binding['index']}]: {', '.join(parts)}"


def _count(number: int | None) -> str:
    return "-" if number is None else str(number)


def _told(flags: Flags, timeout_s: float) -> Json:
    return ask_or_own(flags, lambda client: _ask(client, timeout_s), _own, scopes=[READ, ADMIN])


def _ask(client: GatewayClient, timeout_s: float) -> Json:
    listed = client.call("agents.list", {}, timeout_s)
    health = client.call("health", {}, timeout_s)
    counts = {
        one.get("agentId"): (one.get("sessions") or {}).get("count") for one in health.get("agents", ())
    }
    try:
        config = client.call("config.get", {}, timeout_s).get("config")
        bindings = _bindings(config if isinstance(config, dict) else {})
    except RequestRefused:  # an older gateway, or a credential that may not read the config
        bindings = None
    rows = []
    for one in listed.get("agents", ()):
        agent_id = str(one.get("id"))
        model = one.get("model")
        rows.append(
            {
                "id": agent_id,
                "name": one.get("name"),
                "isDefault": agent_id == listed.get("defaultId"),
                "model": model.get("primary") if isinstance(model, dict) else model,
                "workspace": one.get("workspace"),
                "sessions": counts.get(agent_id),
                "bindings": None if bindings is None else bindings.get(agent_id, []),
            }
        )
    return {"defaultId": listed.get("defaultId"), "agents": rows}


def _bindings(config: Json) -> dict[str, list[Json]]:
    """The bindings of each agent, each with its place in the file."""
    found: dict[str, list[Json]] = {}
    for index, binding in enumerate(config.get("bindings") or ()):
        found.setdefault(str(binding.get("agentId")).lower(), []).append(binding | {"index": index})
    return found


def _own() -> Json:
    """From the config alone; nobody counts sessions while no gateway runs."""
    import msgspec

    from openclaw.config.agent_view import agent, agent_ids, default_agent_id
    from openclaw.config.load import config_path, load_or_raise

    env = dict(os.environ)
    config = load_or_raise(config_path(env), env).config
    bindings = _bindings({"bindings": msgspec.to_builtins(config.bindings)})
    rows = []
    for agent_id in agent_ids(config):
        one = agent(config, agent_id, env)
        rows.append(
            {
                "id": agent_id,
                "name": one.name,
                "isDefault": one.is_default,
                "model": one.model.primary,
                "workspace": str(one.workspace),
                "sessions": None,
                "bindings": bindings.get(agent_id, []),
            }
        )
    note("No gateway runs; this is what the config says.")
    return {"defaultId": default_agent_id(config), "agents": rows}
