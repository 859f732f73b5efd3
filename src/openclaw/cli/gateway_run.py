"""`openclaw gateway run`: start a gateway in this process and say so.

The only command that loads the server, and only once it is called.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from openclaw.cli.place import PORT_NAME, Flags, find_place
from openclaw.config.load import config_path, load
from openclaw.errors import InvalidRequest, OpenClawError

if TYPE_CHECKING:
    from openclaw.app import Announcement


@click.command()
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    envvar=PORT_NAME,
    show_envvar=True,
    metavar="N",
    help="Listen on this port instead of gateway.port (18789).",
)
@click.option(
    "--bind", type=click.Choice(["loopback"]), help="Refuse to start unless only this machine is served."
)
@click.option("--verbose", is_flag=True, help="Log what the gateway does, on stderr.")
@click.pass_context
def run(ctx: click.Context, port: int | None, bind: str | None, verbose: bool) -> None:
    """Start the gateway and keep it running until Ctrl-C.

    It needs no configuration: the first start writes one with a fresh access token.

    \b
    Examples:
      openclaw gateway run
      openclaw gateway run --port 19000
    """
    env = dict(os.environ)
    if bind is not None:
        _require_bind(bind, env)
    _log_to_stderr(verbose)
    from openclaw.app import run_gateway

    ctx.exit(run_gateway(port=port, env=env, announce=lambda announcement: _announce(announcement, env)))


def _require_bind(bind: str, env: Mapping[str, str]) -> None:
    loaded = load(config_path(env), env)
    if loaded.config.gateway.bind != bind:
        raise InvalidRequest(
            f"gateway.bind is {loaded.config.gateway.bind!r} in {loaded.path} — change it there:"
            f" openclaw config set gateway.bind {bind}"
        )


def _log_to_stderr(verbose: bool) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("openclaw").setLevel(logging.DEBUG if verbose else logging.INFO)


def _announce(announcement: Announcement, env: Mapping[str, str]) -> None:
    from openclaw.cli.startscreen import print_start_screen

    # A gateway does not stop because nobody reads its greeting.
    with contextlib.suppress(OSError):
        print_start_screen(announcement, hint=_client_hint(announcement.url, env))


def _client_hint(url: str, env: Mapping[str, str]) -> str:
    """What to put before a client command so that it finds this gateway; usually nothing.

    Another terminal reads the same config, but need not have this process's port in its environment.
    """
    try:
        found = find_place(Flags(), {name: env[name] for name in env if name != PORT_NAME}).port
    except OpenClawError:
        found = None
    port = int(url.rsplit(":", 1)[1])
    return "" if found == port else f"{PORT_NAME}={port} "
