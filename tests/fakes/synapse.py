"""A real homeserver for tests: Synapse from its own environment, on loopback, speaking to no other server."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.fakes.ports import free_port

START_S = 120.0
SERVER_NAME = "House.Test"  # capitals on purpose: ids are byte-exact
_OFTEN = {"per_second": 10_000, "burst_count": 10_000}


class Synapse:
    """One homeserver process with an empty database."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.root = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        python = Path(os.environ["OPENCLAW_SYNAPSE_PYTHON"])
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / "homeserver.yaml"
        path.write_text(json.dumps(self._config()), encoding="utf-8")  # JSON is YAML
        command = [str(python), "-m", "synapse.app.homeserver", "-c", str(path)]
        with (self._folder / "synapse.out").open("wb") as log:
            subprocess.run(
                [*command, "--generate-keys"], check=True, stdout=log, stderr=log, cwd=self._folder
            )
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)
        deadline = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"Synapse did not start:\n{(self._folder / 'synapse.out').read_text()}")
            time.sleep(0.1)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()  # nothing of it is needed again, and it closes slowly
            self._process.wait(timeout=60)
            self._process = None

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.root}/health", timeout=5) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _config(self) -> dict[str, Any]:
        folder = self._folder
        return {
            "server_name": SERVER_NAME,
            "pid_file": str(folder / "synapse.pid"),
            "listeners": [{
                "port": self._port, "bind_addresses": ["127.0.0.1"], "type": "http", "tls": False,
                "resources": [{"names": ["client"], "compress": False}],
            }],
            "database": {"name": "sqlite3", "args": {"database": str(folder / "synapse.db")}},
            "media_store_path": str(folder / "media"),
            "signing_key_path": str(folder / "signing.key"),
            "macaroon_secret_key": "only for tests", "form_secret": "only for tests",
            "report_stats": False, "trusted_key_servers": [], "federation_domain_whitelist": [],
            "enable_registration": True, "enable_registration_without_verification": True,
            "bcrypt_rounds": 4, "presence": {"enabled": False},
            "rc_message": _OFTEN, "rc_registration": _OFTEN,
            "rc_login": {"address": _OFTEN, "account": _OFTEN, "failed_attempts": _OFTEN},
            "rc_joins": {"local": _OFTEN, "remote": _OFTEN}, "rc_joins_per_room": _OFTEN,
            "rc_invites": {"per_room": _OFTEN, "per_user": _OFTEN, "per_issuer": _OFTEN},
            "rc_room_creation": _OFTEN,
        }  # fmt: skip
