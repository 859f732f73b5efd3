"""`gateway.*`, `logging` and `store`: how the process is reached, what it says, where it keeps state."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from openclaw.config.values import Milliseconds, PortNumber, Positive, Secret, Section, Text, Texts

DEFAULT_PORT = 18789

BindMode = Annotated[
    Literal["loopback", "lan", "custom"],
    Meta(
        extra={
            "aliases": {
                "auto": "loopback",
                "localhost": "loopback",
                "127.0.0.1": "loopback",
                "::1": "loopback",
                "0.0.0.0": "lan",
                "::": "lan",
            }
        }
    ),
]
StoreUrl = Annotated[
    str,
    Meta(
        pattern=r"^(?:sqlite|postgres|postgresql)://",
        extra={"expected": 'a URL that starts with "sqlite://" or "postgresql://"', "secret": True},
    ),
]


class AuthRateLimitConfig(Section, frozen=True):
    """Wrong secrets from one address: so many within the window shut it out for the lockout."""

    max_attempts: Positive = 10
    window_ms: Milliseconds = 60_000
    lockout_ms: Milliseconds = 300_000
    exempt_loopback: bool = True


class GatewayAuthConfig(Section, frozen=True):
    """Unset `mode`: the token when there is one, else the password."""

    mode: Literal["token", "password", "none"] | None = None
    token: Secret | None = None
    password: Secret | None = None
    rate_limit: AuthRateLimitConfig = AuthRateLimitConfig()

    @property
    def mode_in_force(self) -> Literal["token", "password", "none"]:
        return self.mode or ("token" if self.token or not self.password else "password")


class GatewayRemoteConfig(Section, frozen=True):
    url: Text | None = None
    token: Secret | None = None
    password: Secret | None = None


class GatewayReloadConfig(Section, frozen=True):
    mode: Literal["hybrid", "hot", "restart", "off"] = "hybrid"
    debounce_ms: Milliseconds = 300


class ControlUiConfig(Section, frozen=True):
    enabled: bool = True
    allowed_origins: Texts = ()


class HttpEndpointConfig(Section, frozen=True):
    enabled: bool = False


class HttpEndpointsConfig(Section, frozen=True):
    chat_completions: HttpEndpointConfig = HttpEndpointConfig()
    responses: HttpEndpointConfig = HttpEndpointConfig()


class GatewayHttpConfig(Section, frozen=True):
    endpoints: HttpEndpointsConfig = HttpEndpointsConfig()


class GatewayToolsConfig(Section, frozen=True):
    """What `POST /tools/invoke` opens and closes, beside the tool policy of the agent."""

    allow: Texts = ()
    deny: Texts = ()


class GatewayConfig(Section, frozen=True):
    mode: Literal["local", "remote"] = "local"
    port: PortNumber = DEFAULT_PORT
    bind: BindMode = "loopback"
    custom_bind_host: Text | None = None
    auth: GatewayAuthConfig = GatewayAuthConfig()
    remote: GatewayRemoteConfig = GatewayRemoteConfig()
    reload: GatewayReloadConfig = GatewayReloadConfig()
    allowed_hosts: Texts = ()
    control_ui: ControlUiConfig = ControlUiConfig()
    http: GatewayHttpConfig = GatewayHttpConfig()
    tools: GatewayToolsConfig = GatewayToolsConfig()


class LoggingConfig(Section, frozen=True):
    level: Literal["silent", "error", "warn", "info", "debug", "trace"] = "info"


class StoreConfig(Section, frozen=True):
    """Unset: the embedded database in the state directory (DB-5)."""

    url: StoreUrl | None = None
