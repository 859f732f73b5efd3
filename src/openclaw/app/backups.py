"""Backups from the command line: find the store that the environment names, hold its lock, do it.

Nothing here opens a database that a gateway uses: the lock is taken first, or the
command refuses and says what to do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from openclaw.app.offline import database_path, offline_database
from openclaw.config.load import config_invalid, config_path, load
from openclaw.config.schema import Config
from openclaw.errors import InvalidRequest, StoreLocked
from openclaw.store.backup import Manifest, Progress, Restored, create_backup, restore_backup, verify_backup

__all__ = ["Manifest", "Restored", "make_backup", "put_back", "verify_backup"]


def make_backup(folder: Path, *, env: Mapping[str, str], progress: Progress) -> Manifest:
    """Back the store of this environment up into a folder. Refuses while a gateway runs."""
    path = database_path(env)
    if not path.exists():
        raise InvalidRequest(f"there is no store to back up: {path} does not exist")
    return asyncio.run(_make(folder, _config(env), env, progress))


async def _make(folder: Path, config: Config, env: Mapping[str, str], progress: Progress) -> Manifest:
    async with offline_database(config, env, doing="a backup") as database:
        return await create_backup(database, folder, now_ms=_now_ms(), progress=progress)


def put_back(folder: Path, *, env: Mapping[str, str], force: bool) -> Restored:
    """Restore a backup into the place that this environment names. Refuses while a gateway runs."""
    path = database_path(env)
    url = _config(env).store.url
    if url is not None and not url.startswith("sqlite://"):
        raise InvalidRequest("store.url names another database; this restores the SQLite store only")
    try:
        return restore_backup(folder, path, now_ms=_now_ms(), force=force)
    except StoreLocked as refusal:
        owner = refusal.fields.get("owner")
        raise StoreLocked(
            f"a gateway is running{f' (process {owner})' if owner else ''} and owns {path.parent}; "
            "a restore needs the store for itself. Stop the gateway, then run this command again.",
            **refusal.fields,
        ) from refusal


def _config(env: Mapping[str, str]) -> Config:
    loaded = load(config_path(env), env)
    if loaded.problems:
        raise config_invalid(loaded.problems)
    return loaded.config


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
