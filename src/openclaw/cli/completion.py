"""`openclaw completion`: the script that lets a shell complete commands and options."""

from __future__ import annotations

from typing import Final

import click

from openclaw.cli.render import note

VARIABLE: Final = "_OPENCLAW_COMPLETE"
_INSTALL: Final = {
    "bash": "openclaw completion bash > ~/.local/share/bash-completion/completions/openclaw",
    "zsh": 'openclaw completion zsh > "${fpath[1]}/_openclaw"',
    "fish": "openclaw completion fish > ~/.config/fish/completions/openclaw.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_INSTALL)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell. Install it with the command shown on stderr.

    \b
    Examples:
      openclaw completion bash > ~/.local/share/bash-completion/completions/openclaw
      openclaw completion fish > ~/.config/fish/completions/openclaw.fish
    """
    from click.shell_completion import get_completion_class

    source = get_completion_class(shell)
    assert source is not None, shell
    script = source(ctx.find_root().command, {}, "openclaw", VARIABLE).source()
    click.echo(script)
    note(f"Install it once, then open a new terminal:\n  {_INSTALL[shell]}")
