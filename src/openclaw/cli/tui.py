"""`openclaw tui`: the terminal UI (CLI-13). Asks for the library that draws it only when it is called."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from openclaw.cli.options import gateway_options
from openclaw.cli.place import Flags, Place, find_place
from openclaw.cli.render import note
from openclaw.errors import InvalidRequest, Unavailable

if TYPE_CHECKING:
    from openclaw.tui.opening import TuiOptions


@click.command(short_help="The whole gateway in a terminal: sessions, chat, tree.")
@click.option("--session", metavar="KEY", help="The session to open. Default: the one where you left.")
@click.option("--agent", "agent_id", metavar="ID", help="Of this agent, when the key names none.")
@click.option("--thinking", metavar="LEVEL", help="How hard to think, for each turn.")
@click.option("-m", "--message", metavar="TEXT", help="Say this first.")
@click.option("--deliver", is_flag=True, help="Send the replies to the session's channel, too.")
@click.option(
    "--history-limit",
    type=click.IntRange(1, 1000),
    default=200,
    show_default=True,
    metavar="N",
    help="How many messages to load at a time.",
)
@click.option("--local", is_flag=True, help="Do not look for a gateway; run one in this process.")
@gateway_options
def tui(
    session: str | None,
    agent_id: str | None,
    thinking: str | None,
    message: str | None,
    deliver: bool,
    history_limit: int,
    local: bool,
    flags: Flags,
) -> None:
    """Sessions, conversations and the tree of helpers, in a terminal.

    F1 shows the keys, Ctrl-Q leaves. It opens the session where you left, and needs the library
    Textual: `pip install 'openclaw[tui]'`. A gateway on another machine asks its owner once to
    approve this device.

    \b
    Examples:
      openclaw tui
      openclaw tui --session notes --message "Where were we?"
      openclaw tui --url wss://gateway.example.org --token "$TOKEN"
    """
    _require_library()
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidRequest("`openclaw tui` needs a terminal; for pipes there is `openclaw chat`")
    with _reach(flags, local=local) as (place, name):
        from openclaw.api.connection import Address
        from openclaw.tui.opening import TuiOptions

        options = TuiOptions(
            address=Address(place.url, place.token, place.password),
            gateway=name,
            session=session,
            agent_id=agent_id,
            history_limit=history_limit,
            deliver=deliver,
            thinking=thinking,
            message=message,
        )
        leaving = _run(options)
    if leaving is not None:
        raise Unavailable(leaving)


def _require_library() -> None:
    if importlib.util.find_spec("textual") is None:
        raise Unavailable("`openclaw tui` needs the library Textual: pip install 'openclaw[tui]'")


@contextmanager
def _reach(flags: Flags, *, local: bool) -> Iterator[tuple[Place, str]]:
    """A gateway, and the name under which this machine remembers it.

    On this machine one is started where none runs. One on another machine is left to the screen, which
    waits for its owner's approval.
    """
    from openclaw.cli.embedded import reach_gateway

    place = find_place(flags, os.environ)
    if not place.on_this_machine and not local:
        yield place, place.shown_url
        return
    with reach_gateway(
        flags, (), local=local, on_embedded=lambda reason: note(f"{reason}; starting one …")
    ) as client:
        client.close()
        yield client.place, place.shown_url


def _run(options: TuiOptions) -> str | None:
    """Draw until the person leaves; the reason when it ended by itself."""
    from openclaw.config.load import state_dir
    from openclaw.tui.app import TerminalApp
    from openclaw.tui.memory import FILE_NAME, ClientMemory
    from openclaw.tui.shades import is_dark

    with ClientMemory(state_dir(os.environ) / FILE_NAME) as memory:
        app = TerminalApp(options, memory, dark=is_dark(os.environ))
        app.run()
        return app.leaving
