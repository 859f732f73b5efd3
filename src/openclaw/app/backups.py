"""Backups from the command line: find the store that the environment names, hold its lock, do it.

Nothing here opens a database that a gateway uses: the lock is taken first, or the
command refuses and says what to do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from openclaw.app.offline import database_path, is_sqlite, offline_upkeep
from openclaw.config.load import LoadedConfig, config_invalid, config_path, load
from openclaw.errors import InvalidRequest, StoreLocked
from openclaw.store.backup import Restored, restore_backup, verify_backup
from openclaw.store.manifest import Manifest, Progress
from openclaw.store.upkeep import NO_FILE

__all__ = ["Manifest", "Restored", "make_backup", "put_back", "verify_backup"]


def make_backup(folder: Path, *, env: Mapping[str, str], progress: Progress) -> Manifest:
    """Back the store of this environment up into a folder, without a gateway. Refuses while one runs."""
    loaded = _load(env)
    if is_sqlite(loaded.config) and not database_path(env).exists():
        raise InvalidRequest(f"there is no store to back up: {database_path(env)} does not exist")
    return asyncio.run(_make(folder, loaded, env, progress))


async def _make(folder: Path, loaded: LoadedConfig, env: Mapping[str, str], progress: Progress) -> Manifest:
    if not is_sqlite(loaded.config):
        raise InvalidRequest(NO_FILE)
    async with offline_upkeep(loaded, env, doing="a backup") as upkeep:
        return await upkeep.back_up(folder, progress, now_ms=_now_ms())


def put_back(folder: Path, *, env: Mapping[str, str], force: bool) -> Restored:
    """Restore a backup into the place that this environment names. Refuses while a gateway runs."""
    path = database_path(env)
    if not is_sqlite(_load(env).config):
        raise InvalidRequest(
            "store.url names a PostgreSQL database; a backup of a SQLite store cannot be restored into it. "
            "Restore a dump of pg_dump with pg_restore."
        )
    try:
        return restore_backup(folder, path, now_ms=_now_ms(), force=force)
    except StoreLocked as refusal:
        owner = refusal.fields.get("owner")
        raise StoreLocked(
            f"a gateway is running{f' (process {owner})' if owner else ''} and owns {path.parent}; "
            "a restore needs the store for itself. Stop the gateway, then run this command again.",
            **refusal.fields,
        ) from refusal


def _load(env: Mapping[str, str]) -> LoadedConfig:
    loaded = load(config_path(env), env)
    if loaded.problems:
        raise config_invalid(loaded.problems)
    return loaded


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
