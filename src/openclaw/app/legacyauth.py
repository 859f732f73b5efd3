"""Bringing the keys of model providers from the founding layout into the configuration (DB-3)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from openclaw.config.agent_view import default_agent_id
from openclaw.config.edit import patch
from openclaw.config.legacy_auth import MAX_BYTES, ProviderKey, read_keys
from openclaw.config.load import LoadedConfig, state_dir
from openclaw.config.models_section import BUILT_IN_PROVIDERS
from openclaw.config.write import write_config
from openclaw.errors import InvalidRequest, StoreReadOnly

FILE_NAME = "auth-profiles.json"


class KeysImported(Struct, frozen=True, rename="camel"):
    """What became of the keys: the providers that have one now, and why others have none."""

    paths: tuple[str, ...]
    imported: tuple[str, ...]
    already: tuple[str, ...]
    problems: tuple[str, ...]


def auth_files(loaded: LoadedConfig, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Of the default agent first, then of the others, then the oldest place of all."""
    home = state_dir(env)
    agents = sorted(path for path in (home / "agents").glob(f"*/agent/{FILE_NAME}") if path.is_file())
    default = default_agent_id(loaded.config)
    agents.sort(key=lambda path: path.parent.parent.name.lower() != default)
    oldest = home / "agent" / FILE_NAME
    return (*agents, *([oldest] if oldest.is_file() else []))


def import_keys(loaded: LoadedConfig, env: Mapping[str, str]) -> KeysImported:
    """Write each provider's key into the config file, where it has none. The files are only read.

    One change, validated, all or nothing; the file becomes private (0600). A key that stands in the
    configuration wins, and of two files the first.
    """
    files = auth_files(loaded, env)
    if not files:
        raise InvalidRequest(f"there are no keys to import: no {FILE_NAME} in {state_dir(env)}")
    found: dict[str, ProviderKey] = {}
    problems: list[str] = []
    for path in files:
        keys, told = _read(path)
        problems += told
        for key in keys:
            if found.setdefault(key.provider, key).value != key.value:
                problems.append(f"{key.profile} in {path}: another file has another key for {key.provider}")
    providers = loaded.config.models.providers
    new: dict[str, str] = {}
    already: list[str] = []
    for name, key in found.items():
        known = providers.get(name)
        if known is not None and known.api_key is not None:
            already.append(name)
        elif known is None and name not in BUILT_IN_PROVIDERS:
            problems.append(f"{key.profile}: no provider {name[:80]!r} is configured; add it, then try again")
        else:
            new[name] = key.value
    if new:
        _write(loaded, new, env)
    return KeysImported(
        tuple(str(path) for path in files), tuple(sorted(new)), tuple(sorted(already)), tuple(problems)
    )


def _read(path: Path) -> tuple[tuple[ProviderKey, ...], list[str]]:
    try:
        with path.open("rb") as file:
            read = read_keys(file.read(MAX_BYTES + 1))
    except OSError as error:
        return (), [f"cannot read {path}: {error.strerror or error}"]
    except InvalidRequest as error:
        return (), [f"{path}: {error.message}"]
    return read.keys, list(read.problems)


def _write(loaded: LoadedConfig, keys: Mapping[str, str], env: Mapping[str, str]) -> None:
    changes = {"models": {"providers": {name: {"apiKey": value} for name, value in keys.items()}}}
    text = loaded.raw_text if loaded.raw_text.strip() else "{}\n"
    try:
        write_config(loaded.path, patch(text, changes, env=env), env, expected_hash=loaded.hash)
    except ValueError as error:
        raise InvalidRequest(f"cannot change {loaded.path}: {error}") from None
    except OSError as error:
        raise StoreReadOnly(f"cannot write {loaded.path}: {error.strerror}", path=str(loaded.path)) from error
