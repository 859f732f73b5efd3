"""`openclaw onboard`: with flags, on a terminal, and given up half-way."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.anthropic_server import FakeAnswer, FakeAnthropicServer, Said
from tests.fakes.in_thread import served
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.unit.cli.conftest import Command

WriteConfig = Callable[[str], Path]
KEY = "sk-ant-api03-0123456789abcdef"
NAMES = ("ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "OLLAMA_HOST")
HI = FakeAnswer(blocks=(Said(("ok",)),))
OK = FakeReply(texts=("ok",))


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def path(home: Path) -> Path:
    return home / ".openclaw" / "openclaw.json"


@pytest.fixture
def claude() -> Iterator[FakeAnthropicServer]:
    with served(FakeAnthropicServer(then=HI)) as server:
        yield server


def own(server: FakeOpenAIServer, *more: str) -> tuple[str, ...]:
    return ("onboard", "--provider", "work", "--base-url", server.base_url, "--model", "big", *more)


def written(path: Path) -> dict[str, object]:
    decoded: dict[str, object] = json.loads(path.read_text())
    return decoded


def test_a_key_is_tested_and_written_where_only_its_owner_reads(
    command: Command, path: Path, claude: FakeAnthropicServer
) -> None:
    outcome = command(
        *("onboard", "--provider", "anthropic", "--base-url", claude.base_url, "--api-key", f" {KEY} ")
    )
    assert outcome.code == 0
    assert outcome.out.startswith("anthropic/claude-sonnet-5-5 answers: ok\n")
    assert "25 in, 15 out" in outcome.out
    assert str(path) in outcome.out
    assert KEY not in outcome.out + outcome.err
    assert path.stat().st_mode & 0o777 == 0o600
    assert written(path) == {
        "agents": {"defaults": {"model": "anthropic/claude-sonnet-5-5"}},
        "models": {
            "providers": {
                "anthropic": {"baseUrl": claude.base_url, "api": "anthropic-messages", "apiKey": KEY}
            }
        },
    }
    assert claude.requests[0].headers["x-api-key"] == KEY
    # What was written is what the next test uses.
    assert command("models", "test").out.startswith("anthropic/claude-sonnet-5-5 answers: ok")


def test_a_key_of_the_environment_stays_there(
    command: Command, path: Path, claude: FakeAnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORK_KEY", KEY)
    outcome = command(*own(claude, "--api", "anthropic-messages", "--api-key-env", "WORK_KEY", "--json"))
    body = outcome.json()
    assert (body["ok"], body["model"], body["path"]) == (True, "work/big", str(path))
    assert (body["test"]["ok"], body["test"]["said"]) == (True, "ok")
    assert "${WORK_KEY}" in path.read_text() and KEY not in path.read_text() + outcome.out
    assert claude.requests[0].headers["x-api-key"] == KEY


def test_a_local_server_needs_no_key_and_brings_its_figures(
    command: Command, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(FakeOpenAIServer(then=OK)) as server:
        server.models = {"data": [{"id": "qwen3", "max_model_len": 8192}]}
        monkeypatch.setenv("OLLAMA_HOST", server.base_url)
        outcome = command("onboard", "--provider", "ollama", "--non-interactive")
    assert outcome.code == 0, outcome.err
    assert json.loads(path.read_text())["models"]["providers"]["ollama"] == {
        "baseUrl": server.base_url,
        "api": "openai-completions",
        "models": [
            {"id": "qwen3", "contextWindow": 8192, "maxTokens": 4096, "cost": {"input": 0, "output": 0}}
        ],
    }
    assert "Authorization" not in server.requests[0].headers


def test_comments_and_other_settings_stay(command: Command, write_config: WriteConfig) -> None:
    path = write_config("{\n  // mine\n  gateway: { port: 19000 },\n}\n")
    with served(FakeOpenAIServer(then=OK)) as server:
        assert command(*own(server)).code == 0
    text = path.read_text()
    assert "// mine" in text and "port: 19000" in text and "work/big" in text


def test_a_failed_test_writes_nothing(command: Command, path: Path) -> None:
    body = {"error": {"message": "Incorrect API key"}}
    with served(FakeOpenAIServer(then=FakeReply(status=401, body=body))) as server:
        outcome = command(*own(server, "--api-key", KEY))
        as_json = command(*own(server, "--api-key", KEY, "--json"))
        assert not path.exists()
        skipped = command(*own(server, "--api-key", KEY, "--skip-test"))
        assert len(server.requests) == 2
    assert (outcome.code, outcome.out) == (1, "")
    assert "refused the API key" in outcome.err and "Nothing was written." in outcome.err
    assert (as_json.code, as_json.json()["ok"]) == (1, False)
    assert as_json.json()["error"]["type"] == "auth"
    assert skipped.code == 0 and path.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--provider: anthropic, openai"),
        (("--provider", "work"), "--base-url"),
        (("--provider", "work", "--base-url", "http://127.0.0.1:1/v1"), "--model"),
        (("--provider", "openai"), "openai needs a key"),
        (("--provider", "openai", "--api-key-env", "NO_SUCH_KEY"), "NO_SUCH_KEY is not set"),
        (("--provider", "openai", "--api-key-env", "a b"), "is not set"),
        (("--provider", "openai", "--api-key", "k", "--api-key-env", "HOME"), "exclude"),
        (("--provider", "openai", "--api-key", "clé"), "copy it again"),
        (("--provider", "openai", "--api-key", "${KEY}"), "--api-key-env"),
        (("--provider", "a/b", "--base-url", "u", "--model", "m", "--skip-test"), "a"),
        (("--provider", "x", "--base-url", "u", "--model", "\ud800", "--skip-test"), "form"),
    ],
)
def test_what_is_missing_is_named_and_nothing_is_written(
    command: Command, path: Path, arguments: tuple[str, ...], words: str
) -> None:
    outcome = command("onboard", *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert words in outcome.err
    assert not path.exists()


def test_a_key_of_the_environment_is_not_sent_to_another_address(
    command: Command, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with served(FakeOpenAIServer(then=OK)) as server:
        outcome = command("onboard", "--provider", "openai", "--base-url", server.base_url)
        assert server.requests == []
    assert "needs a key" in outcome.err
    assert not path.exists()


def test_a_key_can_come_through_standard_input(
    command: Command, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    os.write(write, f"{KEY}\n".encode())
    os.close(write)
    with served(FakeOpenAIServer(then=OK)) as server, os.fdopen(read) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert command(*own(server, "--api-key", "-")).code == 0
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    assert KEY in path.read_text()


# -- on a terminal ---------------------------------------------------------------------------------


class Terminal:
    """A person at a terminal: waits for a question, types an answer."""

    def __init__(self, home: Path) -> None:
        self.screen = ""
        self._master, slave = pty.openpty()
        env = {**os.environ, "HOME": str(home), "TERM": "dumb"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "openclaw", "onboard"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            start_new_session=True,
        )
        os.close(slave)

    def wait_for(self, words: str) -> None:
        deadline = time.monotonic() + 60
        while words not in self.screen:
            ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{words!r} did not come: {self.screen}"
            self.screen += os.read(self._master, 65536).decode()

    def answer(self, question: str, text: str) -> None:
        self.wait_for(question)
        os.write(self._master, f"{text}\n".encode())

    def interrupt(self) -> None:
        """Press Ctrl-C until it is heard: between a question and its waiting a press can be missed."""
        for _ in range(20):
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(3)
                return

    def close(self) -> int:
        try:
            return self.process.wait(60)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            os.close(self._master)


def test_a_person_is_asked(home: Path, path: Path) -> None:
    with served(FakeOpenAIServer(then=OK)) as server:
        terminal = Terminal(home)
        terminal.answer("Provider", "work")
        terminal.answer("Base URL", server.base_url)
        terminal.answer("API key", KEY)
        terminal.answer("Model", "big")
        terminal.wait_for("Start the gateway with")
        assert terminal.close() == 0
    assert KEY not in terminal.screen
    assert "work/big answers: ok" in terminal.screen
    assert json.loads(path.read_text())["models"]["providers"]["work"]["apiKey"] == KEY


def test_a_person_decides_after_a_failed_test(home: Path, path: Path) -> None:
    body = {"error": {"message": "no such model"}}
    with served(FakeOpenAIServer(then=FakeReply(status=404, body=body))) as server:
        for reply, code in (("n", 1), ("y", 0)):
            terminal = Terminal(home)
            for question, text in (("Provider", "work"), ("Base URL", server.base_url)):
                terminal.answer(question, text)
            terminal.answer("API key", "")
            terminal.answer("Model", "big")
            terminal.answer("Write it anyway?", reply)
            terminal.wait_for("Nothing was written" if code else "Start the gateway")
            assert terminal.close() == code
            assert path.exists() is (code == 0)


@pytest.mark.parametrize("question", ["Provider", "API key", "Write it anyway?"])
def test_leaving_half_way_writes_nothing(home: Path, path: Path, question: str) -> None:
    body = {"error": {"message": "no"}}
    with served(FakeOpenAIServer(then=FakeReply(status=404, body=body))) as server:
        terminal = Terminal(home)
        answers = {"Provider": "work", "Base URL": server.base_url, "API key": "", "Model": "big"}
        for asked, text in answers.items():
            if asked == question:
                break
            terminal.answer(asked, text)
        terminal.wait_for(question)
        terminal.interrupt()
        assert terminal.close() == 130
    assert not path.parent.exists()
    assert "Traceback" not in terminal.screen
