"""What is known without configuration, and how it meets what is configured."""

from __future__ import annotations

import pytest

from openclaw.config.models_section import BUILT_IN_PROVIDERS
from openclaw.engine.ports import ModelPrice
from openclaw.models.catalog import ModelInfo, ProviderInfo, resolve_target, with_environment
from openclaw.models.known import (
    PROVIDERS,
    KnownProvider,
    address_in_environment,
    key_in_environment,
    known_model,
    known_provider,
)
from tests.unit.models.asking import make_target

ANTHROPIC = known_provider("anthropic")
OLLAMA = known_provider("ollama")
assert ANTHROPIC is not None and OLLAMA is not None


def test_the_table_agrees_with_the_configuration_and_with_itself() -> None:
    assert {provider.name for provider in PROVIDERS} | {"offline"} == BUILT_IN_PROVIDERS
    for provider in PROVIDERS:
        assert provider.is_local != bool(provider.key_names)
        assert provider.is_local == provider.base_url.startswith(f"http://127.0.0.1:{provider.port}/")
        assert provider.is_local or provider.base_url.startswith("https://")
        assert not provider.models or provider.default_model in provider.models
        assert resolve_target(f"{provider.name}/x", {}).base_url == provider.base_url


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("claude-sonnet-5-5", True),
        ("claude-sonnet-5-5-20260901", True),
        ("claude-opus-5", True),
        ("claude-opus-5-7", False),
        ("claude-opus-5-latest", False),
        ("claude-opus-5-2026090", False),
        ("claude-opus-5-²0260901", False),
        ("claude", False),
    ],
)
def test_dated_names_are_the_same_model(name: str, known: bool) -> None:
    assert (known_model("anthropic", name) is not None) is known
    assert known_model("acme", name) is None


def test_prices_of_the_cache_follow_from_the_input() -> None:
    opus = known_model("anthropic", "claude-opus-5")
    assert opus is not None
    assert opus.price == ModelPrice(5, 25, 0.5, 6.25)
    gpt = known_model("openai", "gpt-5.5-2026-04-23")
    assert gpt is not None and gpt.context_window == 1_000_000


def test_the_configuration_wins_over_what_is_published() -> None:
    target = resolve_target("anthropic/claude-opus-5", {})
    assert (target.api, target.base_url) == ("anthropic-messages", "https://api.anthropic.com")
    assert (target.context_window, target.max_tokens, target.reasoning) == (1_000_000, 32_000, True)
    assert target.price.output == 25
    own = ModelInfo(id="claude-opus-5", context_window=5, max_tokens=6, price=ModelPrice(7, 8), images=False)
    providers = {"anthropic": ProviderInfo(base_url="http://proxy", models=(own,))}
    target = resolve_target("anthropic/claude-opus-5", providers)
    assert (target.context_window, target.max_tokens, target.images) == (5, 6, False)
    assert (target.price, target.base_url) == (ModelPrice(7, 8), "http://proxy")
    # A published model need not be listed; one that nobody knows must be, once there is a list.
    assert resolve_target("anthropic/claude-sonnet-5", providers).context_window == 1_000_000
    with pytest.raises(Exception, match="claude-none"):
        resolve_target("anthropic/claude-none", providers)
    opened = {"anthropic": ProviderInfo(models=(own,), open=True)}
    assert resolve_target("anthropic/claude-none", opened).context_window == 200_000


def test_keys_of_the_environment_go_to_their_own_provider_only() -> None:
    env = {"ANTHROPIC_API_KEY": " sk-ant-1 ", "OPENAI_API_KEY": "sk-2", "OPENROUTER_API_KEY": "  "}
    configured = {
        "openai": ProviderInfo(base_url="https://elsewhere.example/v1"),
        "acme": ProviderInfo(base_url="https://acme.example/v1", api_key="own"),
    }
    merged = with_environment(configured, env)
    assert merged["anthropic"].api_key == "sk-ant-1"
    assert merged["openai"].api_key == ""
    assert merged["openrouter"].api_key == ""
    assert merged["acme"] == configured["acme"]
    spelled_out = {"anthropic": ProviderInfo(base_url="https://api.anthropic.com")}
    assert with_environment(spelled_out, env)["anthropic"].api_key == "sk-ant-1"
    kept = with_environment({"anthropic": ProviderInfo(api_key="own")}, env)
    assert kept["anthropic"].api_key == "own"


def test_the_best_variable_wins() -> None:
    assert ANTHROPIC is not None
    both = {"ANTHROPIC_OAUTH_TOKEN": "b", "ANTHROPIC_API_KEY": "a"}
    assert key_in_environment(ANTHROPIC, both) == "ANTHROPIC_API_KEY"
    assert key_in_environment(ANTHROPIC, {**both, "ANTHROPIC_API_KEY": " "}) == "ANTHROPIC_OAUTH_TOKEN"
    assert key_in_environment(ANTHROPIC, {}) is None


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("127.0.0.1:9999", "http://127.0.0.1:9999/v1"),
        ("127.0.0.1", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:9999", "http://127.0.0.1:9999/v1"),
        ("http://localhost:9999/", "http://127.0.0.1:9999/v1"),
        ("[::]:9999", "http://127.0.0.1:9999/v1"),
        ("gpu.example:9999", "http://127.0.0.1:11434/v1"),
        ("127.0.0.1:port", "http://127.0.0.1:11434/v1"),
        ("http://[broken", "http://127.0.0.1:11434/v1"),
    ],
)
def test_a_local_server_is_where_its_own_variable_says(written: str, address: str) -> None:
    assert OLLAMA is not None
    assert address_in_environment(OLLAMA, {"OLLAMA_HOST": written}) == address
    target = resolve_target("ollama/qwen3", with_environment({}, {"OLLAMA_HOST": written}))
    assert (target.base_url, target.api_key) == (address, "")


@pytest.mark.parametrize(
    ("api", "dialect"),
    [
        ("anthropic-messages", "anthropic"),
        ("openai-completions", "openai"),
        ("offline", "openai"),
        ("", "openai"),
    ],
)
def test_the_dialect_of_an_api(api: str, dialect: str) -> None:
    assert make_target(api=api).dialect == dialect


def test_a_server_without_a_variable_stays_at_its_port() -> None:
    plain = KnownProvider(name="x", title="X", base_url="http://127.0.0.1:7/v1", port=7)
    assert address_in_environment(plain, {"": "127.0.0.1:1", "OLLAMA_HOST": "127.0.0.1:1"}) == plain.base_url
