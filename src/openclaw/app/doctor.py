"""What `openclaw doctor` does with sessions: import the founding layout, check the import, mend the file.

Works only while no gateway runs, and says so otherwise (CLI-10). Also the place of the
rule that a gateway does not start beside a history that it does not know (DB-6).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from openclaw.app.offline import database_path, is_sqlite, offline_store, shown_place
from openclaw.config import views
from openclaw.config.agent_view import agent_ids, default_agent_id
from openclaw.config.load import LoadedConfig, session_store_path, state_dir
from openclaw.config.schema import Config
from openclaw.domain.keys import valid_agent_id
from openclaw.errors import InvalidRequest, StoreCorrupt, Unavailable
from openclaw.store.database import Database
from openclaw.store.legacy import writing
from openclaw.store.legacy.importing import LegacyImport, Outcome, outcome_of
from openclaw.store.legacy.planning import ImportPlan, LegacyStore, make_plan
from openclaw.store.legacy.reading import hash_of_file
from openclaw.store.salvage import Compacted, Recovered, compact, recover

Mode = Literal["inspect", "dry-run", "import", "validate"]
IMPORT_COMMAND = "openclaw doctor --session-sqlite import --session-sqlite-all-agents"
_EMPTY = (b"", b"{}")


class SqliteReport(Struct, frozen=True, rename="camel"):
    """The result of one `--session-sqlite` mode."""

    mode: Mode
    ok: bool
    database: str
    stores: tuple[Outcome, ...]
    took_ms: int


class ProgressFeed(Struct, frozen=True):
    """Hears how much there is to do, and then each piece that is done; both in bytes."""

    start: Callable[[int], None] = lambda _total: None
    advance: Callable[[int], None] = lambda _count: None


SILENT = ProgressFeed()


# -- where the founding layout lies ----------------------------------------------------------------


def legacy_stores(
    config: Config, env: Mapping[str, str], agent_id: str | None = None
) -> tuple[LegacyStore, ...]:
    """Folders with an index or a transcript in them: of configured agents and of those found on disk."""
    template = config.session.store
    if template is not None and "{agentId}" not in template:
        names = [default_agent_id(config)]
    else:
        folder = state_dir(env) / "agents"
        on_disk = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        names = list(dict.fromkeys((*agent_ids(config), *on_disk)))
    stores: dict[Path, LegacyStore] = {}
    for name in names:
        wanted = agent_id is None or name.lower() == agent_id.strip().lower()
        if wanted and valid_agent_id(name.lower()):
            store = LegacyStore(name.lower(), session_store_path(config, name, env))
            if _holds_anything(store):
                stores.setdefault(store.index_path, store)
    return tuple(stores.values())


def _holds_anything(store: LegacyStore) -> bool:
    return store.index_path.is_file() or _has_transcripts(store)


def _has_transcripts(store: LegacyStore) -> bool:
    return next(store.folder.glob("*.jsonl"), None) is not None if store.folder.is_dir() else False


# -- the rule at start-up --------------------------------------------------------------------------


async def refuse_unimported(database: Database, config: Config, env: Mapping[str, str]) -> None:
    """Raise Unavailable, naming the command, when there is a legacy store that was not imported (DB-6)."""
    for store in await asyncio.to_thread(legacy_stores, config, env):
        if await is_unimported(database, store):
            raise Unavailable(
                f"{store.index_path} holds sessions of an earlier layout that were not imported; starting "
                f"without them would look like lost history. Import them with: {IMPORT_COMMAND}",
                path=str(store.index_path),
            )


async def is_unimported(database: Database, store: LegacyStore) -> bool:
    """By size and time where they say enough, by content otherwise."""
    path = store.index_path
    if not path.is_file():
        return False
    row = await database.read(lambda tx: writing.find_import(tx, store.agent_id, path.name))
    stat = path.stat()
    if row is not None and (row.size, row.changed_ns) == (stat.st_size, stat.st_mtime_ns):
        return False
    if row is not None and await asyncio.to_thread(hash_of_file, path) == row.hash:
        return False
    is_empty = stat.st_size <= 64 and path.read_bytes().strip() in _EMPTY
    return not is_empty or (row is None and _has_transcripts(store))


# -- the modes -------------------------------------------------------------------------------------


async def session_sqlite(
    mode: Mode,
    loaded: LoadedConfig,
    env: Mapping[str, str],
    agent_id: str | None = None,
    progress: ProgressFeed = SILENT,
    stores: Sequence[LegacyStore] | None = None,
) -> SqliteReport:
    """Run one mode over the stores of one agent, or of all; or over `stores` that lie elsewhere."""
    began = time.monotonic()
    async with offline_store(
        loaded.config, env, doing=f"doctor ({mode})", create=mode == "import"
    ) as database:
        found = legacy_stores(loaded.config, env, agent_id) if stores is None else stores
        outcomes = await over_stores(mode, database, loaded.config, found, progress)
    ok = not any(outcome.failed for outcome in outcomes)
    took_ms = round((time.monotonic() - began) * 1000)
    return SqliteReport(mode, ok, shown_place(loaded.config, env), outcomes, took_ms)


async def over_stores(
    mode: Mode,
    database: Database,
    config: Config,
    stores: Sequence[LegacyStore],
    progress: ProgressFeed,
) -> tuple[Outcome, ...]:
    """Run one mode over these stores; one that cannot be read is told and does not stop the others."""
    outcomes: list[Outcome] = []
    plans: list[ImportPlan] = []
    for store in stores:
        try:
            plans.append(make_plan(store, views.key_settings(config)))
        except (StoreCorrupt, OSError) as error:
            broken = Outcome(agent_id=store.agent_id, path=str(store.index_path), failed=1, problem_count=1)
            broken.problems = [str(error)]
            outcomes.append(broken)
    progress.start(sum(_bytes_of(plan) for plan in plans))
    legacy = LegacyImport(database, lambda: time.time_ns() // 1_000_000, progress.advance)
    modes: dict[Mode, Callable[[ImportPlan], Awaitable[Outcome]]] = {
        "inspect": _inspect(database),
        "dry-run": legacy.preview,
        "import": legacy.run,
        "validate": legacy.validate,
    }
    for plan in plans:
        outcomes.append(await modes[mode](plan))
    return tuple(outcomes)


def _inspect(database: Database) -> Callable[[ImportPlan], Awaitable[Outcome]]:
    async def inspect(plan: ImportPlan) -> Outcome:
        """What is there and what of it is in the store, without opening a transcript."""
        outcome = outcome_of(plan)
        rows = await database.read(lambda tx: writing.imports_of(tx, plan.store.agent_id))
        done = {row.file_name: row for row in rows if row.hash is not None}
        outcome.already = sum(planned.file_name in done for planned in plan.sessions)
        outcome.records = sum(row.records for row in done.values() if row.window_no is not None)
        return outcome

    return inspect


def _bytes_of(plan: ImportPlan) -> int:
    names = (planned.file_name for planned in plan.sessions if planned.file_name is not None)
    return sum((plan.store.folder / name).stat().st_size for name in names)


# -- mending the file ------------------------------------------------------------------------------


class MendReport(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The result of `recover` or `compact`. `imported` came back from files of an earlier layout."""

    mode: Literal["recover", "compact"]
    ok: bool
    database: str
    took_ms: int
    recovered: Recovered | None = None
    imported: int = 0
    compacted: Compacted | None = None


