"""`openclaw doctor` beside a gateway that runs: whether this terminal is let in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openclaw.store.lockfile import OwnerLock
from tests.fakes.ports import free_port
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, running


@pytest.fixture
def owned(home: Path) -> Iterator[Path]:
    """A state directory whose store somebody else owns."""
    state = home / ".openclaw"
    state.mkdir(0o700)
    lock = OwnerLock(state / "openclaw.sqlite")
    lock.take()
    yield state
    lock.release()


def lines(out: str, name: str) -> list[str]:
    return [line for line in out.splitlines() if line[2:].startswith(name)]


@pytest.mark.spec("CLI-10")
def test_a_gateway_that_runs_is_asked_whether_it_lets_us_in(
    owned: Path,
    point_at: Callable[[FakeGateway], Path],
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running(FakeGateway({})) as gateway:
        point_at(gateway).chmod(0o600)
        well = command("doctor")
        assert well.code == 0 and well.out.endswith("All is well.\n")
        assert lines(well.out, "gateway") == [f"✓ gateway   answers at ws://127.0.0.1:{gateway.port}"]
        monkeypatch.setenv("OPENCLAW_GATEWAY_TOKEN", "another")
        wrong = command("doctor")
        assert wrong.code == 1 and wrong.out.endswith("1 problem.\n")
        [told] = lines(wrong.out, "gateway")
        assert told.startswith("✗") and "OPENCLAW_GATEWAY_TOKEN is not its gateway.auth.token" in told
        report = command("doctor", "--json").json()
        assert report["ok"] is False and report["checks"][-1]["name"] == "gateway"


@pytest.mark.spec("CLI-10")
def test_another_command_may_own_the_store(
    owned: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCLAW_GATEWAY_PORT", str(free_port()))
    found = command("doctor")
    assert found.code == 0 and lines(found.out, "gateway") == [] and lines(found.out, "lock")
