"""`openclaw config`: check, read and change the config file. Needs no gateway."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from openclaw.cli.configview import config_report
from openclaw.cli.options import json_option
from openclaw.cli.render import note, print_json, print_text, say
from openclaw.config.credentials import redacted_text
from openclaw.config.edit import set_value
from openclaw.config.edit import unset as remove_value
from openclaw.config.json5 import parse
from openclaw.config.jsonschema import config_schema
from openclaw.config.load import LoadedConfig, config_invalid, config_path, load
from openclaw.config.nodes import parse_path, plain
from openclaw.config.schema import Config
from openclaw.config.write import write_config
from openclaw.domain.terminaltext import counted, printable
from openclaw.errors import ConfigInvalid, InvalidRequest

Json = dict[str, Any]
_MISSING: Final = object()


@click.group()
def config() -> None:
    """Check, read and change the config file.

    \b
    Examples:
      openclaw config validate
      openclaw config get gateway.port
      openclaw config set session.reset.atHour 5
      openclaw config unset session.reset
    """


@config.command()
def path() -> None:
    """Print where the config file is, or would be.

    \b
    Example:
      $EDITOR "$(openclaw config path)"
    """
    click.echo(str(config_path(os.environ)))


@config.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@json_option
@click.pass_context
def validate(ctx: click.Context, file: Path | None, as_json: bool) -> None:
    """List everything that is wrong with the config file, all at once.

    Each mistake is one line: file:line — setting: reason. Exits with 1 when there is one.

    \b
    Examples:
      openclaw config validate
      openclaw config validate ./candidate.json5 --json
    """
    loaded = load(file or config_path(os.environ), os.environ)
    if file is not None and not loaded.exists:
        raise InvalidRequest(f"no such file: {file}")
    if as_json:
        print_json(config_report(loaded))
    else:
        for problem in loaded.problems:
            say(printable(str(problem)), hanging=2)
        for warning in loaded.warnings:
            note(f"warning: {printable(str(warning))}")
        if loaded.problems:
            note(f"{counted(len(loaded.problems), 'problem')}; the gateway does not start with this file")
        elif loaded.exists:
            say(f"{loaded.path} is valid.")
        else:
            say(f"{loaded.path} does not exist; that is valid, every setting has a default.")
    ctx.exit(1 if loaded.problems else 0)


@config.command()
def schema() -> None:
    """Print the JSON Schema of the config file, for editors.

    \b
    Example:
      openclaw config schema > openclaw.schema.json
    """
    print_json(config_schema(), pretty=True)


@config.command()
@click.argument("path")
@click.option("--reveal", is_flag=True, help="Show secrets as they are, not masked.")
@json_option
def get(path: str, reveal: bool, as_json: bool) -> None:
    """Print one setting as it stands in the file, or its default. Secrets are masked.

    \b
    Examples:
      openclaw config get gateway.port
      openclaw config get 'agents.list[0]' --json
      openclaw config get gateway.auth.token --reveal
    """
    value, is_default = read_setting(path, reveal=reveal)
    if isinstance(value, str) and not as_json:
        print_text(printable(value))
    else:
        print_json(value)
    if is_default:
        note("(the default; not set in the file)")


def read_setting(path: str, *, reveal: bool = False) -> tuple[Any, bool]:
    """The value at a path, and whether it is the default. Raises InvalidRequest when there is none.

    Masked unless `reveal`; a reference such as `${NAME}` is shown as it is written.
    """
    loaded = _load_readable()
    text = loaded.raw_text
    shown = text if reveal else redacted_text(text) if text.strip() else ""
    value = _at(plain(parse(shown).root), path) if shown.strip() else _MISSING
    if value is not _MISSING:
        return value, False
    value = _at(msgspec.to_builtins(Config()), path)
    if value is _MISSING or value is None:
        raise InvalidRequest(f"{path[:200]} is not set in {config_path(os.environ)}")
    return value, True


def _at(value: Any, path: str) -> Any:
    """The value at a path of plain values, or `_MISSING`."""
    try:
        steps = parse_path(path)
    except ValueError as error:
        raise InvalidRequest(f"cannot read the path {path[:80]!r}: {error}") from None
    for step in steps:
        if isinstance(value, list):
            at = str(step)
            is_position = at.isascii() and at.isdigit() and len(at) <= 9
            value = value[int(at)] if is_position and int(at) < len(value) else _MISSING
        else:
            value = value.get(str(step), _MISSING) if isinstance(value, dict) else _MISSING
    return value


@config.command(name="set", short_help="Change one setting; comments stay.")
@click.argument("path")
@click.argument("value")
@json_option
def set_(path: str, value: str, as_json: bool) -> None:
    """Change one setting and keep everything else in the file, comments included.

    VALUE is JSON5, or plain text. A change that makes the file invalid is refused.

    \b
    Examples:
      openclaw config set gateway.port 19000
      openclaw config set session.reset '{mode: "idle", idleMinutes: 60}'
    """
    loaded = _load_readable()
    try:
        text = set_value(loaded.raw_text, path, read_value(value), env=os.environ)
    except ValueError as error:
        raise InvalidRequest(f"cannot set {path[:200]!r}: {error}") from None
    _write(loaded, text, f"{path} is set in {loaded.path}.", as_json)


@config.command(short_help="Remove one setting, so that its default holds; comments stay.")
@click.argument("path")
@json_option
def unset(path: str, as_json: bool) -> None:
    """Remove one setting from the file, so that its default holds again.

    Everything else stays, comments included. A change that makes the file invalid is refused.

    \b
    Examples:
      openclaw config unset session.reset
      openclaw config unset 'agents.list[1]'
    """
    loaded = _load_readable()
    try:
        text = remove_value(loaded.raw_text, path)
    except ValueError as error:
        raise InvalidRequest(f"cannot remove {path[:200]!r}: {error}") from None
    if text == loaded.raw_text:
        raise InvalidRequest(f"{path[:200]} is not set in {loaded.path}")
    _write(loaded, text, f"{path} is no longer set in {loaded.path}.", as_json)


def _write(loaded: LoadedConfig, text: str, sentence: str, as_json: bool) -> None:
    """Put the new text in place and say what a running gateway makes of it."""
    from openclaw.config.reload import diff  # brings the event loop along; only these commands need it

    written = write_config(loaded.path, text, os.environ, expected_hash=loaded.hash)
    plan = diff(loaded.config, written.config)
    if as_json:
        print_json(config_report(written) | {"restartRequired": bool(plan.restart_required)})
        return
    say(sentence)
    if plan.restart_required:
        say("Restart the gateway to apply it.")
    elif plan.hot:
        say("A running gateway applies it to the next turn.")


def _load_readable() -> LoadedConfig:
    """The config with its text; a file that cannot be read must not look like an empty one."""
    loaded = load(config_path(os.environ), os.environ)
    if loaded.problems and not loaded.raw_text:
        raise config_invalid(loaded.problems)
    return loaded


def read_value(text: str) -> Any:
    """What was written as a value: JSON5 where it is, else the text itself."""
    try:
        return plain(parse(text, "the value").root)
    except ConfigInvalid as error:
        if text.lstrip().startswith(("{", "[", '"', "'")):
            raise InvalidRequest(f"the value is not JSON5: {error.message}") from None
        return text
