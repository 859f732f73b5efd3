"""What `openclaw doctor` looks at: config, files, versions, lock, database, old layouts, disk, models.

Each check is one line with the way out. With `fix`, what can be put right without
asking is: file modes, and sessions that wait to be imported. While a gateway runs,
its store is left to it and everything else is still looked at (CLI-10).
"""

from __future__ import annotations

import asyncio
import platform
import shutil
import stat
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from openclaw import __version__
from openclaw.app.auditing import audit_files
from openclaw.app.doctor import (
    IMPORT_COMMAND,
    SILENT,
    ProgressFeed,
    is_unimported,
    legacy_stores,
    over_stores,
)
from openclaw.app.legacyjobs import IMPORT_COMMAND as JOBS_COMMAND
from openclaw.app.legacyjobs import waiting_jobs
from openclaw.app.offline import database_path, is_sqlite, offline_store, shown_place
from openclaw.app.settings import SettingsSource
from openclaw.config.load import LoadedConfig, state_dir
from openclaw.config.schema import Config
from openclaw.engine.ports import ModelTarget
from openclaw.errors import StoreCorrupt, StoreError, StoreLocked
from openclaw.store.database import Database
from openclaw.store.diagnostics import Diagnostics

LEAST_FREE_BYTES = 256 << 20
RECOVER_COMMAND = "openclaw doctor --session-sqlite recover"
MODEL_TIMEOUT_S = 60.0
GATEWAY_RUNS = "a gateway runs"
_SHOWN = 20


