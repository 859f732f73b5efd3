"""`openclaw security audit`: what could be open that should not be, and the command that closes it."""

from __future__ import annotations

import os
import time
from typing import Any

import click

from openclaw.cli.asking import ask_or_own
from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags
from openclaw.cli.render import print_json, say
from openclaw.domain.terminaltext import one_line

Json = dict[str, Any]


@click.group()
def security() -> None:
    """Look for settings and files that let others in.

    \b
    Examples:
      openclaw security audit
      openclaw security audit --deep --fix
    """


@security.command(short_help="List what could be safer, with the way to do it.")
@click.option("--deep", is_flag=True, help="Also look at every file below the state directory.")
@click.option(
    "--fix", is_flag=True, help="Close files and directories that others may read. Changes no setting."
)
@gateway_options
@timeout_option
@json_option
@click.pass_context
def audit(ctx: click.Context, deep: bool, fix: bool, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """List what could be safer, the gravest first, each with the way to change it.

    A running gateway looks at itself; without one, this looks at the config and the state directory.
    Exits with 1 when a finding is critical.

    \b
    Examples:
      openclaw security audit
      openclaw security audit --deep --json | jq .findings
      openclaw security audit --fix
    """
    params: Json = {"deep": deep, "fix": fix}

    def ask(client: GatewayClient) -> Json:
        answer: Json = client.call("security.audit", params, timeout_s)
        return answer

    report = ask_or_own(flags, ask, lambda: _own(deep, fix))
    if as_json:
        print_json(report)
    else:
        _print(report, fix)
    ctx.exit(0 if report["ok"] else 1)


def _own(deep: bool, fix: bool) -> Json:
    import asyncio

    import msgspec

    from openclaw.app.auditing import Auditor
    from openclaw.app.offline import offline_store
    from openclaw.config.load import config_path, load_or_raise
    from openclaw.protocol.params_insight import SecurityAuditParams

    env = dict(os.environ)
    loaded = load_or_raise(config_path(env), env)

    async def work() -> Json:
        async with offline_store(loaded.config, env, doing="a security audit") as database:
            auditor = Auditor(database, lambda: loaded, env, lambda: time.time_ns() // 1_000_000)
            report: Json = msgspec.to_builtins(await auditor.audit(SecurityAuditParams(deep=deep, fix=fix)))
        return report

    return asyncio.run(work())


def _print(report: Json, fix: bool) -> None:
    for finding in report["findings"]:
        word = "fixed" if finding.get("fixed") else finding["severity"]
        say(f"{word:9} {one_line(finding['detail'])}", hanging=10)
        if not finding.get("fixed"):
            say(f"{'':9} fix: {one_line(finding['fix'])}", hanging=10)
    counts = report["counts"]
    left = ", ".join(f"{counts[name]} {name}" for name in ("critical", "warn", "info") if counts[name])
    if report["findings"]:
        say()
    say(f"{left}." if left else "Nothing to put right.")
    closable = any(one["check"] == "files.mode" and not one.get("fixed") for one in report["findings"])
    if closable and not fix:
        say("openclaw security audit --fix closes the files.")
