"""`openclaw sessions cleanup`: archive and remove what is due now, or see what would be (CLI-8)."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import click

from openclaw.cli.asking import ask_or_own, long_timeout_option, waiting
from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option
from openclaw.cli.place import Flags
from openclaw.cli.render import Column, note, print_json, print_table, say
from openclaw.cli.text import counted
from openclaw.config.load import config_path, load_or_raise
from openclaw.errors import InvalidRequest

Json = dict[str, Any]
COLUMNS = (
    Column("Agent"),
    Column("Sessions", right=True),
    Column("Old", right=True),
    Column("Too many", right=True),
    Column("After", right=True),
)


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@click.option("--enforce", is_flag=True, help='Act also when session.maintenance.mode is "warn".')
@click.option("--active-key", metavar="KEY", help="A session that is in use and must not be touched.")
@click.option("--agent", "agent_id", metavar="ID", help="Only sessions of this agent; nothing is purged.")
@click.option("--all-agents", is_flag=True, help="Of every agent; this is the default.")
@click.option(
    "--fix-missing", is_flag=True, help="Accepted for scripts: no row here is without a transcript."
)
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
    params |= {"activeKey": active_key} if active_key is not None else {}
    params |= {"agent": agent_id} if agent_id is not None else {}

    def ask(client: GatewayClient) -> Json:
        answer: Json = client.call("sessions.cleanup", params, timeout_s)
        return answer

    with waiting("Cleaning up"):
        done = ask_or_own(flags, ask, lambda: _own(dry_run, enforce, active_key, agent_id))
    if as_json:
        print_json(done)
    else:
        _print(done)


def _own(dry_run: bool, enforce: bool, active_key: str | None, agent_id: str | None) -> Json:
    env = dict(os.environ)
    loaded = load_or_raise(config_path(env), env)
    import msgspec

    from openclaw.app.offline import meant_key, offline_upkeep
    from openclaw.store.upkeep import CleanupRequest

    request = CleanupRequest(
        dry_run=dry_run,
        enforce=enforce,
        active_key=None if active_key is None else meant_key(loaded, active_key, agent_id),
        agent_id=agent_id.lower() if agent_id else None,
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
