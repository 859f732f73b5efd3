"""exec: what a command gets, what comes back, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from openclaw.engine.tools.workspace.exec import (
    HEAD_BYTES,
    MAX_COMMAND_CHARS,
    TAIL_BYTES,
    ExecTool,
    Output,
    clean_environment,
)
from openclaw.engine.tools.workspace.processes import end_group, is_group_alive
from tests.unit.engine.tools.workspace.doing import call, context_of, refused, said

SECRET = "a-very-secret-value-0001"
ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/root",
    "OPENAI_API_KEY": SECRET,
    "LC_ALL": "C",
    "LANG": f"x{SECRET}",
}
EXEC = ExecTool(ENV, lambda: frozenset({SECRET}))
DEADLINE_S = 60.0


@pytest.fixture(autouse=True)
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process is gone when the system comes to it, on a busy machine after more than a moment."""
    patient = partial(end_group, limit_s=DEADLINE_S)
    monkeypatch.setattr("openclaw.engine.tools.workspace.exec.end_group", patient)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for_pid(path: Path) -> int:
    until = time.monotonic() + DEADLINE_S
    while not path.exists() or not path.read_text().endswith("\n"):
        assert time.monotonic() < until
        time.sleep(0.02)
    return int(path.read_text())


async def pid_of(path: Path) -> int:
    return await asyncio.to_thread(wait_for_pid, path)


