"""Defaults that the credential of an Anthropic model brings along (PRUNE-6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openclaw.app.providerdefaults import credential_of, heartbeat_every_ms, pruning_ttl_ms, with_cache_ttl
from openclaw.app.settings import SettingsSource
from openclaw.engine.ports import ModelTarget
from tests.unit.config.reading import config_of

KEY, TOKEN = "sk-ant-api03-aaaa", "sk-ant-oat01-bbbb"
HOUR = 3_600_000


def target(provider: str = "anthropic", api: str = "anthropic-messages", api_key: str = KEY) -> ModelTarget:
    return ModelTarget(provider, "m", api, api_key=api_key)


@pytest.mark.spec("PRUNE-6")
def test_the_kind_of_a_credential() -> None:
    assert credential_of(target()) == "api_key"
    assert credential_of(target(api_key=TOKEN)) == "oauth"
    assert credential_of(target(api_key="")) is None
    assert credential_of(target("other")) is None
    assert credential_of(target(api="openai-completions")) is None


@pytest.mark.spec("PRUNE-6")
@pytest.mark.parametrize(
    ("model", "cache", "ttl", "heartbeat"),
    [
        (target(), HOUR, HOUR, HOUR // 2),
        (target(api_key=TOKEN), None, 300_000, HOUR),
        (target("other"), None, 300_000, HOUR // 2),
    ],
    ids=["api key", "subscription", "somebody else"],
)
def test_what_holds_where_nothing_is_configured(
    model: ModelTarget, cache: int | None, ttl: int, heartbeat: int
) -> None:
    made = with_cache_ttl(model, None)
    assert made.cache_ttl_ms == cache
    assert pruning_ttl_ms(made, None) == ttl
    assert heartbeat_every_ms(made, None) == heartbeat


@pytest.mark.spec("PRUNE-6")
def test_explicit_values_win() -> None:
    for model in (target(), target(api_key=TOKEN)):
        made = with_cache_ttl(model, 60_000)
        assert made.cache_ttl_ms == 60_000
        assert pruning_ttl_ms(made, 60_000) == 60_000
        assert heartbeat_every_ms(made, 0) == 0
    assert pruning_ttl_ms(target("other"), 7) == 7
    assert heartbeat_every_ms(target("other"), 7) == 7


def settings_of(key: str, **defaults: Any) -> Any:
    chosen = {"model": {"primary": "anthropic/claude"}} | defaults
    config = {
        "agents": {"defaults": chosen},
        "models": {"providers": {"anthropic": {
            "baseUrl": "http://127.0.0.1:9", "api": "anthropic-messages", "apiKey": key,
            "models": [{"id": "claude"}],
        }}},
    }  # fmt: skip
    return (
        SettingsSource(config_of(json.dumps(config)), {"TZ": "UTC", "HOME": "/nowhere"})
        .current()
        .agent("main")
    )


@pytest.mark.spec("PRUNE-6")
def test_the_configuration_of_a_gateway_is_read_through_them() -> None:
    by_key, by_token = settings_of(KEY, heartbeat={}), settings_of(TOKEN, heartbeat={})
    assert (by_key.pruning.mode, by_key.pruning.ttl_ms, by_key.heartbeat.every_ms) == (
        "cache-ttl",
        HOUR,
        HOUR // 2,
    )
    assert (by_token.pruning.mode, by_token.pruning.ttl_ms, by_token.heartbeat.every_ms) == (
        "cache-ttl",
        300_000,
        HOUR,
    )
    assert by_key.default_model.cache_ttl_ms == HOUR
    assert settings_of(KEY).heartbeat is None, "a heartbeat costs money: somebody asks for it"
    told = settings_of(KEY, heartbeat={"every": "2h"}, contextPruning={"mode": "off", "ttl": "5m"})
    assert (told.pruning.mode, told.pruning.ttl_ms, told.heartbeat.every_ms) == ("off", 300_000, 2 * HOUR)
    assert told.default_model.cache_ttl_ms == 300_000
