"""A gateway inside a command: a door for this process only, and nothing that reaches out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from openclaw.cli.client import GatewayClient
from openclaw.cli.embedded import _for_itself, embedded_gateway, reach_gateway
from openclaw.cli.failures import GatewayUnreachable
from openclaw.cli.place import Flags
from openclaw.config.credentials import secrets
from openclaw.config.load import config_path, load_or_raise
from openclaw.errors import ConfigInvalid
from openclaw.protocol.scopes import ADMIN
from tests.fakes.ports import free_port
from tests.unit.cli.fake_gateway import FakeGateway, running

CONFIG = """{
  gateway: { bind: "lan", auth: { mode: "password", password: "open sesame 123" } },
  channels: { telegram: { enabled: true, botToken: "123456:telegram-secret-token" } },
}"""


@pytest.mark.spec("CLI-6")
def test_the_door_is_for_this_process_and_nothing_reaches_out(
    home: Path, write_config: Callable[[str], Path]
) -> None:
    path = write_config(CONFIG)
    env = {"HOME": str(home)}
    loaded = load_or_raise(config_path(env), env)
    inside = _for_itself(loaded, "made-up")
    gateway = inside.config.gateway
    assert (gateway.bind, gateway.auth.mode, gateway.auth.token) == ("loopback", "token", "made-up")
    assert gateway.auth.password is None and inside.exists is False
    assert inside.config.channels["telegram"].enabled is False and inside.config.cron.enabled is False
    known = secrets(inside.config, inside.referenced_secrets)
    assert "123456:telegram-secret-token" in known, "what must be masked is still known"
    assert path.read_text() == CONFIG


@pytest.mark.spec("CLI-6")
def test_a_gateway_inside_answers_and_leaves_no_config_behind(home: Path) -> None:
    with embedded_gateway() as place, GatewayClient(place, [ADMIN]) as client:
        assert (place.host, place.port > 0, len(place.token or "") >= 43) == ("127.0.0.1", True, True)
        assert client.call("sessions.list", {}, 60)["path"] == str(home / ".openclaw" / "openclaw.sqlite")
    assert not (home / ".openclaw" / "openclaw.json").exists()
    with embedded_gateway() as again, GatewayClient(again, [ADMIN]) as client:
        assert again.token != place.token
        assert client.call("health", {}, 60)["ok"] is True


@pytest.mark.spec("CLI-6", "OWN-2")
def test_a_running_or_a_named_gateway_is_never_replaced(
    point_at: Callable[[FakeGateway], Path], write_config: Callable[[str], Path]
) -> None:
    heard: list[str] = []
    with running(FakeGateway({})) as fake:
        point_at(fake)
        with reach_gateway(Flags(), [ADMIN], local=False, on_embedded=heard.append) as client:
            assert client.place.port == fake.port
    remote = f"ws://127.0.0.1:{free_port()}"
    write_config(f'{{ gateway: {{ mode: "remote", remote: {{ url: "{remote}", token: "t" }} }} }}')
    for flags in (Flags(), Flags(url=remote, token="t")):
        with (
            pytest.raises(GatewayUnreachable),
            reach_gateway(flags, [ADMIN], local=False, on_embedded=heard.append),
        ):
            raise AssertionError("nothing was reached")
    assert heard == []


@pytest.mark.spec("CFG-3")
def test_a_config_that_is_not_valid_starts_nothing(write_config: Callable[[str], Path]) -> None:
    write_config("{ colour: 'blue' }")
    with (
        pytest.raises(ConfigInvalid),
        reach_gateway(Flags(), [ADMIN], local=True, on_embedded=lambda _reason: None),
    ):
        raise AssertionError("it was started")
