"""The door of the `openclaw` command: the table of commands, and how a failure leaves the process.

Nothing else is imported here, so that `openclaw --version` and `--help` are quick.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from openclaw import __version__
from openclaw.cli.lazy import LazyGroup
from openclaw.errors import ConfigInvalid, OpenClawError

COMMANDS: Final = {
    "gateway": "openclaw.cli.gateway:gateway",
    "agent": "openclaw.cli.agent:agent",
    "chat": "openclaw.cli.chat:chat",
    "tui": "openclaw.cli.tui:tui",
    "sessions": "openclaw.cli.sessions:sessions",
    "status": "openclaw.cli.status:status",
    "health": "openclaw.cli.health:health",
    "dashboard": "openclaw.cli.dashboard:dashboard",
    "config": "openclaw.cli.config:config",
    "devices": "openclaw.cli.devices:devices",
    "channels": "openclaw.cli.channels:channels",
    "pairing": "openclaw.cli.pairing:pairing",
    "models": "openclaw.cli.models:models",
    "mcp": "openclaw.cli.mcp:mcp",
    "onboard": "openclaw.cli.onboard:onboard",
    "backup": "openclaw.cli.backup:backup",
    "doctor": "openclaw.cli.doctor:doctor",
    "agents": "openclaw.cli.agents:agents",
    "usage": "openclaw.cli.usage:usage",
    "outbox": "openclaw.cli.outbox:outbox",
    "explain": "openclaw.cli.explain:explain",
    "cron": "openclaw.cli.cron:cron",
    "system": "openclaw.cli.system_event:system",
    "logs": "openclaw.cli.logs:logs",
    "security": "openclaw.cli.security:security",
    "completion": "openclaw.cli.completion:completion",
}
# How `--help` groups them; a command that stands in no section is shown at the end.
SECTIONS: Final = {
    "Talk": ("chat", "tui", "agent", "dashboard", "sessions"),
    "Look": ("status", "health", "agents", "usage", "logs", "explain"),
    "Set up": ("onboard", "models", "config", "channels", "pairing", "devices", "completion", "mcp"),
    "Run": ("gateway", "outbox", "cron", "system"),
    "Look after": ("doctor", "security", "backup"),
}

FAILED: Final = 1
INTERRUPTED: Final = 130
HANGING: Final = 2


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    sections=SECTIONS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "--version", message="openclaw %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """A Gateway that owns every conversation of every AI agent on this machine.

    Without a command it starts the gateway, which needs no configuration.

    \b
    Examples:
      openclaw                         start the gateway
      openclaw chat                    talk to it, from another terminal
      openclaw dashboard               the same in a browser
      openclaw sessions                what it remembers
      openclaw status                  is it running, and where is everything?
    """
    if ctx.invoked_subcommand is None:
        from openclaw.cli.bare import start

        start(ctx)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code of the process. Failures are told on stderr."""
    try:
        # A command ends by returning, or early with its own code through `ctx.exit`.
        code = cli.main(list(arguments), prog_name="openclaw", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as mistake:
        mistake.show()
        return mistake.exit_code
    except OpenClawError as error:
        _tell(error)
        return FAILED
    except BrokenPipeError:
        # The reader of our output left. Python flushes once more at exit; that must find somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        click.echo(f"openclaw: {error}", err=True)
        return FAILED


def _tell(error: OpenClawError) -> None:
    from openclaw.cli.render import say
    from openclaw.domain.terminaltext import printable

    if isinstance(error, ConfigInvalid):
        say("openclaw: the config is not valid; nothing was started or changed:", err=True)
        say(printable(error.message), hanging=HANGING, err=True)
    else:
        say(f"openclaw: {printable(error.message)}", hanging=HANGING, err=True)


def main() -> None:
    """The entry point of the `openclaw` command and of `python -m openclaw`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Half a surrogate pair or a poor terminal encoding must not end a command with a traceback.
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))
