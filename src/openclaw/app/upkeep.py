"""Upkeep of the store that an environment names: what it takes from the configuration.

Part of the composition root. The gateway does it beside its turns; offline commands
do it while they hold the lock of the state directory (`offline`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from openclaw.config import views
from openclaw.config.agent_view import agent_ids, default_agent_id
from openclaw.config.credentials import secrets
from openclaw.config.load import LoadedConfig, session_store_path, state_dir
from openclaw.config.schema import Config
from openclaw.domain.keys import valid_agent_id
from openclaw.store.archiving import ArchivePlace
from openclaw.store.backup import create_backup
from openclaw.store.database import Database
from openclaw.store.manifest import Manifest, Progress
from openclaw.store.retention import sqlite_used_bytes
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.upkeep import Ground

ARCHIVE_FOLDER = "archive"


def ground_of(
    in_force: Callable[[], LoadedConfig], env: Mapping[str, str], database: Database, shown_store: str
) -> Ground:
    """What upkeep needs; `in_force` is asked anew each time, so that a reload counts."""

    def place(session_key: str) -> ArchivePlace:
        return archive_place(in_force().config, env, session_key)

    async def copy(folder: Path, now_ms: int, progress: Progress) -> Manifest:
        assert isinstance(database, SqliteDatabase)
        return await create_backup(database, folder, now_ms=now_ms, progress=progress)

    is_file = isinstance(database, SqliteDatabase)
    return Ground(
        retention=lambda: views.retention(in_force().config),
        archive_place=place,
        workspace=lambda agent_id: workspace_of(in_force().config, agent_id, env),
        secrets=lambda: secrets(in_force().config, in_force().referenced_secrets),
        keys=lambda: views.key_settings(in_force().config),
        default_agent=lambda: default_agent_id(in_force().config),
        shown_store=shown_store,
        copy=copy if is_file else None,
        # A PostgreSQL server gives no space back by itself, so a budget would take everything.
        used_bytes=sqlite_used_bytes if is_file else None,
        dm_scope=lambda: in_force().config.session.dm_scope or "main",
    )


def archive_place(config: Config, env: Mapping[str, str], session_key: str) -> ArchivePlace:
    """Where the archives of a session go: where `session.store` says, else one folder for all (DB-5)."""
    parts = session_key.split(":", 2)
    named = len(parts) == 3 and parts[0] == "agent" and valid_agent_id(parts[1])
    agent_id = parts[1] if named else default_agent_id(config)
    if config.session.store is None:
        folder = state_dir(env) / ARCHIVE_FOLDER
    else:
        folder = session_store_path(config, agent_id, env).parent
    return ArchivePlace(folder, workspace_of(config, agent_id, env))


def workspace_of(config: Config, agent_id: str, env: Mapping[str, str]) -> str:
    """The working directory that the first line of a transcript names."""
    known = agent_id in agent_ids(config)
    return str(views.agent(config, agent_id, env).workspace if known else state_dir(env))
