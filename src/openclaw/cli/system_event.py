"""`openclaw system event`: a word from the machine to an agent, for its next turn or at once (CLI-7)."""

from __future__ import annotations

import os
from typing import Any

import click

from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags, find_place
from openclaw.cli.render import print_json, say
from openclaw.errors import InvalidRequest
from openclaw.protocol.scopes import ADMIN

Json = dict[str, Any]


@click.group()
def system() -> None:
    """Tell an agent what happened on the machine.

    \b
    Examples:
      openclaw system event --text "the backup has finished"
      openclaw system event --text "disk almost full" --mode now --session-key main
    """


@system.command()
@click.option("--text", required=True, metavar="TEXT", help="What happened.")
@click.option(
    "--mode",
    type=click.Choice(["now", "next-heartbeat"]),
    default="next-heartbeat",
    show_default=True,
    help="Start a turn at once, or wait for the next one.",
)
@click.option("--session-key", metavar="KEY", help="The session that hears it; the main session by default.")
@click.option("--agent", "agent_id", metavar="ID", help="The agent, where the key does not name one.")
@gateway_options
@timeout_option
@json_option
def event(
    text: str,
    mode: str,
    session_key: str | None,
    agent_id: str | None,
    flags: Flags,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Leave an event for a session. It is part of the next turn, as a note, not as an order.

    \b
    Examples:
      openclaw system event --text "the build is green"
      openclaw system event --text "the door bell rang" --mode now --session-key agent:home:main
    """
    if not text.strip():
        raise InvalidRequest("--text is empty; say what happened")
    params: Json = {"mode": mode, "text": text}
    params |= {"sessionKey": session_key} if session_key is not None else {}
    params |= {"agentId": agent_id} if agent_id is not None else {}
    with GatewayClient(find_place(flags, os.environ), [ADMIN], connect_timeout_s=timeout_s) as client:
        answer = client.call("wake", params, timeout_s)
    if as_json:
        print_json(answer)
    else:
        say("The agent is told now." if mode == "now" else "The agent is told with its next turn.")
