"""`openclaw sessions cleanup`: archive and remove what is due now, or see what would be (CLI-8)."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import click

from openclaw.cli.asking import ask_or_own, long_timeout_option, waiting
from openclaw.cli.client import GatewayClient
from openclaw.cli.listing import require_store
from openclaw.cli.options import gateway_options, json_option
from openclaw.cli.place import Flags
from openclaw.cli.render import Column, note, print_json, print_table, say
from openclaw.config.load import config_path, load_or_raise
from openclaw.domain.terminaltext import counted
from openclaw.errors import InvalidRequest

Json = dict[str, Any]
COLUMNS = (
    Column("Agent"),
    Column("Sessions", right=True),
    Column("Old", right=True),
    Column("Too many", right=True),
    Column("After", right=True),
)


@click.command(short_help="Archive old conversations, remove what machines made.")
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@click.option("--enforce", is_flag=True, help='Act also when session.maintenance.mode is "warn".')
@click.option("--active-key", metavar="KEY", help="A session that is in use and must not be touched.")
@click.option("--agent", "agent_id", metavar="ID", help="Only sessions of this agent; nothing is purged.")
@click.option("--all-agents", is_flag=True, help="Of every agent; this is the default.")
@click.option(
    "--fix-missing", is_flag=True, help="Accepted for scripts: no row here is without a transcript."
)
@click.option(
    "--fix-dm-scope",
    is_flag=True,
    help='Archive direct sessions that are left behind after session.dmScope returned to "main".',
)
@click.option("--store", metavar="PATH", help="Refuse unless the sessions are in this store.")
@gateway_options
@long_timeout_option
@json_option
def cleanup(
    dry_run: bool,
    enforce: bool,
    active_key: str | None,
    agent_id: str | None,
    all_agents: bool,
    fix_missing: bool,
    fix_dm_scope: bool,
    store: str | None,
    flags: Flags,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Archive old conversations, remove what machines made, purge what was deleted long ago.

    The limits are session.maintenance in the config. The gateway does this by itself; this does it now.
    A running gateway is asked; without one, the store is opened here.

    \b
    Examples:
      openclaw sessions cleanup --dry-run
      openclaw sessions cleanup --enforce
      openclaw sessions cleanup --dry-run --json | jq .stores
    """
    if agent_id is not None and all_agents:
        raise InvalidRequest("--agent and --all-agents exclude one another; give one of them")
    if dry_run and enforce:
        raise InvalidRequest("--dry-run and --enforce exclude one another; give one of them")
    params: Json = {"dryRun": dry_run, "enforce": enforce, "allAgents": all_agents, "fixMissing": fix_missing}
    params |= {"fixDmScope": True} if fix_dm_scope else {}
    params |= {"activeKey": active_key} if active_key is not None else {}
    params |= {"agent": agent_id} if agent_id is not None else {}

    def ask(client: GatewayClient) -> Json:
        if store is not None:
            require_store(store, client.call("sessions.list", {"limit": 1}, timeout_s)["path"])
        answer: Json = client.call("sessions.cleanup", params, timeout_s)
        return answer

    with waiting("Cleaning up"):
        done = ask_or_own(
            flags, ask, lambda: _own(dry_run, enforce, active_key, agent_id, fix_dm_scope, store)
        )
    if as_json:
        print_json(done)
    else:
        _print(done)


def _own(
    dry_run: bool,
    enforce: bool,
    active_key: str | None,
    agent_id: str | None,
    fix_dm_scope: bool,
    store: str | None,
) -> Json:
    env = dict(os.environ)
    loaded = load_or_raise(config_path(env), env)
    import msgspec

    from openclaw.app.offline import meant_key, offline_upkeep, shown_place
    from openclaw.store.upkeep import CleanupRequest

    require_store(store, shown_place(loaded.config, env))

    request = CleanupRequest(
        dry_run=dry_run,
        enforce=enforce,
        active_key=None if active_key is None else meant_key(loaded, active_key, agent_id),
        agent_id=agent_id.lower() if agent_id else None,
        fix_dm_scope=fix_dm_scope,
    )

    async def work() -> Json:
        async with offline_upkeep(loaded, env, doing="a clean-up") as upkeep:
            done = await upkeep.clean_up(request, now_ms=time.time_ns() // 1_000_000)
        told: Json = msgspec.to_builtins(done)
        return told

    return asyncio.run(work())


def _print(done: Json) -> None:
    names = ("agentId", "beforeCount", "pruned", "capped", "afterCount")
    print_table(COLUMNS, [[str(store[name]) for name in names] for store in done["stores"]])
    say()
    applied = done["applied"]
    numbers = f"{counted(done['archived'], 'session')} {'archived' if applied else 'to archive'}"
    numbers += f", {done['deleted']} {'deleted' if applied else 'to delete'}"
    numbers += f", {counted(done['purged'], 'transcript')} {'purged' if applied else 'to purge'}"
    say(numbers)
    retired = sum(store.get("dmScopeRetired") or 0 for store in done["stores"])
    if retired:
        say(
            f"{counted(retired, 'direct session')} {'archived' if applied else 'to archive'} for dmScope main"
        )
    if applied and (done["archivesWritten"] or done["archivesDropped"]):
        say(f"{done['archivesWritten']} archive files written, {done['archivesDropped']} removed")
    if done["heldBack"]:
        note(f"{done['heldBack']} transcripts stay: their archive files could not be written; see the log")
    if not applied:
        for example in done["examples"]:
            say(f"  {example['action']:7}  {example['reason']:4}  {example['key']}")
        if done["dryRun"]:
            note("Nothing was changed.")
        else:
            note('Nothing was changed: session.maintenance.mode is "warn". Act with --enforce.')