async def test_a_command_runs_in_the_workspace_and_says_how_it_ended(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    fine = await call(EXEC, context_of(tmp_path), command="pwd; echo err >&2; echo out")
    assert said(fine) == f"{tmp_path}\nerr\nout\n[exit code 0]"
    assert not fine.is_error
    assert fine.details is not None
    assert (fine.details["exitCode"], fine.details["timedOut"], fine.details["processesGone"]) == (
        0,
        False,
        True,
    )
    bad = await call(EXEC, context_of(tmp_path), command="exit 3", cwd="sub")
    assert (said(bad), bad.is_error) == ("[exit code 3]", True)
    killed = await call(EXEC, context_of(tmp_path), command="kill -9 $$")
    assert said(killed) == "[ended by signal 9]"


async def test_there_is_no_input_to_wait_for(tmp_path: Path) -> None:
    outcome = await call(EXEC, context_of(tmp_path), command="cat; echo done")
    assert said(outcome) == "done\n[exit code 0]"


async def test_the_environment_holds_no_secret(tmp_path: Path) -> None:
    text = said(await call(EXEC, context_of(tmp_path), command="env"))
    assert SECRET not in text
    names = {line.partition("=")[0] for line in text.splitlines()[:-1]}
    assert {"PATH", "HOME", "LC_ALL"} <= names
    assert not names & {"OPENAI_API_KEY", "LANG"}


def test_only_a_short_list_of_variables_is_passed() -> None:
    env = {
        "PATH": "/p",
        "XDG_RUNTIME_DIR": "/x",
        "DATABASE_URL": "postgres://u:p@h",
        "AWS_PROFILE": "x",
        "TZ": "UTC",
    }
    assert clean_environment(env, frozenset()) == {"PATH": "/p", "XDG_RUNTIME_DIR": "/x", "TZ": "UTC"}
    assert clean_environment({}, frozenset()) == {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    assert clean_environment({"TZ": "has-secret"}, frozenset({"secret"})) == {
        "PATH": "/usr/local/bin:/usr/bin:/bin"
    }


async def test_a_flood_of_output_is_kept_at_both_ends(tmp_path: Path) -> None:
    command = "echo first; head -c 50000000 /dev/zero | tr '\\0' 'x'; echo; echo last"
    outcome = await call(EXEC, context_of(tmp_path), command=command)
    text = said(outcome)
    assert text.startswith("first\n")
    assert text.endswith("last\n[exit code 0]")
    assert "bytes left out …]" in text
    assert len(text) < HEAD_BYTES + TAIL_BYTES + 200
    assert outcome.details is not None
    assert outcome.details["bytes"] == 50_000_000 + 12


def test_output_within_the_limits_is_whole_and_beyond_is_cut_at_lines() -> None:
    exact = Output(4, 4)
    exact.add(b"abcd")
    exact.add(b"efgh")
    assert (exact.text(), exact.total) == ("abcdefgh", 8)
    cut = Output(10, 12)
    for piece in (b"one\ntw", b"o\nthree\n", b"four\n" * 20, b"five\nsix\n"):
        cut.add(piece)
    assert cut.text() == "one\ntwo\n[… 107 bytes left out …]\nfive\nsix\n"
    words = Output(8, 8)
    words.add(b"alpha beta gamma delta")
    assert words.text() == "alpha\n[… 12 bytes left out …]\ndelta"
    solid = Output(3, 3)
    solid.add(b"abcdefgh")
    assert solid.text() == "abc\n[… 2 bytes left out …]\nfgh"


async def test_a_command_that_takes_too_long_ends_with_all_it_started(tmp_path: Path) -> None:
    command = "trap '' TERM; sleep 300 & echo $! > child; echo begun; wait; sleep 300"
    outcome = await call(EXEC, context_of(tmp_path), command=command, timeoutSeconds=1)
    child = int((tmp_path / "child").read_text())
    assert said(outcome) == "begun\n[stopped after 1 s; it and all it started were ended]"
    assert outcome.is_error
    assert outcome.details is not None
    assert (outcome.details["exitCode"], outcome.details["timedOut"]) == (None, True)
    assert outcome.details["processesGone"] is True
    assert not is_alive(child)


def test_a_group_that_is_asked_to_end_may_clean_up(tmp_path: Path) -> None:
    script = "trap 'echo bye > said; exit 7' TERM; echo $$ > pid; while :; do sleep 0.05; done"
    with subprocess.Popen(
        ["bash", "-c", script], cwd=tmp_path, start_new_session=True, stderr=subprocess.DEVNULL
    ) as process:
        assert wait_for_pid(tmp_path / "pid") == process.pid
        assert end_group(process.pid, b"NO=mark", grace_s=DEADLINE_S) is True
        assert process.wait() == 7
    assert (tmp_path / "said").read_text() == "bye\n"


async def test_nothing_stays_in_the_background(tmp_path: Path) -> None:
    started = time.monotonic()
    outcome = await call(EXEC, context_of(tmp_path), command="sleep 300 & echo $! > child; echo ready")
    child = int((tmp_path / "child").read_text())
    assert said(outcome) == "ready\n[exit code 0]"
    assert not is_alive(child)
    assert time.monotonic() - started < 60


async def test_a_child_that_left_the_group_is_found(tmp_path: Path) -> None:
    command = "setsid sh -c 'echo $$ > stray; exec sleep 300' & while [ ! -s stray ]; do sleep 0.02; done"
    outcome = await call(EXEC, context_of(tmp_path), command=command)
    assert outcome.details is not None
    assert outcome.details["processesGone"] is True
    assert not is_alive(int((tmp_path / "stray").read_text()))


async def test_cancelling_the_call_kills_the_group(tmp_path: Path) -> None:
    command = "trap '' TERM; echo $$ > leader; sleep 300 & echo $! > child; wait; sleep 300"
    running = asyncio.create_task(call(EXEC, context_of(tmp_path), command=command))
    leader, child = await pid_of(tmp_path / "leader"), await pid_of(tmp_path / "child")
    assert is_alive(leader)
    assert is_alive(child)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not is_alive(leader)
    assert not is_alive(child)


async def test_cancelling_twice_still_carries_the_ending_through(tmp_path: Path) -> None:
    command = "trap '' TERM; echo $$ > leader; sleep 300"
    running = asyncio.create_task(call(EXEC, context_of(tmp_path), command=command))
    leader = await pid_of(tmp_path / "leader")
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not is_alive(leader)


async def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    await call(EXEC, context_of(tmp_path), command="true")
    before = len(os.listdir("/proc/self/fd"))
    for command in ("true", "echo x; false", "sleep 300 &"):
        await call(EXEC, context_of(tmp_path), command=command)
    assert len(os.listdir("/proc/self/fd")) == before


async def test_commands_that_cannot_be_run_are_refused(tmp_path: Path) -> None:
    context = context_of(tmp_path)
    assert "command is empty" in refused(await call(EXEC, context, command="  "))
    assert "NUL" in refused(await call(EXEC, context, command="echo \0"))
    assert "surrogate" in refused(await call(EXEC, context, command="echo \ud800"))
    assert "write a script" in refused(await call(EXEC, context, command="x" * (MAX_COMMAND_CHARS + 1)))
    assert "invalid arguments" in refused(await call(EXEC, context, command="true", timeoutSeconds=0))
    assert "does not exist" in refused(await call(EXEC, context, command="true", cwd="none"))
    assert "not allowed" in refused(await call(EXEC, context, command="true", cwd=".."), "forbidden")


def test_a_group_that_is_gone_is_gone() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert is_group_alive(child) is False
    assert end_group(child, b"NO=mark", grace_s=0.1) is True
    assert is_group_alive(os.getpgid(0)) is True


def test_the_faster_loop_of_a_real_gateway_does_the_same(tmp_path: Path) -> None:
    import uvloop

    async def main() -> None:
        fine = await call(EXEC, context_of(tmp_path), command="cat; echo out; echo err >&2")
        assert said(fine) == "out\nerr\n[exit code 0]"
        late = await call(
            EXEC, context_of(tmp_path), command="trap '' TERM; sleep 300 & wait", timeoutSeconds=1
        )
        assert late.details is not None
        assert (late.details["timedOut"], late.details["processesGone"]) == (True, True)
        running = asyncio.create_task(
            call(EXEC, context_of(tmp_path), command="trap '' TERM; echo $$ > leader; sleep 300; sleep 300")
        )
        leader = await pid_of(tmp_path / "leader")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not is_alive(leader)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
