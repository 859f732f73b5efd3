"""The published npm client and a gateway for it, as processes: what a person has who owns both.

Nothing here knows what the clients send. They are started, typed at and looked at.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.e2e.gateway_process import TOKEN, GatewayProcess

PATIENCE_S = 90.0


def installed() -> Path:
    """Where `scripts/interop` put the clients."""
    return Path(os.environ["OPENCLAW_INTEROP_CLIENTS"])


class NpmClient:
    """The `openclaw` of the npm package, with a home of its own that points at one gateway."""

    def __init__(self, home: Path, gateway: GatewayProcess) -> None:
        self.home = home
        self.gateway = gateway
        state = home / ".openclaw"
        state.mkdir(parents=True)
        remote = {"mode": "remote", "remote": {"url": gateway.url, "token": TOKEN}}
        (state / "openclaw.json").write_text(json.dumps({"gateway": remote}), encoding="utf-8")
        self.env = {
            "PATH": f"{installed() / 'node_modules/.bin'}:{os.environ['PATH']}",
            "HOME": str(home),
            "OPENCLAW_STATE_DIR": str(state),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        """One command to its end."""
        return subprocess.run(
            ["openclaw", *args], env=self.env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    def json(self, *args: str) -> Any:
        done = self.run(*args)
        assert done.returncode == 0, f"{args}: {done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    def call(self, method: str, params: dict[str, Any]) -> Any:
        return self.json("gateway", "call", method, "--json", "--params", json.dumps(params))


class Terminal:
    """A program in tmux: keys go in, the screen comes out."""

    def __init__(self, name: str, command: list[str], env: dict[str, str]) -> None:
        self._name = name
        line = shlex.join(["env", "-i", *(f"{key}={value}" for key, value in env.items()), *command])
        self._tmux("new-session", "-d", "-s", name, "-x", "110", "-y", "40", line)

    def _tmux(self, *args: str) -> str:
        done = subprocess.run(["tmux", "-L", "interop", *args], capture_output=True, text=True, check=False)
        return done.stdout

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-t", self._name, "-l", text)
        self._tmux("send-keys", "-t", self._name, "Enter")

    def press(self, key: str) -> None:
        self._tmux("send-keys", "-t", self._name, key)

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p", "-t", self._name)

    def wait_for(self, condition: Callable[[str], bool]) -> str:
        return wait_until(self.screen, condition)

    def close(self) -> None:
        self._tmux("kill-session", "-t", self._name)


def start_again(gateway: GatewayProcess) -> None:
    """From a thread of its own: a test that drives a browser has an event loop already."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(gateway.start())).result()


def wait_until(look: Callable[[], str], condition: Callable[[str], bool]) -> str:
    """Look until the condition holds; the last look is shown when it never does."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        seen = look()
        if condition(seen):
            return seen
        assert time.monotonic() < deadline, f"it never came to that. The last look:\n{seen}"
        time.sleep(0.1)
