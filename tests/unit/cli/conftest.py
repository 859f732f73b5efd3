"""A home of its own for every command-line test, and a way to run a command in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from openclaw.cli.main import run
from tests.unit.cli.fake_gateway import TOKEN, FakeGateway, Json


class Outcome(msgspec.Struct, frozen=True):
    """What a command left behind."""

    code: int
    out: str
    err: str

    def json(self) -> Json:
        decoded: Json = msgspec.json.decode(self.out)
        return decoded


Command = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory, and nothing of OpenClaw in the environment."""
    for name in (
        "OPENCLAW_STATE_DIR",
        "OPENCLAW_CONFIG_PATH",
        "OPENCLAW_GATEWAY_URL",
        "OPENCLAW_GATEWAY_PORT",
        "OPENCLAW_GATEWAY_TOKEN",
        "OPENCLAW_GATEWAY_PASSWORD",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `openclaw` with these arguments, in this process."""

    def invoke(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = run(arguments)
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return invoke


@pytest.fixture
def write_config(home: Path) -> Callable[[str], Path]:
    """Write the config file of this home."""

    def write(text: str) -> Path:
        path = home / ".openclaw" / "openclaw.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


@pytest.fixture
def point_at(write_config: Callable[[str], Path]) -> Callable[[FakeGateway], Path]:
    """Let the config of this home name a gateway of the test, with the right token."""

    def point(gateway: FakeGateway) -> Path:
        return write_config(f'{{ gateway: {{ port: {gateway.port}, auth: {{ token: "{TOKEN}" }} }} }}')

    return point
