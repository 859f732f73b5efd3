"""Which models are within reach without configuration: keys in the environment, servers on this machine.

Looks and tells, as a list of values; choosing one and writing it down are done
elsewhere. No key is sent anywhere by looking, and only loopback is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import aiohttp
import msgspec
from msgspec import Struct

from openclaw.domain.doortext import clean_text
from openclaw.models.known import PROVIDERS, KnownProvider, address_in_environment, key_in_environment

PROBE_TIMEOUT_S = 1.0
_MAX_BODY_BYTES = 1024 * 1024
_MAX_MODELS = 200
_MAX_NAME_CHARS = 200
# Not every model that a server holds can talk.
_NOT_FOR_CHAT = ("embed", "rerank", "whisper", "tts")


class FoundModel(Struct, frozen=True):
    """A model that a server offers; `context_window` None where it does not say."""

    name: str
    context_window: int | None = None


class Found(Struct, frozen=True, kw_only=True):
    """A provider within reach. `where` is the variable that holds its key, or the address of the server."""

    provider: str
    title: str
    source: Literal["environment", "local"]
    where: str
    models: tuple[FoundModel, ...]

    @property
    def ref(self) -> str:
        """The model that this provider would be used with."""
        return f"{self.provider}/{self.models[0].name}"

    @property
    def payer(self) -> str:
        """Whose money a call costs."""
        if self.source == "local":
            return "nobody's money: it runs on this machine"
        return f"the {self.title} account behind {self.where} pays"


async def discover(
    env: Mapping[str, str],
    session: aiohttp.ClientSession,
    *,
    providers: Sequence[KnownProvider] = PROVIDERS,
    timeout_s: float = PROBE_TIMEOUT_S,
) -> tuple[Found, ...]:
    """Everything within reach, best first: keys before local servers, each in the order of the table.

    Servers are asked all at once and get `timeout_s` together. Never raises for what it finds.
    """
    probes = [
        _probe(provider, address_in_environment(provider, env), session, timeout_s)
        for provider in providers
        if provider.is_local
    ]
    answers = await asyncio.gather(*probes)
    return (*found_in_environment(env, providers), *(found for found in answers if found is not None))


def found_in_environment(
    env: Mapping[str, str], providers: Sequence[KnownProvider] = PROVIDERS
) -> tuple[Found, ...]:
    """The providers whose key is in the environment; needs no network."""
    found: list[Found] = []
    for provider in providers:
        name = key_in_environment(provider, env)
        if name is not None and provider.default_model:
            others = [model for model in provider.models if model != provider.default_model]
            models = tuple(FoundModel(model) for model in (provider.default_model, *others))
            found.append(_found(provider, "environment", name, models))
    return tuple(found)


def _found(
    provider: KnownProvider,
    source: Literal["environment", "local"],
    where: str,
    models: tuple[FoundModel, ...],
) -> Found:
    return Found(provider=provider.name, title=provider.title, source=source, where=where, models=models)


async def _probe(
    provider: KnownProvider, base_url: str, session: aiohttp.ClientSession, timeout_s: float
) -> Found | None:
    """What a local server offers; None when nothing, or something else, answers there."""
    try:
        async with asyncio.timeout(timeout_s):
            # A redirect would leave this machine.
            async with session.get(base_url + "/models", allow_redirects=False) as response:
                if response.status != 200:
                    return None
                body = await response.content.read(_MAX_BODY_BYTES)
                while len(body) < _MAX_BODY_BYTES and not response.content.at_eof():
                    body += await response.content.read(_MAX_BODY_BYTES - len(body))
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
        return None
    models = read_models(body)
    return _found(provider, "local", base_url, models) if models else None


def read_models(body: bytes) -> tuple[FoundModel, ...]:
    """The models in an answer of `/v1/models`; none when it is anything else."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ()
    listed = decoded.get("data") if isinstance(decoded, dict) else None
    if not isinstance(listed, list):
        return ()
    models = [_read_model(item) for item in listed[:_MAX_MODELS]]
    return tuple(model for model in models if model is not None)


def _read_model(item: Any) -> FoundModel | None:
    name = item.get("id") if isinstance(item, dict) else None
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME_CHARS or clean_text(name) != name:
        return None
    if not name.isprintable() or any(word in name.lower() for word in _NOT_FOR_CHAT):
        return None
    meta = item.get("meta")
    places = [item, meta if isinstance(meta, dict) else {}]
    fields = ("max_model_len", "context_length", "max_context_length", "n_ctx", "n_ctx_train")
    sizes = (place.get(field) for field in fields for place in places)
    window = next((size for size in sizes if type(size) is int and size > 0), None)
    return FoundModel(name, window)
