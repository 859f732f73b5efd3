"""`openclaw usage`: what model calls used and cost, by day, agent, model or session."""

from __future__ import annotations

import os
from typing import Any

import click

from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags, find_place
from openclaw.cli.render import Column, note, print_json, print_table
from openclaw.domain.terminaltext import counted, tokens
from openclaw.protocol.scopes import READ

Json = dict[str, Any]
TITLES = {"day": "Day", "agent": "Agent", "model": "Model", "session": "Session"}


@click.command()
@click.option(
    "--days", type=click.IntRange(1, 366), default=7, show_default=True, metavar="N",
    help="The last N days, today included.",
)  # fmt: skip
@click.option(
    "--by",
    type=click.Choice(list(TITLES)),
    default="day",
    show_default=True,
    help="What each row stands for.",
)
@click.option("--agent", "agent_id", metavar="ID", help="Only sessions of this agent; not with --by day.")
@gateway_options
@timeout_option
@json_option
def usage(days: int, by: str, agent_id: str | None, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Show tokens and cost. A call whose model has no known price counts its tokens and no money.

    \b
    Examples:
      openclaw usage
      openclaw usage --days 30 --by model
      openclaw usage --by session --json
    """
    if by == "day" and agent_id is not None:
        raise click.UsageError("--agent goes with --by agent, model or session")
    with GatewayClient(find_place(flags, os.environ), [READ], connect_timeout_s=timeout_s) as client:
        cost = client.call("usage.cost", {"days": days}, timeout_s)
        daily: list[Json] = cost.get("daily") or []
        body: Json = {"days": days, "by": by}
        if by == "day":
            body |= {"rows": [row_of(str(day.get("date")), day) for day in daily]}
            body |= {"totals": row_of("total", cost.get("totals") or {})}
        else:
            params: Json = {"limit": 1000}
            if daily:  # the days of the gateway's own clock
                params |= {"startDate": daily[0]["date"], "endDate": daily[-1]["date"]}
            answer = client.call(
                "sessions.usage", params | ({"agentId": agent_id} if agent_id else {}), timeout_s
            )
            body |= {"rows": rows_by(by, answer), "totals": row_of("total", answer.get("totals") or {})}
    if as_json:
        print_json(body)
    else:
        _print(body)


def row_of(name: str, amounts: Json) -> Json:
    """One row with stable keys, whatever else the gateway says."""
    numbers = {key: int(amounts.get(key) or 0) for key in ("input", "output", "cacheRead", "cacheWrite")}
    total = amounts.get("totalTokens")
    return {
        "name": name,
        **numbers,
        "totalTokens": int(total) if total is not None else sum(numbers.values()),
        "costUsd": float(amounts.get("totalCost") or 0),
        "unpriced": int(amounts.get("missingCostEntries") or 0),
    }


def rows_by(by: str, answer: Json) -> list[Json]:
    """The rows of `sessions.usage` grouped as asked, the most expensive first."""
    aggregates = answer.get("aggregates") or {}
    if by == "agent":
        rows = [
            row_of(str(one.get("agentId")), one.get("totals") or {})
            for one in aggregates.get("byAgent") or ()
        ]
    elif by == "model":
        rows = [
            row_of(f"{one.get('provider')}/{one.get('model')}", one.get("totals") or {})
            for one in aggregates.get("byModel") or ()
        ]
    else:
        rows = [
            row_of(str(one.get("key")), one["usage"])
            for one in answer.get("sessions") or ()
            if one.get("usage")
        ]
    return sorted(rows, key=lambda row: (-row["costUsd"], -row["totalTokens"], row["name"]))


def _print(body: Json) -> None:
    columns = (
        Column(TITLES[body["by"]]),
        Column("In", right=True),
        Column("Out", right=True),
        Column("Cache read", right=True),
        Column("Total", right=True),
        Column("Cost", right=True),
    )
    total = body["totals"]
    print_table(columns, [_cells(row) for row in (*body["rows"], total)])
    if total["unpriced"]:
        note(
            f"{counted(total['unpriced'], 'call')} had no known price; set models.providers.*.models[].cost."
        )


def _cells(row: Json) -> list[str]:
    names = ("input", "output", "cacheRead", "totalTokens")
    return [row["name"], *(tokens(row[name]) for name in names), money(row["costUsd"])]


def money(usd: float) -> str:
    """Dollars, with as many digits as a small amount needs to be told from nothing."""
    return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"
