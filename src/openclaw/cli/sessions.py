"""`openclaw sessions`: what the gateway remembers (CLI-2, CLI-3)."""

from __future__ import annotations

import os

import click

from openclaw.cli.client import GatewayClient
from openclaw.cli.lazy import LazyGroup
from openclaw.cli.listing import (
    COLUMNS,
    Listing,
    Query,
    fetch_sessions,
    require_store,
    row_for_json,
    table_cells,
)
from openclaw.cli.options import gateway_options, json_option, positive_number, timeout_option
from openclaw.cli.place import Flags, find_place
from openclaw.cli.render import Column, print_json, print_table, say
from openclaw.domain.terminaltext import counted
from openclaw.errors import InvalidRequest
from openclaw.protocol.scopes import READ

TABLE_LIMIT = 100


@click.group(
    cls=LazyGroup,
    short_help="List the sessions, newest first; or work with one.",
    table={
        "show": "openclaw.cli.sessions_show:show",
        "history": "openclaw.cli.sessions_history:history",
        "search": "openclaw.cli.sessions_search:search",
        "tree": "openclaw.cli.sessions_tree:tree",
        "rename": "openclaw.cli.sessions_change:rename",
        "archive": "openclaw.cli.sessions_change:archive",
        "unarchive": "openclaw.cli.sessions_change:unarchive",
        "delete": "openclaw.cli.sessions_change:delete",
        "restore": "openclaw.cli.sessions_change:restore",
        "import": "openclaw.cli.sessions_import:import_",
        "export": "openclaw.cli.sessions_export:export",
        "cleanup": "openclaw.cli.sessions_cleanup:cleanup",
        "erase": "openclaw.cli.sessions_erase:erase",
    },
    invoke_without_command=True,
)
@click.option("--active", metavar="MINUTES", help="Only sessions that changed in the last MINUTES.")
@click.option("--agent", "agent_id", metavar="ID", help="Only sessions of this agent.")
@click.option("--all-agents", is_flag=True, help="Sessions of every agent; this is the default.")
@click.option("--store", metavar="PATH", help="Refuse unless the sessions are in this store.")
@click.option(
    "--limit", metavar="N|all", help="At most N sessions. Default: 100 in a table, all with --json."
)
@click.option("--search", metavar="TEXT", help="Only sessions with TEXT in their key, id, label or name.")
@click.option("--verbose", is_flag=True, help="Show titles and session ids, too.")
@gateway_options
@timeout_option
@json_option
@click.pass_context
def sessions(
    ctx: click.Context,
    active: str | None,
    agent_id: str | None,
    all_agents: bool,
    store: str | None,
    limit: str | None,
    search: str | None,
    verbose: bool,
    flags: Flags,
    timeout_s: float,
    as_json: bool,
) -> None:
    """List the sessions of the gateway, newest first; or do something with one of them.

    \b
    Examples:
      openclaw sessions
      openclaw sessions --active 60 --agent main
      openclaw sessions --json | jq '.sessions[].key'
      openclaw sessions show main
      openclaw sessions history main --follow
      openclaw sessions search invoice
    """
    if ctx.invoked_subcommand is not None:
        return
    if agent_id is not None and all_agents:
        raise InvalidRequest("--agent and --all-agents exclude one another; give one of them")
    query = Query(
        agent_id=agent_id,
        active_minutes=None if active is None else positive_number(active, "--active", "minutes"),
        search=search or None,
        limit=_read_limit(limit, as_json),
        titles=verbose,
    )
    place = find_place(flags, os.environ)
    with GatewayClient(place, [READ], connect_timeout_s=timeout_s) as client:
        listing = fetch_sessions(client, query, timeout_s)
    require_store(store, listing.path)
    if as_json:
        _print_as_json(query, listing, all_agents)
    else:
        _print_as_table(query, listing, verbose)


def _read_limit(limit: str | None, as_json: bool) -> int | None:
    if limit is None:
        return None if as_json else TABLE_LIMIT
    return None if limit == "all" else positive_number(limit, "--limit", 'sessions (or "all")')


def _print_as_json(query: Query, listing: Listing, all_agents: bool) -> None:
    owners = sorted({str(row["agentId"]) for row in listing.rows if row.get("agentId")})
    stores = [{"agentId": owner, "path": listing.path} for owner in owners]
    print_json(
        {
            # All agents share one store here; who asks for all of them reads its place per agent.
            "path": None if all_agents else listing.path,
            **({"stores": stores, "allAgents": True} if all_agents else {}),
            "count": len(listing.rows),
            "totalCount": listing.total,
            "limitApplied": query.limit,
            "hasMore": listing.has_more,
            "activeMinutes": query.active_minutes,
            "sessions": [row_for_json(row, listing.now_ms) for row in listing.rows],
        }
    )


def _print_as_table(query: Query, listing: Listing, verbose: bool) -> None:
    if not listing.rows:
        filtered = query.agent_id or query.active_minutes or query.search
        say(
            "No session matches."
            if filtered
            else 'No sessions yet. Start one with: openclaw agent -m "hello"'
        )
        return
    columns, cells = list(COLUMNS), table_cells(listing.rows, listing.now_ms)
    if verbose:
        columns += [Column("Title", fold=True), Column("Session id", fold=True)]
        for row, line in zip(listing.rows, cells, strict=True):
            line += [str(row.get("derivedTitle") or row.get("displayName") or "-"), str(row.get("sessionId"))]
    print_table(columns, cells)
    say()
    shown = counted(len(listing.rows), "session")
    if listing.has_more:
        say(f"{shown} of {listing.total}, newest first. See more with --limit N or --limit all.")
    else:
        say(f"{shown} in {listing.path}")
