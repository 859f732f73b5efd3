"""A whole gateway in the test's process: real sockets, a real database, a model that speaks the wire."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.cli.main import run
from openclaw.config.load import load_or_raise
from openclaw.engine.ports import Clock
from tests.fakes.openai_server import FakeOpenAIServer
from tests.fakes.wire_client import WireClient
from tests.integration.importing import Place

TOKEN = "test-token-0123456789abcdef"
Json = dict[str, Any]
Said = tuple[int, str, str]  # exit code, standard output, standard error


class House:
    """One state directory, one fake model, and gateways that can be started on them again and again."""

    def __init__(self, home: Path, model: FakeOpenAIServer) -> None:
        self.home = home
        self.model = model
        self.config: Json = {
            "gateway": {"auth": {"token": TOKEN}},
            "agents": {
                "defaults": {"model": {"primary": "fake/one"}},
                "list": [{"id": "main", "default": True}, {"id": "bob"}],
            },
            "models": {"providers": {"fake": {
                "baseUrl": model.base_url, "apiKey": "sk-fake-key-000000000000", "api": "openai-completions",
                "models": [
                    {
                        "id": "one", "contextWindow": 32000, "input": ["text", "image"],
                        "cost": {"input": 1, "output": 2},
                    },
                    {"id": "two"},
                ],
            }}},
        }  # fmt: skip

    @property
    def env(self) -> dict[str, str]:
        return {"HOME": str(self.home), "OPENCLAW_STATE_DIR": str(self.home / "state"), "TZ": "UTC"}

    def gateway(self, clock: Clock | None = None) -> Gateway:
        path = self.home / "state" / "openclaw.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.config), encoding="utf-8")
        return Gateway(load_or_raise(path, self.env), self.env, port=0, clock=clock)


def client_of(gateway: Gateway, **options: Any) -> WireClient:
    token = options.pop("token", TOKEN)
    return WireClient(f"ws://127.0.0.1:{gateway.port}", token, **options)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with FakeOpenAIServer() as model:
        yield House(tmp_path, model)


@pytest.fixture
async def gateway(house: House) -> AsyncIterator[Gateway]:
    async with house.gateway() as running:
        yield running


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[WireClient]:
    async with client_of(gateway) as connected:
        yield connected


# -- commands in this process ----------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A state directory that commands of this process use; only its owner reads what is made in it."""
    usual = os.umask(0o077)
    place = Place(tmp_path / "state")
    for name in [one for one in os.environ if one.startswith("OPENCLAW_")]:
        monkeypatch.delenv(name)
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    yield place
    os.umask(usual)


@pytest.fixture
def openclaw(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Runs a command as the terminal does."""

    def invoke(*arguments: str) -> Said:
        capsys.readouterr()
        code = run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return invoke
