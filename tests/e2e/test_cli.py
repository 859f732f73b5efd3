"""The command line against a real gateway: first start without anything, talk, look, and stop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.e2e.gateway_process import GatewayProcess
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.fakes.ports import free_port

START_S = 60.0
COMMAND_S = 60.0
SIX_MISTAKES = """{
  gateway: { prot: 18789, bind: "everywhere" },
  session: { scope: "per-planet", resetTriggers: 5 },
  agents: { list: [{ id: "" }] },
  colour: "blue",
}
"""


class Done(msgspec.Struct, frozen=True):
    """What a command left behind."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        decoded: dict[str, Any] = msgspec.json.decode(self.out)
        return decoded


class CliHome:
    """One home, one port. `start` runs a gateway in it, `run` any other command."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_port()
        self.state = home / ".openclaw"
        self.config = self.state / "openclaw.json"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC"}
        self.out, self.err = home / "gateway.out", home / "gateway.err"
        self.gateway: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def run(self, *arguments: str, **env: str) -> Done:
        """A command, to its end. It finds the gateway by its port."""
        done = subprocess.run(
            [sys.executable, "-m", "openclaw", *arguments],
            env=self.env | {"OPENCLAW_GATEWAY_PORT": str(self.port)} | env,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=COMMAND_S,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self) -> None:
        """Run a gateway and return once it is healthy."""
        command = [sys.executable, "-m", "openclaw", "gateway", "run", "--port", str(self.port)]
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.gateway = subprocess.Popen(
                command, env=self.env, stdout=out, stderr=err, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + START_S
        while not self.is_healthy():
            if self.gateway.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the gateway did not start:\n{self.err.read_text()}")
            time.sleep(0.02)

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5) as answer:
                return bool(msgspec.json.decode(answer.read())["ok"])
        except OSError:
            return False

    def wait_for_output(self, text: str) -> str:
        """What the gateway printed, once it holds `text`."""
        deadline = time.monotonic() + START_S
        while text not in (printed := self.out.read_text()):
            assert time.monotonic() < deadline, printed
            time.sleep(0.02)
        return printed

    def interrupt(self, within_s: float = 60.0) -> int:
        """Ctrl-C, and the exit code."""
        assert self.gateway is not None
        self.gateway.send_signal(signal.SIGINT)
        code = self.gateway.wait(within_s)
        self.gateway = None
        return code

    def clean_up(self) -> None:
        """End the gateway of a test that failed half-way."""
        if self.gateway is not None:
            self.gateway.kill()
            self.gateway.wait()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliHome]:
    """A gateway that was started in an empty home: no config, no key, the built-in model."""
    house = CliHome(tmp_path_factory.mktemp("house"))
    try:
        house.start()
        yield house
        assert house.interrupt() in (0, 130)
        assert "Traceback" not in house.err.read_text()
    finally:
        house.clean_up()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[CliHome]:
    """A home in which nothing runs yet."""
    home = CliHome(tmp_path)
    try:
        yield home
    finally:
        home.clean_up()


def token_of(house: CliHome) -> str:
    token: str = msgspec.json.decode(house.config.read_text())["gateway"]["auth"]["token"]
    return token


@pytest.mark.spec("OWN-1", "CLI-1")
def test_a_first_start_needs_nothing_and_says_where_everything_is(house: CliHome) -> None:
    printed = house.wait_for_output("Ctrl-C stops it.")
    for fact in ("Welcome to OpenClaw", house.url, "offline/offline", str(house.config)):
        assert fact in printed
    assert str(house.state / "openclaw.sqlite") in printed
    assert f'OPENCLAW_GATEWAY_PORT={house.port} openclaw agent -m "hello"' in printed
    assert len(token_of(house)) >= 43
    assert token_of(house) not in printed + house.err.read_text()
    assert house.config.stat().st_mode & 0o777 == 0o600


@pytest.mark.spec("CLI-6")
def test_an_agent_answers(house: CliHome) -> None:
    plain = house.run("agent", "-m", "hello there", "--session-key", "talk")
    assert (plain.code, plain.err) == (0, "")
    assert "offline" in plain.out and plain.out.endswith("\n")
    as_json = house.run("agent", "-m", "and again", "--session-key", "talk", "--json")
    assert (as_json.code, as_json.err) == (0, "")
    body = as_json.json()
    assert (body["status"], body["summary"]) == ("ok", "completed")
    assert body["result"]["payloads"][0]["text"]
    refused = house.run("agent", "-m", "x", "--agent", "nobody")
    assert refused.code == 1 and "nobody" in refused.err


@pytest.mark.spec("CLI-2", "CLI-3", "OWN-1", "OWN-3")
def test_sessions_lists_what_the_gateway_holds(house: CliHome) -> None:
    for key in ("one", "two"):
        assert house.run("agent", "-m", f"hello {key}", "--session-key", key).code == 0
    done = house.run("sessions", "--json")
    assert (done.code, done.err) == (0, "")
    body = done.json()
    keys = [row["key"] for row in body["sessions"]]
    assert keys[:2] == ["agent:main:two", "agent:main:one"]
    assert (body["count"], body["totalCount"], body["hasMore"]) == (len(keys), len(keys), False)
    assert (body["limitApplied"], body["activeMinutes"]) == (None, None)
    assert body["path"] == str(house.state / "openclaw.sqlite")
    newest = body["sessions"][0]
    described = house.run("gateway", "call", "sessions.describe", "--params", '{"key":"two"}').json()
    for count in ("inputTokens", "outputTokens", "totalTokens", "contextTokens"):
        assert newest[count] == described["session"][count] and newest[count] > 0
    assert 0 <= newest["ageMs"] < 60_000
    limited = house.run("sessions", "--json", "--limit", "1", "--active", "5").json()
    assert (limited["count"], limited["hasMore"], limited["activeMinutes"]) == (1, len(keys) > 1, 5)
    found = house.run("sessions", "--json", "--search", "main:one").json()
    assert [row["key"] for row in found["sessions"]] == ["agent:main:one"]
    assert house.run("sessions", "--json", "--agent", "other").json()["sessions"] == []
    table = house.run("sessions").out
    assert table.splitlines()[0].split()[:4] == ["Kind", "Key", "Age", "Model"]
    assert "direct  agent:main:two" in table
    wrong = house.run("sessions", "--active", "soon")
    assert wrong.code == 1 and "--active" in wrong.err


@pytest.mark.spec("CLI-1", "CLI-9")
def test_status_shows_store_agents_and_recent_sessions(house: CliHome) -> None:
    assert house.run("agent", "-m", "hello", "--session-key", "recent").code == 0
    done = house.run("status", "--all", "--deep", "--usage")
    assert (done.code, done.err) == (0, "")
    store = str(house.state / "openclaw.sqlite")
    for fact in (f"running at {house.url}", f"store:   {store}", "agent:main:recent", "health:  ok"):
        assert fact in done.out
    assert f"sessions in {store}" in done.out or f"session in {store}" in done.out
    body = house.run("status", "--json").json()
    assert (body["ok"], body["gateway"]["reachable"], body["store"]["path"]) == (True, True, store)
    assert body["agents"][0]["agentId"] == "main" and body["agents"][0]["count"] >= 1
    assert "agent:main:recent" in [row["key"] for row in body["sessions"]["recent"]]
    assert house.run("health").code == 0
    assert house.run("gateway", "status", "--json").json()["health"]["ok"] is True


@pytest.mark.spec("CLI-4", "CLI-5")
def test_gateway_call_reaches_it_by_config_and_by_flags(house: CliHome) -> None:
    local = house.run("gateway", "call", "sessions.list", "--params", "{}")
    assert local.code == 0 and "sessions" in local.json()
    flags = ("--url", house.url, "--token", token_of(house))
    assert house.run("gateway", "call", "health", *flags, "--json").json()["ok"] is True
    bare = house.run("gateway", "call", "health", "--url", house.url, "--json")
    assert (bare.code, bare.json()["error"]["type"]) == (1, "auth")
    params = msgspec.json.encode({"message": "hi", "idempotencyKey": "e2e-final", "sessionKey": "final"})
    call = ("gateway", "call", "agent", "--params", params.decode(), "--json")
    assert house.run(*call, "--expect-final").json()["status"] == "ok"
    unknown = house.run("gateway", "call", "no.such.method", "--json")
    assert unknown.code == 1
    assert unknown.json()["error"] == {
        "type": "request",
        "code": "INVALID_REQUEST",
        "message": "unknown method: no.such.method",
        "retryable": False,
    }


@pytest.mark.spec("CLI-4", "CLI-5")
def test_a_wrong_token_names_the_fix(house: CliHome) -> None:
    wrong = house.run("sessions", OPENCLAW_GATEWAY_TOKEN="not-the-token")
    assert (wrong.code, wrong.out) == (1, "")
    assert wrong.err.count("\n") == 1
    assert "OPENCLAW_GATEWAY_TOKEN is not its gateway.auth.token" in wrong.err
    assert token_of(house) not in wrong.err and "not-the-token" not in wrong.err
    as_json = house.run("gateway", "call", "health", "--token", "nope", "--json").json()
    assert (as_json["error"]["type"], as_json["error"]["code"]) == ("auth", "AUTH_TOKEN_MISMATCH")


@pytest.mark.spec("OWN-6")
def test_a_second_gateway_on_the_same_state_refuses_to_start(house: CliHome) -> None:
    second = house.run("gateway", "run", "--port", str(free_port()))
    assert (second.code, second.out) == (1, "")
    assert second.err.startswith("openclaw: ") and "Traceback" not in second.err
    assert house.run("health").code == 0


@pytest.mark.spec("CLI-1")
def test_without_a_gateway_every_command_says_how_to_start_one(empty: CliHome) -> None:
    for arguments in (("sessions",), ("health",), ("gateway", "call", "health")):
        done = empty.run(*arguments)
        assert (done.code, done.out) == (1, "")
        assert done.err == (f"openclaw: no gateway at {empty.url} — start one with `openclaw gateway run`\n")
    status = empty.run("status")
    assert status.code == 0 and "gateway: not running" in status.out
    assert empty.run("status", "--json").json()["ok"] is False
    assert not empty.state.exists()


@pytest.mark.spec("CFG-3")
def test_six_mistakes_are_six_lines_and_prevent_a_start(empty: CliHome) -> None:
    empty.state.mkdir()
    empty.config.write_text(SIX_MISTAKES)
    done = empty.run("config", "validate")
    assert done.code == 1
    assert len(done.out.splitlines()) == 6
    assert all(line.startswith(f"{empty.config}:") for line in done.out.splitlines())
    refused = empty.run("gateway", "run")
    assert (refused.code, refused.out) == (1, "")
    for line in done.out.splitlines():
        assert line.split(" — ", 1)[1] in refused.err
    assert empty.config.read_text() == SIX_MISTAKES
    status = empty.run("status")
    assert status.code == 0 and "NOT VALID, 6 problems" in status.out
    assert "gateway: not running" in status.out


@pytest.mark.spec("CFG-3")
def test_a_config_that_became_invalid_leaves_the_diagnostic_commands(empty: CliHome) -> None:
    empty.start()
    token = token_of(empty)
    empty.config.write_text(f'{{ gateway: {{ auth: {{ token: "{token}" }} }}, nonsense: 1 }}')
    for arguments in (("health",), ("status",), ("gateway", "status")):
        done = empty.run(*arguments)
        assert (done.code, done.err) == (0, ""), arguments
    assert "running at" in empty.run("status").out and "nonsense" in empty.run("status").out
    refused = empty.run("sessions")
    assert refused.code == 1 and "nonsense" in refused.err
    assert empty.interrupt() in (0, 130)


@pytest.mark.spec("OWN-1")
def test_what_was_said_is_there_after_a_restart(empty: CliHome) -> None:
    empty.start()
    assert empty.run("agent", "-m", "remember me", "--session-key", "kept").code == 0
    assert empty.interrupt() in (0, 130)
    assert not empty.is_healthy()
    empty.start()
    assert "Welcome" not in empty.wait_for_output("Ctrl-C stops it.")
    params = '{"sessionKey":"kept"}'
    history = empty.run("gateway", "call", "chat.history", "--params", params).json()
    assert [message["role"] for message in history["messages"]] == ["user", "assistant"]
    assert empty.interrupt() in (0, 130)


@pytest.mark.spec("CLI-6")
async def test_ctrl_c_in_a_running_turn_stops_it_at_the_gateway(tmp_path: Path) -> None:
    async with FakeOpenAIServer(then=FakeReply(texts=("thinking …",), hang_after=2)) as model:
        gateway = GatewayProcess(tmp_path, model.base_url, free_port())
        await gateway.start()
        try:
            env = {
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "OPENCLAW_STATE_DIR": str(tmp_path / "state"),
            }
            client = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "openclaw", "agent", "-m", "think long",
                env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            await model.wait_for_requests(1)
            client.send_signal(signal.SIGINT)
            async with asyncio.timeout(60):
                out, err = await client.communicate()
            assert (client.returncode, out) == (130, b"")
            assert b"Stopped the turn." in err and b"Traceback" not in err
            await model.wait_for_disconnects(1)
            async with gateway.client() as wire:
                listed = await wire.call("sessions.list", {})
            assert [row["hasActiveRun"] for row in listed["sessions"]] == [False]
        finally:
            gateway.stop()
