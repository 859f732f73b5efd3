"""Which models there are: from a reference such as `openai/gpt-5` to a target, from an API to its adapter.

It reads no configuration file; `app` turns the configuration into `ProviderInfo`
values and hands them in, and the environment is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import aiohttp
from msgspec import Struct
from msgspec.structs import replace

from openclaw.engine.ports import Model, ModelPrice, ModelTarget
from openclaw.errors import InvalidRequest
from openclaw.models import anthropic_messages, offline, openai_chat
from openclaw.models.known import (
    PROVIDERS,
    KnownModel,
    address_in_environment,
    key_in_environment,
    known_model,
    known_provider,
)

OFFLINE_PROVIDER = "offline"
OFFLINE_REF = "offline/offline"
FREE = ModelPrice(0.0, 0.0, 0.0, 0.0)

# api name -> how to build its adapter. The only place that lists them.
ADAPTERS: Mapping[str, Callable[[aiohttp.ClientSession], Model]] = {
    openai_chat.API: openai_chat.OpenAIChatModel,
    anthropic_messages.API: anthropic_messages.AnthropicModel,
    offline.API: lambda _session: offline.OfflineModel(),
}

_MAX_REF_CHARS = 256
_SHOWN_CHARS = 80
_SHOWN_NAMES = 20
_DEFAULTS = ModelTarget(provider="", model="", api="")


class ModelInfo(Struct, frozen=True, kw_only=True):
    """One configured model of a provider; None where the default of `ModelTarget` holds."""

    id: str
    api: str | None = None
    context_window: int | None = None
    max_tokens: int | None = None
    reasoning: bool = False
    price: ModelPrice = ModelPrice()
    images: bool = True


class ProviderInfo(Struct, frozen=True, kw_only=True):
    """One configured provider. Without `models`, or with `open`, any model name is accepted.

    An empty `api` or `base_url` means that of the known provider of this name.
    """

    api: str = ""
    base_url: str = ""
    api_key: str = ""
    models: tuple[ModelInfo, ...] = ()
    open: bool = False

    def __repr__(self) -> str:
        # A key must not reach a log by way of a traceback.
        names = ", ".join(model.id for model in self.models)
        return f"ProviderInfo(api={self.api!r}, base_url={self.base_url!r}, models=[{names}])"


def with_environment(
    providers: Mapping[str, ProviderInfo], env: Mapping[str, str]
) -> dict[str, ProviderInfo]:
    """The configured providers and those that need no configuration, with keys from the environment.

    A key of the environment goes to the provider's own address only: whoever
    configured another one has to configure the key that belongs to it.
    """
    merged = dict(providers)
    for known in PROVIDERS:
        info = merged.get(known.name, ProviderInfo())
        name = key_in_environment(known, env)
        if name is not None and not info.api_key and info.base_url in ("", known.base_url):
            info = replace(info, api_key=env[name].strip())
        if known.is_local and not info.base_url:
            info = replace(info, base_url=address_in_environment(known, env))
        merged[known.name] = info
    return merged


def resolve_target(ref: str, providers: Mapping[str, ProviderInfo]) -> ModelTarget:
    """The model that `provider/model` names. Raises InvalidRequest that says what would be accepted.

    The first slash divides: model names may hold more of them. `offline` is
    always there, unless a configured provider takes its name.
    """
    provider_name, model_name = _split_ref(ref)
    provider = providers.get(provider_name)
    known = known_provider(provider_name)
    if provider is None:
        if provider_name == OFFLINE_PROVIDER:
            return ModelTarget(provider=OFFLINE_PROVIDER, model=model_name, api=offline.API, price=FREE)
        if known is None:
            names = _listed([*providers, OFFLINE_PROVIDER])
            raise InvalidRequest(f"unknown model provider {_shown(provider_name)}; configured: {names}")
        provider = ProviderInfo()
    info = _find_model(provider_name, provider, model_name)
    target = ModelTarget(
        provider=provider_name,
        model=model_name,
        api=info.api or provider.api or (known.api if known else openai_chat.API),
        base_url=provider.base_url or (known.base_url if known else ""),
        api_key=provider.api_key,
        context_window=info.context_window or _DEFAULTS.context_window,
        max_tokens=info.max_tokens or _DEFAULTS.max_tokens,
        reasoning=info.reasoning,
        price=info.price,
        images=info.images,
    )
    require_supported(target)
    if not target.base_url and target.api != offline.API:
        raise InvalidRequest(
            f"provider {_shown(provider_name)} has no base URL; set models.providers.{provider_name}.baseUrl"
        )
    return target


def build_models(session: aiohttp.ClientSession) -> dict[str, Model]:
    """One adapter per API, all over one HTTP session, which stays the caller's to close."""
    return {api: build(session) for api, build in ADAPTERS.items()}


def pick_model(models: Mapping[str, Model], target: ModelTarget) -> Model:
    """The adapter for a target. Raises InvalidRequest that lists the supported APIs."""
    model = models.get(target.api)
    if model is None:
        raise _unsupported(target, list(models))
    return model


def require_supported(target: ModelTarget) -> None:
    """Raise InvalidRequest when no adapter speaks the target's API."""
    if target.api not in ADAPTERS:
        raise _unsupported(target, list(ADAPTERS))


def _unsupported(target: ModelTarget, supported: list[str]) -> InvalidRequest:
    return InvalidRequest(
        f"model API {_shown(target.api)} of provider {_shown(target.provider)} is not supported; "
        f"supported: {_listed(supported)}"
    )


def _split_ref(ref: str) -> tuple[str, str]:
    if len(ref) > _MAX_REF_CHARS:
        raise InvalidRequest(f"model reference is longer than {_MAX_REF_CHARS} characters")
    if ref.strip() == OFFLINE_PROVIDER:
        ref = OFFLINE_REF
    provider, slash, model = ref.strip().partition("/")
    if not (provider and slash and model) or not ref.strip().isprintable():
        raise InvalidRequest(f"model reference {_shown(ref)} is not of the form provider/model")
    return provider, model


def _find_model(provider_name: str, provider: ProviderInfo, model_name: str) -> ModelInfo:
    published = known_model(provider_name, model_name)
    for info in provider.models:
        if info.id == model_name:
            return info if published is None else _completed(info, published)
    if published is not None:
        return _completed(ModelInfo(id=model_name), published)
    if provider.open or not provider.models:
        return ModelInfo(id=model_name)
    known = _listed([info.id for info in provider.models])
    raise InvalidRequest(
        f"provider {_shown(provider_name)} has no model {_shown(model_name)}; configured: {known}"
    )


def _completed(info: ModelInfo, published: KnownModel) -> ModelInfo:
    """What the configuration leaves open, as it is published."""
    return replace(
        info,
        context_window=info.context_window or published.context_window,
        max_tokens=info.max_tokens or published.max_tokens,
        reasoning=info.reasoning or published.reasoning,
        price=published.price if info.price == ModelPrice() else info.price,
    )


def _shown(name: str) -> str:
    """A name as an error message shows it: quoted, escaped, short."""
    shown = name if len(name) <= _SHOWN_CHARS else name[:_SHOWN_CHARS] + "…"
    return ascii(shown) if not shown.isprintable() else repr(shown)


def _listed(names: list[str]) -> str:
    more = f", and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(sorted(names)[:_SHOWN_NAMES]) + more
