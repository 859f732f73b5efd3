"""`openclaw sessions search`: find words in what was said (SRCH-2)."""

from __future__ import annotations

import os
import re
from typing import Any

import click

from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option, positive_number, timeout_option
from openclaw.cli.place import Flags, find_place
from openclaw.cli.render import note, on_terminal, print_json, print_text, say
from openclaw.domain.terminaltext import counted, moment, one_line
from openclaw.errors import InvalidRequest
from openclaw.protocol.scopes import READ

Json = dict[str, Any]
DEFAULT_LIMIT = "20"


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--agent", "agent_id", metavar="ID", help="Only sessions of this agent.")
@click.option("--limit", default=DEFAULT_LIMIT, show_default=True, metavar="N", help="At most N places.")
@gateway_options
@timeout_option
@json_option
def search(
    words: tuple[str, ...],
    agent_id: str | None,
    limit: str,
    flags: Flags,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Find messages that hold these words, in every session.

    Accents and capitals do not matter. Secrets in what is shown are masked.

    \b
    Examples:
      openclaw sessions search invoice march
      openclaw sessions search "tax office" --agent work --limit 5
      openclaw sessions search deploy --json | jq -r '.results[].key'
    """
    query = " ".join(words).strip()
    if not query:
        raise InvalidRequest("say what to look for: openclaw sessions search WORDS")
    params: Json = {"query": query, "limit": positive_number(limit, "--limit", "places")}
    params |= {"agentId": agent_id} if agent_id else {}
    with GatewayClient(find_place(flags, os.environ), [READ], connect_timeout_s=timeout_s) as client:
        found: Json = client.call("sessions.search", params, timeout_s)
    hits = found.get("results") or found.get("hits") or []
    results = [{"key": hit.get("key") or hit.get("sessionKey"), **hit} for hit in hits]
    if as_json:
        told = {"ok": True, "query": query, "count": len(results), "results": results}
        print_json(told | {"indexing": bool(found.get("indexing"))})
        return
    for hit in results:
        _print_hit(hit, query)
    say(counted(len(results), "place") if results else "Nobody said that.")
    if found.get("indexing"):
        note("Imported conversations are still being indexed; look again later.")


def _print_hit(hit: Json, query: str) -> None:
    key = one_line(str(hit["key"]))
    when, role = moment(hit.get("timestamp")), one_line(str(hit.get("role") or ""))
    head = "  ".join(part for part in (key, when, role) if part)
    print_text(click.style(head, fg="cyan") if _coloured() else head)
    snippet = one_line(str(hit.get("snippet") or ""))
    print_text(f"  {highlight(snippet, query) if _coloured() else snippet}")


def _coloured() -> bool:
    return on_terminal() and not os.environ.get("NO_COLOR")


def highlight(snippet: str, query: str) -> str:
    """The snippet with the words of the query in bold."""
    wanted = [re.escape(word) for word in query.split()[:32]]
    if not wanted:
        return snippet
    pattern = re.compile("|".join(sorted(wanted, key=len, reverse=True)), re.IGNORECASE)
    return pattern.sub(lambda match: click.style(match.group(), bold=True), snippet)
