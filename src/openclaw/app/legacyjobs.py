"""Where scheduled jobs of the founding layout lie, and bringing them in while no gateway runs (DB-3)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from openclaw.app.offline import offline_store
from openclaw.app.settings import SettingsSource
from openclaw.config.load import LoadedConfig, state_dir
from openclaw.engine.cron import first_due
from openclaw.engine.settings import EngineSettings
from openclaw.errors import InvalidRequest, StoreCorrupt
from openclaw.store import jobs
from openclaw.store.database import Database, Transaction
from openclaw.store.jobs import StoredJob
from openclaw.store.legacy.jobs import JobsImported, read_jobs
from openclaw.store.legacy.marks import is_imported, mark_imported

JOBS_NAME = "cron/jobs.json"
IMPORT_COMMAND = "openclaw doctor --import-cron"


def jobs_file(env: Mapping[str, str]) -> Path:
    return state_dir(env) / "cron" / "jobs.json"


async def import_jobs(loaded: LoadedConfig, env: Mapping[str, str], path: Path | None = None) -> JobsImported:
    """Import a `jobs.json`; the one of the state directory unless another is named. It is only read.

    A job that the store knows by its id stays as it is there. One that is due never again, or whose
    agent does not exist, is left out with the reason.
    """
    source = path or jobs_file(env)
    try:
        data = await asyncio.to_thread(source.read_bytes)
    except FileNotFoundError:
        raise InvalidRequest(f"there are no jobs to import: {source} does not exist") from None
    except OSError as error:
        raise InvalidRequest(f"cannot read {source}: {error.strerror or error}") from error
    settings = SettingsSource(loaded.config, env).current()
    async with offline_store(loaded.config, env, doing="importing jobs", create=True) as database:
        try:
            return await _bring_in(database, source, data, settings)
        except StoreCorrupt as error:
            raise InvalidRequest(f"{source}: {error.message}; nothing was imported") from None


async def _bring_in(database: Database, source: Path, data: bytes, settings: EngineSettings) -> JobsImported:
    now_ms = time.time_ns() // 1_000_000
    read = read_jobs(data, default_agent=settings.default_agent, now_ms=now_ms)
    problems, ready = list(read.problems), list[StoredJob]()
    for job in read.jobs:
        try:
            ready.append(first_due(job, settings, now_ms))
        except InvalidRequest as error:
            problems.append(f"{job.name[:60]}: {error.message}")

    def unit(tx: Transaction) -> int:
        added = [stored for stored in ready if jobs.get(tx, stored.job.id) is None]
        for stored in added:
            jobs.put(tx, stored)
        mark_imported(tx, JOBS_NAME, data)
        return len(added)

    imported = await database.write(unit)
    found = len(read.jobs) + len(read.problems)
    return JobsImported(str(source), found, imported, len(ready) - imported, tuple(problems))


async def waiting_jobs(database: Database, env: Mapping[str, str]) -> str | None:
    """The file of the state directory when it holds jobs and was not imported as it is now; else None."""
    path = jobs_file(env)
    try:
        data = await asyncio.to_thread(path.read_bytes)
        read = read_jobs(data, default_agent="main", now_ms=0)
    except (OSError, StoreCorrupt):
        return None
    if not read.jobs or await database.read(lambda tx: is_imported(tx, JOBS_NAME, data)):
        return None
    return str(path)
