"""`openclaw status`: is it running, and where is everything? (CLI-1, CLI-9)

Answers also when the gateway does not run and when the config is not valid (CFG-3).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from openclaw import __version__
from openclaw.cli.client import GatewayClient
from openclaw.cli.configview import config_report
from openclaw.cli.failures import failure_body
from openclaw.cli.listing import COLUMNS, Listing, Query, fetch_sessions, row_for_json, table_cells
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags, Place, find_place
from openclaw.cli.render import Column, print_json, print_labels, print_table, say
from openclaw.config.load import LoadedConfig, config_path, load, state_dir
from openclaw.domain.terminaltext import age, counted, one_line, printable, tokens
from openclaw.errors import OpenClawError
from openclaw.protocol.scopes import READ

Json = dict[str, Any]

RECENT = 10
ALL = 100
SPENDING_DAYS = 30
USAGE_COLUMNS = (
    Column("Agent"),
    Column("Model", fold=True),
    Column("Sessions", right=True),
    Column("Input", right=True),
    Column("Output", right=True),
)


class Seen(Struct, frozen=True):
    """What the gateway said; with an `error` it said nothing."""

    place: Place | None
    error: OpenClawError | None = None
    hello: Json = {}
    status: Json = {}
    recent: Listing | None = None
    health: Json | None = None
    usage: tuple[Json, ...] | None = None
    spent: Json | None = None


@click.command(short_help="Show what runs, and where everything is.")
@click.option("--all", "show_all", is_flag=True, help="More recent sessions, and warnings about the config.")
@click.option("--deep", is_flag=True, help="Ask the gateway to check its parts, too.")
@click.option("--usage", is_flag=True, help="Tokens that the sessions used, by agent and model.")
@gateway_options
@timeout_option
@json_option
def status(show_all: bool, deep: bool, usage: bool, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Show the gateway, the config, each agent's store and the recent sessions.

    \b
    Examples:
      openclaw status
      openclaw status --all --deep
      openclaw status --json
    """
    loaded = load(config_path(os.environ), os.environ)
    seen = _look(flags, timeout_s, ALL if show_all else RECENT, deep=deep, usage=usage)
    if as_json:
        print_json(_as_json(seen, loaded))
    else:
        _print(seen, loaded, show_all=show_all)


def _look(flags: Flags, timeout_s: float, limit: int, *, deep: bool, usage: bool) -> Seen:
    place: Place | None = None
    try:
        place = find_place(flags, os.environ, tolerate_invalid=True)
        with GatewayClient(place, [READ], connect_timeout_s=timeout_s) as client:
            answer = client.call("status", {}, timeout_s)
            recent = fetch_sessions(client, Query(limit=limit), timeout_s)
            health = client.call("health", {"probe": True}, timeout_s) if deep else None
            everything = fetch_sessions(client, Query(), timeout_s).rows if usage else None
            used = None if everything is None else tuple(sum_usage(everything))
            spent = fetch_spending(client, timeout_s) if usage else None
            return Seen(place, None, client.hello, answer, recent, health, used, spent)
    except OpenClawError as error:
        return Seen(place, error)


def fetch_spending(client: GatewayClient, timeout_s: float) -> Json | None:
    """What the calls of the last days cost, also of sessions that are gone; None where it is not kept."""
    methods = (client.hello.get("features") or {}).get("methods") or []
    if "usage.cost" not in methods:
        return None
    told: Json = client.call("usage.cost", {"days": SPENDING_DAYS}, timeout_s)
    return {"days": SPENDING_DAYS, **(told.get("totals") or {})}


def sum_usage(rows: Iterable[Json]) -> list[Json]:
    """Tokens by agent and model, as the entries count them (OWN-3); most tokens first."""
    sums: dict[tuple[str, str], Json] = {}
    for row in rows:
        agent_id = str(row.get("agentId") or "-")
        model = f"{row.get('modelProvider') or '-'}/{row.get('model') or '-'}"
        entry = sums.setdefault(
            (agent_id, model),
            {"agentId": agent_id, "model": model, "sessions": 0, "inputTokens": 0, "outputTokens": 0},
        )
        entry["sessions"] += 1
        entry["inputTokens"] += row.get("inputTokens") or 0
        entry["outputTokens"] += row.get("outputTokens") or 0
    return sorted(sums.values(), key=lambda entry: -(entry["inputTokens"] + entry["outputTokens"]))


def _store_path(seen: Seen, loaded: LoadedConfig) -> str | None:
    """Where the sessions are: the gateway's word, else where one on this machine would keep them (OWN-2)."""
    paths = (seen.status.get("sessions") or {}).get("paths")
    if paths:
        return str(paths[0])
    is_elsewhere = seen.place is None or seen.place.remote or not seen.place.on_this_machine
    if seen.error is None or is_elsewhere or loaded.config.store.url is not None:
        return None
    return str(state_dir(os.environ) / "openclaw.sqlite")


def _agents(seen: Seen) -> list[Json]:
    default = (seen.status.get("heartbeat") or {}).get("defaultAgentId")
    return [
        {
            "agentId": agent.get("agentId"),
            "isDefault": agent.get("agentId") == default,
            "path": agent.get("path"),
            "count": agent.get("count"),
        }
        for agent in (seen.status.get("sessions") or {}).get("byAgent") or []
    ]


