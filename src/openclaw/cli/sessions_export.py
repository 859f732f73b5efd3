"""`openclaw sessions export`: one transcript, out of the store and into a file (CLI-11, DB-4)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import filecmp
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from openclaw.cli.asking import ask_or_own, long_timeout_option, progress_bar
from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option
from openclaw.cli.place import Flags
from openclaw.cli.render import note, print_json
from openclaw.config.load import config_path, load_or_raise
from openclaw.domain.terminaltext import printable
from openclaw.errors import InvalidRequest

if TYPE_CHECKING:
    from openclaw.app.offline import Exported
    from openclaw.store.rendering import Format

Json = dict[str, Any]


@click.command(short_help="Print the whole transcript of a session.")
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
@gateway_options
@long_timeout_option
@json_option
def export(
    key: str,
    agent_id: str | None,
    form: Format,
    redact: bool,
    output: Path | None,
    save: bool,
    flags: Flags,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Print the whole transcript of a session, by its key or its session id.

    JSONL is exact: what was imported comes back byte for byte. A running gateway is asked for it, page
    by page; without one, the store is opened here. With --json and a file, what was written is told.

    \b
    Examples:
      openclaw sessions export main > main.jsonl
      openclaw sessions export agent:main:telegram:group:42 --format markdown
      openclaw sessions export main --agent work --save
    """
    if output is not None and save:
        raise InvalidRequest("--output and --save exclude one another; give one of them")
    if as_json and output is None and not save:
        raise InvalidRequest("--json tells where the transcript went; give --output FILE or --save with it")
    with contextlib.ExitStack() as stack:
        target = Target(stack, output, save, form)

        def ask(client: GatewayClient) -> Json:
            params: Json = {"key": key, "format": form, "redact": redact}
            params |= {"agentId": agent_id} if agent_id is not None else {}
            return _fetch(client, params, target, timeout_s)

        told = ask_or_own(flags, ask, lambda: _own(key, agent_id, form, redact, target))
        target.finish()
    sys.stdout.flush()
    if as_json:
        print_json({"ok": True, **told, **target.told()})
    else:
        target.note()


def _own(key: str, agent_id: str | None, form: Format, redact: bool, target: Target) -> Json:
    env = dict(os.environ)
    loaded = load_or_raise(config_path(env), env)
    from openclaw.app.offline import ExportRequest, export_session

    request = ExportRequest(key, agent_id, form, redact)
    done = asyncio.run(export_session(request, loaded, env, target.open))
    return {"key": done.session_key, "sessionId": done.session_id, "agentId": done.agent_id}


def _fetch(client: GatewayClient, params: Json, target: Target, timeout_s: float) -> Json:
    """Ask for page after page; each is written before the next is asked for."""
    write: Callable[[bytes], object] | None = None
    with progress_bar("Exporting") as progress:
        while True:
            page = client.call("sessions.export", params, timeout_s)
            names = {name: page[name] for name in ("key", "sessionId", "agentId")}
            if write is None:
                write = target.open_named(names)
            write(base64.b64decode(page["data"]))
            progress(page["seq"], page["lastSeq"])
            if page["cursor"] is None:
                return names
            params = params | {"cursor": page["cursor"]}


class Target:
    """Where an export goes: standard output, or a file that is made once it is known what it is of."""

    def __init__(self, stack: contextlib.ExitStack, output: Path | None, save: bool, form: Format) -> None:
        self._stack = stack
        self._output = output
        self._save = save
        self._form = form
        self._file: NewFile | None = None

    def open(self, exported: Exported) -> Callable[[bytes], object]:
        if self._output is None and not self._save:
            return sys.stdout.buffer.write
        from openclaw.app.offline import require_place

        return self._open_file(self._output or require_place(exported))

    def open_named(self, names: Json) -> Callable[[bytes], object]:
        """Like `open`, for what a gateway says it is; its folder is the one of this machine's config."""
        if self._output is not None:
            return self._open_file(self._output)
        if not self._save:
            return sys.stdout.buffer.write
        env = dict(os.environ)
        loaded = load_or_raise(config_path(env), env)
        from openclaw.app.offline import describe_export

        key, session_id, agent_id = str(names["key"]), str(names["sessionId"]), str(names["agentId"])
        return self.open(describe_export(key, session_id, agent_id, self._form, loaded, env))

    def _open_file(self, place: Path) -> Callable[[bytes], object]:
        self._file = self._stack.enter_context(NewFile(place, replaces=self._save))
        return self._file.write

    def finish(self) -> None:
        if self._file is not None:
            self._file.finish()

    def told(self) -> Json:
        assert self._file is not None
        kept = self._file.backup
        return {
            "path": str(self._file.path.absolute()),
            "bytes": self._file.size,
            "kept": None if kept is None else str(kept.absolute()),
        }

    def note(self) -> None:
        if self._file is None:
            return
        note(f"Written to {printable(str(self._file.path))}")
        if self._file.backup is not None:
            note(f"What was there is kept as {printable(str(self._file.backup))}")


class NewFile:
    """A file that appears complete or not at all, mode 0600. It never overwrites.

    With `replaces`, a file that is there with other content is kept beside it as `.bak.<time>` (DB-17).
    """

    def __init__(self, path: Path, *, replaces: bool) -> None:
        self.path = path
        self.backup: Path | None = None
        self.size = 0
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
        self.size += self._file.write(piece)

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
