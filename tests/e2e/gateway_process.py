"""The gateway as its own process, as people run it: started, asked, killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.fakes.wire_client import RefusedError, WireClient

TOKEN = "e2e-token-0123456789abcdef"
START_S = 60.0
STOP_S = 60.0


class GatewayProcess:
    """`python -m openclaw gateway run` on one state directory; may be started again and again."""

    def __init__(self, home: Path, model_url: str, port: int) -> None:
        self.home = home
        self.port = port
        self.url = f"ws://127.0.0.1:{port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._log = home / "gateway.log"
        state = home / "state"
        state.mkdir(parents=True, exist_ok=True)
        config: dict[str, Any] = {
            # Senders outrun the model on purpose: nothing shall leave the queue by policy.
            "messages": {"queue": {"cap": 1000}},
            "gateway": {"port": port, "auth": {"token": TOKEN}},
            "agents": {"defaults": {"model": {"primary": "fake/one"}, "maxConcurrent": 8}},
            "models": {"providers": {"fake": {
                "baseUrl": model_url, "apiKey": "sk-fake", "api": "openai-completions",
                "models": [{"id": "one"}],
            }}},
        }  # fmt: skip
        (state / "openclaw.json").write_text(json.dumps(config), encoding="utf-8")

    @property
    def database(self) -> Path:
        return self.home / "state" / "openclaw.sqlite"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def log_text(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process is not None

    async def start(self) -> None:
        """Start, and return once the handshake succeeds."""
        process = self._spawn()
        deadline = time.monotonic() + START_S
        while True:
            try:
                async with self.client():
                    return
            except (OSError, RefusedError):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"the gateway did not start:\n{self._log.read_text()}") from None
                await asyncio.sleep(0.02)

    def _spawn(self) -> subprocess.Popen[bytes]:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "OPENCLAW_STATE_DIR": str(self.home / "state"),
            "TZ": "UTC",
            "PYTHONFAULTHANDLER": "1",
        }
        command = [sys.executable, "-m", "openclaw", "gateway", "run", "--port", str(self.port)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )
        return self._process

    def client(self) -> WireClient:
        return WireClient(self.url, TOKEN)

    def kill(self) -> None:
        """SIGKILL, as a power cut for the process would be."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        assert self._process is not None
        self._process.terminate()
        code = self._process.wait(timeout=STOP_S)
        self._process = None
        return code