def _as_json(seen: Seen, loaded: LoadedConfig) -> Json:
    server, snapshot = seen.hello.get("server") or {}, seen.hello.get("snapshot") or {}
    gateway: Json = {
        "url": seen.place.shown_url if seen.place else None,
        "reachable": seen.error is None,
        "version": server.get("version"),
        "uptimeMs": snapshot.get("uptimeMs"),
        "error": failure_body(seen.error)["error"] if seen.error else None,
    }
    recent = seen.recent
    rows = [] if recent is None else [row_for_json(row, recent.now_ms) for row in recent.rows]
    body: Json = {
        "ok": seen.error is None and not loaded.problems,
        "version": __version__,
        "gateway": gateway,
        "config": config_report(loaded),
        "store": {"path": _store_path(seen, loaded)},
        "agents": _agents(seen),
        "defaults": recent.defaults if recent else None,
        "sessions": {"count": recent.total if recent else None, "recent": rows},
    }
    if seen.health is not None:
        body["health"] = seen.health
    if seen.usage is not None:
        body |= {"usage": list(seen.usage), "spent": seen.spent}
    return body


# -- text ------------------------------------------------------------------------------------------


def _print(seen: Seen, loaded: LoadedConfig, *, show_all: bool) -> None:
    say(f"openclaw {__version__}")
    say()
    lines = [*_gateway_lines(seen), *_config_lines(loaded, show_all=show_all)]
    store = _store_path(seen, loaded)
    if store is not None:
        is_new = seen.error is not None and not Path(store).exists()
        lines.append(("store", f"{store} (not there yet)" if is_new else store))
    lines += _agent_lines(seen)
    if seen.health is not None:
        word = "ok" if seen.health.get("ok") else "not ok"
        lines.append(("health", f"{word} (checked in {seen.health.get('durationMs')} ms)"))
    if seen.spent is not None:
        lines.append(("spent", _spending(seen.spent)))
    print_labels([(label, one_line(value)) for label, value in lines])
    _print_problems(loaded)
    if seen.recent is not None:
        _print_recent(seen.recent)
    if seen.usage:
        say()
        print_table(
            USAGE_COLUMNS,
            [
                [
                    entry["agentId"],
                    entry["model"],
                    str(entry["sessions"]),
                    tokens(entry["inputTokens"]),
                    tokens(entry["outputTokens"]),
                ]
                for entry in seen.usage
            ],
        )


def _spending(spent: Json) -> str:
    cost, unpriced = float(spent.get("totalCost") or 0), int(spent.get("missingCostEntries") or 0)
    text = f"${cost:.4f} in {spent['days']} days; {tokens(spent.get('input'))} tokens in,"
    text += f" {tokens(spent.get('output'))} out"
    return text + (f"; the price of {counted(unpriced, 'call')} is not known" if unpriced else "")


def _gateway_lines(seen: Seen) -> list[tuple[str, str]]:
    if seen.error is not None:
        unreachable = failure_body(seen.error)["error"]["type"] == "unreachable"
        return [("gateway", "not running" if unreachable else "cannot be asked"), ("", seen.error.message)]
    version = (seen.hello.get("server") or {}).get("version")
    up_for = age((seen.hello.get("snapshot") or {}).get("uptimeMs"))
    shown_url = seen.place.shown_url if seen.place else "-"
    defaults = seen.recent.defaults if seen.recent else {}
    context = tokens(defaults.get("contextTokens"))
    return [
        ("gateway", f"running at {shown_url} (version {version}, up for {up_for})"),
        ("model", f"{defaults.get('modelProvider')}/{defaults.get('model')} ({context} context)"),
    ]


def _config_lines(loaded: LoadedConfig, *, show_all: bool) -> list[tuple[str, str]]:
    if loaded.problems:
        word = f"NOT VALID, {counted(len(loaded.problems), 'problem')}"
    else:
        word = "valid" if loaded.exists else "not there, defaults apply"
    lines = [("config", f"{loaded.path} ({word})")]
    if show_all:
        lines += [("", f"warning: {warning}") for warning in loaded.warnings]
    return lines


def _agent_lines(seen: Seen) -> list[tuple[str, str]]:
    lines = []
    for number, agent in enumerate(_agents(seen)):
        default = ", default" if agent["isDefault"] else ""
        count = counted(int(agent["count"] or 0), "session")
        lines.append(
            ("agents" if number == 0 else "", f"{agent['agentId']}{default}: {count} in {agent['path']}")
        )
    return lines


def _print_problems(loaded: LoadedConfig) -> None:
    if loaded.problems:
        say()
        for problem in loaded.problems:
            say(printable(str(problem)), hanging=2)


def _print_recent(recent: Listing) -> None:
    say()
    if not recent.rows:
        say('No sessions yet. Start one with: openclaw agent -m "hello"')
        return
    print_table(COLUMNS, table_cells(recent.rows, recent.now_ms))
    if recent.has_more:
        say()
        say(f"{len(recent.rows)} of {counted(recent.total, 'session')}; see all with: openclaw sessions")
