"""What the configuration opens over HTTP, and where its secrets come from."""

from __future__ import annotations

import secrets

from openclaw.config.schema import Config
from openclaw.gateway.http.site import HttpSettings

SECRET_BYTES = 32


def http_settings(config: Config) -> HttpSettings:
    gateway = config.gateway
    return HttpSettings(
        chat_completions=gateway.http.endpoints.chat_completions.enabled,
        responses=gateway.http.endpoints.responses.enabled,
        tools_allow=tuple(gateway.tools.allow),
        tools_deny=tuple(gateway.tools.deny),
        page=gateway.control_ui.enabled,
    )


def new_secret() -> str:
    """256 random bits, fit for an address."""
    return secrets.token_urlsafe(SECRET_BYTES)
