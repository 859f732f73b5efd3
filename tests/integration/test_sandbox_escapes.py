"""Ways out of the sandbox, each tried twice: from inside, where it must fail, and outside, where it works.

The second try is what gives the first its meaning: a command that fails everywhere proves nothing.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from openclaw.engine.ports import Sandbox
from openclaw.engine.sandbox import Scratch
from openclaw.engine.tools.workspace.access import Access, WriteLocks
from openclaw.engine.tools.workspace.bubblewrap import Bubblewrap
from openclaw.engine.tools.workspace.exec import ExecTool
from openclaw.engine.tools.workspace.read import ReadTool
from openclaw.engine.tools.workspace.write import WriteTool
from tests.unit.engine.tools.workspace.doing import call, context_of, refused, said

SECRET = "sk-live-the-key-of-the-house"
ENV = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/root", "LANG": "C.UTF-8", "KEY": SECRET}


class Ground:
    """A workspace, a neighbour with a secret, and the tools of a session inside and outside the sandbox."""

    def __init__(self, base: Path, sandbox: Sandbox) -> None:
        self.work, self.outside = base / "work", base / "outside"
        self.work.mkdir()
        self.outside.mkdir()
        self.secret = self.outside / "secret.txt"
        self.secret.write_text(SECRET)
        self.access = Access(sandbox, Scratch(base / "sandboxes"))
        self.exec = ExecTool(ENV, lambda: frozenset({SECRET}), self.access)

    async def run(self, command: str, **facts: Any) -> str:
        facts = {"sandboxed": True, "workspace_access": "rw", "owner": False} | facts
        return said(await call(self.exec, context_of(self.work, **facts), command=command, timeoutSeconds=60))

    async def outside_of_it(self, command: str) -> str:
        return said(await call(self.exec, context_of(self.work), command=command, timeoutSeconds=60))


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground]:
    sandbox = Bubblewrap(ENV, lambda: frozenset({SECRET}))
    problem = await sandbox.problem()
    if problem is not None:
        pytest.skip(f"NO SANDBOX ESCAPE WAS TRIED: {problem}")
    yield Ground(tmp_path, sandbox)


@pytest.fixture
def neighbour() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the machine, with a name that can be found."""
    process = subprocess.Popen(["sleep", "98765.4"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def is_there(path: str) -> bool:
    return Path(path).exists()


def own_path_variable() -> str:
    ours = Path("/proc/self/environ").read_bytes().split(b"\0")
    return next(line.decode() for line in ours if line.startswith(b"PATH="))


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.spec("TOOL-4")
async def test_a_write_outside_the_workspace_reaches_nothing(ground: Ground) -> None:
    planted = ground.outside / "planted"
    command = f"echo owned > {planted}"
    inside = await ground.run(command)
    assert "No such file" in inside
    assert not planted.exists()
    assert "[exit code 0]" in await ground.outside_of_it(command)
    assert planted.read_text() == "owned\n"


@pytest.mark.spec("TOOL-4")
@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
async def test_what_is_written_to_shared_places_stays_inside(ground: Ground, place: str) -> None:
    planted = f"{place}/openclaw-escape-{uuid.uuid4().hex}"
    assert "[exit code 0]" in await ground.run(f"echo owned > {planted}")
    assert not is_there(planted)
    assert "[exit code 0]" in await ground.outside_of_it(f"echo owned > {planted}")
    assert is_there(planted)
    assert "[exit code 0]" in await ground.outside_of_it(f"rm {planted}")


@pytest.mark.parametrize("place", ["/", "/usr", "/etc", "/dev", "/usr/local/bin"])
async def test_the_system_cannot_be_written(ground: Ground, place: str) -> None:
    name = f"{place}/openclaw-escape-{uuid.uuid4().hex}"
    told = await ground.run(f"touch {name}")
    assert "Read-only file system" in told
    assert not is_there(name)


@pytest.mark.spec("TOOL-4")
@pytest.mark.parametrize(
    "way",
    [
        "cat {secret}",
        "cat /proc/self/root{secret}",
        "cat /proc/$PPID/root{secret}",
        "cat ../outside/secret.txt",
        "ln -s {secret} link && cat link",
        "ln {secret} hard && cat hard",
        "cp {secret} copy && cat copy",
        "cd {outside} && cat secret.txt",
        "cat $(dirname $(pwd))/outside/secret.txt",
    ],
)
async def test_a_secret_beside_the_workspace_cannot_be_read(ground: Ground, way: str) -> None:
    command = way.format(secret=ground.secret, outside=ground.outside)
    inside = await ground.run(command)
    assert SECRET not in inside
    assert "[exit code 1]" in inside
    assert {path.name for path in ground.work.iterdir()} <= {"link"}
    (ground.work / "link").unlink(missing_ok=True)
    assert SECRET in await ground.outside_of_it(command)


@pytest.mark.spec("TOOL-4")
async def test_a_link_made_inside_does_not_lead_the_file_tools_out(ground: Ground) -> None:
    await ground.run(f"ln -s {ground.secret} key; ln -s {ground.outside} door")
    context = context_of(ground.work, sandboxed=True, owner=False)
    read, write = ReadTool(ground.access), WriteTool(WriteLocks(), ground.access)
    for path in ("key", "door/secret.txt"):
        error = refused(await call(read, context, path=path), "forbidden")
        assert "leads out of the workspace" in error
    refused(await call(write, context, path="door/planted", content="owned"), "forbidden")
    assert not (ground.outside / "planted").exists()
    refused(await call(ground.exec, context, command="pwd", cwd="door"), "forbidden")
    # The very same links do lead a command outside of the sandbox there.
    assert SECRET in await ground.outside_of_it("cat key")


@pytest.mark.spec("TOOL-4")
async def test_a_workspace_that_may_only_be_read_cannot_be_written(ground: Ground) -> None:
    (ground.work / "a.txt").write_text("old")
    ways = ("echo new > a.txt", "rm a.txt", "mv a.txt b.txt", "chmod 777 a.txt", "mkdir sub", "touch b.txt")
    for way in ways:
        told = await ground.run(f"cat a.txt; {way}", workspace_access="ro")
        assert told.startswith("old")
        assert "Read-only file system" in told, way
    assert [path.name for path in ground.work.iterdir()] == ["a.txt"]
    assert (ground.work / "a.txt").read_text() == "old"
    assert "[exit code 0]" in await ground.run(ways[0])
    assert (ground.work / "a.txt").read_text() == "new\n"


@pytest.mark.spec("TOOL-4")
async def test_without_the_workspace_a_session_has_a_folder_of_its_own(ground: Ground) -> None:
    (ground.work / "a.txt").write_text("private")
    facts = {"workspace_access": "none", "scratch": "agent:main:one"}
    told = await ground.run("ls -A; echo mine > note; pwd", **facts)
    assert told.startswith("/workspace")
    assert (await ground.run("cat note", **facts)).startswith("mine")
    other = await ground.run("ls -A", **(facts | {"scratch": "agent:main:two"}))
    assert other == "[exit code 0]"
    assert [path.name for path in ground.work.iterdir()] == ["a.txt"]
    context = context_of(ground.work, sandboxed=True, owner=False, **facts)
    read, write = ReadTool(ground.access), WriteTool(WriteLocks(), ground.access)
    assert said(await call(read, context, path="note")) == "mine\n"
    await call(write, context, path="more.txt", content="two")
    assert (await ground.run("cat more.txt", **facts)).startswith("two")
    assert "does not exist" in refused(await call(read, context, path="a.txt"))


# -- what the gateway knows ------------------------------------------------------------------------


@pytest.mark.spec("TOOL-4")
async def test_the_environment_of_the_gateway_is_not_to_be_had(ground: Ground) -> None:
    command = "tr '\\0' '\\n' < /proc/$PPID/environ; echo; env"
    mine = own_path_variable()
    inside = await ground.run(command)
    assert mine not in inside
    assert SECRET not in inside
    assert "HOME=/tmp" in inside
    names = {line.partition("=")[0] for line in inside.splitlines() if "=" in line}
    fixed = {"PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "LANG", "TERM", "TZ", "OPENCLAW_EXEC_ID"}
    assert names <= fixed | {"PWD", "OLDPWD", "SHLVL", "_"}
    assert mine in await ground.outside_of_it(command)


async def test_the_way_it_was_started_tells_no_path_of_the_machine(ground: Ground) -> None:
    told = await ground.run("cat /proc/*/cmdline | tr '\\0' ' '; ls -l /proc/self/fd")
    assert str(ground.work) not in told
    assert "memfd" not in told
    assert str(ground.work) in await ground.outside_of_it("pwd")


# -- processes -------------------------------------------------------------------------------------


@pytest.mark.spec("TOOL-4")
async def test_other_processes_cannot_be_seen(ground: Ground, neighbour: subprocess.Popen[bytes]) -> None:
    command = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep [9]8765'"
    assert "[exit code 1]" in await ground.run(command)
    assert neighbour.poll() is None
    assert "[exit code 0]" in await ground.outside_of_it(command)


@pytest.mark.spec("TOOL-4")
async def test_other_processes_cannot_be_killed(ground: Ground, neighbour: subprocess.Popen[bytes]) -> None:
    command = f"kill -9 {neighbour.pid}"
    inside = await ground.run(command)
    assert "No such process" in inside
    assert neighbour.poll() is None
    await ground.run("kill -9 -1")
    assert neighbour.poll() is None
    assert "[exit code 0]" in await ground.outside_of_it(command)
    assert await asyncio.to_thread(neighbour.wait, 60) == -signal.SIGKILL


@pytest.mark.spec("TOOL-4")
async def test_rights_cannot_be_gained(ground: Ground) -> None:
    inside = await ground.run("grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status; id -u")
    none = "0" * 16
    assert inside.split()[:7] == ["CapEff:", none, "CapBnd:", none, "NoNewPrivs:", "1", "1000"]
    outside = await ground.outside_of_it("grep -E 'NoNewPrivs' /proc/self/status")
    assert outside.split()[:2] == ["NoNewPrivs:", "0"]
    assert "unshare failed" in await ground.run("unshare --user --map-root-user true")
    assert "[exit code 0]" in await ground.outside_of_it("unshare --user --map-root-user true")
    for way in ("mount -t tmpfs none /workspace", "chroot /workspace", "mknod disk b 8 0"):
        assert "[exit code 0]" not in await ground.run(way)
    refused_write = await ground.run("echo 1 > /proc/sys/kernel/panic; echo h > /proc/sysrq-trigger")
    assert "[exit code 0]" not in refused_write


async def test_memory_shared_between_processes_stays_inside(ground: Ground) -> None:
    made = await ground.outside_of_it("ipcmk -M 64")
    number = made.split()[3]
    try:
        assert number in await ground.outside_of_it("ipcs -m")
        assert f" {number} " not in await ground.run("ipcs -m")
    finally:
        await ground.outside_of_it(f"ipcrm -m {number}")


async def test_nothing_of_a_command_stays_behind(ground: Ground) -> None:
    count = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep [4]3210.5'"
    await ground.run("setsid nohup sleep 43210.5 >/dev/null 2>&1 & sleep 0.2; echo left")
    assert "[exit code 1]" in await ground.outside_of_it(count)


async def test_a_command_has_limits(ground: Ground) -> None:
    limits = "ulimit -u; ulimit -n; ulimit -c; ulimit -f; ulimit -d"
    told = await ground.run(f"{limits}; df --output=size -B1 /tmp /dev/shm | tail -2")
    assert told.split()[:5] == ["256", "1024", "0", str(1 << 20), str(4 << 20)]
    assert told.split()[5:7] == [str(512 << 20), str(64 << 20)]
    assert (await ground.outside_of_it(limits)).split()[:5] != told.split()[:5]


# -- network ---------------------------------------------------------------------------------------


@pytest.mark.spec("TOOL-4")
async def test_there_is_no_network_unless_it_is_allowed(ground: Ground, listener: int) -> None:
    command = f"exec 3<>/dev/tcp/127.0.0.1/{listener} && echo connected"
    inside = await ground.run(command)
    assert "connected" not in inside
    assert "Connection refused" in inside
    assert "connected" in await ground.outside_of_it(command)
    assert "connected" in await ground.run(command, network=True)
    devices = await ground.run("ls /sys/class/net; tail -n +3 /proc/net/dev | cut -d: -f1")
    assert "lo" in devices
    assert "eth" not in devices
