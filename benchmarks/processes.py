"""Processes under measurement: the gateway as people run it, the bare spike, a bare echo.

Starts and stops them, and reads from `/proc` what they used. Says nothing about bars.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import Struct

from benchmarks.load import LoadClient

ROOT = Path(__file__).resolve().parent.parent
TOKEN = "bench-token-0123456789abcdef"


class Used(Struct, frozen=True):
    """What a process has used so far."""

    cpu_s: float
    written_bytes: int
    rss_bytes: int

    def since(self, before: Used) -> Used:
        return Used(self.cpu_s - before.cpu_s, self.written_bytes - before.written_bytes, self.rss_bytes)


def used_by(pid: int) -> Used:
    """CPU of all threads, bytes handed to the disk, resident memory."""
    proc = Path(f"/proc/{pid}")
    io = dict(line.split(": ") for line in (proc / "io").read_text().splitlines())
    resident = int((proc / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    # The CPU clock of another process; /proc/stat counts in steps of 10 ms.
    cpu_s = time.clock_gettime((~pid << 3) | 2)
    return Used(cpu_s, int(io["write_bytes"]), resident)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Measured:
    """One process that serves a port of this machine. `async with` starts it and waits until it answers."""

    def __init__(self, home: Path, command: Sequence[str], port: int) -> None:
        self.home = home
        self.port = port
        self._command = list(command)
        self._process: subprocess.Popen[bytes] | None = None
        self.started_s = 0.0
        self.started_cpu_s = 0.0
        home.mkdir(parents=True, exist_ok=True)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def used(self) -> Used:
        return used_by(self.pid)

    def _spawn(self, env: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.home / "log").open("ab") as log:
            return subprocess.Popen(
                self._command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    async def __aenter__(self) -> Self:
        env = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "TZ": "UTC",
            "OPENCLAW_STATE_DIR": str(self.home / "state"),
        }  # fmt: skip
        began = time.perf_counter()
        self._process = self._spawn(env)
        while not await self._answers():
            if self._process.poll() is not None or time.perf_counter() - began > 120:
                raise RuntimeError(f"it did not start:\n{(self.home / 'log').read_text()}")
            await asyncio.sleep(0.005)
        self.started_s, self.started_cpu_s = time.perf_counter() - began, self.used().cpu_s
        return self

    async def _answers(self) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        found = await reader.read(12)
        writer.close()
        return found.startswith(b"HTTP/1.1")

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        await asyncio.to_thread(self._process.wait, 60)

    def client(self) -> LoadClient:
        return LoadClient(self.port, TOKEN)


def gateway(home: Path, model_url: str) -> Measured:
    """`openclaw gateway run` on this home, with this model."""
    port, state = free_port(), home / "state"
    state.mkdir(parents=True, exist_ok=True)
    config = {
        "gateway": {"port": port, "auth": {"token": TOKEN}},
        "session": {"maintenance": {"maxEntries": 0, "pruneAfter": 0}},
        "agents": {"defaults": {"model": {"primary": "fake/fake-1"}, "maxConcurrent": 64}},
        "models": {"providers": {"fake": {
            "baseUrl": model_url, "apiKey": "sk-bench", "api": "openai-completions",
            "models": [{"id": "fake-1"}],
        }}},
    }  # fmt: skip
    path = state / "openclaw.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    path.chmod(0o600)
    return Measured(home, [sys.executable, "-m", "openclaw", "gateway", "run", "--port", str(port)], port)


def spike(home: Path, model_url: str) -> Measured:
    """The bare gateway of the same shape."""
    port = free_port()
    command = [
        sys.executable, "-m", "benchmarks.spike_gateway", "--port", str(port),
        "--home", str(home), "--llm", model_url,
    ]  # fmt: skip
    return Measured(home, command, port)


def echo(home: Path) -> Measured:
    """aiohttp that sends back what it gets, and nothing else."""
    port = free_port()
    return Measured(home, [sys.executable, "-m", "benchmarks.echo", str(port)], port)
