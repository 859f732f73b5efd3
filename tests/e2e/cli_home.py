"""A home directory in which `openclaw` is run as people run it: every command its own process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import msgspec

START_S = 30.0
COMMAND_S = 60.0


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

    def interrupt(self, within_s: float = 15.0) -> int:
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
