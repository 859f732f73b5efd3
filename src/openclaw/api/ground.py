"""From what a program passes as configuration to what a gateway starts on.

A mapping stays in memory: nothing is written, and a missing credential is made up for this
one process. A path, or nothing, means the same file that the command line uses.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openclaw.api.connection import Address
from openclaw.config.load import LoadedConfig, check_text, config_invalid, config_path
from openclaw.config.schema import Config
from openclaw.config.write import TOKEN_BYTES, ensure_token
from openclaw.errors import ConfigInvalid
from openclaw.protocol.frames import encode_json

ConfigSource = Mapping[str, Any] | str | os.PathLike[str] | None
_IN_MEMORY = "config"


def environment(
    config: ConfigSource, state_dir: str | os.PathLike[str] | None, env: Mapping[str, str] | None
) -> dict[str, str]:
    """The environment that the gateway sees: that of the process, or `env`, with the places filled in."""
    chosen = dict(os.environ if env is None else env)
    if state_dir is not None:
        chosen["OPENCLAW_STATE_DIR"] = str(Path(state_dir).absolute())
    if isinstance(config, str | os.PathLike):
        chosen["OPENCLAW_CONFIG_PATH"] = str(Path(config).absolute())
    return chosen


def load_config(config: ConfigSource, env: Mapping[str, str]) -> LoadedConfig:
    """The configuration to run on; raises ConfigInvalid with all its problems."""
    if not isinstance(config, Mapping):
        return ensure_token(config_path(env), env).loaded
    try:
        text = encode_json(_with_credential(config)).decode()
    except TypeError as error:
        raise ConfigInvalid(f"the configuration is not made of JSON values: {error}") from None
    checked = check_text(text, env, _IN_MEMORY)
    if checked.problems:
        raise config_invalid(checked.problems)
    return LoadedConfig(
        config=checked.config,
        problems=(),
        warnings=checked.warnings,
        raw_text=text,
        hash="",
        path=config_path(env),
        exists=False,
        references=checked.references,
        referenced_secrets=checked.referenced_secrets,
    )


def _with_credential(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same with a token where there is no credential. What is not an object is left to the checks."""
    gateway = config.get("gateway", {})
    auth = gateway.get("auth", {}) if isinstance(gateway, Mapping) else None
    if (
        not isinstance(auth, Mapping)
        or auth.get("token")
        or auth.get("password")
        or auth.get("mode") == "none"
    ):
        return dict(config)
    own = {**auth, "token": secrets.token_urlsafe(TOKEN_BYTES)}
    return {**config, "gateway": {**gateway, "auth": own}}


def own_address(config: Config, port: int) -> Address:
    """How a program reaches the gateway inside it."""
    gateway = config.gateway
    elsewhere = None if gateway.bind == "loopback" else gateway.custom_bind_host
    has_secret = gateway.auth.mode != "none"
    return Address(
        f"ws://127.0.0.1:{port}",
        token=gateway.auth.token if has_secret else None,
        password=gateway.auth.password if has_secret else None,
        dial_host=elsewhere,
    )
