"""`openclaw backup`: make a backup, check one, put one back (DB-20)."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from openclaw.cli.asking import ask_or_own, long_timeout_option, progress_bar, waiting
from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option
from openclaw.cli.place import Flags
from openclaw.cli.render import print_json, print_labels, say
from openclaw.domain.terminaltext import counted, printable

if TYPE_CHECKING:
    from openclaw.store.manifest import Manifest

Json = dict[str, Any]
_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group()
def backup() -> None:
    """Make a backup of the store, check one, put one back.

    A backup is made by the gateway that runs, while people write, or here when none runs. Putting one
    back needs the gateway stopped. A PostgreSQL store is backed up with pg_dump.

    \b
    Examples:
      openclaw backup create --output ~/backups/monday
      openclaw backup verify ~/backups/monday
      openclaw backup restore ~/backups/monday
    """


@backup.command()
@click.option(
    "--output", required=True, type=_FOLDER, metavar="DIR", help="The folder to make; it must not exist yet."
)
@gateway_options
@long_timeout_option
@json_option
def create(output: Path, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Copy the store into a new folder and check the copy.

    Everything that was acknowledged before the time it states is in it. The folder is one of the machine
    that the gateway runs on.

    \b
    Examples:
      openclaw backup create --output ~/backups/monday
      openclaw backup create --output /srv/backups/monday --url ws://10.0.0.5:18789 --token TOKEN
    """
    folder = output.absolute()

    def ask(client: GatewayClient) -> Manifest:
        import msgspec

        from openclaw.store.manifest import Manifest

        with waiting("Copying"):
            answer = client.call("backup.create", {"output": str(folder)}, timeout_s)
        return msgspec.convert(answer["manifest"], Manifest)

    def own() -> Manifest:
        from openclaw.app.backups import make_backup

        with progress_bar("Copying") as progress:
            return make_backup(folder, env=os.environ, progress=progress)

    _report("backup", output, ask_or_own(flags, ask, own), as_json)


@backup.command(short_help="Check that a backup is whole.")
@click.argument("folder", metavar="DIR", type=_FOLDER)
@json_option
def verify(folder: Path, as_json: bool) -> None:
    """Check that a backup is whole: its hash, its structure, its counts. Changes nothing.

    \b
    Example:
      openclaw backup verify ~/backups/monday
    """
    from openclaw.app.backups import verify_backup

    _report("verified", folder, verify_backup(folder.absolute()), as_json)


@backup.command()
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option("--force", is_flag=True, help="Replace a store that holds something; the old one is kept.")
@json_option
def restore(folder: Path, force: bool, as_json: bool) -> None:
    """Check a backup and put it in the place of the store.

    A store that holds something is replaced with --force only, and stays beside the new one as
    openclaw.sqlite.bak.<time>.

    \b
    Examples:
      openclaw backup restore ~/backups/monday
      openclaw backup restore ~/backups/monday --force
    """
    from openclaw.app.backups import put_back

    restored = put_back(folder.absolute(), env=os.environ, force=force)
    more = {"database": restored.database, "kept": restored.kept}
    _report("restored", folder, restored.manifest, as_json, more)


def _report(word: str, folder: Path, manifest: Manifest, as_json: bool, more: Json | None = None) -> None:
    if as_json:
        import msgspec

        shown: Json = msgspec.to_builtins(manifest)
        print_json({"ok": True, word: str(folder.absolute()), **shown, **(more or {})})
        return
    made = datetime.fromtimestamp(manifest.created_at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    say(f"{word.capitalize()}: {printable(str(folder))}")
    rows = manifest.rows
    lines = [
        ("made", made),
        ("holds", f"{counted(rows.get('sessions', 0), 'session')}, {rows.get('entries', 0)} entries"),
        ("up to input", str(manifest.last_admission)),
        ("size", f"{manifest.size / 1e6:.1f} MB"),
        ("sha256", manifest.sha256),
    ]
    labels = {"database": "store", "kept": "the old one"}
    lines += [(labels[name], printable(str(value))) for name, value in (more or {}).items() if value]
    print_labels(lines)
