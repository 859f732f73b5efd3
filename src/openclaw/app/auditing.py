"""`security.audit`: the configuration in force, the files of the state directory and the rows.

Looks and advises. With `fix` it changes file modes and nothing else; symbolic links
are never followed. Runs in a running gateway, or offline under the lock.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from openclaw.config import views
from openclaw.config.audit import Finding, audit_config
from openclaw.config.load import LoadedConfig, state_dir
from openclaw.domain.addressing import shared_inbox_warning
from openclaw.domain.keys import KeyShape, parse_key
from openclaw.errors import InvalidSessionKey
from openclaw.protocol.params_insight import SecurityAuditParams
from openclaw.store.database import Database
from openclaw.store.devices import Devices
from openclaw.store.insight import Insight

DATABASE_NAME = "openclaw.sqlite"
MOST_FILES = 20_000
MOST_SHOWN = 20
DAY_MS = 86_400_000
IDLE_DEVICE_MS = 90 * DAY_MS
_OTHERS = 0o077
_ORDER = {"critical": 0, "warn": 1, "info": 2}


class AuditReport(Struct, frozen=True, rename="camel"):
    """Findings, the gravest first. `ok`: none is critical that was not put right."""

    ok: bool
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    deep: bool


class Auditor:
    """`in_force` is asked anew each time, so that a reload counts."""

    def __init__(
        self,
        database: Database,
        in_force: Callable[[], LoadedConfig],
        env: Mapping[str, str],
        now_ms: Callable[[], int],
    ) -> None:
        self._insight = Insight(database)
        self._paired = Devices(database)
        self._in_force = in_force
        self._env = env
        self._now_ms = now_ms

    async def audit(self, asked: SecurityAuditParams) -> AuditReport:
        loaded = self._in_force()
        files = await asyncio.to_thread(audit_files, loaded, self._env, deep=asked.deep, fix=asked.fix)
        rows = (*await self._people(loaded), *await self._devices())
        return report_of((*audit_config(loaded), *files, *rows), deep=asked.deep)

    async def _devices(self) -> list[Finding]:
        """Paired devices that nobody has used for a long time."""
        since = self._now_ms() - IDLE_DEVICE_MS
        return [
            Finding(
                "devices.unused",
                "info",
                f"device {device.facts.display_name or device.facts.client_id} ({device.device_id[:16]}…) "
                f"is paired and was last seen {(self._now_ms() - device.last_seen_at) // DAY_MS} days ago",
                f"openclaw devices revoke {device.device_id}",
            )
            for device in await self._paired.paired()
            if device.last_seen_at < since
        ][:MOST_SHOWN]

    async def _people(self, loaded: LoadedConfig) -> list[Finding]:
        """Direct messages of several people in one main session (CLI-14)."""
        config = loaded.config
        settings = views.address_settings(config)
        if settings.dm_scope != "main":
            return []
        findings = []
        for session_key, senders in (await self._insight.shared_sessions()).items():
            if not _is_main(session_key, loaded):
                continue
            warning = shared_inbox_warning(
                dm_scope_is_set=False, owners=views.owner_ids(config), senders=senders, settings=settings
            )
            if warning is not None:
                chosen = views.dm_scope_is_set(config)
                findings.append(
                    Finding(
                        "session.dmScope",
                        "info" if chosen else "warn",
                        f"{session_key}: {warning.text}",
                        "openclaw config set session.dmScope per-channel-peer",
                    )
                )
        return findings


def _is_main(session_key: str, loaded: LoadedConfig) -> bool:
    try:
        shape = parse_key(session_key, views.key_settings(loaded.config)).shape
    except InvalidSessionKey:  # an imported row may name anything
        return False
    return shape in (KeyShape.main, KeyShape.global_)


def report_of(findings: tuple[Finding, ...], *, deep: bool) -> AuditReport:
    ordered = tuple(sorted(findings, key=lambda one: (one.fixed, _ORDER[one.severity])))
    counts = dict.fromkeys(_ORDER, 0)
    for one in ordered:
        counts[one.severity] += not one.fixed
    return AuditReport(counts["critical"] == 0, ordered, counts, deep)


# -- files ----------------------------------------------------------------------------------------


def audit_files(
    loaded: LoadedConfig, env: Mapping[str, str], *, deep: bool, fix: bool
) -> tuple[Finding, ...]:
    """Files that others on this machine may read or write; with `fix`, closed to them."""
    findings = []
    for path in dict.fromkeys(_watched(loaded, env, deep=deep)):
        found = _audit_file(path, fix=fix)
        if found is not None:
            findings.append(found)
    if len(findings) > MOST_SHOWN:
        more = Finding(
            "files.mode", "warn", f"{len(findings) - MOST_SHOWN} more files are open to others", "--fix"
        )
        findings = [*findings[:MOST_SHOWN], more]
    return tuple(findings)


def _watched(loaded: LoadedConfig, env: Mapping[str, str], *, deep: bool) -> Iterator[Path]:
    home = state_dir(env)
    yield home
    if loaded.exists:
        yield loaded.path
    url = loaded.config.store.url
    if url is None or url.startswith("sqlite://"):
        database = home / DATABASE_NAME
        yield from (database, *(database.with_name(database.name + end) for end in ("-wal", "-shm")))
    for name in ("logs", "archive", "agents"):
        yield home / name
    if deep:
        yield from _below(home)


def _below(folder: Path) -> Iterator[Path]:
    """Everything in the state directory but the workspaces, which belong to the agents; bounded."""
    seen = 0
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith("workspace")]
        for name in (*folders, *names):
            seen += 1
            if seen > MOST_FILES:
                return
            yield Path(where, name)


def _audit_file(path: Path, *, fix: bool) -> Finding | None:
    try:
        facts = path.lstat()
    except OSError:
        return None
    mode = stat.S_IMODE(facts.st_mode)
    if stat.S_ISLNK(facts.st_mode) or not mode & _OTHERS:
        return None
    wanted = mode & ~_OTHERS
    what = "directory" if stat.S_ISDIR(facts.st_mode) else "file"
    finding = Finding(
        "files.mode",
        "critical" if mode & 0o022 else "warn",
        f"{path}: others on this machine may {'change' if mode & 0o022 else 'read'} this {what} ({mode:04o})",
        f"chmod {wanted:04o} {path}",
        str(path),
    )
    if not fix:
        return finding
    try:
        path.chmod(wanted)
    except OSError as error:
        return msgspec.structs.replace(finding, detail=f"{finding.detail}; not changed: {error.strerror}")
    return msgspec.structs.replace(finding, fixed=True)
