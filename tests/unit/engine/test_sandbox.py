"""The sandbox without its walls: who is refused, where a session works, and what is asked of `bwrap`."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, Process
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from openclaw.domain.toolpolicy import NO_BACKEND
from openclaw.engine.ports import ConfinedCommand
from openclaw.engine.sandbox import GRACE_MS, Scratch, digest
from openclaw.engine.tools.workspace.access import Access, WriteLocks
from openclaw.engine.tools.workspace.bubblewrap import Bubblewrap
from openclaw.engine.tools.workspace.exec import ExecTool
from openclaw.engine.tools.workspace.memory import MemoryTool
from openclaw.engine.tools.workspace.read import ReadTool
from openclaw.engine.tools.workspace.write import WriteTool
from openclaw.errors import Unavailable
from tests.fakes.clock import MovableClock
from tests.unit.engine.tools.workspace.doing import call, context_of, refused, said

MARK = ("OPENCLAW_EXEC_ID", "m")


class Recorder:
    """A sandbox that notes what it was asked to run, and runs nothing but `true`."""

    def __init__(self, trouble: str | None = None) -> None:
        self.trouble = trouble
        self.asked: list[ConfinedCommand] = []

    async def problem(self) -> str | None:
        return self.trouble

    async def start(self, confined: ConfinedCommand, output: int) -> Process:
        self.asked.append(confined)
        return await asyncio.create_subprocess_exec(
            "true", stdin=DEVNULL, stdout=output, start_new_session=True
        )


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "sandboxes")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "work" / "a.txt").write_text("old")
    return tmp_path / "work"


# -- who works where -------------------------------------------------------------------------------


@pytest.mark.spec("TOOL-4")
@pytest.mark.parametrize("access", ["rw", "ro", "none"])
@pytest.mark.parametrize("owner", [True, False])
async def test_a_sandboxed_command_runs_in_the_sandbox_or_nowhere(
    work: Path, scratch: Scratch, access: str, owner: bool
) -> None:
    facts = {"sandboxed": True, "workspace_access": access, "owner": owner, "scratch": "agent:main:x"}
    recorder = Recorder()
    tool = ExecTool({}, access=Access(recorder, scratch))
    outcome = await call(tool, context_of(work, **facts), command="touch planted")
    assert said(outcome) == "[exit code 0]"
    [confined] = recorder.asked
    own = await scratch.open("agent:main:x")
    assert confined.directory == (own if access == "none" else str(work))
    assert (confined.command, confined.cwd) == ("touch planted", ".")
    assert (confined.writable, confined.network) == (access != "ro", False)
    assert not list(work.parent.glob("**/planted"))
    broken = ExecTool({}, access=Access(Recorder("it is broken. Mend it"), scratch))
    error = refused(await call(broken, context_of(work, **facts), command="touch planted"), "forbidden")
    assert error == (
        "exec needs a sandbox, and it is broken. Mend it, or set agents.defaults.sandbox.mode to off."
    )
    assert not list(work.parent.glob("**/planted"))


async def test_the_network_and_the_directory_are_handed_on(work: Path) -> None:
    recorder = Recorder()
    tool = ExecTool({}, access=Access(recorder))
    context = context_of(work, sandboxed=True, network=True)
    await call(tool, context, command="true", cwd="sub")
    assert (recorder.asked[0].cwd, recorder.asked[0].network) == ("sub", True)
    assert recorder.asked[0].mark[0] == "OPENCLAW_EXEC_ID"
    outside = await call(tool, context_of(work, owner=True), command="pwd", cwd="sub")
    assert said(outside).startswith(f"{work}/sub")
    assert len(recorder.asked) == 1


@pytest.mark.spec("TOOL-4")
async def test_file_tools_keep_to_the_same_directory(work: Path, scratch: Scratch) -> None:
    access = Access(Recorder(), scratch)
    read, write = ReadTool(access), WriteTool(WriteLocks(), access)
    readonly = context_of(work, sandboxed=True, owner=False, workspace_access="ro", scratch="s")
    assert said(await call(read, readonly, path="a.txt")) == "old"
    error = refused(await call(write, readonly, path="a.txt", content="new"), "forbidden")
    assert "workspaceAccess to rw" in error
    apart = context_of(work, sandboxed=True, owner=False, workspace_access="none", scratch="s")
    await call(write, apart, path="a.txt", content="mine")
    assert said(await call(read, apart, path="a.txt")) == "mine"
    assert (work / "a.txt").read_text() == "old"
    assert (Path(await scratch.open("s")) / "a.txt").read_text() == "mine"


async def test_notes_have_no_place_in_a_folder_that_is_not_the_workspace(
    work: Path, scratch: Scratch
) -> None:
    memory = MemoryTool(WriteLocks(), lambda: ZoneInfo("UTC"), Access(Recorder(), scratch))
    apart = context_of(work, sandboxed=True, workspace_access="none", scratch="s")
    error = refused(await call(memory, apart, action="append", text="tea"), "forbidden")
    assert "workspaceAccess to rw" in error
    whole = context_of(work, sandboxed=True, owner=False)
    assert "noted in memory/" in said(await call(memory, whole, action="append", text="tea"))


def mode_of(path: str) -> int:
    return Path(path).stat().st_mode & 0o777


# -- folders ---------------------------------------------------------------------------------------


async def test_a_folder_is_named_by_a_digest_and_belongs_to_one(scratch: Scratch, tmp_path: Path) -> None:
    hostile = "agent:main:../../etc/\ud800\0"
    first, second = await scratch.open(hostile), await scratch.open("agent:main:b")
    assert first != second
    assert first == await scratch.open(hostile)
    assert Path(first).parent == tmp_path / "sandboxes"
    assert Path(first).name == digest(hostile)
    assert mode_of(first) == 0o700


async def test_the_folders_of_sessions_that_are_gone_are_taken_away(scratch: Scratch) -> None:
    clock = MovableClock()
    owners = ("agent:main:here", "agent:main:gone", "agent:main", "shared")
    folders = {owner: Path(await scratch.open(owner)) for owner in owners}
    for folder in folders.values():
        (folder / "file").write_text("x")
        made = (clock.now_ms() - GRACE_MS - 1) / 1000
        os.utime(folder.with_suffix(".owner"), (made, made))
    young = Path(await scratch.open("agent:main:young"))
    now = clock.now_ms() / 1000
    os.utime(young.with_suffix(".owner"), (now, now))
    asked: list[str] = []

    async def exists(owner: str) -> bool:
        asked.append(owner)
        return owner == "agent:main:here"

    assert await scratch.tidy(exists, clock) == 1
    assert sorted(asked) == ["agent:main:gone", "agent:main:here"]
    assert [owner for owner, folder in folders.items() if folder.exists()] == [
        "agent:main:here",
        "agent:main",
        "shared",
    ]
    assert mode_of(str(young)) == 0o700
    assert await scratch.tidy(exists, clock) == 0
    assert await Scratch(young / "nowhere").tidy(exists, clock) == 0


async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="folder for the sandbox"):
        await Scratch(tmp_path / "file").open("s")


# -- bwrap -----------------------------------------------------------------------------------------


def program(folder: Path, body: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return {"PATH": str(folder)}


async def test_a_missing_program_is_named_and_found_once_it_is_there(tmp_path: Path) -> None:
    walls = Bubblewrap({"PATH": str(tmp_path / "bin")})
    assert await walls.problem() == NO_BACKEND
    assert "apt install bubblewrap" in NO_BACKEND
    with pytest.raises(Unavailable, match="bubblewrap"):
        await walls.start(ConfinedCommand("true", "/", ".", MARK), 1)
    program(tmp_path / "bin", "exit 7")
    assert await walls.problem() is None


async def test_a_program_that_does_not_work_is_told_with_its_words(tmp_path: Path) -> None:
    walls = Bubblewrap(program(tmp_path / "bin", "echo 'bwrap: no namespaces.' >&2; exit 1"))
    told = await walls.problem()
    assert told is not None
    assert "(bwrap: no namespaces)" in told
    assert "user namespaces" in told
    silent = Bubblewrap(program(tmp_path / "bin", "exit 3"))
    assert "(it ended with code 3)" in str(await silent.problem())


def test_the_walls_let_in_only_what_is_named() -> None:
    walls = Bubblewrap(
        {"LANG": "de_DE.UTF-8", "TZ": "x-secret-x", "AWS_KEY": "k"}, lambda: frozenset({"secret"})
    )
    confined = ConfinedCommand("true", "/data/work", "a/b", MARK)
    parts = walls.walls(confined, 8, 9)
    assert parts[:3] == ["--unshare-all", "--unshare-user", "--disable-userns"]
    assert "--share-net" not in parts
    assert {"--die-with-parent", "--new-session", "--clearenv"} <= set(parts)
    assert parts[-4:] == ["--remount-ro", "/", "--chdir", "/workspace/a/b"]
    assert parts[-7:-4] == ["--ro-bind", "/data/work", "/workspace"]
    assert not {"/etc/shadow", "/etc/resolv.conf", "/home", "/root", "/var", "/run"} & set(parts)
    assert "/etc/ssl/certs" in parts
    assert walls.environment(confined) == {
        "LANG": "de_DE.UTF-8",
        "TERM": "dumb",
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "USER": "agent",
        "LOGNAME": "agent",
        "OPENCLAW_EXEC_ID": "m",
    }
    wide = walls.walls(ConfinedCommand("true", "/data/work", ".", MARK, True, True), 8, 9)
    assert wide[wide.index("/data/work") - 1] == "--bind"
    assert wide[-1] == "/workspace"
    assert {"--share-net", "/etc/resolv.conf"} <= set(wide)


def test_a_state_directory_among_the_programs_stays_out_of_sight() -> None:
    hidden = Bubblewrap({}, hidden=("/usr/share/openclaw", "/srv/openclaw"))
    parts = hidden.walls(ConfinedCommand("true", "/data/work", ".", MARK), 8, 9)
    assert parts[parts.index("/usr/share/openclaw") - 1] == "--tmpfs"
    assert "/srv/openclaw" not in parts
