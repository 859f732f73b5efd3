"""`models.*`: where models are reached, with which key, and what they cost."""

from __future__ import annotations

from typing import Literal

import msgspec

from openclaw.config.values import Positive, Secret, Section, Text, Usd

# Providers that need no entry in the file; a model reference may name them at once.
BUILT_IN_PROVIDERS = frozenset(
    {"anthropic", "openai", "openrouter", "ollama", "llamacpp", "lmstudio", "vllm", "offline"}
)


class ModelCostConfig(Section, frozen=True):
    """US dollars per million tokens (ANN-6)."""

    input: Usd = 0.0
    output: Usd = 0.0
    cache_read: Usd = 0.0
    cache_write: Usd = 0.0


class ModelConfig(Section, frozen=True):
    """One model of a provider. Without `cost` its price is unknown, which is not the same as free."""

    id: Text
    name: Text | None = None
    context_window: Positive | None = None
    max_tokens: Positive | None = None
    reasoning: bool = False
    input: tuple[Literal["text", "image"], ...] = ("text",)
    cost: ModelCostConfig | None = None


class ProviderConfig(Section, frozen=True):
    base_url: Text | None = None
    api_key: Secret | None = None
    api: Literal["openai-completions", "openai-responses", "anthropic-messages"] | None = None
    models: tuple[ModelConfig, ...] = ()


class ModelsConfig(Section, frozen=True):
    providers: dict[str, ProviderConfig] = msgspec.field(default_factory=dict)
