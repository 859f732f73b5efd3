"""From a model reference to a target, and from an API to its adapter."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from openclaw.engine.ports import ModelPrice, ModelTarget
from openclaw.errors import InvalidRequest
from openclaw.models.catalog import (
    ADAPTERS,
    OFFLINE_REF,
    ModelInfo,
    ProviderInfo,
    build_models,
    pick_model,
    resolve_target,
)
from openclaw.models.offline import OfflineModel
from openclaw.models.openai_chat import OpenAIChatModel
from tests.unit.models.asking import ask, make_request, make_target

PRICE = ModelPrice(input=1.0, output=2.0)
PROVIDERS = {
    "acme": ProviderInfo(
        base_url="https://acme.example/v1",
        api_key="sk-secret-value",
        models=(
            ModelInfo(id="coyote-1"),
            ModelInfo(id="org/big", context_window=1000, max_tokens=50, reasoning=True, price=PRICE),
            ModelInfo(id="strange", api="carrier-pigeon"),
        ),
    ),
    "openai": ProviderInfo(api_key="k"),
    "local": ProviderInfo(),
}


def refusal(ref: str, providers: dict[str, ProviderInfo] | None = None) -> str:
    with pytest.raises(InvalidRequest) as caught:
        resolve_target(ref, PROVIDERS if providers is None else providers)
    assert caught.value.code == "INVALID_REQUEST"
    assert len(caught.value.message) < 600
    assert "sk-secret-value" not in caught.value.message
    return caught.value.message


def test_a_configured_model_brings_its_own_figures() -> None:
    assert resolve_target(" acme/org/big ", PROVIDERS) == ModelTarget(
        provider="acme",
        model="org/big",
        api="openai-completions",
        base_url="https://acme.example/v1",
        api_key="sk-secret-value",
        context_window=1000,
        max_tokens=50,
        reasoning=True,
        price=PRICE,
    )
    plain = resolve_target("acme/coyote-1", PROVIDERS)
    assert (plain.context_window, plain.max_tokens, plain.reasoning) == (200_000, 8192, False)
    assert plain.price == ModelPrice()


def test_a_provider_without_a_list_takes_any_model() -> None:
    target = resolve_target("openai/whatever", PROVIDERS)
    assert (target.model, target.base_url, target.api_key) == ("whatever", "https://api.openai.com/v1", "k")


def test_no_key_goes_to_a_guessed_address() -> None:
    assert "models.providers.local.baseUrl" in refusal("local/m")


@pytest.mark.parametrize("ref", ["offline", OFFLINE_REF, " offline ", "offline/other"])
def test_the_offline_model_is_always_there(ref: str) -> None:
    target = resolve_target(ref, {})
    assert (target.provider, target.api, target.base_url) == ("offline", "offline", "")
    assert target.model == ("other" if ref.endswith("other") else "offline")
    assert target.price == ModelPrice(0, 0, 0, 0), "free, which is not the same as unknown"


def test_a_configured_provider_may_take_the_name_offline() -> None:
    mine = {"offline": ProviderInfo(base_url="http://127.0.0.1:1/v1")}
    assert resolve_target("offline/m", mine).api == "openai-completions"
    builtin = {"offline": ProviderInfo(api="offline")}
    assert resolve_target("offline/m", builtin).api == "offline"


def test_refusals_say_what_is_there() -> None:
    assert "acme, local, offline, openai" in refusal("nobody/m")
    message = refusal("acme/m")
    assert "'acme' has no model 'm'" in message
    assert "coyote-1, org/big, strange" in message
    many = {f"p{number:02}": ProviderInfo() for number in range(40)}
    listed = refusal("nobody/m", many)
    assert "p18, and 21 more" in listed
    assert "p19" not in listed


def test_an_unknown_api_lists_the_supported_ones() -> None:
    message = refusal("acme/strange")
    assert "'carrier-pigeon'" in message
    assert "offline, openai-completions" in message


@pytest.mark.parametrize(
    "ref", ["", " ", "/", "acme", "acme/", "/m", "acme/\0", "ac\ud800me/m", "a\nb/m", "x" * 257, "x" * 10_000]
)
def test_malformed_references_are_refused(ref: str) -> None:
    message = refusal(ref)
    assert message.encode()
    assert "\0" not in message
    assert "provider/model" in message or "longer than 256" in message


async def test_one_adapter_per_api_over_one_session() -> None:
    async with aiohttp.ClientSession() as session:
        models = build_models(session)
        assert set(models) == set(ADAPTERS) == {"openai-completions", "anthropic-messages", "offline"}
        offline = resolve_target("offline", {})
        assert isinstance(pick_model(models, offline), OfflineModel)
        assert isinstance(pick_model(models, make_target()), OpenAIChatModel)
        assert (await ask(pick_model(models, offline), make_request(target=offline))).text
        with pytest.raises(InvalidRequest, match="anthropic-messages, offline, openai-completions"):
            pick_model(models, make_target(api="other"))


def test_a_printed_provider_shows_no_key() -> None:
    printed: Any = repr(PROVIDERS["acme"])
    assert "sk-secret-value" not in printed
    assert "coyote-1" in printed
