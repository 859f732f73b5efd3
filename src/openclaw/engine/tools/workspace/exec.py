"""exec: run a command in the workspace, for owners, or for anybody inside the sandbox (AMB-35).

The command gets no input, an environment without the gateway's secrets, and a
process group of its own that is gone when the call is over, however it ends.
Nothing is left running in the background. A sandboxed turn runs its commands in the
sandbox or not at all.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from openclaw.domain.toolpolicy import NO_BACKEND
from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import ConfinedCommand, ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.tools.workspace.access import (
    NO_SANDBOX,
    Access,
    Arguments,
    object_spec,
    read_arguments,
)
from openclaw.engine.tools.workspace.processes import end_group, signal_group
from openclaw.engine.tools.workspace.rooted import Root
from openclaw.errors import Forbidden, InvalidRequest, Unavailable

DEFAULT_TIMEOUT_S = 120
MAX_TIMEOUT_S = 3600
MAX_COMMAND_CHARS = 64_000
HEAD_BYTES = 12_000
TAIL_BYTES = 20_000
MARK = "OPENCLAW_EXEC_ID"
_GRACE_S = 0.3
_CHUNK = 65_536
# A cut looks this far for the end of a line or a word, so that no word is halved and half-masked.
_SEAM_BYTES = 4096
# What a command needs to find programs and to speak a language. All else stays in the gateway.
_PASSED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "DISPLAY")
_PASSED_PREFIXES = ("LC_", "XDG_")
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


class ExecArguments(Arguments, frozen=True):
    command: str
    cwd: str = "."
    timeout_seconds: Annotated[int, Meta(ge=1, le=MAX_TIMEOUT_S)] = DEFAULT_TIMEOUT_S


class Ended(Struct, frozen=True):
    """How a command ended. `code` is negative for a signal, None when time ran out."""

    code: int | None
    output: str
    total_bytes: int
    gone: bool


class _Place(Struct, frozen=True):
    """Where a command runs: the workspace, and a directory of it, both as they really are."""

    root: str
    directory: str

    @property
    def inside(self) -> str:
        return os.path.relpath(self.directory, self.root)


Start = Callable[[int], Coroutine[Any, Any, Process]]


class ExecTool:
    def __init__(
        self,
        env: Mapping[str, str],
        secret_values: Callable[[], frozenset[str]] = frozenset,
        access: Access = NO_SANDBOX,
    ) -> None:
        self._env = env
        self._access = access
        self._secrets = secret_values
        self._shell = shutil.which("bash") or "/bin/sh"

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_arguments(arguments, ExecArguments)
        if context.elevated:
            context = structs.replace(context, sandboxed=False, workspace_access="rw")
        # Inside the sandbox the walls themselves keep a workspace from being written.
        workspace = await self._access.enter("exec", context, writes=not context.sandboxed)
        _check_command(asked.command)
        place = await asyncio.to_thread(_place, workspace, asked.cwd)
        mark = secrets.token_hex(16)
        start = self._start_of(asked.command, place, mark, context)
        ended = await self._run(asked, start, f"{MARK}={mark}".encode())
        return _outcome(asked, ended)

    def _start_of(self, command: str, place: _Place, mark: str, context: ToolContext) -> Start:
        """How the command begins. A sandboxed turn has no other way than through the sandbox."""
        if not context.sandboxed:
            env = clean_environment(self._env, self._secrets()) | {MARK: mark}
            return lambda writer: self._start(command, place.directory, env, writer)
        sandbox = self._access.sandbox
        if sandbox is None:
            raise Forbidden(NO_BACKEND)
        confined = ConfinedCommand(
            command, place.root, place.inside, (MARK, mark),
            writable=context.workspace_access != "ro", network=context.network,
        )  # fmt: skip
        return lambda writer: sandbox.start(confined, writer)

    async def _run(self, asked: ExecArguments, start: Start, mark: bytes) -> Ended:
        output = Output()
        reader, writer = os.pipe2(os.O_CLOEXEC)
        pump = _Pump(reader, output)
        try:
            process = await start(writer)
        except BaseException:
            pump.close()
            raise
        finally:
            os.close(writer)
        try:
            code = await self._wait(process, asked.timeout_seconds)
            # Also after a plain end: what the command left in the background does not stay.
            gone = await _end(process, mark, grace_s=_GRACE_S if code is None else 0)
        except asyncio.CancelledError:
            # At once, not when a thread is free for the rest.
            signal_group(process.pid, signal.SIGKILL)
            await _carry_through(_end(process, mark, grace_s=0))
            raise
        finally:
            pump.drain()
            pump.close()
        return Ended(code, output.text(), output.total, gone)

    async def _wait(self, process: Process, timeout_s: float) -> int | None:
        try:
            async with asyncio.timeout(timeout_s):
                return await process.wait()
        except TimeoutError:
            return None

    async def _start(self, command: str, directory: str, env: dict[str, str], writer: int) -> Process:
        try:
            return await asyncio.create_subprocess_exec(
                self._shell, "-c", command,
                stdin=DEVNULL, stdout=writer, stderr=writer, cwd=directory, env=env, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise Unavailable(f"the command could not be started: {error.strerror or error}")


async def _end(process: Process, mark: bytes, *, grace_s: float) -> bool:
    gone = await asyncio.to_thread(end_group, process.pid, mark, grace_s=grace_s)
    if gone:
        await process.wait()
    return gone


async def _carry_through(ending: Coroutine[Any, Any, bool]) -> None:
    """Carry an ending through although the task is being cancelled, even more than once."""
    task = asyncio.ensure_future(ending)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)


class _Pump:
    """Reads a pipe as it fills, on the loop, without waiting. Can be closed while others still write."""

    def __init__(self, descriptor: int, output: Output) -> None:
        os.set_blocking(descriptor, False)
        self._fd = descriptor
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._on_ready)
        self._reading = True

    def _on_ready(self) -> None:
        if not self._take():
            self._stop()

    def _take(self) -> bool:
        """One piece into the output; False at the end."""
        try:
            piece = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return True
        self._output.add(piece)
        return bool(piece)

    def drain(self) -> None:
        """What is still in the pipe after the writers are gone; a pipe holds one mebibyte at most."""
        for _ in range(1 + (1 << 20) // _CHUNK):
            before = self._output.total
            if not self._take() or self._output.total == before:
                return

    def _stop(self) -> None:
        if self._reading:
            self._loop.remove_reader(self._fd)
            self._reading = False

    def close(self) -> None:
        self._stop()
        os.close(self._fd)


class Output:
    """The beginning and the end of what a command says, in bounded memory."""

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, piece: bytes) -> None:
        self.total += len(piece)
        room = self._head_bytes - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        # Twice the size before cutting, so that each byte is moved once on average.
        if len(self._tail) > 2 * self._tail_bytes:
            del self._tail[: -self._tail_bytes]

    def text(self) -> str:
        head, tail = bytes(self._head), bytes(self._tail[-self._tail_bytes :])
        if len(head) + len(tail) == self.total:
            return (head + tail).decode("utf-8", "replace")
        head, tail = _until_seam(head), _from_seam(tail)
        left_out = self.total - len(head) - len(tail)
        middle = f"\n[… {left_out} bytes left out …]\n"
        return head.decode("utf-8", "replace") + middle + tail.decode("utf-8", "replace")


def _until_seam(head: bytes) -> bytes:
    near = head[-_SEAM_BYTES:]
    at = max(near.rfind(b"\n"), 0) or max(near.rfind(b" "), 0)
    return head[: len(head) - len(near) + at] if at else head


def _from_seam(tail: bytes) -> bytes:
    near = tail[:_SEAM_BYTES]
    at = near.find(b"\n") if b"\n" in near else near.find(b" ")
    return tail[at + 1 :]


def clean_environment(env: Mapping[str, str], secret_values: frozenset[str]) -> dict[str, str]:
    """The variables that a command may see: a short list, and none that holds a secret."""
    passed = {
        name: value
        for name, value in env.items()
        if (name in _PASSED or name.startswith(_PASSED_PREFIXES))
        and not any(secret in value for secret in secret_values)
    }
    return {"PATH": _DEFAULT_PATH} | passed


def _check_command(command: str) -> None:
    if not command.strip():
        raise InvalidRequest("command is empty; say what to run")
    if len(command) > MAX_COMMAND_CHARS:
        raise InvalidRequest(f"command is longer than {MAX_COMMAND_CHARS} characters; write a script first")
    if "\x00" in command:
        raise InvalidRequest("command holds a NUL character; leave it out")
    try:
        command.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("command holds half of a surrogate pair; send valid Unicode text")


def _place(workspace: str, cwd: str) -> _Place:
    with Root(workspace, create=True) as root:
        return _Place(root.absolute("."), root.absolute(cwd))


def _outcome(asked: ExecArguments, ended: Ended) -> ToolOutcome:
    if ended.code is None:
        end = f"[stopped after {asked.timeout_seconds} s; it and all it started were ended]"
    elif ended.code < 0:
        end = f"[ended by signal {-ended.code}]"
    else:
        end = f"[exit code {ended.code}]"
    if not ended.gone:
        end += "\n[some of its processes could not be ended or checked]"
    said = ended.output.rstrip("\n")
    details = {
        "exitCode": ended.code, "timedOut": ended.code is None, "bytes": ended.total_bytes,
        "processesGone": ended.gone,
    }  # fmt: skip
    return ToolOutcome((TextBlock(f"{said}\n{end}" if said else end),), ended.code != 0, details)


_SPEC = object_spec(
    "exec",
    "Run a shell command in your workspace and see what it prints. It gets no input and may not stay in "
    "the background: everything it started ends with it.",
    {
        "command": {"type": "string"},
        "cwd": {"type": "string", "description": "a directory of the workspace; its top unless given"},
        "timeoutSeconds": {"type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_S},
    },
    ("command",),
    parallel=False,
)
