"""The choice of a model when nobody made one, and what it is called with."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from openclaw.app.discovery import choose_model, configured_providers, find_models, providers_in_reach
from openclaw.config.load import check_text
from openclaw.config.schema import Config
from openclaw.engine.ports import ModelPrice
from openclaw.errors import InvalidRequest
from openclaw.models.catalog import resolve_target
from openclaw.models.discovery import Found, FoundModel
from openclaw.models.known import KnownProvider
from tests.fakes.openai_server import FakeOpenAIServer

OLLAMA = Found(
    provider="ollama",
    title="Ollama",
    source="local",
    where="http://127.0.0.1:11434/v1",
    models=(FoundModel("qwen3", 8192), FoundModel("gemma")),
)
KEY = {"ANTHROPIC_API_KEY": "sk-ant-0123456789"}


def config_of(text: str) -> Config:
    checked = check_text(text, {}, "test")
    assert checked.problems == ()
    return checked.config


def test_nothing_within_reach_is_the_built_in_model() -> None:
    choice = choose_model(Config(), {})
    assert choice.ref == "offline/offline"
    assert "no key" in choice.reason
    assert "openclaw onboard" in choice.payer


def test_a_key_comes_before_a_local_server_and_both_before_the_built_in_model() -> None:
    with_key = choose_model(Config(), KEY, (OLLAMA,))
    assert with_key.ref == "anthropic/claude-sonnet-5-5"
    assert with_key.reason == "found ANTHROPIC_API_KEY"
    assert with_key.payer == "the Anthropic account behind ANTHROPIC_API_KEY pays"
    assert "sk-ant" not in f"{with_key}"
    without = choose_model(Config(), {}, (OLLAMA,))
    assert without.ref == "ollama/qwen3"
    assert without.reason == "Ollama answers at http://127.0.0.1:11434/v1"
    assert "nobody's money" in without.payer
    assert resolve_target(with_key.ref, providers_in_reach(Config(), KEY)).api_key == "sk-ant-0123456789"


@pytest.mark.parametrize(
    ("model", "env", "ref", "payer"),
    [
        ("openai/gpt-5.5", KEY, "openai/gpt-5.5", "no key yet: set OPENAI_API_KEY"),
        ("anthropic/claude-x", KEY, "anthropic/claude-x", "the Anthropic account behind your key pays"),
        ("ollama/qwen3", {}, "ollama/qwen3", "it runs on a server of yours"),
        ("offline/offline", KEY, "offline/offline", "simple rules"),
        ("acme/big", KEY, "acme/big", "the acme account behind your key pays"),
        ("plain/big", KEY, "plain/big", "calls https://plain.example/v1 without a key"),
        ("best", {}, "acme/big", "acme account"),
    ],
)
def test_what_is_configured_is_used(model: str, env: dict[str, str], ref: str, payer: str) -> None:
    config = config_of(
        '{ agents: { defaults: { model: "MODEL", models: { "acme/big": { alias: "Best" } } } },'
        ' models: { providers: { acme: { baseUrl: "https://acme.example/v1", apiKey: "sk-acme" },'
        ' plain: { baseUrl: "https://plain.example/v1" } } } }'.replace("MODEL", model)
    )
    choice = choose_model(config, env, (OLLAMA,))
    assert (choice.ref, choice.reason) == (ref, "configured")
    assert payer in choice.payer
    assert "sk-acme" not in choice.payer


def test_a_configured_model_that_is_not_there_is_refused() -> None:
    config = config_of(
        '{ agents: { defaults: { model: "acme/none" } },'
        ' models: { providers: { acme: { baseUrl: "https://a.example", models: [{ id: "big" }] } } } }'
    )
    with pytest.raises(InvalidRequest, match="has no model 'none'; configured: big"):
        choose_model(config, KEY, (OLLAMA,))


def test_the_configuration_as_the_catalogue_reads_it() -> None:
    config = config_of(
        '{ models: { providers: { acme: { baseUrl: "https://acme.example", api: "anthropic-messages",'
        ' apiKey: "k", models: [{ id: "seeing", input: ["text", "image"], contextWindow: 5, maxTokens: 6,'
        ' reasoning: true, cost: { input: 1, output: 2, cacheRead: 3, cacheWrite: 4 } }, { id: "blind" }] },'
        " anthropic: {} } } }"
    )
    providers = configured_providers(config)
    seeing = resolve_target("acme/seeing", providers)
    assert (seeing.api, seeing.base_url, seeing.api_key) == (
        "anthropic-messages",
        "https://acme.example",
        "k",
    )
    assert (seeing.context_window, seeing.max_tokens, seeing.reasoning) == (5, 6, True)
    assert (seeing.price, seeing.images) == (ModelPrice(1, 2, 3, 4), True)
    blind = resolve_target("acme/blind", providers)
    assert (blind.price, blind.images, blind.context_window) == (ModelPrice(), False, 200_000)
    # An entry that says nothing of its API is still what its name says.
    assert resolve_target("anthropic/claude-opus-5", providers).api == "anthropic-messages"


def test_a_local_server_brings_its_sizes_and_is_free() -> None:
    providers = providers_in_reach(Config(), {}, (OLLAMA,))
    told = resolve_target("ollama/qwen3", providers)
    assert (told.context_window, told.max_tokens, told.price.input) == (8192, 4096, 0.0)
    untold = resolve_target("ollama/gemma", providers)
    assert (untold.context_window, untold.max_tokens) == (32_768, 4096)
    # The list may be older than what the server has by now.
    assert resolve_target("ollama/new", providers).model == "new"
    tiny = Found(provider="vllm", title="v", source="local", where="w", models=(FoundModel("t", 100),))
    assert resolve_target("vllm/t", providers_in_reach(Config(), {}, (tiny,))).max_tokens == 50
    own = config_of('{ models: { providers: { ollama: { models: [{ id: "qwen3", contextWindow: 7 }] } } } }')
    assert resolve_target("ollama/qwen3", providers_in_reach(own, {}, (OLLAMA,))).context_window == 7


async def test_looking_never_holds_up_a_start(tmp_path: Path) -> None:
    async with FakeOpenAIServer() as server:
        server.models = {"data": [{"id": "m"}]}
        providers = [KnownProvider(name="ollama", title="Ollama", base_url=server.base_url, port=1)]
        looking: Any = asyncio.create_task(find_models({}, providers=providers))
        # What has to be known at once is known before the search has sent a byte.
        assert choose_model(Config(), KEY).ref.startswith("anthropic/")
        assert not looking.done()
        (found,) = await looking
    assert choose_model(Config(), {}, (found,)).ref == "ollama/m"
