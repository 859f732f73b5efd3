"""The providers that need no configuration beyond a key, or a server that runs: facts, no decisions.

Figures and prices are those that the providers publish; what the configuration
says about a model always wins. A model that is not listed works too, with its
price unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from openclaw.engine.ports import ModelPrice

OPENAI_CHAT = "openai-completions"
ANTHROPIC_MESSAGES = "anthropic-messages"


class KnownModel(Struct, frozen=True, kw_only=True):
    """What is known of a model; dated names such as `gpt-5.5-2026-04-23` are the same model."""

    context_window: int
    max_tokens: int
    reasoning: bool = True
    price: ModelPrice = ModelPrice()


class KnownProvider(Struct, frozen=True, kw_only=True):
    """Where a provider is. `key_names` are the environment variables that may hold its key, best first.

    `port` marks a server on this machine, which costs nothing and needs no key.
    """

    name: str
    title: str
    base_url: str
    api: str = OPENAI_CHAT
    key_names: tuple[str, ...] = ()
    default_model: str = ""
    models: Mapping[str, KnownModel] = {}
    port: int = 0
    # The variable with which the server itself is told where to listen, if it has one.
    host_name: str = ""

    @property
    def is_local(self) -> bool:
        return self.port != 0


def _claude(input_price: float, output_price: float, window: int = 1_000_000) -> KnownModel:
    """Claude's prices follow from two: a cache read costs a tenth of the input, a write a quarter more."""
    price = ModelPrice(input_price, output_price, input_price / 10, input_price * 1.25)
    # More than a chat needs, and less than the longest answer: thoughts count as output too.
    return KnownModel(context_window=window, max_tokens=32_000, price=price)


_CLAUDE = {
    "claude-fable-5-1": _claude(10, 50),
    "claude-opus-5-5": _claude(4, 20),
    "claude-opus-5": _claude(5, 25),
    "claude-sonnet-5-5": _claude(2, 10),
    "claude-sonnet-5": _claude(2, 10),
    "claude-haiku-4-5": _claude(1, 5, 200_000),
}
_GPT = {
    "gpt-5.5": KnownModel(context_window=1_000_000, max_tokens=32_000, price=ModelPrice(5, 30)),
    "gpt-5.4": KnownModel(context_window=1_000_000, max_tokens=32_000, price=ModelPrice(2.5, 15)),
}

PROVIDERS: tuple[KnownProvider, ...] = (
    KnownProvider(
        name="anthropic",
        title="Anthropic",
        base_url="https://api.anthropic.com",
        api=ANTHROPIC_MESSAGES,
        key_names=("ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN"),
        default_model="claude-sonnet-5-5",
        models=_CLAUDE,
    ),
    KnownProvider(
        name="openai",
        title="OpenAI",
        base_url="https://api.openai.com/v1",
        key_names=("OPENAI_API_KEY",),
        default_model="gpt-5.5",
        models=_GPT,
    ),
    KnownProvider(
        name="openrouter",
        title="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        key_names=("OPENROUTER_API_KEY",),
        default_model="openrouter/auto",
    ),
    KnownProvider(
        name="ollama",
        title="Ollama",
        base_url="http://127.0.0.1:11434/v1",
        port=11434,
        host_name="OLLAMA_HOST",
    ),
    KnownProvider(name="lmstudio", title="LM Studio", base_url="http://127.0.0.1:1234/v1", port=1234),
    KnownProvider(name="llamacpp", title="llama.cpp", base_url="http://127.0.0.1:8080/v1", port=8080),
    KnownProvider(name="vllm", title="vLLM", base_url="http://127.0.0.1:8000/v1", port=8000),
)

_BY_NAME = {provider.name: provider for provider in PROVIDERS}


def known_provider(name: str) -> KnownProvider | None:
    return _BY_NAME.get(name)


def known_model(provider: str, model: str) -> KnownModel | None:
    """What is published about a model, by its name or by the name before a date."""
    known = _BY_NAME.get(provider)
    if known is None:
        return None
    found = known.models.get(model)
    if found is not None:
        return found
    return next((facts for name, facts in known.models.items() if _is_dated(model, name)), None)


def _is_dated(model: str, name: str) -> bool:
    date = model.removeprefix(name + "-").replace("-", "")
    return model.startswith(name + "-") and len(date) == 8 and date.isascii() and date.isdigit()


def address_in_environment(provider: KnownProvider, env: Mapping[str, str]) -> str:
    """Where a local server is: as its own variable says, on this machine, else at its usual port."""
    written = env.get(provider.host_name, "").strip() if provider.host_name else ""
    try:
        parts = urlsplit(written if "://" in written else f"http://{written}")
        host, port = parts.hostname or "", parts.port or provider.port
    except ValueError:
        return provider.base_url
    if host in ("0.0.0.0", "::", "localhost"):
        host = "127.0.0.1"
    # A name of another machine is for its owner to configure: conversations would go there.
    return f"http://{host}:{port}/v1" if host.startswith("127.") else provider.base_url


def key_in_environment(provider: KnownProvider, env: Mapping[str, str]) -> str | None:
    """The name of the variable that holds a key for this provider, if one does."""
    return next((name for name in provider.key_names if env.get(name, "").strip()), None)
