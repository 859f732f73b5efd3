"""`openclaw gateway status`: does it answer, and how is it doing?"""

from __future__ import annotations

import os

import click

from openclaw.cli.client import GatewayClient
from openclaw.cli.failures import failure_body
from openclaw.cli.health import health_facts
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags, find_place
from openclaw.cli.render import print_json, print_labels
from openclaw.domain.terminaltext import age
from openclaw.errors import OpenClawError
from openclaw.protocol.scopes import READ


@click.command()
@gateway_options
@timeout_option
@json_option
@click.pass_context
def status(ctx: click.Context, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Say whether the gateway answers, and its health. Exits with 1 when it does not.

    \b
    Examples:
      openclaw gateway status
      openclaw gateway status --json
    """
    place = find_place(flags, os.environ, tolerate_invalid=True)
    try:
        with GatewayClient(place, [READ], connect_timeout_s=timeout_s) as client:
            answer = client.call("health", {}, timeout_s)
            hello = client.hello
    except OpenClawError as error:
        if not as_json:
            raise
        print_json(failure_body(error) | {"url": place.shown_url, "reachable": False})
        ctx.exit(1)
    server, uptime_ms = hello.get("server") or {}, (hello.get("snapshot") or {}).get("uptimeMs")
    if as_json:
        print_json(
            {
                "ok": True,
                "url": place.shown_url,
                "reachable": True,
                "version": server.get("version"),
                "uptimeMs": uptime_ms,
                "health": answer,
            }
        )
        return
    print_labels(
        [
            ("gateway", f"running at {place.shown_url}"),
            ("version", str(server.get("version"))),
            ("up for", age(uptime_ms)),
            *health_facts(answer),
        ]
    )
