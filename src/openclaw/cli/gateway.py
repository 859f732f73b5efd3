"""`openclaw gateway`: run one, ask one, look at one."""

from __future__ import annotations

from typing import Final

import click

from openclaw.cli.lazy import LazyGroup

COMMANDS: Final = {
    "run": "openclaw.cli.gateway_run:run",
    "call": "openclaw.cli.gateway_call:call",
    "status": "openclaw.cli.gateway_status:status",
}


@click.group(cls=LazyGroup, table=COMMANDS)
def gateway() -> None:
    """Run the gateway, or talk to a running one.

    \b
    Examples:
      openclaw gateway run
      openclaw gateway status
      openclaw gateway call sessions.list --params '{"limit": 5}'
    """
