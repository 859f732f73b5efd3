"""The door as configured: which secret, which address, and no open door to a network."""

from __future__ import annotations

import pytest

from openclaw.app.door import Lock, choose_host, choose_lock
from openclaw.config.gateway_section import GatewayAuthConfig, GatewayConfig
from openclaw.errors import ConfigInvalid
from openclaw.protocol.auth import digest_secret

TOKEN = GatewayAuthConfig(token="t")


@pytest.mark.parametrize(
    ("auth", "mode", "secret"),
    [
        (GatewayAuthConfig(), "token", None),
        (TOKEN, "token", "t"),
        (GatewayAuthConfig(password="p"), "password", "p"),
        (GatewayAuthConfig(token="t", password="p"), "token", "t"),
        (GatewayAuthConfig(mode="password", token="t", password="p"), "password", "p"),
        (GatewayAuthConfig(mode="token", password="p"), "token", None),
        (GatewayAuthConfig(mode="none", token="t"), "none", None),
    ],
)
def test_which_secret_opens(auth: GatewayAuthConfig, mode: str, secret: str | None) -> None:
    lock = choose_lock(GatewayConfig(auth=auth))
    assert isinstance(lock, Lock)
    assert (lock.mode, lock.secret_digest) == (mode, digest_secret(secret) if secret else None)


@pytest.mark.parametrize(
    ("gateway", "host"),
    [
        (GatewayConfig(), "127.0.0.1"),
        (GatewayConfig(auth=GatewayAuthConfig(mode="none")), "127.0.0.1"),
        (GatewayConfig(bind="lan", auth=TOKEN), "0.0.0.0"),
        (GatewayConfig(bind="custom", custom_bind_host="192.0.2.1", auth=TOKEN), "192.0.2.1"),
        (GatewayConfig(bind="custom", custom_bind_host="::1"), "::1"),
        (GatewayConfig(bind="custom", custom_bind_host="localhost"), "localhost"),
        (GatewayConfig(bind="loopback", custom_bind_host="192.0.2.1"), "127.0.0.1"),
    ],
)
def test_where_it_listens(gateway: GatewayConfig, host: str) -> None:
    assert choose_host(gateway) == host


@pytest.mark.parametrize(
    "gateway",
    [
        GatewayConfig(bind="lan"),
        GatewayConfig(bind="lan", auth=GatewayAuthConfig(mode="none", token="t")),
        GatewayConfig(bind="custom", custom_bind_host="192.0.2.1"),
        GatewayConfig(bind="custom", custom_bind_host="box.local"),
    ],
)
def test_no_secret_no_network(gateway: GatewayConfig) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        choose_host(gateway)
    for words in ("gateway.auth.token", "gateway.auth.password", 'gateway.bind to "loopback"'):
        assert words in refused.value.message
