"""How servers of the chat-completions wire differ in what they are asked. Pure; requests are made next door.

The address decides where it can, the provider's name where the address may be
anything. What is not known here gets the plain wire that everybody understands.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from openclaw.engine.ports import ModelTarget

_OPENAI_HOST = "api.openai.com"
_OPENROUTER_HOST = "openrouter.ai"

# Only words that every reasoning model on this wire accepts; "adaptive" leaves the choice to the provider.
_EFFORTS = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
# This one translates every level into what the model behind it understands.
_OPENROUTER_EFFORTS = {
    "off": "none",
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "xhigh",
}
# Servers whose models think unless they are told not to, and how they are told.
_OFF_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "ollama": {"reasoning_effort": "none"},
    "vllm": {"chat_template_kwargs": {"enable_thinking": False}},
    "llamacpp": {"chat_template_kwargs": {"enable_thinking": False}},
}


def max_tokens_field(target: ModelTarget) -> str:
    """OpenAI itself refuses the old name on its newer models; most others know only the old name."""
    return "max_completion_tokens" if _host(target) == _OPENAI_HOST else "max_tokens"


def reasoning_fields(target: ModelTarget, level: str | None) -> dict[str, Any]:
    """What asks for a thinking level; nothing for a model that does not reason."""
    if level is None or not target.reasoning:
        return {}
    if _host(target) == _OPENROUTER_HOST:
        effort = _OPENROUTER_EFFORTS.get(level)
        return {} if effort is None else {"reasoning": {"effort": effort}}
    if level == "off":
        return dict(_OFF_FIELDS.get(target.provider, {}))
    effort = _EFFORTS.get(level)
    return {} if effort is None else {"reasoning_effort": effort}


def extra_headers(target: ModelTarget) -> dict[str, str]:
    """How a service that asks who is calling is told."""
    return {"X-Title": "OpenClaw"} if _host(target) == _OPENROUTER_HOST else {}


def _host(target: ModelTarget) -> str:
    return _host_of(target.base_url)


@lru_cache(64)
def _host_of(base_url: str) -> str:
    try:
        return urlsplit(base_url.strip()).hostname or ""
    except ValueError:
        return ""
