"""`openclaw` without a command: start a gateway or, where one runs already, say so and how to talk to it."""

from __future__ import annotations

import os

import click

from openclaw.cli.lazy import load_command
from openclaw.errors import StoreLocked

RUN = "openclaw.cli.gateway_run:run"
ASK_S = 5.0


def start(ctx: click.Context) -> None:
    """Run the gateway in this process. Raises StoreLocked when one owns the state and does not answer."""
    command = load_command(RUN)
    try:
        # Made, not merely invoked: so that it reads its environment variables as it does by its own name.
        with command.make_context("run", [], parent=ctx) as run_context:
            command.invoke(run_context)
    except StoreLocked as refusal:
        _greet(refusal)


def _greet(refusal: StoreLocked) -> None:
    from openclaw.cli.client import GatewayClient
    from openclaw.cli.failures import GatewayFailure
    from openclaw.cli.place import Flags, find_place
    from openclaw.cli.startscreen import print_running
    from openclaw.protocol.scopes import READ

    place = find_place(Flags(), os.environ)
    try:
        with GatewayClient(place, [READ], connect_timeout_s=ASK_S) as client:
            version = str((client.hello.get("server") or {}).get("version") or "")
    except GatewayFailure:
        raise refusal from None
    print_running(place.shown_url, version)
