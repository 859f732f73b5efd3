"""`openclaw sessions import`: bring in conversations of an earlier layout from a folder."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from openclaw.cli.doctor import show_import, transcript_progress
from openclaw.cli.options import json_option
from openclaw.cli.render import note
from openclaw.config.load import config_path, load_or_raise
from openclaw.errors import InvalidRequest

if TYPE_CHECKING:
    from openclaw.app.doctor import SqliteReport


@click.command("import")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--agent", "agent_id", metavar="ID", help="Only this agent; or whose sessions these shall be.")
@click.option("--dry-run", is_flag=True, help="Only say what would happen, and every problem.")
@click.option("--validate", is_flag=True, help="Compare what was imported with the files, byte for byte.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_context
def import_(
    ctx: click.Context,
    folder: Path,
    agent_id: str | None,
    dry_run: bool,
    validate: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Import sessions that an earlier installation kept in files.

    DIR is its state directory, or a folder with sessions.json and transcripts. Files are only read. A
    second import changes nothing. Needs the store for itself: it refuses while a gateway runs.

    \b
    Examples:
      openclaw sessions import ~/old-machine/.openclaw --dry-run
      openclaw sessions import ~/old-machine/.openclaw
      openclaw sessions import ./sessions --agent work --yes --json
    """
    if dry_run and validate:
        raise InvalidRequest("--dry-run and --validate exclude one another; give one of them")
    mode: Literal["dry-run", "validate", "import"] = (
        "dry-run" if dry_run else "validate" if validate else "import"
    )
    if mode == "import" and not yes and sys.stdin.isatty():
        click.confirm(f"Import the sessions in {folder}?", default=True, abort=True, err=True)
    report = _work(mode, folder, agent_id)
    show_import(report, as_json)
    if mode == "dry-run" and not as_json:
        note("Nothing was changed. Import with the same command, without --dry-run.")
    ctx.exit(0 if report.ok else 1)


def _work(mode: Literal["dry-run", "validate", "import"], folder: Path, agent_id: str | None) -> SqliteReport:
    env = dict(os.environ)
    loaded = load_or_raise(config_path(env), env)
    from openclaw.app.doctor import session_sqlite
    from openclaw.app.importing import stores_in
    from openclaw.config.agent_view import default_agent_id

    stores = stores_in(folder.expanduser(), agent_id, default_agent_id(loaded.config))
    with transcript_progress() as feed:
        return asyncio.run(session_sqlite(mode, loaded, env, None, feed, stores))
