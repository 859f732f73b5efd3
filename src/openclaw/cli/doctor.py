"""`openclaw doctor`: is everything well, and bring in what an earlier layout left (CLI-10)."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
import msgspec

from openclaw.cli.options import json_option
from openclaw.cli.render import note, print_json, say
from openclaw.cli.text import counted, printable
from openclaw.config.load import config_invalid, config_path, load
from openclaw.errors import InvalidRequest

if TYPE_CHECKING:
    from openclaw.app.doctor import CheckReport, Mode, ProgressFeed, SqliteReport
    from openclaw.store.legacy.importing import Outcome

SHOWN_PROBLEMS = 20


@click.command()
@click.option("--fix", is_flag=True, help="Repair what can be repaired: import sessions that wait for it.")
@click.option(
    "--session-sqlite",
    "mode",
    type=click.Choice(["inspect", "dry-run", "import", "validate"]),
    help="Look at, try, do or verify the import of an earlier layout.",
)
@click.option("--session-sqlite-agent", "agent_id", metavar="ID", help="Only the sessions of this agent.")
@click.option("--session-sqlite-all-agents", "all_agents", is_flag=True, help="Of every agent; the default.")
@json_option
@click.pass_context
def doctor(
    ctx: click.Context, fix: bool, mode: Mode | None, agent_id: str | None, all_agents: bool, as_json: bool
) -> None:
    """Check the state directory, and import sessions of an earlier layout.

    Needs the store for itself: it refuses while a gateway runs. Original files are only read.

    \b
    Examples:
      openclaw doctor
      openclaw doctor --session-sqlite dry-run
      openclaw doctor --session-sqlite import --session-sqlite-all-agents
    """
    if agent_id is not None and all_agents:
        raise InvalidRequest("--session-sqlite-agent and --session-sqlite-all-agents exclude one another")
    if mode is None and (agent_id is not None or all_agents):
        raise InvalidRequest("say what to do with these agents: add --session-sqlite inspect")
    env = dict(os.environ)
    loaded = load(config_path(env), env)
    from openclaw.app import doctor as work

    with _progress() as feed:
        if mode is None:
            report = asyncio.run(work.check(loaded, env, fix=fix, progress=feed))
        elif loaded.problems:
            raise config_invalid(loaded.problems)
        else:
            result = asyncio.run(work.session_sqlite(mode, loaded, env, agent_id, feed))
    if mode is None:
        _show_checks(report, as_json)
        ctx.exit(0 if report.ok else 1)
    _show_sqlite(result, as_json)
    ctx.exit(0 if result.ok else 1)


@contextmanager
def _progress() -> Iterator[ProgressFeed]:
    """A bar on stderr when a person looks on; nothing otherwise."""
    from openclaw.app.doctor import ProgressFeed

    if not sys.stderr.isatty():
        yield ProgressFeed()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("transcripts"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("transcripts", total=None)
        yield ProgressFeed(
            start=lambda total: bar.update(task, total=total),
            advance=lambda count: bar.advance(task, count),
        )


def _show_checks(report: CheckReport, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(report))
        return
    for check in report.checks:
        say(f"{'ok' if check.ok else 'problem':8} {check.name}: {printable(check.detail)}")
        if check.fix is not None and not check.ok:
            say(f"{'':8} fix: {check.fix}")


def _show_sqlite(report: SqliteReport, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(report))
        return
    if not report.stores:
        say("Nothing of an earlier layout is there.")
        return
    for outcome in report.stores:
        _show_outcome(report.mode, outcome)
    say(f"{report.mode}: {'done' if report.ok else 'not complete'} in {report.took_ms / 1000:.1f} s")
    if report.mode in ("inspect", "dry-run"):
        note("Nothing was changed. Import with: openclaw doctor --session-sqlite import")


def _show_outcome(mode: Mode, outcome: Outcome) -> None:
    say(f"{outcome.agent_id}: {printable(outcome.path)}")
    say(f"  {counted(outcome.sessions, 'session')}, {counted(outcome.transcripts, 'transcript')}")
    doing = {
        "inspect": f"{outcome.already} imported already",
        "dry-run": f"{outcome.imported} to import, {outcome.already} there already",
        "import": f"{outcome.imported} imported, {outcome.already} there already",
        "validate": f"{outcome.already} equal, {outcome.failed} different",
    }[mode]
    say(f"  {doing}; {counted(outcome.records, 'record')}, {counted(outcome.skipped, 'line')} skipped")
    for problem in outcome.problems[:SHOWN_PROBLEMS]:
        say(f"  {printable(problem)}")
    if outcome.problem_count > SHOWN_PROBLEMS:
        say(f"  … {outcome.problem_count - SHOWN_PROBLEMS} more; see them with --json")
