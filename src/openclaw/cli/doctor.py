"""`openclaw doctor`: is everything well, bring in what an earlier layout left, mend the database (CLI-10)."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from openclaw.cli.options import json_option
from openclaw.cli.render import note, print_json, say
from openclaw.config.load import config_invalid, config_path, load
from openclaw.domain.terminaltext import counted, printable
from openclaw.errors import InvalidRequest, OpenClawError

if TYPE_CHECKING:
    from openclaw.app.checkup import CheckReport
    from openclaw.app.doctor import MendReport, Mode, ProgressFeed, SqliteReport
    from openclaw.config.load import LoadedConfig
    from openclaw.store.legacy.importing import Outcome

SHOWN_PROBLEMS = 20
ANSWER_WITHIN_S = 5.0
DoctorMode = Literal["inspect", "dry-run", "import", "validate", "recover", "compact"]


@click.command(short_help="Check everything; import, mend or shrink the store.")
@click.option(
    "--fix", is_flag=True, help="Close files that others may read, import sessions that wait for it."
)
@click.option("--deep", is_flag=True, help="Also ask each model one tiny question; that may cost a little.")
@click.option(
    "--session-sqlite",
    "mode",
    type=click.Choice(["inspect", "dry-run", "import", "validate", "recover", "compact"]),
    help="Look at, try, do or verify the import of an earlier layout; mend or shrink the database.",
)
@click.option("--session-sqlite-agent", "agent_id", metavar="ID", help="Only the sessions of this agent.")
@click.option("--session-sqlite-all-agents", "all_agents", is_flag=True, help="Of every agent; the default.")
@click.option(
    "--session-sqlite-store", "store", metavar="PATH", type=click.Path(path_type=Path),
    help="An earlier sessions.json, or its folder, that lies elsewhere.",
)  # fmt: skip
@click.option("--import-devices", is_flag=True, help="Import the devices that an earlier layout has paired.")
@click.option("--import-auth", is_flag=True, help="Import the keys of model providers of an earlier layout.")
@click.option("--import-cron", is_flag=True, help="Import the scheduled jobs of an earlier layout.")
@click.option("--import-tui", is_flag=True, help="Import where an earlier terminal UI had been last.")
@json_option
@click.pass_context
def doctor(
    ctx: click.Context,
    fix: bool,
    deep: bool,
    mode: DoctorMode | None,
    agent_id: str | None,
    all_agents: bool,
    store: Path | None,
    import_devices: bool,
    import_auth: bool,
    import_cron: bool,
    import_tui: bool,
    as_json: bool,
) -> None:
    """Check config, files, database and disk; import an earlier layout; mend or shrink the database.

    What needs the store for itself refuses while a gateway runs. Original files are only read, and a
    damaged database is kept beside the mended one.

    \b
    Examples:
      openclaw doctor
      openclaw doctor --fix
      openclaw doctor --session-sqlite dry-run
      openclaw doctor --session-sqlite import --session-sqlite-all-agents
      openclaw doctor --session-sqlite compact
    """
    _require_sense(mode, agent_id, all_agents, store)
    if import_devices:
        from openclaw.cli import devices_import

        ctx.exit(0 if devices_import.import_devices(as_json) else 1)
    if import_auth or import_cron or import_tui:
        from openclaw.cli import files_import

        done = files_import.bring_in(as_json, auth=import_auth, cron=import_cron, tui=import_tui)
        ctx.exit(0 if done else 1)
    env = dict(os.environ)
    loaded = load(config_path(env), env)
    if mode is not None and loaded.problems:
        raise config_invalid(loaded.problems)
    with transcript_progress() as feed:
        if mode is None:
            from openclaw.app.checkup import check

            report = _with_gateway(asyncio.run(check(loaded, env, fix=fix, deep=deep, progress=feed)), env)
            ok = report.ok
        else:
            outcome = asyncio.run(_carry_out(mode, loaded, env, _Scope(agent_id, store), feed))
            ok = outcome.ok
    if mode is None:
        _show_checks(report, as_json)
    elif mode in ("recover", "compact"):
        _show_mended(outcome, as_json)
    else:
        show_import(outcome, as_json)
        if mode in ("inspect", "dry-run") and outcome.stores and not as_json:
            note("Nothing was changed. Import with: openclaw doctor --session-sqlite import")
    ctx.exit(0 if ok else 1)


class _Scope(msgspec.Struct, frozen=True):
    """Whose sessions: of one agent, or in one store that lies elsewhere."""

    agent_id: str | None
    store: Path | None


def _require_sense(
    mode: DoctorMode | None, agent_id: str | None, all_agents: bool, store: Path | None
) -> None:
    """Raises InvalidRequest for options that do not go together."""
    if agent_id is not None and all_agents:
        raise InvalidRequest("--session-sqlite-agent and --session-sqlite-all-agents exclude one another")
    scoped = agent_id is not None or all_agents or store is not None
    if mode is None and scoped:
        raise InvalidRequest("say what to do with these sessions: add --session-sqlite inspect")
    if mode in ("recover", "compact") and scoped:
        raise InvalidRequest(f"{mode} works on the whole database; leave the agent and the store out")
    if store is not None and all_agents:
        raise InvalidRequest("--session-sqlite-store is one store; leave --session-sqlite-all-agents out")


async def _carry_out(
    mode: DoctorMode, loaded: LoadedConfig, env: dict[str, str], scope: _Scope, feed: ProgressFeed
) -> Any:
    from openclaw.app import doctor as work

    if mode == "recover":
        return await work.recover_store(loaded, env, feed)
    if mode == "compact":
        return await work.compact_store(loaded, env)
    if scope.store is None:
        return await work.session_sqlite(mode, loaded, env, scope.agent_id, feed)
    from openclaw.app.importing import stores_in
    from openclaw.config.agent_view import default_agent_id
    from openclaw.store.legacy.planning import LegacyStore

    path, default = scope.store.expanduser().absolute(), default_agent_id(loaded.config)
    if path.is_file():
        stores: Sequence[LegacyStore] = [LegacyStore((scope.agent_id or default).strip().lower(), path)]
    else:
        stores = stores_in(path, scope.agent_id, default)
    return await work.session_sqlite(mode, loaded, env, None, feed, stores)


@contextmanager
def transcript_progress() -> Iterator[ProgressFeed]:
    """A bar on stderr when a person looks on; nothing otherwise."""
    from openclaw.app.doctor import ProgressFeed

    if not sys.stderr.isatty():
        yield ProgressFeed()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("transcripts"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("transcripts", total=None)

    def start(total: int) -> None:
        # Most of the time there is nothing to read, and a bar would only flicker.
        if total > 0:
            bar.update(task, total=total)
            bar.start()

    try:
        yield ProgressFeed(start=start, advance=lambda count: bar.advance(task, count))
    finally:
        bar.stop()


def _with_gateway(report: CheckReport, env: dict[str, str]) -> CheckReport:
    """Ask a gateway that runs here whether it lets this terminal in.

    Where nobody answers, nothing is added: another command may hold the store.
    """
    if not report.gateway_runs:
        return report
    from openclaw.app.checkup import Check, report_of
    from openclaw.cli.client import GatewayClient
    from openclaw.cli.failures import GatewayUnreachable
    from openclaw.cli.place import Flags, find_place
    from openclaw.protocol.scopes import READ

    try:
        place = find_place(Flags(), env, tolerate_invalid=True)
        with GatewayClient(place, [READ], connect_timeout_s=ANSWER_WITHIN_S):
            told = Check("gateway", True, f"answers at {place.shown_url}")
    except GatewayUnreachable:
        return report
    except OpenClawError as error:
        told = Check("gateway", False, error.message)
    return report_of((*report.checks, told))


def _show_checks(report: CheckReport, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(report))
        return
    good, bad = marks()
    width = max(len(check.name) for check in report.checks)
    margin = len(good) + width + 3
    for check in report.checks:
        first, *more = printable(check.detail).splitlines() or [""]
        say(f"{good if check.ok else bad} {check.name.ljust(width)}  {first}", hanging=margin)
        for line in more:
            say(f"{'':{margin}}{line}", hanging=margin)
        if check.fix is not None and not check.ok:
            say(f"{'':{margin}}fix: {check.fix}", hanging=margin)
    say()
    failed = sum(not check.ok for check in report.checks)
    say("All is well." if report.ok else f"{counted(failed, 'problem')}.")


def marks() -> tuple[str, str]:
    """A tick and a cross, or words where the terminal has no such letters."""
    try:
        "\u2713\u2717".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "ok     ", "problem"
    return "\u2713", "\u2717"


def _show_mended(report: MendReport, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(report))
        return
    if report.compacted is not None:
        before, after = report.compacted.before_bytes, report.compacted.after_bytes
        say(f"{printable(report.database)}: {before} bytes before, {after} after.")
        return
    saved = report.recovered
    assert saved is not None
    if not saved.damaged:
        say(f"{printable(report.database)} is whole; nothing was changed.")
        return
    for problem in saved.problems:
        say(f"  {printable(problem)}")
    for table, rows in saved.rows.items():
        say(f"  {table}: {counted(rows, 'row')} saved")
    if saved.dropped:
        say(f"  {counted(saved.dropped, 'row')} left out: what they belong to is lost")
    if report.imported:
        say(f"  {counted(report.imported, 'session')} brought back from an earlier layout")
    if saved.kept_as is not None:
        say(f"The damaged file is now {printable(saved.kept_as)}; delete it when you are sure.")
    else:
        say("It could not be mended; nothing was changed. Restore a backup.")


def show_import(report: SqliteReport, as_json: bool) -> None:
    """What an import did, or would do, store by store."""
    if as_json:
        print_json(msgspec.to_builtins(report))
        return
    if not report.stores:
        say("Nothing of an earlier layout is there.")
        return
    for outcome in report.stores:
        _show_outcome(report.mode, outcome)
    say(f"{report.mode}: {'done' if report.ok else 'not complete'} in {report.took_ms / 1000:.1f} s")


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
