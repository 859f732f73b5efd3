"""A sandbox made of Linux namespaces, by the program `bwrap` (Debian package `bubblewrap`).

A command sees the system's programs read-only, one directory of its own as
`/workspace`, a small `/tmp` in memory, and nothing else of the machine: no other
files, no other processes, no network unless it was allowed, no variables of the
gateway, and no way to gain rights. When `bwrap` is missing or the machine does not
let it work, nothing is started at all.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from openclaw.domain.toolpolicy import NO_BACKEND
from openclaw.engine.ports import ConfinedCommand
from openclaw.engine.sandbox import INSIDE
from openclaw.errors import Unavailable

USER_ID = 1000
MAX_PROCESSES = 256
MAX_FILES = 1024
MAX_FILE_BYTES = 1 << 30
MAX_MEMORY_BYTES = 4 << 30  # of one process; what it only reserves does not count
TMP_BYTES = 512 << 20
SHM_BYTES = 64 << 20
_PROBE_S = 20.0
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# What programs need to start, to speak to servers safely and to know the time. No keys, no accounts.
_ETC = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "mime.types", "ssl/certs",
    "ssl/openssl.cnf", "ca-certificates", "pki/ca-trust", "pki/tls/certs", "terminfo", "magic",
)  # fmt: skip
_ETC_OF_NETWORK = ("resolv.conf", "hosts", "nsswitch.conf", "services", "protocols", "host.conf", "gai.conf")
_PASSWD = f"agent:x:{USER_ID}:{USER_ID}::/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
_GROUP = f"agent:x:{USER_ID}:\nnogroup:x:65534:\n"
_PASSED = ("LANG", "TZ")


class Bubblewrap:
    """`hidden` are directories that stay out of sight even where they lie among the system's programs."""

    def __init__(
        self, env: Mapping[str, str], secret_values: Callable[[], frozenset[str]] = frozenset,
        hidden: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._env = env
        self._secrets = secret_values
        self._hidden = tuple(os.path.realpath(path) for path in hidden)
        self._ready = False

    async def problem(self) -> str | None:
        """Looked for anew until it has worked once: a package may be installed while the gateway runs."""
        program = self._program()
        if program is None:
            return NO_BACKEND
        if not self._ready:
            failure = await self._probe(program)
            if failure is not None:
                return (
                    f"bubblewrap does not work on this machine ({failure}). Allow user namespaces "
                    "(sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
                )
            self._ready = True
        return None

    async def start(self, confined: ConfinedCommand, output: int) -> Process:
        program = self._program()
        if program is None:
            raise Unavailable(NO_BACKEND)
        name, value = confined.mark
        with self._descriptors(confined) as (options, passed):
            try:
                return await asyncio.create_subprocess_exec(
                    program, "--args", str(options), "--", *limited(), "-c", confined.command,
                    stdin=DEVNULL, stdout=output, stderr=output, cwd="/", env={name: value},
                    start_new_session=True, pass_fds=passed,
                )  # fmt: skip
            except OSError as error:
                raise Unavailable(f"the sandbox could not be started: {error.strerror or error}")

    def _program(self) -> str | None:
        return shutil.which("bwrap", path=self._env.get("PATH") or _PATH)

    async def _probe(self, program: str) -> str | None:
        """The same walls around a command that does nothing: what is in the way, if anything."""
        confined = ConfinedCommand("exit 7", "/usr", ".", ("OPENCLAW_PROBE", "1"))
        with self._descriptors(confined) as (options, passed):
            process = await asyncio.create_subprocess_exec(
                program, "--args", str(options), "--", *limited(), "-c", confined.command,
                stdin=DEVNULL, stdout=PIPE, stderr=asyncio.subprocess.STDOUT, cwd="/", env={},
                pass_fds=passed,
            )  # fmt: skip
        try:
            async with asyncio.timeout(_PROBE_S):
                said, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            return "it does not answer"
        if process.returncode == 7:
            return None
        told = " ".join(said.decode("utf-8", "replace").split())[:200]
        return told.rstrip(".") or f"it ended with code {process.returncode}"

    @contextmanager
    def _descriptors(self, confined: ConfinedCommand) -> Iterator[tuple[int, tuple[int, ...]]]:
        """What the program is told, in memory: the list of its processes shows no path of this machine."""
        passwd, group = in_memory(_PASSWD.encode()), in_memory(_GROUP.encode())
        opened = [passwd, group]
        try:
            walls = self.walls(confined, passwd, group)
            options = in_memory(b"".join(os.fsencode(part) + b"\0" for part in walls))
            opened.append(options)
            yield options, tuple(opened)
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def walls(self, confined: ConfinedCommand, passwd: int, group: int) -> list[str]:
        """The options of `bwrap`: everything is apart, and only what is named here is let in."""
        parts = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
        parts += ["--cap-drop", "ALL", "--uid", str(USER_ID), "--gid", str(USER_ID)]
        parts += ["--hostname", "sandbox", "--clearenv"]
        if confined.network:
            parts.append("--share-net")
        for name, value in self.environment(confined).items():
            parts += ["--setenv", name, value]
        parts += ["--ro-bind", "/usr", "/usr", *_top_level()]
        for path in self._hidden:
            if path.startswith("/usr/"):
                parts += ["--tmpfs", path]
        for name in (*_ETC, *(_ETC_OF_NETWORK if confined.network else ())):
            parts += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        parts += ["--ro-bind-data", str(passwd), "/etc/passwd", "--ro-bind-data", str(group), "/etc/group"]
        parts += ["--proc", "/proc", "--dev", "/dev", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm"]
        parts += ["--remount-ro", "/dev", "--size", str(TMP_BYTES), "--tmpfs", "/tmp"]
        parts += ["--bind" if confined.writable else "--ro-bind", confined.directory, INSIDE]
        return [*parts, "--remount-ro", "/", "--chdir", os.path.normpath(f"{INSIDE}/{confined.cwd}")]

    def environment(self, confined: ConfinedCommand) -> dict[str, str]:
        """All variables that a command gets."""
        secrets = self._secrets()
        passed = {
            name: value
            for name in _PASSED
            if (value := self._env.get(name)) and not any(secret in value for secret in secrets)
        }
        name, value = confined.mark
        fixed = {"PATH": _PATH, "HOME": "/tmp", "TMPDIR": "/tmp", "USER": "agent", "LOGNAME": "agent"}
        return {"LANG": "C.UTF-8", "TERM": "dumb"} | passed | fixed | {name: value}


def limited() -> tuple[str, ...]:
    """A shell under limits, as the first program inside."""
    return (
        "prlimit", f"--nproc={MAX_PROCESSES}", f"--nofile={MAX_FILES}", f"--fsize={MAX_FILE_BYTES}",
        f"--data={MAX_MEMORY_BYTES}", "--core=0", "--", "bash" if shutil.which("bash") else "sh",
    )  # fmt: skip


def in_memory(data: bytes) -> int:
    """A descriptor from which `data` is read, without a file."""
    descriptor = os.memfd_create("openclaw", os.MFD_CLOEXEC)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _top_level() -> list[str]:
    """`/bin` and its like: links into `/usr` on most systems, directories on others."""
    parts: list[str] = []
    for name in _TOP:
        path = Path("/", name)
        if path.is_symlink():
            parts += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            parts += ["--ro-bind", str(path), str(path)]
    return parts
