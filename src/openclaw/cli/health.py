"""`openclaw health`: the gateway's own word on how it does."""

from __future__ import annotations

import os
from typing import Any

import click

from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags, find_place
from openclaw.cli.render import print_json, print_labels
from openclaw.domain.terminaltext import counted, one_line
from openclaw.protocol.scopes import READ

Json = dict[str, Any]


@click.command()
@gateway_options
@timeout_option
@json_option
def health(flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Ask the gateway how it does. Works with an invalid config, too.

    \b
    Examples:
      openclaw health
      openclaw health --json
    """
    place = find_place(flags, os.environ, tolerate_invalid=True)
    with GatewayClient(place, [READ], connect_timeout_s=timeout_s) as client:
        answer = client.call("health", {}, timeout_s)
    if as_json:
        print_json(answer)
    else:
        print_labels([("gateway", place.shown_url), *health_facts(answer)])


def health_facts(answer: Json) -> list[tuple[str, str]]:
    """The answer of `health` as labelled lines."""
    sessions = answer.get("sessions") or {}
    agents = [str(agent.get("agentId")) for agent in answer.get("agents") or []]
    facts = [
        ("health", f"{'ok' if answer.get('ok') else 'not ok'} (checked in {answer.get('durationMs')} ms)"),
        ("agents", ", ".join(agents)),
        ("sessions", counted(int(sessions.get("count") or 0), "session")),
        ("store", str(sessions.get("path") or "-")),
    ]
    return [(label, one_line(value)) for label, value in facts]
