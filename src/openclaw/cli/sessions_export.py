"""`openclaw sessions export`: one transcript, out of the store and into a file (CLI-11, DB-4)."""

from __future__ import annotations

import asyncio
import contextlib
import filecmp
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from openclaw.cli.render import note
from openclaw.cli.text import printable
from openclaw.config.load import config_path, load_or_raise
from openclaw.errors import InvalidRequest

if TYPE_CHECKING:
    from openclaw.app.offline import Exported, Format


@click.command()
@click.argument("key")
@click.option("--agent", "agent_id", metavar="ID", help="Of this agent, whatever the key says.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "markdown", "html"]),
    default="jsonl",
    show_default=True,
    help="The exact transcript, or something to read; the latter never shows secrets.",
)
@click.option("--redact", is_flag=True, help="Mask secrets in JSONL, too.")
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to a new file.")
@click.option("--save", is_flag=True, help="Write into the folder of the agent's transcripts.")
def export(
    key: str, agent_id: str | None, form: Format, redact: bool, output: Path | None, save: bool
) -> None:
    """Print the whole transcript of a session, by its key or its session id.

    JSONL is exact: what was imported comes back byte for byte. Needs the store for itself: it refuses
    while a gateway runs.

    \b
    Examples:
      openclaw sessions export main > main.jsonl
      openclaw sessions export agent:main:telegram:group:42 --format markdown
      openclaw sessions export main --agent work --save
    """
    if output is not None and save:
        raise InvalidRequest("--output and --save exclude one another; give one of them")
    env = dict(os.environ)
    loaded = load_or_raise(config_path(env), env)
    from openclaw.app.offline import ExportRequest, export_session, require_place

    request = ExportRequest(key, agent_id, form, redact)
    with contextlib.ExitStack() as stack:
        written: list[NewFile] = []

        def open_output(exported: Exported) -> Callable[[bytes], object]:
            if output is None and not save:
                return sys.stdout.buffer.write
            place = output if output is not None else require_place(exported)
            file = stack.enter_context(NewFile(place, replaces=save))
            written.append(file)
            return file.write

        asyncio.run(export_session(request, loaded, env, open_output))
        for file in written:
            file.finish()
    sys.stdout.flush()
    for file in written:
        note(f"Written to {printable(str(file.path))}")
        if file.backup is not None:
            note(f"What was there is kept as {printable(str(file.backup))}")


class NewFile:
    """A file that appears complete or not at all, mode 0600. It never overwrites.

    With `replaces`, a file that is there with other content is kept beside it as `.bak.<time>` (DB-17).
    """

    def __init__(self, path: Path, *, replaces: bool) -> None:
        self.path = path
        self.backup: Path | None = None
        self._replaces = replaces
        self._draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        self._file: BinaryIO | None = None

    def __enter__(self) -> NewFile:
        if self.path.exists() and not self._replaces:
            raise InvalidRequest(f"{self.path} exists; remove it or choose another name")
        self.path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        descriptor = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(descriptor, "wb")
        return self

    def write(self, piece: bytes) -> None:
        assert self._file is not None
        self._file.write(piece)

    def finish(self) -> None:
        """All is written: put the file in its place."""
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())
        if self.path.exists() and not filecmp.cmp(self.path, self._draft, shallow=False):
            stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            self.backup = self.path.with_name(f"{self.path.name}.bak.{stamp.replace(':', '-')}")
            self.path.rename(self.backup)
        self._draft.rename(self.path)

    def __exit__(self, *_exc: object) -> None:
        if self._file is not None:
            self._file.close()
        self._draft.unlink(missing_ok=True)
