"""`openclaw channels`: how the connectors do."""

from __future__ import annotations

import time
from typing import Any

import click

from openclaw.cli.asking import ask_gateway
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags
from openclaw.cli.render import Column, print_json, print_table, say
from openclaw.domain.terminaltext import age, one_line

Json = dict[str, Any]
COLUMNS = (
    Column("Channel"),
    Column("Account"),
    Column("State"),
    Column("For", right=True),
    Column("Restarts", right=True),
    Column("Last problem", fold=True),
)


@click.group(short_help="Where messages come from: Telegram, Matrix, your own.")
def channels() -> None:
    """Where messages come from: Telegram, Matrix, and connectors of your own.

    \b
    Examples:
      openclaw channels status
    """


@channels.command(short_help="Show how every account of every channel does.")
@gateway_options
@timeout_option
@json_option
def status(flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Show every account of every channel, whether it runs, and what went wrong last.

    \b
    Examples:
      openclaw channels status
      openclaw channels status --json | jq '.channelAccounts'
    """
    told: Json = ask_gateway(flags, "channels.status", {}, timeout_s)
    if as_json:
        print_json(told)
        return
    rows = [(name, account) for name in told["channelOrder"] for account in told["channelAccounts"][name]]
    if not rows:
        say("No channel is configured. `channels` in the config names them; see docs/howto/telegram.md.")
        return
    now_ms = time.time_ns() // 1_000_000
    print_table(COLUMNS, [_cells(name, account, now_ms) for name, account in rows])


def _cells(name: str, account: Json, now_ms: int) -> list[str]:
    since = account.get("sinceMs")
    return [
        one_line(name),
        one_line(account["accountId"]),
        one_line(account["state"]),
        age(now_ms - since) if since else "-",
        str(account.get("restarts") or 0),
        one_line(account.get("lastError") or "-"),
    ]
