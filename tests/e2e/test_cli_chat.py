"""`openclaw chat` as a person uses it: a real terminal, a real gateway, a model that can be held."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway_process import GatewayProcess
from tests.e2e.terminal import CTRL_C, CTRL_D, Terminal
from tests.e2e.test_cli import COMMAND_S, CliHome, Done
from tests.fakes.openai_server import FakeCall, FakeOpenAIServer, FakeReply
from tests.fakes.ports import free_port

PROMPT = "you> "
# The line editor shows its prompt a moment before it waits for keys.
SETTLE_S = 0.5


class Room:
    """A model, a gateway in its own process, and the environment of a person beside it."""

    def __init__(self, home: Path, model: FakeOpenAIServer) -> None:
        self.model = model
        self.gateway = GatewayProcess(home, model.base_url, free_port())
        self.state = home / "state"
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "TZ": "UTC"}
        self.env["OPENCLAW_STATE_DIR"] = str(self.state)

    def chat(self, *arguments: str) -> Terminal:
        return Terminal(self.env, "chat", *arguments)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with FakeOpenAIServer() as model:
        room = Room(tmp_path, model)
        await room.gateway.start()
        try:
            yield room
        finally:
            if room.gateway.is_running:
                room.gateway.stop()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[CliHome]:
    home = CliHome(tmp_path)
    try:
        yield home
    finally:
        home.clean_up()


def piped(home: CliHome, text: str, *arguments: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "openclaw", "chat", *arguments],
        env=home.env | {"OPENCLAW_GATEWAY_PORT": str(home.port)},
        input=text.encode(), capture_output=True, timeout=COMMAND_S, check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.spec("CLI-13")
async def test_a_conversation_at_a_terminal(room: Room) -> None:
    room.model.script(
        FakeReply(texts=("Let me ", "look."), calls=(FakeCall("sessions_list", ('{"limit": 3}',)),)),
        FakeReply(texts=("You have ", "one session.")),
        FakeReply(texts=("Two lines, ", "I see.")),
    )
    with room.chat("--thinking", "low") as terminal:
        await asyncio.to_thread(terminal.wait_for, PROMPT)
        terminal.type("what is there?\n")
        await asyncio.to_thread(terminal.wait_for, PROMPT, times=2)
        terminal.type("first \\\nsecond\n")
        screen = await asyncio.to_thread(terminal.wait_for, PROMPT, times=3)
        terminal.type(CTRL_D)
        assert await asyncio.to_thread(terminal.leave) == 0
    assert screen.count("Let me look.\n") == 1 and screen.count("You have one session.\n") == 1
    assert screen.count("· sessions_list limit=3\n") == 1 and b"\x1b[2m" in terminal.raw
    assert screen.index("Let me look.") < screen.index("· sessions_list") < screen.index("You have one")
    assert "Two lines, I see.\n" in screen and "Traceback" not in terminal.screen
    assert room.model.requests[2].body["messages"][-1]["content"].endswith("first \nsecond")
    kept = room.state / "chat_history"
    assert kept.stat().st_mode & 0o777 == 0o600 and "what is there?" in kept.read_text()
    with room.chat() as again:
        before = await asyncio.to_thread(again.wait_for, PROMPT)
        again.type("/exit\n")
        assert await asyncio.to_thread(again.leave) == 0
    assert "Two lines, I see." in before, "the end of the conversation is shown first"


@pytest.mark.spec("CLI-13")
async def test_ctrl_c_stops_the_turn_and_once_more_leaves(room: Room) -> None:
    room.model.script(FakeReply(texts=("Thinking long",), hang_after=2))
    with room.chat() as terminal:
        await asyncio.to_thread(terminal.wait_for, PROMPT)
        terminal.type("think\n")
        await asyncio.to_thread(terminal.wait_for, "Thinking long")
        terminal.type(CTRL_C)
        await asyncio.to_thread(terminal.wait_for, "(stopped)")
        await asyncio.to_thread(terminal.wait_for, PROMPT, times=2)
        await room.model.wait_for_disconnects(1)
        async with room.gateway.client() as wire:
            listed = await wire.call("sessions.list", {})
        assert [row["hasActiveRun"] for row in listed["sessions"]] == [False]
        await asyncio.sleep(SETTLE_S)
        terminal.type(CTRL_C)
        assert await asyncio.to_thread(terminal.leave) == 130
    assert "Traceback" not in terminal.screen and terminal.screen.count("Thinking long") == 1


@pytest.mark.spec("CLI-13")
async def test_at_the_prompt_two_interrupts_leave_and_one_does_not(room: Room) -> None:
    with room.chat() as terminal:
        await asyncio.to_thread(terminal.wait_for, PROMPT)
        await asyncio.sleep(SETTLE_S)
        terminal.type(CTRL_C)
        await asyncio.to_thread(terminal.wait_for, "Ctrl-C again leaves")
        await asyncio.to_thread(terminal.wait_for, PROMPT, times=2)
        room.model.script(FakeReply(texts=("Still here.",)))
        terminal.type("hello\n")
        await asyncio.to_thread(terminal.wait_for, "Still here.")
        await asyncio.to_thread(terminal.wait_for, PROMPT, times=3)
        await asyncio.sleep(SETTLE_S)
        terminal.type(CTRL_C)
        await asyncio.to_thread(terminal.wait_for, PROMPT, times=4)
        await asyncio.sleep(SETTLE_S)
        terminal.type(CTRL_C)
        assert await asyncio.to_thread(terminal.leave) == 130


@pytest.mark.spec("CLI-13", "RPC-14")
async def test_a_lost_connection_comes_back_and_what_was_missed_is_shown_once(room: Room) -> None:
    room.model.script(FakeReply(texts=("before",)), FakeReply(texts=("half a ",), hang_after=2))
    with room.chat() as terminal:
        await asyncio.to_thread(terminal.wait_for, PROMPT)
        terminal.type("one\n")
        await asyncio.to_thread(terminal.wait_for, PROMPT, times=2)
        terminal.type("two\n")
        await asyncio.to_thread(terminal.wait_for, "half a")
        room.gateway.kill()
        await asyncio.to_thread(terminal.wait_for, "trying again")
        room.model.script(FakeReply(texts=("the whole answer",)), FakeReply(texts=("from elsewhere too",)))
        await room.gateway.start()
        await asyncio.to_thread(terminal.wait_for, "(connected again)")
        await asyncio.to_thread(terminal.wait_for, "the whole answer")
        await asyncio.to_thread(terminal.wait_for, PROMPT, times=3)
        terminal.type("half a li")
        async with room.gateway.client() as wire:
            sent = {"sessionKey": "main", "message": "said elsewhere", "idempotencyKey": "other"}
            await wire.call("chat.send", sent)
            await asyncio.to_thread(terminal.wait_for, "from elsewhere too")
        screen = await asyncio.to_thread(terminal.wait_for, "you> half a li")
        terminal.type("\x15" + CTRL_D)
        assert await asyncio.to_thread(terminal.leave) == 0
    for text in ("before", "the whole answer", "> said elsewhere", "from elsewhere too"):
        assert screen.count(text) == 1, (text, screen)


@pytest.mark.spec("CLI-13")
def test_without_a_gateway_one_runs_inside_and_it_is_said(empty: CliHome) -> None:
    text = 'hello there\n\n"""\nseveral\nlines\n"""\n/status\n'
    done = piped(empty, text, "--session", "notes", "--message", "before all")
    assert done.code == 0, done.err
    assert done.err == (
        f"No gateway runs at {empty.url}; the conversation runs in this process and ends with it."
        " Nothing is lost.\n"
    )
    order = [
        done.out.index(word) for word in ("before all", "hello there", "several", "Session: agent:main:notes")
    ]
    assert order == sorted(order) and "\x1b" not in done.out and PROMPT not in done.out
    empty.start()
    history = empty.run("sessions", "history", "notes", "--json").json()
    asked = [message["content"] for message in history["messages"] if message["role"] == "user"]
    assert asked == ["before all", "hello there", "several\nlines", "/status"]
    busy = piped(empty, "x\n", "--local")
    assert (busy.code, busy.out) == (1, "") and "leave --local out" in busy.err
    through = piped(empty, "through the gateway\n", "--session", "notes")
    assert (through.code, through.err) == (0, "") and "through the gateway" in through.out
    gone = piped(empty, "x\n", "--url", f"ws://127.0.0.1:{free_port()}", "--token", "t")
    assert gone.code == 1 and "no gateway at" in gone.err, "a gateway that was named is never passed over"
    refused = piped(empty, "x\n", "--agent", "nobody")
    assert refused.code == 1 and "nobody" in refused.err
    assert empty.interrupt(60) in (0, 130)


@pytest.mark.spec("CLI-13")
async def test_a_turn_that_fails_is_told_and_the_pipe_goes_on(room: Room) -> None:
    room.model.script(FakeReply(status=400, body={"error": {"message": "no such model"}}))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "openclaw", "chat", "--session", "fails",
        env=room.env, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    room.model.script(FakeReply(texts=("second is fine",)))
    async with asyncio.timeout(COMMAND_S):
        out, err = await process.communicate(b"one\ntwo\n")
    assert (process.returncode, err) == (1, b"")
    assert b"The turn failed: " in out and b"second is fine\n" in out
