"""What `openclaw doctor` does: look at the state directory, import the founding layout, check the import.

Works only while no gateway runs, and says so otherwise (CLI-10). Also the place of the
rule that a gateway does not start beside a history that it does not know (DB-6).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from openclaw.app.offline import is_sqlite, offline_store, shown_place
from openclaw.config import views
from openclaw.config.agent_view import agent_ids, default_agent_id
from openclaw.config.load import LoadedConfig, session_store_path, state_dir
from openclaw.config.schema import Config
from openclaw.domain.keys import valid_agent_id
from openclaw.errors import StoreCorrupt, Unavailable
from openclaw.store.database import Database
from openclaw.store.legacy import writing
from openclaw.store.legacy.importing import LegacyImport, Outcome, outcome_of
from openclaw.store.legacy.planning import ImportPlan, LegacyStore, make_plan
from openclaw.store.legacy.reading import hash_of_file

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


class Check(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that was looked at. `fix` is what to do when it is not well."""

    name: str
    ok: bool
    detail: str
    fix: str | None = None


class CheckReport(Struct, frozen=True, rename="camel"):
    ok: bool
    checks: tuple[Check, ...]


class ProgressFeed(Struct, frozen=True):
    """Hears how much there is to do, and then each piece that is done; both in bytes."""

    start: Callable[[int], None] = lambda _total: None
    advance: Callable[[int], None] = lambda _count: None


_SILENT = ProgressFeed()


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
        if await _is_unimported(database, store):
            raise Unavailable(
                f"{store.index_path} holds sessions of an earlier layout that were not imported; starting "
                f"without them would look like lost history. Import them with: {IMPORT_COMMAND}",
                path=str(store.index_path),
            )


async def _is_unimported(database: Database, store: LegacyStore) -> bool:
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
    progress: ProgressFeed = _SILENT,
) -> SqliteReport:
    """Run one mode over the stores of one agent, or of all."""
    began = time.monotonic()
    async with offline_store(
        loaded.config, env, doing=f"doctor ({mode})", create=mode == "import"
    ) as database:
        outcomes = await _over_stores(mode, database, loaded.config, env, agent_id, progress)
    ok = not any(outcome.failed for outcome in outcomes)
    took_ms = round((time.monotonic() - began) * 1000)
    return SqliteReport(mode, ok, shown_place(loaded.config, env), outcomes, took_ms)


async def _over_stores(
    mode: Mode,
    database: Database,
    config: Config,
    env: Mapping[str, str],
    agent_id: str | None,
    progress: ProgressFeed,
) -> tuple[Outcome, ...]:
    outcomes: list[Outcome] = []
    plans: list[ImportPlan] = []
    for store in legacy_stores(config, env, agent_id):
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


# -- the general check -----------------------------------------------------------------------------


async def check(
    loaded: LoadedConfig, env: Mapping[str, str], *, fix: bool, progress: ProgressFeed = _SILENT
) -> CheckReport:
    """Look at config, database and legacy stores; with `fix`, import what was not imported."""
    checks = [_check_config(loaded)]
    async with offline_store(loaded.config, env, doing="doctor", create=fix) as database:
        checks.append(await _check_database(database, loaded.config, env))
        waiting = [
            store for store in legacy_stores(loaded.config, env) if await _is_unimported(database, store)
        ]
        if fix and waiting:
            outcomes = await _over_stores("import", database, loaded.config, env, None, progress)
            done = sum(outcome.imported for outcome in outcomes)
            failed = sum(outcome.failed for outcome in outcomes)
            told = [problem for outcome in outcomes for problem in outcome.problems]
            detail = f"{done} sessions imported, {len(told)} problems" + "".join(
                f"\n  {one}" for one in told[:20]
            )
            checks.append(Check("sessions", not failed, detail))
        elif waiting:
            detail = f"not imported: {', '.join(str(store.index_path) for store in waiting)}"
            checks.append(Check("sessions", False, detail, IMPORT_COMMAND))
        else:
            checks.append(Check("sessions", True, "nothing of an earlier layout waits to be imported"))
    return CheckReport(all(one.ok for one in checks), tuple(checks))


def _check_config(loaded: LoadedConfig) -> Check:
    if loaded.problems:
        text = "\n".join(str(problem) for problem in loaded.problems)
        return Check("config", False, text, "openclaw config validate")
    where = str(loaded.path) if loaded.exists else f"{loaded.path} does not exist; defaults apply"
    return Check("config", True, where)


async def _check_database(database: Database, config: Config, env: Mapping[str, str]) -> Check:
    place = shown_place(config, env)
    if not is_sqlite(config):
        return Check("database", True, f"{place} answers")
    found = await database.read(lambda tx: tx.rows("PRAGMA quick_check(20)"))
    if found == [("ok",)]:
        return Check("database", True, place)
    damage = "; ".join(str(row[0]) for row in found)
    return Check("database", False, f"{place}: {damage}", "restore a backup; nothing was changed")
