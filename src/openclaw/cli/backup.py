"""`openclaw backup`: make a backup, check one, put one back. Works while no gateway runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from openclaw.cli.options import json_option
from openclaw.cli.render import print_json, print_labels, say
from openclaw.cli.text import printable

if TYPE_CHECKING:
    from openclaw.app.backups import Manifest
    from openclaw.store.backup import Progress

Json = dict[str, Any]
_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group()
def backup() -> None:
    """Make a backup of the store, check one, put one back.

    The gateway must be stopped: it owns the store while it runs.

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
@json_option
def create(output: Path, as_json: bool) -> None:
    """Copy the store into a new folder and check the copy.

    \b
    Example:
      openclaw backup create --output ~/backups/monday
    """
    from openclaw.app.backups import make_backup

    with _progress_bar("Copying") as progress:
        manifest = make_backup(output.absolute(), env=os.environ, progress=progress)
    _report("backup", output, manifest, as_json)


@backup.command()
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
    lines = [
        ("made", made),
        ("holds", f"{manifest.rows.get('sessions', 0)} sessions, {manifest.rows.get('entries', 0)} entries"),
        ("up to input", str(manifest.last_admission)),
        ("size", f"{manifest.size / 1e6:.1f} MB"),
        ("sha256", manifest.sha256),
    ]
    labels = {"database": "store", "kept": "the old one"}
    lines += [(labels[name], printable(str(value))) for name, value in (more or {}).items() if value]
    print_labels(lines)


@contextmanager
def _progress_bar(title: str) -> Iterator[Progress]:
    """A bar on the terminal's stderr; where that is no terminal, nothing."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _done, _total: None
        return
    from rich.progress import Progress as Bar

    with Bar(console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
