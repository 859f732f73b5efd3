"""`openclaw mcp serve`: the session tools for any host of the Model Context Protocol.

Standard output belongs to the protocol: whatever is said to people goes to standard error.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
from typing import Final

import click

from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options
from openclaw.cli.place import Flags, Place, find_place, local_port
from openclaw.config.load import config_path, load
from openclaw.errors import InvalidRequest, Unavailable
from openclaw.protocol.scopes import READ, WRITE

# Not the owner's: what an owner alone may do is not for the model of another program.
SCOPES: Final = (READ, WRITE)


@click.group()
def mcp() -> None:
    """Offer the session tools to other programs that use models.

    \b
    Example:
      openclaw mcp serve
    """


@mcp.command()
@click.option(
    "--session",
    "session_key",
    default="main",
    show_default=True,
    metavar="KEY",
    help="The session to act as; its visibility decides what is seen.",
)
@click.option("--embedded", is_flag=True, help="Start a gateway of its own instead of using a running one.")
@gateway_options
def serve(session_key: str, embedded: bool, flags: Flags) -> None:
    """Serve the session tools over standard input and output.

    A host starts this command itself; it needs `pip install openclaw[mcp]`.

    \b
    Examples:
      openclaw mcp serve
      openclaw mcp serve --session agent:main:desk
      openclaw mcp serve --embedded
    """
    _require_library()
    logging.basicConfig(level=logging.WARNING)
    # The thread that reads standard input cannot be interrupted; Ctrl-C ends the process instead.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if embedded:
        if flags != Flags():
            raise InvalidRequest("--embedded starts its own gateway; leave out --url, --token and --password")
        _serve_embedded(session_key)
    else:
        place = find_place(flags, os.environ)
        with GatewayClient(place, SCOPES):
            pass  # a gateway that is not there, or does not let us in, is told in the words of every command
        _serve_linked(place, session_key)


def _require_library() -> None:
    if importlib.util.find_spec("mcp") is None:
        raise Unavailable("`openclaw mcp serve` needs the MCP library: pip install 'openclaw[mcp]'")


# What they need is loaded when they are called, and before an event loop would have to wait for it.


def _serve_linked(place: Place, session_key: str) -> None:
    import asyncio

    from openclaw.api.connection import Address
    from openclaw.mcp.link import LastingLink
    from openclaw.mcp.server import serve as serve_host

    async def main() -> None:
        address = Address(place.url, place.token, place.password)
        async with LastingLink(address, SCOPES) as link:
            await serve_host(link, session_key)

    asyncio.run(main())


def _serve_embedded(session_key: str) -> None:
    import asyncio

    from openclaw.api.gateway import Gateway
    from openclaw.mcp.server import serve as serve_host

    # Where other commands look for the gateway of this machine.
    port = local_port(load(config_path(os.environ), os.environ).config, os.environ)

    async def main() -> None:
        async with Gateway(port=port, scopes=SCOPES) as gateway:
            await serve_host(gateway, session_key)

    asyncio.run(main())
