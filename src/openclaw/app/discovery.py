"""Which model a gateway uses when nobody told it: from the configuration and what is within reach.

Part of the composition root: it reads the configuration and the environment, so
that `models` need not. Deciding is immediate; looking for servers on this machine
takes a moment and happens beside the start, never before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aiohttp
from msgspec import Struct
from msgspec.structs import replace

from openclaw.config import views
from openclaw.config.models_section import ModelCostConfig
from openclaw.config.schema import Config
from openclaw.engine.ports import ModelPrice
from openclaw.models.catalog import (
    FREE,
    OFFLINE_PROVIDER,
    OFFLINE_REF,
    ModelInfo,
    ProviderInfo,
    resolve_target,
    with_environment,
)
from openclaw.models.discovery import PROBE_TIMEOUT_S, Found, discover, found_in_environment
from openclaw.models.known import PROVIDERS, KnownProvider, known_provider

# What a local server is taken to hold when it does not say.
LOCAL_CONTEXT_WINDOW = 32_768
LOCAL_MAX_TOKENS = 4096


class ModelChoice(Struct, frozen=True):
    """The model that will be used, why, and who pays for it; each ready to print."""

    ref: str
    reason: str
    payer: str


# -- providers -------------------------------------------------------------------------------------


def configured_providers(config: Config) -> dict[str, ProviderInfo]:
    """`models.providers` as the catalogue reads it."""
    return {
        name: ProviderInfo(
            api=provider.api or "",
            base_url=provider.base_url or "",
            api_key=provider.api_key or "",
            models=tuple(
                ModelInfo(
                    id=model.id,
                    context_window=model.context_window,
                    max_tokens=model.max_tokens,
                    reasoning=model.reasoning,
                    price=_price(model.cost),
                    images="image" in model.input,
                )
                for model in provider.models
            ),
        )
        for name, provider in config.models.providers.items()
    }


def providers_in_reach(
    config: Config, env: Mapping[str, str], found: Sequence[Found] = ()
) -> dict[str, ProviderInfo]:
    """What is configured, with keys of the environment, and the sizes that local servers told."""
    providers = with_environment(configured_providers(config), env)
    for one in found:
        info = providers.get(one.provider, ProviderInfo())
        if one.source == "local" and not info.models:
            models = tuple(_local_model(model.name, model.context_window) for model in one.models)
            providers[one.provider] = replace(info, models=models, open=True)
    return providers


def _local_model(name: str, context_window: int | None) -> ModelInfo:
    window = context_window or LOCAL_CONTEXT_WINDOW
    max_tokens = max(1, min(LOCAL_MAX_TOKENS, window // 2))
    return ModelInfo(id=name, context_window=window, max_tokens=max_tokens, price=FREE)


def _price(cost: ModelCostConfig | None) -> ModelPrice:
    if cost is None:
        return ModelPrice()
    return ModelPrice(cost.input, cost.output, cost.cache_read, cost.cache_write)


# -- choosing --------------------------------------------------------------------------------------


def choose_model(config: Config, env: Mapping[str, str], found: Sequence[Found] = ()) -> ModelChoice:
    """The default agent's model: configured, else the best within reach, else the built-in one.

    Keys of the environment count whether or not they are in `found`. Raises
    InvalidRequest when the configured model cannot be used.
    """
    agent = views.agent(config, views.default_agent_id(config), env)
    configured = agent.model.primary
    if configured is not None:
        return _configured_choice(views.resolve_alias(config, configured), providers_in_reach(config, env))
    in_reach = (*found_in_environment(env), *(one for one in found if one.source == "local"))
    if in_reach:
        best = in_reach[0]
        reason = f"found {best.where}" if best.source == "environment" else f"{best.title} answers"
        if best.source == "local":
            reason += f" at {best.where}"
        return ModelChoice(best.ref, reason, best.payer)
    return ModelChoice(
        OFFLINE_REF,
        "no key in the environment and no local server was found",
        "nobody's money: it answers by simple rules; `openclaw onboard` sets up a real one",
    )


def _configured_choice(ref: str, providers: Mapping[str, ProviderInfo]) -> ModelChoice:
    target = resolve_target(ref, providers)
    known = known_provider(target.provider)
    ref = f"{target.provider}/{target.model}"
    if target.provider == OFFLINE_PROVIDER:
        payer = "nobody's money: it answers by simple rules"
    elif known is not None and known.is_local:
        payer = "nobody's money: it runs on a server of yours"
    elif target.api_key:
        payer = f"the {known.title if known else target.provider} account behind your key pays"
    elif known is not None:
        payer = f"no key yet: set {known.key_names[0]}, or run `openclaw onboard`"
    else:
        payer = f"calls {target.base_url} without a key"
    return ModelChoice(ref, "configured", payer)


# -- looking ---------------------------------------------------------------------------------------


async def find_models(
    env: Mapping[str, str],
    *,
    providers: Sequence[KnownProvider] = PROVIDERS,
    timeout_s: float = PROBE_TIMEOUT_S,
) -> tuple[Found, ...]:
    """Everything within reach, best first (see `models.discovery.discover`). Run it beside the start."""
    async with aiohttp.ClientSession() as session:
        return await discover(env, session, providers=providers, timeout_s=timeout_s)
