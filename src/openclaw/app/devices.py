"""Where devices of the founding layout lie, and bringing them into the store while no gateway runs (DB-3)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from openclaw.app.offline import offline_store
from openclaw.config.load import LoadedConfig, state_dir
from openclaw.errors import InvalidRequest, StoreCorrupt
from openclaw.store.legacy.devices import DevicesImported, import_paired


def paired_file(env: Mapping[str, str]) -> Path:
    return state_dir(env) / "devices" / "paired.json"


async def import_devices(
    loaded: LoadedConfig, env: Mapping[str, str], path: Path | None = None
) -> DevicesImported:
    """Import a `paired.json`; the one of the state directory unless another is named. It is only read."""
    source = path or paired_file(env)
    try:
        data = await asyncio.to_thread(source.read_bytes)
    except FileNotFoundError:
        raise InvalidRequest(f"there are no devices to import: {source} does not exist") from None
    except OSError as error:
        raise InvalidRequest(f"cannot read {source}: {error.strerror or error}") from error
    async with offline_store(loaded.config, env, doing="importing devices", create=True) as database:
        try:
            return await import_paired(database, str(source), data)
        except StoreCorrupt as error:
            raise InvalidRequest(f"{source}: {error.message}; nothing was imported") from None