async def recover_store(
    loaded: LoadedConfig, env: Mapping[str, str], progress: ProgressFeed = SILENT
) -> MendReport:
    """Save what can be read of a damaged database, then bring back what earlier files still hold (DB-7).

    The damaged file stays beside the new one; a database that is whole is left as it is.
    """
    began = time.monotonic()
    path = _file_of(loaded.config, env, "recover")
    saved = await asyncio.to_thread(recover, path, time.strftime("%Y%m%d-%H%M%S"))
    imported = 0
    if saved.damaged and saved.ok:
        report = await session_sqlite("import", loaded, env, progress=progress)
        imported = sum(outcome.imported for outcome in report.stores)
    took_ms = round((time.monotonic() - began) * 1000)
    return MendReport("recover", saved.ok, str(path), took_ms, recovered=saved, imported=imported)


async def compact_store(loaded: LoadedConfig, env: Mapping[str, str]) -> MendReport:
    """Give the space of what was removed back to the disk."""
    began = time.monotonic()
    path = _file_of(loaded.config, env, "compact")
    done = await asyncio.to_thread(compact, path)
    took_ms = round((time.monotonic() - began) * 1000)
    return MendReport("compact", True, str(path), took_ms, compacted=done)


def _file_of(config: Config, env: Mapping[str, str], mode: str) -> Path:
    if not is_sqlite(config):
        raise InvalidRequest(f"{mode} is for the embedded database; PostgreSQL has its own tools")
    return database_path(env)
