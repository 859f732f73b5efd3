"""Which gateway a command talks to, and with which credential.

In this order: `--url`; OPENCLAW_GATEWAY_URL; `gateway.remote.url` in remote mode;
this machine, on OPENCLAW_GATEWAY_PORT or `gateway.port`. A credential never goes to
a place that it was not given for: a URL from a flag or from the environment gets
nothing from the config (CLI-5).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from openclaw.config.load import LoadedConfig, config_invalid, config_path, load
from openclaw.config.schema import Config
from openclaw.domain.hosts import is_loopback
from openclaw.errors import InvalidRequest

CredentialSource = Literal["flag", "env", "config", "remote", "none"]

URL_NAME = "OPENCLAW_GATEWAY_URL"
PORT_NAME = "OPENCLAW_GATEWAY_PORT"
TOKEN_NAME = "OPENCLAW_GATEWAY_TOKEN"
PASSWORD_NAME = "OPENCLAW_GATEWAY_PASSWORD"
_SCHEMES = {"ws": 80, "wss": 443}
_WEB_SCHEMES = {"http": "ws", "https": "wss"}


class Flags(Struct, frozen=True):
    """What the person wrote on the command line."""

    url: str | None = None
    token: str | None = None
    password: str | None = None


class Place(Struct, frozen=True):
    """Where to connect. `source` says whose credential it is, so that a refusal can name the fix."""

    url: str
    host: str
    port: int
    token: str | None = None
    password: str | None = None
    source: CredentialSource = "none"
    config_path: str = ""
    remote: bool = False

    @property
    def shown_url(self) -> str:
        """The URL without anything that may be secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{host}:{self.port}{parts.path.rstrip('/')}"

    @property
    def on_this_machine(self) -> bool:
        return is_loopback(self.host)


def find_place(flags: Flags, env: Mapping[str, str], *, tolerate_invalid: bool = False) -> Place:
    """The gateway to talk to. The config is read only when it decides something.

    Raises InvalidRequest for a bad URL or port, ConfigInvalid for a bad config; with
    `tolerate_invalid` what could be understood of the config is used (CFG-3).
    """
    if flags.url is not None:
        return _with_flags(place_at(flags.url, "--url"), flags)
    url = env.get(URL_NAME, "").strip()
    if url:
        return _with_flags(_with_environment(place_at(url, URL_NAME), env), flags)
    loaded = load(config_path(env), env)
    if loaded.problems and not tolerate_invalid:
        raise config_invalid(loaded.problems)
    return _with_flags(_with_environment(place_in_config(loaded, env), env), flags)


def place_in_config(loaded: LoadedConfig, env: Mapping[str, str]) -> Place:
    """What the config names, with the credential that belongs to it."""
    gateway = loaded.config.gateway
    path = str(loaded.path)
    if gateway.mode == "remote":
        if gateway.remote.url is None:
            raise InvalidRequest(
                f'gateway.mode is "remote" in {path}, but gateway.remote.url is not set; set it'
            )
        place = place_at(gateway.remote.url, f"gateway.remote.url in {path}")
        token, password = gateway.remote.token, gateway.remote.password
        source: CredentialSource = "remote"
    else:
        place = place_at(f"ws://127.0.0.1:{local_port(loaded.config, env)}", "the local gateway")
        token, password = _local_credential(loaded.config)
        source = "config"
    return replace(
        place,
        token=token,
        password=password,
        source=source if token or password else "none",
        config_path=path,
        remote=gateway.mode == "remote",
    )


def local_port(config: Config, env: Mapping[str, str]) -> int:
    """The port of the gateway of this machine."""
    written = env.get(PORT_NAME, "").strip()
    if not written:
        return config.gateway.port
    if not (written.isascii() and written.isdigit() and 1 <= int(written[:6]) <= 65535):
        raise InvalidRequest(f"{PORT_NAME} is not a port number between 1 and 65535: {written[:40]!r}")
    return int(written)


def _local_credential(config: Config) -> tuple[str | None, str | None]:
    """The one that the gateway of this config checks."""
    auth = config.gateway.auth
    if auth.mode_in_force == "password":
        return None, auth.password
    return (auth.token, None) if auth.mode_in_force == "token" else (None, None)


def _with_environment(place: Place, env: Mapping[str, str]) -> Place:
    token, password = env.get(TOKEN_NAME) or None, env.get(PASSWORD_NAME) or None
    if token is None and password is None:
        return place
    return replace(place, token=token, password=password, source="env")


def _with_flags(place: Place, flags: Flags) -> Place:
    if flags.token is None and flags.password is None:
        return place
    return replace(place, token=flags.token, password=flags.password, source="flag")


def place_at(url: str, name: str) -> Place:
    """A place without a credential. `name` is where the URL was written, for the message."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidRequest(f"{name} is not a URL; write it like ws://127.0.0.1:18789") from None
    scheme = _WEB_SCHEMES.get(parts.scheme.lower(), parts.scheme.lower())
    if scheme not in _SCHEMES or not host:
        raise InvalidRequest(f"{name} must start with ws:// or wss:// and name a host")
    whole = SplitResult(scheme, parts.netloc, parts.path, parts.query, "").geturl()
    return Place(url=whole, host=host, port=port or _SCHEMES[scheme])