class Check(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One thing that was looked at. `fix` is what to do when it is not well."""

    name: str
    ok: bool
    detail: str
    fix: str | None = None


class CheckReport(Struct, frozen=True, rename="camel"):
    ok: bool
    checks: tuple[Check, ...]

    @property
    def gateway_runs(self) -> bool:
        """Whether somebody else owns the store."""
        return any(one.name == "lock" and one.detail.startswith(GATEWAY_RUNS) for one in self.checks)


def report_of(checks: Sequence[Check]) -> CheckReport:
    return CheckReport(all(one.ok for one in checks), tuple(checks))


async def check(
    loaded: LoadedConfig,
    env: Mapping[str, str],
    *,
    fix: bool,
    deep: bool = False,
    progress: ProgressFeed = SILENT,
) -> CheckReport:
    """Look at everything; with `deep` also ask each agent's model one tiny question, which may cost money."""
    checks = [_check_config(loaded), *check_files(loaded, env, fix=fix), _check_versions()]
    checks += await _check_store(loaded, env, fix=fix, progress=progress)
    checks.append(check_disk(state_dir(env), database_path(env)))
    if deep and not loaded.problems:
        checks += await _check_models(loaded, env)
    return report_of(checks)


def _check_config(loaded: LoadedConfig) -> Check:
    if loaded.problems:
        text = "\n".join(str(problem) for problem in loaded.problems)
        return Check("config", False, text, "correct the file; `openclaw config validate` checks it again")
    where = str(loaded.path) if loaded.exists else f"{loaded.path} does not exist; defaults apply"
    return Check("config", True, where)


# -- files, versions, disk -------------------------------------------------------------------------


def check_files(loaded: LoadedConfig, env: Mapping[str, str], *, fix: bool) -> list[Check]:
    """That only its owner reads the state directory."""
    home = state_dir(env)
    if not home.exists():
        return [Check("state", True, f"{home} does not exist yet; the first start makes it")]
    if not stat.S_ISDIR(home.stat().st_mode):
        return [
            Check("state", False, f"{home} is not a directory", "move it away, or set OPENCLAW_STATE_DIR")
        ]
    open_files = [one for one in audit_files(loaded, env, deep=False, fix=fix) if not one.fixed]
    if not open_files:
        return [Check("state", True, f"{home}, for its owner only")]
    told = "\n".join(one.detail for one in open_files[:_SHOWN])
    return [Check("state", False, told, "openclaw doctor --fix")]


def _check_versions() -> Check:
    import apsw

    from openclaw.store.sqlite_file import SAFE_SQLITE, SCHEMA_VERSION

    told = (
        f"openclaw {__version__}, Python {platform.python_version()}, "
        f"SQLite {apsw.sqlite_lib_version()}, schema {SCHEMA_VERSION}"
    )
    number = apsw.SQLITE_VERSION_NUMBER
    if number >= SAFE_SQLITE:
        return Check("versions", True, told)
    return Check(
        "versions", False, f"{told}; this SQLite can damage a database", "pip install --upgrade apsw"
    )


def check_disk(home: Path, database: Path) -> Check:
    """That there is room for some time, and for a rewrite of the database."""
    place = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(place).free
    wanted = max(LEAST_FREE_BYTES, database.stat().st_size if database.exists() else 0)
    told = f"{_mebibytes(free)} free at {place}"
    if free >= wanted:
        return Check("disk", True, told)
    return Check("disk", False, f"{told}, {_mebibytes(wanted)} would be good", "free some space")


def _mebibytes(count: int) -> str:
    return f"{count / (1 << 20):.0f} MiB" if count < 10 << 30 else f"{count / (1 << 30):.0f} GiB"


# -- the store -------------------------------------------------------------------------------------


async def _check_store(
    loaded: LoadedConfig, env: Mapping[str, str], *, fix: bool, progress: ProgressFeed
) -> list[Check]:
    config = loaded.config
    try:
        async with offline_store(config, env, doing="doctor", create=fix) as database:
            checks = [Check("lock", True, "no gateway runs"), await _check_database(database, config, env)]
            checks.append(await _check_sessions(database, loaded, env, fix=fix, progress=progress))
            checks += await _check_jobs(database, env)
            checks += await _check_history(database)
            if fix:
                await _note_problems(database, checks)
            return checks
    except StoreLocked as refusal:
        owner = refusal.fields.get("owner")
        told = f"{GATEWAY_RUNS}{f' (process {owner})' if owner else ''} and owns {shown_place(config, env)}"
        return [
            Check("lock", True, told),
            Check("database", True, "left to the gateway; stop it to have every page checked"),
        ]
    except StoreCorrupt as damage:
        return [
            Check("lock", True, "no gateway runs"),
            Check("database", False, damage.message, RECOVER_COMMAND),
        ]
    except StoreError as error:
        return [Check("lock", True, "no gateway runs"), Check("database", False, error.message)]


async def _check_database(database: Database, config: Config, env: Mapping[str, str]) -> Check:
    place = shown_place(config, env)
    if not is_sqlite(config):
        return Check("database", True, f"{place} answers")
    if not database_path(env).exists():
        return Check("database", True, f"{place}, made at the first start")
    found = await database.read(lambda tx: tx.rows("PRAGMA quick_check(20)"))
    if found == [("ok",)]:
        return Check("database", True, place)
    damage = "; ".join(str(row[0]) for row in found)
    return Check("database", False, f"{place}: {damage}", f"{RECOVER_COMMAND}, or restore a backup")


async def _check_sessions(
    database: Database,
    loaded: LoadedConfig,
    env: Mapping[str, str],
    *,
    fix: bool,
    progress: ProgressFeed,
) -> Check:
    stores = legacy_stores(loaded.config, env)
    waiting = [store for store in stores if await is_unimported(database, store)]
    if not waiting:
        return Check("sessions", True, "nothing of an earlier layout waits to be imported")
    if not fix:
        detail = f"not imported: {', '.join(str(store.index_path) for store in waiting)}"
        return Check("sessions", False, detail, IMPORT_COMMAND)
    outcomes = await over_stores("import", database, loaded.config, stores, progress)
    done = sum(outcome.imported for outcome in outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    told = [problem for outcome in outcomes for problem in outcome.problems]
    detail = f"{done} sessions imported, {len(told)} problems" + "".join(f"\n{one}" for one in told[:_SHOWN])
    return Check("sessions", not failed, detail)


async def _check_jobs(database: Database, env: Mapping[str, str]) -> list[Check]:
    waiting = await waiting_jobs(database, env)
    return [] if waiting is None else [Check("jobs", False, f"not imported: {waiting}", JOBS_COMMAND)]


async def _check_history(database: Database) -> list[Check]:
    """How the gateway fared lately. What has happened is no problem of now, so this is always well."""
    found = await Diagnostics(database).newest()
    last = next((one for one in reversed(found) if one.kind in ("start", "stop")), None)
    if last is None:
        return []
    when = datetime.fromtimestamp(last.at / 1000, UTC).isoformat(timespec="seconds")
    ended = f"the last gateway stopped at {when}, {last.detail}"
    broken = f"the gateway that began at {when} did not stop in order"
    crashes = sum(one.kind == "crash" for one in found)
    more = (
        f"; {crashes} crashes among the last {len(found)} events: openclaw logs --events" if crashes else ""
    )
    return [Check("history", True, (ended if last.kind == "stop" else broken) + more)]


async def _note_problems(database: Database, checks: list[Check]) -> None:
    told = "; ".join(
        f"{one.name}: {one.detail.splitlines()[0]}" for one in checks if not one.ok and one.detail
    )
    if told:
        now_ms = time.time_ns() // 1_000_000
        await Diagnostics(database).note("doctor", told, now_ms=now_ms)


# -- models ----------------------------------------------------------------------------------------


async def _check_models(loaded: LoadedConfig, env: Mapping[str, str]) -> list[Check]:
    settings = SettingsSource(loaded.config, env).current()
    targets = {
        f"{agent.default_model.provider}/{agent.default_model.model}": agent.default_model
        for agent in settings.agents.values()
    }
    return list(await asyncio.gather(*(_check_model(name, target) for name, target in targets.items())))


async def _check_model(name: str, target: ModelTarget) -> Check:
    from openclaw.app.model_setup import check_target

    try:
        async with asyncio.timeout(MODEL_TIMEOUT_S):
            result = await check_target(target)
    except TimeoutError:
        told = f"{name} did not answer within {MODEL_TIMEOUT_S:g} s"
        return Check("model", False, told, f"openclaw models test {name}")
    if result.failure is None:
        return Check("model", True, f"{name} answers ({result.took_ms} ms)")
    return Check("model", False, f"{name}: {result.failure.message}", f"openclaw models test {name}")
