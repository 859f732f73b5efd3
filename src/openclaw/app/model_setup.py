"""Write a choice of model into the config file: one change, validated, all or nothing.

Used by the commands that ask a person. Testing a choice is `check_target`'s work;
whether to go on after a failed test is the person's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import aiohttp
from msgspec import Struct

from openclaw.config.agents_section import ModelChoiceConfig
from openclaw.config.edit import patch, set_value
from openclaw.config.load import LoadedConfig, config_invalid, config_path, load
from openclaw.config.schema import Config
from openclaw.config.write import write_config
from openclaw.engine.ports import ModelTarget
from openclaw.errors import InvalidRequest, StoreReadOnly
from openclaw.models.catalog import build_models, pick_model
from openclaw.models.checking import CheckResult, check_model


class ModelSetup(Struct, frozen=True, kw_only=True):
    """What to write. Empty fields are left as they are in the file.

    `api_key` may be a reference such as `${ANTHROPIC_API_KEY}`; `listed` is the
    entry of the provider's model list, for a model whose figures nobody publishes.
    """

    provider: str
    model: str
    api: str = ""
    base_url: str = ""
    api_key: str = ""
    listed: Mapping[str, Any] | None = None

    @property
    def ref(self) -> str:
        return f"{self.provider}/{self.model}"

    def __repr__(self) -> str:
        # A key must not reach a log by way of a traceback.
        return f"ModelSetup({self.ref}, api={self.api!r}, base_url={self.base_url!r})"


def load_for_change(env: Mapping[str, str]) -> LoadedConfig:
    """The config to change. Raises ConfigInvalid for one with mistakes: they come first."""
    loaded = load(config_path(env), env)
    if loaded.problems:
        raise config_invalid(loaded.problems)
    return loaded


def write_setup(loaded: LoadedConfig, setup: ModelSetup, env: Mapping[str, str]) -> LoadedConfig:
    """Make this the model of every agent that has none of its own. The file becomes private (0600)."""
    changes: dict[str, Any] = {"agents": {"defaults": {"model": _choice(loaded.config, setup.ref)}}}
    written = {"baseUrl": setup.base_url, "api": setup.api, "apiKey": setup.api_key}
    provider = {name: value for name, value in written.items() if value}
    if provider:
        changes["models"] = {"providers": {setup.provider: provider}}
    text = _changed(loaded, partial(patch, _text_of(loaded), changes, env=env))
    known = loaded.config.models.providers.get(setup.provider)
    ids = [model.id for model in known.models] if known else []
    if setup.model not in ids and (setup.listed is not None or ids):
        place = ("models", "providers", setup.provider, "models", len(ids))
        entry = setup.listed or {"id": setup.model}
        text = _changed(loaded, partial(set_value, text, place, entry, env=env))
    return _write(loaded, text, env)


def write_agent_model(
    loaded: LoadedConfig, ref: str, agent_id: str | None, env: Mapping[str, str]
) -> LoadedConfig:
    """Set the model of one agent, or of all that have none of their own."""
    if agent_id is None:
        changes = {"agents": {"defaults": {"model": _choice(loaded.config, ref)}}}
        return _write(loaded, _changed(loaded, partial(patch, _text_of(loaded), changes, env=env)), env)
    listed = [agent.id.lower() for agent in loaded.config.agents.list]
    wanted = agent_id.strip().lower()
    if wanted not in listed:
        known = ", ".join(listed) or "none is listed, so leave --agent out"
        raise InvalidRequest(f"no agent {agent_id[:80]!r} in agents.list; there are: {known}")
    at = listed.index(wanted)
    own = loaded.config.agents.list[at].model
    path = f"agents.list[{at}].model" + (".primary" if isinstance(own, ModelChoiceConfig) else "")
    return _write(loaded, _changed(loaded, partial(set_value, loaded.raw_text, path, ref, env=env)), env)


def _choice(config: Config, ref: str) -> Any:
    """The value of `agents.defaults.model`; fallbacks that stand there stay."""
    has_fallbacks = isinstance(config.agents.defaults.model, ModelChoiceConfig)
    return {"primary": ref} if has_fallbacks else ref


def _text_of(loaded: LoadedConfig) -> str:
    """The text to change; a file that is missing or blank is an empty object."""
    return loaded.raw_text if loaded.raw_text.strip() else "{}\n"


def _changed(loaded: LoadedConfig, change: Callable[[], str]) -> str:
    try:
        return change()
    except ValueError as error:
        raise InvalidRequest(f"cannot change {loaded.path}: {error}") from None


def _write(loaded: LoadedConfig, text: str, env: Mapping[str, str]) -> LoadedConfig:
    try:
        return write_config(loaded.path, text, env, expected_hash=loaded.hash)
    except OSError as error:
        raise StoreReadOnly(
            f"cannot write {loaded.path}: {error.strerror}. "
            "Make its directory writable, or set OPENCLAW_STATE_DIR to one that is.",
            path=str(loaded.path),
        ) from error


# -- testing ---------------------------------------------------------------------------------------


async def check_target(target: ModelTarget) -> CheckResult:
    """One tiny call to a model, whatever it speaks."""
    async with aiohttp.ClientSession() as session:
        model = pick_model(build_models(session), target)
        return await check_model(model, target, now_ms=time.time_ns() // 1_000_000, monotonic=time.monotonic)
